"""A client for many values at once, for simulations and for operators who randomise on behalf of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sunzi import wire
from sunzi._typing import Integers
from sunzi.client.client import Client
from sunzi.client.errors import ParameterError
from sunzi.client.randomness import WordSource
from sunzi.numerics.randomness import ReproducibleSource

if TYPE_CHECKING:
    from sunzi.plan import Plan


class BatchClient(Client):
    """The client that runs on devices, with batch methods on top; :meth:`Plan.client` makes one.

    A batch draws its words as docs/format.md says, and a batch of one is a report.

    >>> import sunzi
    >>> client = sunzi.make_plan("grr", ["no", "yes"], epsilon=1).client()
    >>> len(client.report("yes")), len(client.reports(["yes", "no"]))
    (1, 2)
    """

    plan: Plan

    def __init__(
        self, plan: Plan, *, seed: int | None = None, source: WordSource | None = None, **options: Any
    ) -> None:
        if seed is not None:
            if source is not None:
                raise ParameterError("give a seed or a source, not both")
            source = ReproducibleSource(seed)
        super().__init__(plan, source=source, **options)

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
        return wire.encode_batch(self.plan.protocol.report_layout, self.plan.digest, self._randomize(indices))

    def _randomize(self, indices: Integers) -> wire.EncodedReports:
        self.plan.domain.check_indices(indices)
        return self.plan.protocol.randomize_reports(indices, self._source)
