"""The plan with the least error for a central guarantee: which local ε, and which block size (docs/mathematics.md §17).

The more each report reveals, the smaller the error and the weaker the guarantee of the batch. Among all plans that
reach a central ε, the best has the largest local ε allowed, and then the largest blocks that the guarantee permits, up
to the optimal size. The search uses the proven bound, not an approximation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import exp, expm1, floor, sqrt
from typing import Any

from scipy import special

from sunzi._typing import Progress
from sunzi.batch import MOST_REPORTS, BatchGuarantee, check_delta, check_honest, honest_reports
from sunzi.client.epsilon import LARGEST_EPSILON, Epsilon, parse_epsilon
from sunzi.client.errors import whole_number
from sunzi.designs.choice import ERROR_TOLERANCE, optimal_block_size, subset_error
from sunzi.domains.labels import Domain
from sunzi.errors import PlanWarning
from sunzi.formatting import percent_of_three_digits
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.losses import boundary
from sunzi.plan import Plan, make_plan

# The local ε is a multiple of 1/100.
_PLACES = 100
# Try block sizes in steps of this factor, until the error has risen this many times.
_GROWTH, _RISES = 1.4, 2
# Compact designs count every message. With more messages than this, subsets, which count points, are better.
_MOST_COUNTERS = 1 << 24
LARGEST_USEFUL = Fraction(4)
"""A larger local ε gives no meaningful protection."""
CENTRAL_HEADER = ("method", "trusted", "epsilon", "count error", "share error", "ratio")
CENTRAL_LEGEND = (
    "trusted: who must be trusted for the central epsilon: the server, which knows all values, or the collector, which "
    "receives all reports. Only the local epsilon in the next column protects users from them.",
    "count error, share error: the root mean squared error of counts and of frequencies, over all values.",
    "ratio: the error divided by that of Gaussian noise, the price of not trusting a server. Discrete Laplace noise "
    "has delta = 0.",
)


@dataclass(frozen=True)
class Method:
    """A way to reach a central ε, with its error.

    >>> found = plan_for_batch(100, users=10_000, epsilon=1, delta=1e-8)
    >>> [method.name for method in found.methods]
    ['this plan, grr', 'local epsilon at most 4', 'local epsilon 1', 'Gaussian noise', 'discrete Laplace noise']
    """

    name: str
    trusted: str
    """Who must be trusted for the central ε."""
    local_epsilon: Fraction | None
    """The ε that holds against them; None if there is none."""
    count_error: float
    """The standard error of a count, in people: the root mean square over all values."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values."""
        local = None if self.local_epsilon is None else float(self.local_epsilon)
        return {
            "method": self.name,
            "trusted": self.trusted,
            "local_epsilon": local,
            "count_error": self.count_error,
        }


@dataclass(frozen=True)
class CentralPlan:
    """A plan that reaches a central ε, with other methods for comparison.

    >>> found = plan_for_batch(100, users=10_000, epsilon=1, delta=1e-8)
    >>> found.target, found.guarantee.epsilon <= found.target
    (1.0, True)
    """

    plan: Plan
    target: float
    """The requested central ε."""
    guarantee: BatchGuarantee
    """What the batch of all users reaches, with its conditions."""
    methods: tuple[Method, ...]
    """This plan first."""
    reason: str

    @property
    def count_error(self) -> float:
        """The standard error of a count, in people: the root mean square over all values."""
        return self.methods[0].count_error

    def with_groups(self, groups: Mapping[str, Iterable[str]]) -> CentralPlan:
        """The same, with a plan that declares these public groups (:meth:`sunzi.Plan.with_groups`)."""
        return self._with_plan(self.plan.with_groups(groups)) if groups else self

    def with_lifetime(self, lifetime: Epsilon | None) -> CentralPlan:
        """The same, with a plan that states this lifetime budget (:meth:`sunzi.Plan.with_lifetime`)."""
        return self._with_plan(self.plan.with_lifetime(lifetime))

    def _with_plan(self, plan: Plan) -> CentralPlan:
        return replace(self, plan=plan, guarantee=replace(self.guarantee, plan=plan.fingerprint))

    def rows(self) -> list[list[str]]:
        """The methods as texts, under :data:`CENTRAL_HEADER`."""
        users, noise = self.guarantee.minimum_reports, self.methods[-2].count_error
        return [
            [
                method.name,
                method.trusted,
                "none" if method.local_epsilon is None else f"{float(method.local_epsilon):g}",
                f"{method.count_error:,.3g}" if method.count_error < 1000 else f"{method.count_error:,.0f}",
                percent_of_three_digits(method.count_error / users),
                f"{method.count_error / noise:,.3g}",
            ]
            for method in self.methods
        ]

    @property
    def warning(self) -> str:
        """What the guarantee of the batch does not cover."""
        rate = f"{100 * self.plan.attackability:.3g} % of the time"
        limit = "If that is too much, limit the local epsilon."
        if self.plan.epsilon > LARGEST_USEFUL:
            limit = "That is no meaningful protection. If they are not trusted, limit the local epsilon."
        return (
            f"Someone who sees a report as it arrives, such as the collector, guesses the value correctly {rate}, if "
            f"all values are equally likely: only the local epsilon of {float(self.plan.epsilon):g} holds. {limit}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan's terms, the guarantee and the errors of all methods, as JSON values."""
        return {
            "protocol": self.plan.protocol.name,
            "domain_size": self.plan.domain.size,
            "epsilon": float(self.plan.epsilon),
            "report_bits": self.plan.report_bits,
            "fingerprint": self.plan.fingerprint,
            "target_epsilon": self.target,
            "count_error": self.count_error,
            "reason": self.reason,
            "warning": self.warning,
            "guarantee": self.guarantee.to_dict(),
            "methods": [method.to_dict() for method in self.methods],
        }


def plan_for_batch(
    domain: int | Iterable[str] | Domain,
    users: int,
    epsilon: Epsilon,
    delta: float,
    *,
    max_epsilon: Epsilon | None = None,
    honest: float = 1.0,
    progress: Progress | None = None,
) -> CentralPlan:
    """The plan with the least error whose batch reaches a central (ε, δ), with the errors of other methods.

    Its ε is rounded down to a multiple of 0.01. Its protocol is ``grr``, ``ss`` or ``ss-compact``.

    Parameters
    ----------
    domain: as for :func:`sunzi.make_plan`.
    users: how many users will report; a batch of fewer must not be published.
    epsilon, delta: the central guarantee to reach.
    max_epsilon: limit on the ε of one report, the only protection against someone who sees it as it arrives.
    honest: the share of reports whose clients follow the plan.
    progress: called with the fraction done.

    >>> found = plan_for_batch(100, users=10_000, epsilon=1, delta=1e-8)
    >>> print(found.plan.protocol.name, float(found.plan.epsilon), round(found.count_error, 1))
    grr 5.51 9.8
    """
    terms = Domain.of(domain)
    number = whole_number("users", users, 1, MOST_REPORTS)
    target = parse_epsilon(epsilon)
    most = parse_epsilon(LARGEST_EPSILON if max_epsilon is None else max_epsilon)
    honest_users = honest_reports(number, check_honest(honest))
    check_delta(delta, honest_users, stacklevel=3)
    search = _Search(terms.size, honest_users, target, delta, most)
    chosen = search.best(progress)
    plan, reason = _realised(terms, search, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)  # about δ, which was checked above
        guarantee = plan.batch_guarantee(number, delta, honest=honest)
    own = Method(f"this plan, {plan.protocol.name}", _COLLECTOR, plan.epsilon, number * sqrt(plan.expected_mse(number)))
    return CentralPlan(plan, float(target), guarantee, (own, *_others(search, number, chosen)), reason)


_COLLECTOR, _SERVER = "collector", "server"


def _others(search: _Search, users: int, chosen: _Candidate) -> Iterator[Method]:
    """Other methods that reach the target."""
    target = search.target
    if chosen.epsilon > LARGEST_USEFUL > target:
        limited = replace(search, most=LARGEST_USEFUL).best()
        yield Method(
            f"local epsilon at most {LARGEST_USEFUL}", _COLLECTOR, limited.epsilon, sqrt(users * limited.error)
        )
    alone = sqrt(users * subset_error(search.points, target))
    yield Method(f"local epsilon {float(target):g}", "nobody", target, alone)
    yield Method("Gaussian noise", _SERVER, None, gaussian_error(float(target), search.delta))
    yield Method("discrete Laplace noise", _SERVER, None, laplace_error(float(target)))


def gaussian_error(epsilon: float, delta: float) -> float:
    """The smallest standard deviation of Gaussian noise that makes counts (ε, δ)-differentially private, when one
    person's value is replaced (Balle and Wang, 2018).

    Parameters
    ----------
    epsilon, delta: the central guarantee.

    >>> round(gaussian_error(1, 1e-8), 2)
    7.21
    """

    def reached(deviation: float) -> bool:
        half, rest = 1 / (sqrt(2) * deviation), epsilon * deviation / sqrt(2)
        return float(special.ndtr(half - rest) - exp(epsilon + special.log_ndtr(-half - rest))) <= delta

    largest = 1.0
    while not reached(largest):
        largest *= 2
    return boundary(reached, largest)[1]


def laplace_error(epsilon: float) -> float:
    """The standard deviation of the discrete Laplace noise that makes counts ε-differentially private, when one
    person's value is replaced.

    Parameters
    ----------
    epsilon: the central guarantee, with δ = 0.

    >>> round(laplace_error(1), 2)
    2.8
    """
    return sqrt(2 * exp(-epsilon / 2)) / -expm1(-epsilon / 2)


def _realised(domain: Domain, search: _Search, chosen: _Candidate) -> tuple[Plan, str]:
    """The plan, and why it has this form."""
    if chosen.block_size == 1:
        return make_plan("grr", domain, chosen.epsilon), "Blocks of one value: grr."
    plan = make_plan("ss", domain, chosen.epsilon, block_size=chosen.block_size)
    blocks = f"Blocks of {chosen.block_size:,} values"
    counters = domain.size**2 // chosen.block_size
    if counters > _MOST_COUNTERS:
        return plan, f"{blocks}: ss, since ss-compact would need {float(f'{counters:.2g}'):,.0f} counters."
    # A compact design may have a few more points or a slightly different block size, and so miss the target.
    compact = make_plan("ss-compact", domain, chosen.epsilon, block_size=chosen.block_size)
    if search.is_met(compact.protocol.blanket()) and compact.expected_mse(1) <= ERROR_TOLERANCE * plan.expected_mse(1):
        bits = f"{compact.report_bits:,.0f} bits instead of the {plan.report_bits:,.0f} of ss"
        return compact, f"{blocks}: ss-compact, whose reports take {bits}."
    return plan, f"{blocks}: ss, since no compact design of this size reaches the target with this error."


@dataclass(frozen=True)
class _Candidate:
    epsilon: Fraction
    block_size: int
    error: float
    """The mean squared error for one report."""


@dataclass(frozen=True)
class _Search:
    """All plans of blocks that reach the target."""

    points: int
    users: int
    target: Fraction
    delta: float
    most: Fraction

    def best(self, progress: Progress | None = None) -> _Candidate:
        """The candidate of least error, over all block sizes."""
        found = cache(self._at)
        sizes, rises = [1], 0
        while rises < _RISES:
            size = max(sizes[-1] + 1, round(sizes[-1] * _GROWTH))
            if size > optimal_block_size(self.points, found(sizes[-1]).epsilon):
                break
            sizes.append(size)
            if progress is not None:
                progress(1 - 1 / len(sizes))  # how many follow is unknown
            rises = rises + 1 if found(size).error >= found(sizes[-2]).error else 0
        largest = optimal_block_size(self.points, found(sizes[-1]).epsilon)
        sizes += [largest] if largest > sizes[-1] else []
        chosen = min((found(size) for size in sizes), key=lambda each: each.error)
        for low, high in pairwise(sizes):
            chosen = self._between(found(low), found(high), chosen)
        # Its ε may be inferred from those of other sizes, and the ε of a guarantee is rounded up a little.
        while chosen.epsilon > self.target and not self.is_met(self._blanket(chosen.block_size, chosen.epsilon)):
            chosen = self._candidate(chosen.block_size, max(chosen.epsilon - Fraction(1, _PLACES), self.target))
        return chosen

    def is_met(self, blanket: Blanket) -> bool:
        """Whether the guarantee of a batch reaches the target."""
        return blanket.epsilon_above(self.users, self.delta) <= self.target

    def _blanket(self, block_size: int, epsilon: Fraction) -> Blanket:
        return Blanket.of_block(self.points, block_size, exp(epsilon))

    def _candidate(self, block_size: int, epsilon: Fraction) -> _Candidate:
        return _Candidate(epsilon, block_size, subset_error(self.points, epsilon, block_size))

    def _between(self, low: _Candidate, high: _Candidate, chosen: _Candidate) -> _Candidate:
        """The best of ``chosen`` and all block sizes between two. As ε is a multiple of 1/100, the error has many local
        minima. ε falls as blocks grow, so none of these has a smaller error than the ε of ``low`` would give.
        """
        if high.block_size - low.block_size < 2:
            return chosen
        best = optimal_block_size(self.points, low.epsilon)
        size = min(max(best, low.block_size + 1), high.block_size - 1)
        if subset_error(self.points, low.epsilon, size) >= chosen.error:
            return chosen
        if low.epsilon > high.epsilon:
            size = (low.block_size + high.block_size) // 2
        middle = self._at(size, high.epsilon, low.epsilon)
        chosen = min(chosen, middle, key=lambda each: each.error)
        if low.epsilon == high.epsilon:
            return chosen
        return self._between(middle, high, self._between(low, middle, chosen))

    def _at(self, block_size: int, least: Fraction | None = None, most: Fraction | None = None) -> _Candidate:
        """The largest local ε that reaches the target with blocks of this size, which lies between these two."""
        low = floor((self.target if least is None else least) * _PLACES)
        high = max(low, floor((self.most if most is None else most) * _PLACES))

        def reached(steps: int) -> bool:
            blanket = self._blanket(block_size, Fraction(steps, _PLACES))
            return blanket.largest_delta(self.users, float(self.target)) <= self.delta

        if low == high or reached(high):
            low = high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reached(middle) else (low, middle)
        return self._candidate(block_size, min(max(Fraction(low, _PLACES), self.target), self.most))
