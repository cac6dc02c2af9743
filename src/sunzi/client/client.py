"""The client, which runs on a user's device and turns a value into a report that is safe to send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .epsilon import Epsilon, parse_epsilon
from .errors import ParameterError, PlanError, PrivacyError, shown, whole_number
from .randomness import SystemSource, WordSource, uniform_integers
from .reports import encode_batch, encode_report

if TYPE_CHECKING:
    from .domains.labels import Domain
    from .plan import Plan

MOST_BITS, MOST_WORK = 1 << 20, 1 << 21
"""What a report may cost a device by default: 131 kB, and about a second of Python."""


class Client:
    """Randomises values under one plan; :meth:`Plan.client` makes one and documents the parameters.

    A client does not trust the author of its plan: loading the plan has checked that its integers guarantee ε-LDP. The
    random words come from the operating system unless a source is given; ``is_private`` is False for one whose words
    others can reproduce.

    >>> from sunzi.client import load_plan
    >>> client = load_plan("plan.json").client(max_epsilon=1)
    >>> len(client.report("Firefox"))
    1
    """

    def __init__(
        self,
        plan: Plan,
        *,
        source: WordSource | None = None,
        max_epsilon: Epsilon | None = None,
        fingerprint: str | bytes | None = None,
        max_bits: int = MOST_BITS,
        max_work: int = MOST_WORK,
    ) -> None:
        if max_epsilon is not None and plan.epsilon > parse_epsilon(max_epsilon):
            raise PrivacyError(f"this plan spends epsilon {plan.epsilon}, this client accepts at most {max_epsilon}")
        if fingerprint is not None and _hexadecimal(fingerprint) != plan.fingerprint:
            raise PrivacyError(
                f"this plan's fingerprint is {plan.fingerprint}, this client is pinned to {_hexadecimal(fingerprint)}"
            )
        work = plan.protocol.work
        if work > whole_number("max_work", max_work, 1):
            raise PlanError(f"a report of this plan takes {work:,} steps, this client accepts at most {max_work:,}")
        bits = plan.protocol.report_layout.max_bits
        if bits > whole_number("max_bits", max_bits, 1):
            raise PlanError(f"a report of this plan takes {bits:,} bits, this client accepts at most {max_bits:,}")
        self.plan = plan
        self._source = SystemSource() if source is None else source

    @property
    def is_private(self) -> bool:
        """Whether the reports protect anyone: False for a reproducible client, whose noise can be removed."""
        return not self._source.reproducible

    def report(self, value: object) -> bytes:
        """One report of ``value``: a label, an index if the domain is a bare size, a number or date, or a record."""
        return self.report_index(self.plan.domain.index(value))

    def report_index(self, index: Any) -> bytes:
        """:meth:`report` for a value already looked up in the plan's domain."""
        self.plan.domain.check_index(index)
        protocol = self.plan.protocol
        (report,) = protocol.make_reports([index], self._source)
        return encode_report(protocol.report_layout, report)

    def report_background(self) -> bytes:
        """One report of a uniformly random value, for a user whose own value is not in the domain.

        Staying silent would reveal that the value is outside the domain. This report costs the same ε and looks like
        any other; such users together raise every frequency by their share divided by the domain's size.
        """
        return self.report_index(random_index(self.plan.domain, self._source))

    def report_batch(self, values: Iterable[object]) -> bytes:
        """One batch with a report per value."""
        protocol, indices = self.plan.protocol, [self.plan.domain.index(value) for value in values]
        return encode_batch(protocol.report_layout, self.plan.digest, protocol.make_reports(indices, self._source))

    def __repr__(self) -> str:
        """The terms, and a warning if the client is not private."""
        kind = "private" if self.is_private else "REPRODUCIBLE, for simulation only: protects nobody"
        return f"Client({self.plan.protocol.name}, epsilon {self.plan.epsilon}, {kind})"


def random_index(domain: Domain, source: WordSource) -> Any:
    """A uniformly random value: an integer below each of the domain's sizes."""
    return domain.joined(uniform_integers(source.words(len(domain.sizes)), domain.sizes, source))


def _hexadecimal(fingerprint: str | bytes) -> str:
    if not isinstance(fingerprint, (str, bytes)):
        raise ParameterError(f"a fingerprint must be hexadecimal text or bytes, got {shown(fingerprint)}")
    return fingerprint.hex() if isinstance(fingerprint, bytes) else fingerprint.lower()
