"""The plan: a contract brought to life by its protocol. What users hold."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sunzi import wire
from sunzi.client import Client
from sunzi.contract import Contract, canonical_json, parse_json
from sunzi.domain import Domain
from sunzi.errors import ParameterError, PlanError, ReportError, TallyError
from sunzi.estimate import Estimate
from sunzi.numerics.checks import shown
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource, WordSource
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.protocols.base import Protocol
from sunzi.protocols.catalogue import find
from sunzi.tally import Tally

Epsilon = int | float | str | Decimal | Fraction
Reports = bytes | bytearray | memoryview | BinaryIO | Iterable[bytes]

_REPORTS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The terms of one collection, and everything one can do under them. Frozen; equal plans have equal
    fingerprints.
    """

    contract: Contract
    protocol: Protocol

    @classmethod
    def from_contract(cls, contract: Contract) -> Plan:
        """Rebuild the protocol from the contract's integers, checking each of them."""
        parameters = contract.to_json()["parameters"]
        try:
            made = find(contract.protocol).from_parameters(contract.domain.size, contract.epsilon, parameters)
        except ParameterError as error:
            raise PlanError(str(error)) from None
        if canonical_json(made.parameters()) != canonical_json(parameters):  # to Python, true is 1
            raise PlanError(f"the parameters of this {contract.protocol} plan are not in their normal form")
        return cls(contract, made)

    @classmethod
    def from_json(cls, data: bytes | str) -> Plan:
        """A plan from the text of its file."""
        return cls.from_contract(Contract.from_json(parse_json(data.encode() if isinstance(data, str) else data)))

    def with_labels(self, path: str | Path) -> Plan:
        """The same plan with the labels of a file that it names by its hash."""
        terms = self.contract
        return Plan(Contract(terms.protocol, terms.epsilon, terms.domain.attach(path), terms.parameters), self.protocol)

    @property
    def domain(self) -> Domain:
        """Labels and indices."""
        return self.contract.domain

    @property
    def epsilon(self) -> Fraction:
        """The privacy budget of one report, exactly."""
        return self.contract.epsilon

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the plan's canonical form, in hexadecimal."""
        return self.contract.fingerprint.hex()

    @property
    def report_bits(self) -> float:
        """Mean bits of a report."""
        return self.protocol.report_layout.mean_bits

    @property
    def max_report_bits(self) -> int:
        """Bits of the longest report."""
        return self.protocol.report_layout.max_bits

    @property
    def attackability(self) -> float:
        """How often a Bayes-optimal attacker who sees one report guesses the value, if all values are equally
        likely.
        """
        return self.protocol.attackability

    def expected_mse(self, users: int, histogram: NDArray[np.float64] | None = None) -> float:
        """Expected squared error of a frequency: of items that nearly nobody holds, or averaged over a given
        histogram.
        """
        return self.protocol.expected_mse(users, histogram)

    def worst_mse(self, users: int) -> float:
        """The largest mean squared error over all histograms, or an upper bound on it."""
        return self.protocol.worst_mse(users)

    def save(self, path: str | Path) -> None:
        """Write the plan file, in one atomic step."""
        self.contract.save(path)

    def client(
        self,
        *,
        seed: int | None = None,
        source: WordSource | None = None,
        max_epsilon: Epsilon | None = None,
        fingerprint: str | bytes | None = None,
    ) -> Client:
        """A client; private unless a seed or a source is given."""
        return Client(self, seed=seed, source=source, max_epsilon=max_epsilon, fingerprint=fingerprint)

    def simulate(self, values: object, *, seed: int | Sequence[int]) -> Tally:
        """A tally with the distribution that real reports of these values would have, without making their bytes."""
        indices = self.domain.indices(values)
        return self._tally(indices.size, self.protocol.simulate(indices, ReproducibleSource(seed)))

    def tally(self, reports: Reports) -> Tally:
        """Count reports: one batch, one report, a binary stream of batches, or an iterable of batches and reports.

        All or nothing: if anything is refused, a ReportError says what, and no tally is returned.
        """
        return self._tally(*self._count(reports))

    def _count(self, reports: Reports) -> tuple[int, Counters]:
        """The number of reports and their counts: :meth:`tally` for callers inside the library that add up many small
        pieces and check the sum once.
        """
        if _is_stream(reports):
            pieces = self._decode_stream(reports)
        elif isinstance(reports, (bytes, bytearray, memoryview)):
            pieces = self._decode([bytes(reports)])
        elif isinstance(reports, Iterable):
            pieces = self._decode(reports)
        else:
            raise ReportError(
                f"reports are bytes, a file opened for reading bytes, or an iterable of bytes, got {shown(reports)}"
            )
        count, counters = 0, Counters.zeros(self.protocol.tally_layout.length)
        for encoded in pieces:
            count += len(encoded)
            counters += self.protocol.count(self.protocol.decode(encoded))
        return count, counters

    def _decode(self, reports: Iterable[bytes]) -> Iterator[wire.EncodedReports]:
        """Batches as they come; single reports in groups, so that arrays can do the work."""
        single: list[bytes] = []
        for report in reports:
            if not isinstance(report, (bytes, bytearray, memoryview)):
                raise ReportError(f"a report is bytes, got {type(report).__name__}")
            data = bytes(report)
            if wire.is_batch(data):
                yield from self._decode_stream(io.BytesIO(data))
            else:
                single.append(data)
            if len(single) == _REPORTS_AT_ONCE:
                yield wire.decode_reports(self.protocol.report_layout, single)
                single = []
        if single:
            yield wire.decode_reports(self.protocol.report_layout, single)

    def _decode_stream(self, stream: BinaryIO) -> Iterator[wire.EncodedReports]:
        return wire.read_batches(stream, self.protocol.report_layout, self.contract.fingerprint)

    def empty_tally(self) -> Tally:
        """A tally of no reports, to add to."""
        return self._tally(0, Counters.zeros(self.protocol.tally_layout.length))

    def _tally(self, reports: int, counters: Counters) -> Tally:
        return Tally(self.contract.fingerprint, self.protocol.tally_layout, reports, counters)

    def estimate(self, tally: Tally, **options: Any) -> Estimate:
        """The unbiased histogram of the users whose reports the tally holds. Options are the protocol's own."""
        if not isinstance(tally, Tally):
            raise TallyError(f"an estimate takes a Tally, got {type(tally).__name__}; plan.tally makes one of reports")
        if tally.fingerprint != self.contract.fingerprint:
            raise TallyError(
                f"this tally belongs to the plan {tally.fingerprint.hex()[:16]}…, not to {self.fingerprint[:16]}…"
            )
        if tally.layout != self.protocol.tally_layout:
            raise TallyError("this tally's counters are not laid out as this plan says")
        with _refusing_options(self.protocol.name, options):
            return self.protocol.estimate(self.domain, tally, **options)

    def __eq__(self, other: object) -> bool:
        """Equal terms."""
        return isinstance(other, Plan) and self.contract.fingerprint == other.contract.fingerprint

    def __hash__(self) -> int:
        """By fingerprint."""
        return hash(self.contract.fingerprint)

    def __repr__(self) -> str:
        """The terms in one line."""
        bits = f"{self.report_bits:g} bits a report"
        terms = f"{self.protocol.name}, {self.domain.size} values, epsilon {self.epsilon}, {bits}"
        return f"Plan({terms}, {self.fingerprint[:16]}…)"


def _is_stream(reports: object) -> TypeGuard[BinaryIO]:
    return hasattr(reports, "read") and not isinstance(reports, io.TextIOBase)


@contextmanager
def _refusing_options(protocol: str, options: Mapping[str, object]) -> Iterator[None]:
    """Protocols check the values of their options and leave unknown names to Python."""
    try:
        yield
    except TypeError as error:
        if not options:
            raise
        raise ParameterError(f"{protocol} refuses these options, {shown(dict(options))}: {error}") from error


def make_plan(
    protocol: str, domain: int | Iterable[str] | Domain, epsilon: Epsilon, *, other: str | None = None, **options: Any
) -> Plan:
    """Plan a collection by hand: a name of the catalogue, a domain (a size, a list of labels, or a Domain), ε, and the
    protocol's options.
    """
    if isinstance(domain, Domain) and other is not None:
        raise ParameterError("give other to the Domain itself")
    terms = domain if isinstance(domain, Domain) else Domain(domain, other=other)
    budget = parse_epsilon(epsilon)
    with _refusing_options(protocol, options):
        made = find(protocol).choose(terms.size, budget, **options)
    return Plan(Contract(protocol, budget, terms, made.parameters()), made)


def load_plan(path: str | Path, *, labels: str | Path | None = None) -> Plan:
    """Read a plan file, checking everything that a client's privacy rests on; ``labels`` is the label file of a plan
    that names it by its hash.
    """
    contract = Contract.load(path)
    try:
        plan = Plan.from_contract(contract)
        return plan if labels is None else plan.with_labels(labels)
    except PlanError as error:
        raise type(error)(f"{path}: {error}") from None
