"""The client, which runs on a user's device and turns a value into a report that is safe to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sunzi import wire
from sunzi._typing import Integers
from sunzi.errors import ParameterError, PrivacyError
from sunzi.numerics.checks import shown
from sunzi.numerics.randomness import OperatingSystemSource, ReproducibleSource, WordSource, uniform_below
from sunzi.numerics.thresholds import parse_epsilon

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    from sunzi.domains.labels import Domain
    from sunzi.plan import Plan


class Client:
    """Randomises values under one plan; :meth:`Plan.client` makes one and documents the parameters.

    A client does not trust the author of its plan: loading the plan has checked that its integers guarantee ε-LDP. The
    random words come from the operating system unless a seed or a source is given; ``is_private`` is then False.

    >>> import sunzi
    >>> client = sunzi.make_plan("grr", ["no", "yes"], epsilon=1).client()
    >>> len(client.report("yes"))
    1
    """

    def __init__(
        self,
        plan: Plan,
        *,
        seed: int | None = None,
        source: WordSource | None = None,
        max_epsilon: int | float | str | Decimal | Fraction | None = None,
        fingerprint: str | bytes | None = None,
    ) -> None:
        if seed is not None and source is not None:
            raise ParameterError("give a seed or a source, not both")
        if max_epsilon is not None and plan.epsilon > parse_epsilon(max_epsilon):
            raise PrivacyError(f"this plan spends epsilon {plan.epsilon}, this client accepts at most {max_epsilon}")
        if fingerprint is not None and _hexadecimal(fingerprint) != plan.fingerprint:
            raise PrivacyError(
                f"this plan's fingerprint is {plan.fingerprint}, this client is pinned to {_hexadecimal(fingerprint)}"
            )
        self.plan = plan
        if source is None:
            source = OperatingSystemSource() if seed is None else ReproducibleSource(seed)
        self._source = source

    @property
    def is_private(self) -> bool:
        """Whether the reports protect anyone: False for a reproducible client, whose noise can be removed."""
        return not self._source.reproducible

    def report(self, value: object) -> bytes:
        """One report of ``value``: a label, an index if the domain is a bare size, a number or date, or a record."""
        return self.report_index(self.plan.domain.index(value))

    def report_index(self, index: Any) -> bytes:
        """:meth:`report` for a value already looked up in the plan's domain."""
        encoded = self.plan.protocol.randomize_reports(self.plan.domain.index_array(index), self._source)
        return wire.encode_report(self.plan.protocol.report_layout, encoded)

    def report_background(self) -> bytes:
        """One report of a uniformly random value, for a user whose own value is not in the domain.

        Staying silent would reveal that the value is outside the domain. This report costs the same ε and looks like
        any other; such users together raise every frequency by their share divided by the domain's size.
        """
        return self.report_index(random_index(self.plan.domain, self._source))

    def reports(self, values: object) -> list[bytes]:
        """A list of reports, one per value: a list, an array, or a column of a data frame."""
        return self.reports_of_indices(self.plan.domain.indices(values))

    def reports_of_indices(self, indices: Integers) -> list[bytes]:
        """:meth:`reports` for values already looked up in the plan's domain."""
        return wire.encode_each(self.plan.protocol.report_layout, self._randomize(indices))

    def report_batch(self, values: object) -> bytes:
        """One batch with a report per value: a list, an array, or a column of a data frame."""
        return self.report_indices(self.plan.domain.indices(values))

    def report_indices(self, indices: Integers) -> bytes:
        """:meth:`report_batch` for values already looked up in the plan's domain."""
        encoded = self._randomize(indices)
        return wire.encode_batch(self.plan.protocol.report_layout, self.plan.contract.fingerprint, encoded)

    def _randomize(self, indices: Integers) -> wire.EncodedReports:
        self.plan.domain.check_indices(indices)
        return self.plan.protocol.randomize_reports(indices, self._source)

    def __repr__(self) -> str:
        """The terms, and a warning if the client is not private."""
        kind = "private" if self.is_private else "REPRODUCIBLE, for simulation only: protects nobody"
        return f"Client({self.plan.protocol.name}, epsilon {self.plan.epsilon}, {kind})"


def random_index(domain: Domain, source: WordSource) -> Any:
    """A uniformly random value: an integer below each of the domain's sizes."""
    words = source.words(len(domain.sizes)).reshape(1, -1)
    drawn = uniform_below(words, np.array(domain.sizes, dtype=np.uint64), source)[0].tolist()
    return domain.joined(drawn)


def _hexadecimal(fingerprint: str | bytes) -> str:
    if not isinstance(fingerprint, (str, bytes)):
        raise ParameterError(f"a fingerprint must be hexadecimal text or bytes, got {shown(fingerprint)}")
    return fingerprint.hex() if isinstance(fingerprint, bytes) else fingerprint.lower()
