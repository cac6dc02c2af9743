"""The central ε of a plan as a function of the batch size and of the ε of its reports (docs/batch.md)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sunzi._typing import Progress
from sunzi.batch import MOST_REPORTS, BatchGuarantee
from sunzi.client.errors import SunziError
from sunzi.errors import PlanWarning
from sunzi.plan import Plan, make_plan
from sunzi.protocols.registry import catalogue

# Three decades on both sides of the plan's own batch, two sizes in each.
_STEPS, _STEPS_PER_DECADE = 6, 2
_LEAST_REPORTS = 10
_EPSILONS = (Fraction(1, 2), *map(Fraction, range(1, 9)))


@dataclass(frozen=True)
class BatchCurves:
    """Guarantees of a plan and of similar ones, under the same conditions.

    >>> import sunzi
    >>> guarantee = sunzi.make_plan("grr", 16, epsilon=2).batch_guarantee(10_000, delta=1e-8)
    >>> BatchCurves("grr", 16, own=guarantee, by_size=(guarantee,), by_epsilon=()).own.minimum_reports
    10000
    """

    protocol: str
    domain_size: int
    own: BatchGuarantee
    by_size: tuple[BatchGuarantee, ...]
    """Guarantees for other sizes of the batch or, with memoised reports, of the cohort."""
    by_epsilon: tuple[BatchGuarantee, ...]
    """Guarantees of plans of this protocol for other ε; empty if the plan is not for single values."""


def batch_curves(plan: Plan, guarantee: BatchGuarantee, progress: Progress | None = None) -> BatchCurves:
    """How the guarantee changes with the size of the batch and with the ε of a report.

    Parameters
    ----------
    plan: the plan.
    guarantee: its guarantee, from :meth:`sunzi.Plan.batch_guarantee`.
    progress: called with the fraction done.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", 1024, epsilon=2)
    >>> curves = batch_curves(plan, plan.batch_guarantee(1_000_000, delta=1e-8))
    >>> curves.by_size[0].epsilon > curves.own.epsilon > curves.by_size[-1].epsilon
    True
    """
    own = guarantee.cohort or guarantee.minimum_reports
    by_size = [(plan, size) for size in _sizes(own)]
    by_epsilon = [(other, own) for other in _plans(plan)] if plan.protocol.name in catalogue() else []
    wanted, found = [*by_size, *by_epsilon], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # the user's δ was already checked for the plan's own batch
        for other, size in wanted:
            found.append(_again(other, guarantee, size))
            if progress is not None:
                progress(len(found) / len(wanted))
    first, others = tuple(found[: len(by_size)]), tuple(found[len(by_size) :])
    return BatchCurves(plan.protocol.name, plan.protocol.domain_size, guarantee, first, others)


def _sizes(own: int) -> Iterator[int]:
    for step in range(-_STEPS, _STEPS + 1):
        size = round(own * 10 ** (step / _STEPS_PER_DECADE))
        if _LEAST_REPORTS <= size <= MOST_REPORTS or size == own:
            yield size


def _plans(plan: Plan) -> Iterator[Plan]:
    """Plans of the same protocol for other ε, as the planner makes them."""
    for epsilon in sorted({*_EPSILONS, plan.epsilon}):
        try:
            yield plan if epsilon == plan.epsilon else make_plan(plan.protocol.name, plan.protocol.domain_size, epsilon)
        except SunziError:  # this protocol has no plan for that ε
            continue


def _again(plan: Plan, like: BatchGuarantee, size: int) -> BatchGuarantee:
    """The guarantee of another plan, or of a batch or cohort of another size."""
    cohort = None if like.cohort is None else size
    reports = max(like.minimum_reports, size) if cohort else size
    return plan.batch_guarantee(
        reports, like.delta, honest=like.honest_share, reader=like.reader, epochs=like.epochs, cohort=cohort
    )
