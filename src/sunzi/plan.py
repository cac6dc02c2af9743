"""The plan: a contract with its protocol. It makes clients, tallies reports and estimates histograms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from sunzi import wire
from sunzi._typing import Floats
from sunzi.atomic_files import write_atomically
from sunzi.batch import BatchGuarantee, Reader, batch_guarantee, minimum_batch
from sunzi.batch_client import BatchClient
from sunzi.client import plan as client
from sunzi.client.designs.subset_code import MOST_POINTS as MOST_CODED
from sunzi.client.designs.subset_code import word_bits
from sunzi.client.designs.subsets import BITMAP
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.randomness import WordSource
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.display.markup import facts_table, for_notebook
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.domains.texts import OpenDomain
from sunzi.errors import TallyError
from sunzi.formatting import attacker_success, bits_in_words, lifetime_in_words, percent, privacy_bound
from sunzi.groups import groups_in_words
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols.base import Protocol, check_options
from sunzi.protocols.counting import Reports, count_reports
from sunzi.protocols.registry import find
from sunzi.results.discovery import Discovery, Threshold
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally

_USERS = (10_000, 1_000_000)


class Plan(client.Plan):
    """One collection: its public terms, and the clients, tallies and estimates that follow from them.

    Immutable. Two plans are equal if and only if their fingerprints are.

    >>> import sunzi
    >>> plan = sunzi.make_plan("ss-compact", ["red", "green", "blue"], epsilon=2)
    >>> reports = plan.client().reports(["red", "blue", "red"])
    >>> plan.estimate(plan.tally(reports)).reports
    3
    """

    if TYPE_CHECKING:

        @property
        def protocol(self) -> Protocol:
            """How clients randomise values, and how the server estimates from their reports."""

        @property
        def domain(self) -> Domain:
            """The values, as labels and indices."""

    @staticmethod
    def protocol_kind(name: str) -> type[Protocol]:
        """The class of a protocol, registered and installed ones included."""
        return find(name)

    @staticmethod
    def domain_kind(key: str) -> type[Domain]:
        """The class of domains of "values", a "range", "attributes" or "symbols"."""
        return {"values": Domain, "range": OrderedDomain, "attributes": RecordDomain, "symbols": OpenDomain}[key]

    def with_groups(self, groups: Mapping[str, Iterable[str]]) -> Plan:
        """The same plan with these public groups, which uploads may name; its fingerprint differs.

        Groups are not protected: the collector learns them as they are, and counts a tally for each.

        Parameters
        ----------
        groups: for every attribute, such as "country", all of its values.
        """
        return Plan(self.protocol, self.domain, groups, self.lifetime)

    def with_lifetime(self, lifetime: Epsilon | None) -> Plan:
        """The same plan with this lifetime budget for devices, which estimates then mention; its fingerprint differs.

        Parameters
        ----------
        lifetime: ε for every different answer that a device shall pay for; then it repeats its latest report, so that
            shares of new values lag. Only the application sets the budget of a device; None states none.
        """
        return Plan(self.protocol, self.domain, self.groups, None if lifetime is None else parse_epsilon(lifetime))

    @property
    def report_bits(self) -> float:
        """Mean bits of a report."""
        return wire.mean_bits(self.protocol.report_layout)

    @property
    def max_report_bits(self) -> int:
        """Bits of the longest report."""
        return self.protocol.report_layout.max_bits

    @property
    def attackability(self) -> float:
        """Success rate of a Bayes-optimal attacker who sees one report and has a uniform prior."""
        return self.protocol.attackability

    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """Mean squared error of an estimated frequency.

        Parameters
        ----------
        users: the number of reports.
        histogram: the true frequencies; by default all values are equally frequent.
        """
        return self.protocol.expected_mse(users, histogram)

    def worst_mse(self, users: int) -> float:
        """The largest mean squared error over all histograms, or an upper bound on it."""
        return self.protocol.worst_mse(users)

    def batch_guarantee(
        self,
        reports: int | Sequence[int],
        delta: float,
        *,
        honest: float = 1.0,
        reader: Reader = "reports",
        epochs: int = 1,
        cohort: int | None = None,
    ) -> BatchGuarantee:
        """What someone who sees only whole batches can learn about one person: a central (ε, δ), proven for any data
        of the other users (docs/batch.md). The plan's own ε still holds against everyone.

        Parameters
        ----------
        reports: the minimum number of reports in a batch, or one number for each batch.
        delta: δ, the failure probability; far below 1/reports, such as 1e-8.
        honest: the share of reports, or of the cohort, whose clients follow the plan. The rest may collude with the
            reader.
        reader: "reports" sees all reports, shuffled; "tally" sees only the counts, which reveal less with ``oue`` and
            ``rappor``.
        epochs: how many batches, with fresh noise, contain the same person.
        cohort: for memoised reports: the minimum number of people who are in exactly the same batches.

        >>> import sunzi
        >>> guarantee = sunzi.make_plan("ss", 1024, epsilon=4).batch_guarantee(1_000_000, delta=1e-8)
        >>> print(f"{guarantee.epsilon:.4f}, and no less than {guarantee.attack_epsilon:.4f}")
        0.0312, and no less than 0.0309
        """
        found = batch_guarantee(
            self.protocol, reports, delta, honest=honest, reader=reader, epochs=epochs, cohort=cohort
        )
        return replace(found, plan=self.fingerprint)

    def minimum_batch(self, epsilon: float, delta: float, *, honest: float = 1.0, reader: Reader = "reports") -> int:
        """The smallest batch that reaches a central ε, to within 0.3 %.

        Parameters
        ----------
        epsilon: the central ε to reach.
        delta, honest, reader: as for :meth:`batch_guarantee`.
        """
        return minimum_batch(self.protocol, epsilon, delta, honest=honest, reader=reader)

    def save(self, path: str | Path) -> None:
        """Write the plan file atomically, indented for reading."""
        write_atomically(path, f"{json.dumps(self.to_json(), ensure_ascii=False, indent=1)}\n".encode())

    def client(
        self,
        *,
        seed: int | None = None,
        source: WordSource | None = None,
        max_epsilon: Epsilon | None = None,
        fingerprint: str | bytes | None = None,
        **limits: int,
    ) -> BatchClient:
        """The client that runs on a device, with batch methods on top.

        Parameters
        ----------
        seed: for simulation only; such a client protects nobody.
        source: a source of random words other than the operating system, for tests and proofs.
        max_epsilon: refuse the plan if it spends more than this.
        fingerprint: refuse the plan if its fingerprint differs.
        limits: ``max_bits`` and ``max_work``, what one report may cost the device.
        """
        terms = {"max_epsilon": max_epsilon, "fingerprint": fingerprint}
        return BatchClient(self, seed=seed, source=source, **terms, **limits)

    def simulate(self, values: object, *, seed: int | Sequence[int]) -> Tally:
        """A tally distributed like that of real reports of these values, without encoding any report.

        Parameters
        ----------
        values: one value per simulated user, as for :meth:`Client.report_batch`.
        seed: makes the simulation repeatable.
        """
        indices = self.domain.indices(values)
        return self._tally(len(indices), self.protocol.simulate(indices, ReproducibleSource(seed)))

    def tally(self, reports: Reports) -> Tally:
        """Count reports. All or nothing: if one is malformed, a ReportError names it and nothing is counted.

        Parameters
        ----------
        reports: one report, one batch, a binary stream of batches, or an iterable of reports and batches.
        """
        return self._tally(*count_reports(self.protocol, self.digest, reports))

    def empty_tally(self) -> Tally:
        """A tally of no reports, to add to."""
        return self._tally(0, Counters.zeros(self.protocol.tally_layout.length))

    def _tally(self, reports: int, counters: Counters) -> Tally:
        return Tally(self.digest, self.protocol.tally_layout, reports, counters)

    def estimate(self, tally: Tally, **options: Any) -> Estimate:
        """The unbiased histogram of the users who reported.

        Parameters
        ----------
        tally: a tally of this plan.
        options: how the reports are weighted (docs/guide.md, "Weights").

            - All protocols: ``weights="efficient"``, the default, adapts to the reports and has the least error,
              unbiased to first order; ``weights="planned"`` is a fixed linear map, exactly unbiased. They differ for
              ``mss``, ``mss-compact``, ``ss-compact`` and ``pgr``, from 50 reports per block on.
            - The same: ``pilot=``, a histogram, an estimate or a tally of other reports, from which to compute
              efficient weights; the estimate is then exactly unbiased.
            - All protocols: ``errors="quick"``, planned weights and standard errors in a fraction of the time; exact,
              but for ``mss`` and ``mss-compact`` an upper bound: in the mean over items the variance was 1.04 to 1.3
              times too large up to ε = 6, and 3 to 9 times at ε = 8.
            - All protocols: ``weights="paper"``, as in the paper: by the number of reports of each modulus. It differs
              from planned weights for ``mss`` and ``mss-compact`` only.
            - ``mss`` and ``mss-compact``: ``ridge=``, λ or "paper", as in the paper; it is biased and has no intervals.
            - ``prefixes``: ``labels=``, the texts to estimate, or a file with one per line (docs/open-domains.md).
            - Plans of tables: ``table=``, the attributes of the table (docs/records.md).

        >>> import sunzi
        >>> plan = sunzi.make_plan("ss-compact", 100, epsilon=2)
        >>> tally = plan.simulate([3] * 900 + [7] * 100, seed=1)
        >>> plan.estimate(tally).weights, plan.estimate(tally, weights="planned").weights
        ('efficient', 'planned')
        """
        self._check_tally(tally)
        check_options(self.protocol.name, self.protocol.estimate, options)
        return replace(self.protocol.estimate(self.domain, tally, **options), plan=self)

    def discover(self, tally: Tally, **options: Any) -> Discovery:
        """The frequent texts of an open domain, with intervals that account for the search.

        Parameters
        ----------
        tally: a tally of this plan.
        options: all optional. ``candidates=``, a list of texts, or a file with one per line: look for these only.
            ``prior=``, public texts of the same kind in the same form: they guide the search and cause no bias.
            ``false_share=``, the maximum false discovery rate, 0.05 by default.
            ``beam=``, how many prefixes a level passes on to the next.

        >>> import sunzi
        >>> plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=4, cells=1000)
        >>> found = plan.discover(plan.simulate(["yes"] * 5000 + ["no"] * 5000, seed=1))
        >>> sorted(found.labels)
        ['no', 'yes']
        """
        self._check_tally(tally)
        check_options(self.protocol.name, self.protocol.discover, options)
        return self.protocol.discover(self.domain, tally, **options)

    def thresholds(self, users: int, **options: float) -> list[Threshold]:
        """How frequent a text of an open domain must be to be found with this number of users, by its length.

        Parameters
        ----------
        users: the number of reports.
        options: ``recall=``, the probability of finding it, 0.8 by default; ``false_share=`` as in :meth:`discover`.
        """
        check_options(self.protocol.name, self.protocol.detection, options)
        return self.protocol.detection(self.domain, users, **options)

    def _check_tally(self, tally: Tally) -> None:
        """Raise TallyError unless it is a tally of this plan."""
        if not isinstance(tally, Tally):
            raise TallyError(f"an estimate takes a Tally, got {type(tally).__name__}; plan.tally makes one of reports")
        if tally.fingerprint != self.digest:
            raise TallyError(
                f"this tally belongs to the plan {tally.fingerprint.hex()[:16]}…, not to {self.fingerprint[:16]}…"
            )
        if tally.layout != self.protocol.tally_layout:
            raise TallyError("this tally's counters do not have this plan's layout")

    def __repr__(self) -> str:
        """The terms in one line."""
        bits = f"{bits_in_words(self.report_bits)} per report"
        terms = f"{self.protocol.name}, {self.domain.size_in_words}, epsilon {self.epsilon}, {bits}"
        return f"Plan({terms}, {self.fingerprint[:16]}…)"

    def facts(self) -> list[tuple[str, str]]:
        """The terms and what follows from them, as pairs of a name and a text: privacy, report size, error and more."""
        bits = bits_in_words(self.report_bits)
        if self.max_report_bits != self.report_bits:
            bits += f" on average, at most {self.max_report_bits:,}"
        bits += _code_in_words(self.protocol.responses)
        errors = [f"± {percent(self.expected_mse(users) ** 0.5)} with {users:,} users" for users in _USERS]
        return [
            ("fingerprint", self.fingerprint),
            ("protocol", self.protocol.name),
            ("privacy", privacy_bound(self.epsilon)),
            ("values", self.protocol.values_in_words(self.domain)),
            *([("groups", groups_in_words(self.groups))] if self.groups else []),
            *([] if self.lifetime is None else [("devices", lifetime_in_words(self.epsilon, self.lifetime))]),
            ("report", bits),
            ("error", f"{', '.join(errors)} (standard error of {self.protocol.error_of})"),
            *([] if self.domain.is_open else [("attacker", self.attacker_in_words())]),
        ]

    def attacker_in_words(self) -> str:
        """How often an attacker guesses right with one report and without any, as a sentence."""
        protocol = self.protocol
        return attacker_success(self.attackability, len(protocol.attacked_values), protocol.guessed)

    def _repr_html_(self) -> str:
        """The facts as a table, for notebooks."""
        return for_notebook(facts_table(self.facts()))


def _code_in_words(responses: Sequence[BlockResponse]) -> str:
    """Which code the subsets of a report have, and what it costs."""
    designs = [response.design for response in responses if isinstance(response.design, Subsets)]
    bitmaps = [design for design in designs if design.code == BITMAP and design.points <= MOST_CODED]
    if not bitmaps:
        return ", in the shortest code" if designs else ""
    shortest = sum(word_bits(design.points, design.block_size) for design in bitmaps)
    longer = sum(design.points for design in bitmaps) / shortest - 1
    return f", as bitmaps: {percent(longer, 0)} longer than the shortest code, and a server reads them 50 times faster"


DomainLike = int | Iterable[str] | Domain
GroupLists = Mapping[str, Iterable[str]]


@overload
def make_plan(
    protocol: Literal["grr", "rappor", "oue"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
) -> Plan: ...
@overload
def make_plan(
    protocol: Literal["ss"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    block_size: int | None = None,
    code: Literal["arithmetic", "bitmap"] | None = None,
    max_attack: float | None = None,
) -> Plan: ...
@overload
def make_plan(
    protocol: Literal["ss-compact"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    classes: int | None = None,
    points: int | None = None,
    block_size: int | None = None,
    max_attack: float | None = None,
) -> Plan: ...
@overload
def make_plan(
    protocol: Literal["pgr"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    order: int | None = None,
    max_attack: float | None = None,
) -> Plan: ...
@overload
def make_plan(
    protocol: Literal["mss"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    moduli: Iterable[int] | None = None,
    count: int = ...,
    code: Literal["arithmetic", "bitmap"] | None = None,
) -> Plan: ...
@overload
def make_plan(
    protocol: Literal["mss-compact"],
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    moduli: Iterable[int] | None = None,
    count: int = ...,
) -> Plan: ...
# This one admits registered protocols, and with them any options: the overloads above serve completion, not checking.
@overload
def make_plan(
    protocol: str,
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    **options: Any,
) -> Plan: ...
def make_plan(
    protocol: str,
    domain: DomainLike,
    epsilon: Epsilon,
    *,
    other: str | None = None,
    groups: GroupLists | None = None,
    **options: Any,
) -> Plan:
    """Plan a collection with a protocol of your choice; :func:`sunzi.planning.recommend` chooses one for you.

    Parameters
    ----------
    protocol: a name from :func:`sunzi.catalogue`.
    domain: the number of values (which are then 0 … k−1), a list of labels, or a :class:`Domain`.
    epsilon: the privacy budget of one report. A float means the fraction of its shortest decimal form.
    other: the label that unknown and missing values are reported as.
    groups: public groups that uploads to a collector may name, such as ``{"country": ["DE", "FR"]}``; nothing protects
        them.
    options: the protocol's own; all have good defaults.

        - ``grr``, ``rappor``, ``oue``: none.
        - ``ss``: ``block_size``, the size w of the reported subset; ``code``, "arithmetic" or "bitmap".
        - ``ss-compact``: ``classes``, the number of cyclotomic classes; ``points``, the prime to work modulo; or
          ``block_size``, about how many points a block has.
        - ``pgr``: ``order``, the prime power q of the field.
        - ``ss``, ``ss-compact``, ``pgr``: instead of these, ``max_attack``, a limit on :attr:`Plan.attackability`; the
          plan then has the least error, by the smallest blocks that keep the limit.
        - ``prefixes``, for an :class:`OpenDomain`: ``list_only``, to plan no search, so that only texts that you list
          later can be estimated; ``cells``, the minimum number of cells of a view.
        - ``mss``: ``code`` as for ``ss``; by default the bitmap where it is at most a quarter longer (up to about ε =
          1.15), because a server reads it some 50 times faster.
        - ``mss``, ``mss-compact``: ``moduli``, distinct primes, with a :class:`PlanWarning` if they have more than
          twice the error of the default ones; or ``count``, how many to choose.

    >>> import sunzi
    >>> sunzi.make_plan("pgr", domain=1000, epsilon=2, order=9).max_report_bits
    13
    """
    terms = Domain.of(domain, other=other)
    budget = parse_epsilon(epsilon)
    kind = find(protocol)
    kind.check_domain(terms)
    check_options(protocol, kind.choose, options)
    made = kind.choose(terms.size, budget, **kind.domain_options(terms), **options)
    return Plan(made, terms, groups)


def load_plan(path: str | Path, *, labels: str | Path | None = None) -> Plan:
    """Read a plan file and check everything that a client's privacy depends on.

    Parameters
    ----------
    path: the plan file.
    labels: the label file, for a plan that names it by its hash.

    >>> import sunzi, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
    >>> sunzi.make_plan("grr", ["no", "yes"], epsilon=1).save(path)
    >>> sunzi.load_plan(path).domain.labels
    ('no', 'yes')
    """
    return client.read_plan(path, labels, Plan)
