"""The figures of a plan on every axis: error, efficiency, bits, work, attackability, how far fake clients push it, and
what a batch of all reports reveals.

All figures are formulas, each checked against simulated collections in the tests. Errors are about the actual users.
The mean error is that of all items under a reference histogram. The standard error is that of an item that nobody holds
while all users are spread evenly over the others. For protocols with support counts it makes no difference what the
others hold. For modular ones it does: the item shares residues with values that are held, which adds little on large
domains and much on small ones at large ε.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import inf, sqrt
from statistics import NormalDist
from typing import Any, get_args
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from sunzi.batch import BatchGuarantee
from sunzi.client.errors import ParameterError
from sunzi.numerics.counters import expected_bytes, expected_filled
from sunzi.plan import Plan
from sunzi.planning.floor import least_error
from sunzi.planning.populations import ReferenceHistogram, skewed_histogram
from sunzi.protocols.base import Protocol, check_users
from sunzi.protocols.decoder_rows import DecoderRow, Push
from sunzi.tally import TallyLayout

CONFIDENCE, POWER = 0.95, 0.8
"""An item counts as detected if it differs from 0 with 95 % confidence (two-sided) in 80 % of all collections."""
SHARE = 0.01
"""The share of fake clients for the axis ``push``."""

BATCH_COLUMNS = {
    "epsilon": "central_epsilon",
    "attack_epsilon": "central_attack",
    "delta": "delta",
    "minimum_reports": "minimum_reports",
    "honest_share": "honest_share",
    "honest_reports": "honest_reports",
    "reader": "reader",
    "adjacency": "adjacency",
}
"""The columns of the guarantee of a batch, by their names in its own JSON."""

_DERIVED = ("efficiency", "work")
# A few items represent all of them. In a large domain each takes a solve of seconds, and items differ less.
_ITEMS, _ITEMS_WHEN_LARGE, _LARGE = 8, 2, 100_000
# The best fake reports are found by looking at all messages: at most this many for all items together.
_MOST_MESSAGES = 1 << 26
_FARTHEST_NORMAL = 12.0


@dataclass(frozen=True)
class Axes:
    """The figures of one plan for a number of users.

    >>> from sunzi import make_plan
    >>> axes = evaluate(make_plan("grr", 16, 1), users=1000)
    >>> axes.bits, axes.max_bits, round(axes.attackability, 3)
    (4.0, 4, 0.153)
    """

    protocol: str
    domain_size: int
    epsilon: Fraction
    users: int
    flat_error: float
    """The root mean squared error over all values, if they are equally frequent."""
    skewed_error: float | None
    """The same for :func:`~sunzi.planning.skewed_histogram`; None unless requested."""
    standard_error: float
    """The standard error of the share of an item that no user holds."""
    largest_error: float
    """Expected maximum of the absolute error over all items, if all are rare and their errors independent."""
    detectable_share: float
    """The smallest share that differs from 0 with 95 % confidence in 80 % of all collections; infinite if none does."""
    bits: float
    """Mean bits per report."""
    max_bits: int
    """Bits of the longest report."""
    client_words: float
    """Mean number of random 64-bit words per report."""
    tally_counters: int
    """Number of counters in the tally."""
    tally_bytes: int
    """Their memory: while few are filled, only the filled ones are stored."""
    read_work: float | None
    """Elementary operations of reading and counting all reports; None if unknown for the protocol."""
    decode_work: float | None
    """Elementary operations of one decoding; None if unknown for the protocol or its design."""
    decode_route: str | None
    """The algorithm that the decoder chooses."""
    attackability: float
    """Success rate of the best attacker who sees one report, if all values are equally likely."""
    push: float | None
    """How much 1 % of fake clients can raise the share of an item that nobody holds; None where finding the best
    fake report takes too long (many values at a large ε).
    """
    batch: BatchGuarantee | None = None
    """What a shuffled batch of all reports reveals, if all clients follow the plan; None unless requested."""

    @property
    def histogram(self) -> ReferenceHistogram:
        """The histogram that :attr:`mean_error` is about."""
        return "flat" if self.skewed_error is None else "skewed"

    @property
    def mean_error(self) -> float:
        """The skewed error if it was requested, else the flat one."""
        return self.flat_error if self.skewed_error is None else self.skewed_error

    @property
    def work(self) -> float | None:
        """Elementary operations from the bytes of all reports to frequencies."""
        if self.read_work is None or self.decode_work is None:
            return None
        return self.read_work + self.decode_work

    @property
    def efficiency(self) -> float:
        """The least mean squared error of any protocol (docs/mathematics.md §8) over that of this plan, if values are
        equally frequent: the share of users that the best protocol needs for the same error.
        """
        return (least_error(self.domain_size, self.epsilon, self.users) / self.flat_error) ** 2

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name; infinity becomes null, ε a string."""
        record = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "batch"}
        guarantee = {} if self.batch is None else self.batch.to_dict()
        record |= {column: guarantee.get(name) for name, column in BATCH_COLUMNS.items()}
        record["epsilon"] = str(self.epsilon)
        record |= {name: getattr(self, name) for name in _DERIVED}
        record["detectable_share"] = self.detectable_share if self.detectable_share < inf else None
        return record


@dataclass(frozen=True)
class ErrorCurve:
    """n·Var = a + b·f + c·f² of the estimate of an item of share f, if the others are spread evenly."""

    constant: float
    linear: float
    square: float

    def standard_error(self, users: int, share: float = 0.0) -> float:
        """The standard error of an item of that share, about the actual users."""
        return sqrt(max(self.constant + self.linear * share + self.square * share**2, 0.0) / users)

    def detectable_share(self, users: int) -> float:
        """The least root of f = z_confidence·σ(0) + z_power·σ(f), a quadratic equation; infinite if it exceeds 1."""
        threshold = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * self.standard_error(users)
        factor = NormalDist().inv_cdf(POWER) ** 2 / users
        # (f − t)² = z²·(a + b·f + c·f²)/n on the branch f ≥ t (power above one half).
        a = 1 - factor * self.square
        b = threshold + factor * self.linear / 2
        c = threshold**2 - factor * self.constant
        if a <= 0 or b * b < a * c:
            return inf
        share = (b + sqrt(b * b - a * c)) / a
        return share if share <= 1 else inf


def evaluate(plan: Plan, users: int, histogram: ReferenceHistogram = "flat", *, delta: float | None = None) -> Axes:
    """The figures of a plan on every axis.

    Parameters
    ----------
    plan: the plan; its protocol must know how its estimates depend on reports, as all built-in ones do.
    users: how many users will report.
    histogram: ``"flat"``, or ``"skewed"`` to compute the error for skewed values too, which takes up to a minute on
        tens of thousands of values.
    delta: also compute what a batch of all reports reveals, with this δ (:meth:`sunzi.Plan.batch_guarantee`).

    >>> from sunzi import make_plan
    >>> evaluate(make_plan("grr", 16, 1), users=1000).bits
    4.0
    """
    check_users(users)
    check_reference(histogram)
    protocol = plan.protocol
    curve, pushed = error_and_push(protocol)
    error = curve.standard_error(users)
    cost = protocol.decoding_cost(users)
    return Axes(
        protocol=protocol.name,
        domain_size=protocol.domain_size,
        epsilon=plan.epsilon,
        users=users,
        flat_error=sqrt(protocol.expected_mse(users)),
        skewed_error=sqrt(_skewed_variance(protocol) / users) if histogram == "skewed" else None,
        standard_error=error,
        largest_error=error * expected_largest(protocol.domain_size),
        detectable_share=curve.detectable_share(users),
        bits=plan.report_bits,
        max_bits=plan.max_report_bits,
        client_words=protocol.words_per_report,
        tally_counters=protocol.tally_layout.length,
        tally_bytes=tally_bytes(protocol.tally_layout, users),
        read_work=None if protocol.reading_work is None else users * protocol.reading_work,
        decode_work=None if cost is None else cost.operations,
        decode_route=None if cost is None else cost.route,
        attackability=plan.attackability,
        push=pushed,
        batch=None if delta is None else plan.batch_guarantee(users, delta),
    )


def push_bound(plan: Plan, share: float = SHARE, item: int = 0) -> Push:
    """How far fake clients can push the estimate of one item.

    Parameters
    ----------
    plan: the plan that they pretend to follow.
    share: their share of all clients, between 0 and 1.
    item: the index of the item in the domain.

    >>> from sunzi import make_plan
    >>> round(push_bound(make_plan("grr", 16, 1), share=0.01).expected, 2)
    0.1
    """
    if not 0 <= item < plan.domain.size:
        raise ParameterError(f"item must lie between 0 and {plan.domain.size - 1}, got {item}")
    return next(plan.protocol.decoder_rows([item])).push(share)


def error_curve(protocol: Protocol) -> ErrorCurve:
    """The error of an item by its share: averaged over a few items, and scaled to the exact mean over all items."""
    rows = ((row.flat_variance, row.variance_by_share()) for row in _typical_rows(protocol))
    return _mean_curve(protocol, list(rows))


def error_and_push(protocol: Protocol) -> tuple[ErrorCurve, float | None]:
    """The error curve, and how far 1 % of fake clients push an item. Neither depends on the number of users, so both
    are cached as long as the protocol exists.
    """
    if protocol not in _known:
        _known[protocol] = _compute_error_and_push(protocol)
    return _known[protocol]


_known: WeakKeyDictionary[Protocol, tuple[ErrorCurve, float | None]] = WeakKeyDictionary()


def _skewed_variance(protocol: Protocol) -> float:
    """The mean squared error for one report; cached, because it may take long."""
    if protocol not in _known_skewed:
        _known_skewed[protocol] = protocol.expected_mse(1, skewed_histogram(protocol.domain_size))
    return _known_skewed[protocol]


_known_skewed: WeakKeyDictionary[Protocol, float] = WeakKeyDictionary()


def check_reference(histogram: str) -> None:
    """Raise ParameterError unless it names a reference histogram."""
    if histogram not in get_args(ReferenceHistogram):
        raise ParameterError(f"histogram must be {' or '.join(get_args(ReferenceHistogram))}, got {histogram!r}")


def _compute_error_and_push(protocol: Protocol) -> tuple[ErrorCurve, float | None]:
    """One pass over the rows, which are expensive, for both. Pushes start with the items nearest the edge, which are
    pushed farthest.
    """
    variances, pushes = [], []
    for number, row in enumerate(_typical_rows(protocol), start=1):
        variances.append((row.flat_variance, row.variance_by_share()))
        if number * row.push_cost <= _MOST_MESSAGES:
            pushes.append(row.push(SHARE).expected)
    return _mean_curve(protocol, variances), max(pushes, default=None)


def _typical_rows(protocol: Protocol) -> Iterator[DecoderRow]:
    """Items in the middle of equal parts of the domain's first half; the second half is its mirror image."""
    size = protocol.domain_size
    half = (size + 1) // 2
    number = min(_ITEMS if size <= _LARGE else _ITEMS_WHEN_LARGE, half)
    return protocol.decoder_rows(half * (2 * index + 1) // (2 * number) for index in range(number))


def _mean_curve(protocol: Protocol, variances: Sequence[tuple[float, tuple[float, float, float]]]) -> ErrorCurve:
    scale = protocol.expected_mse(1) / float(np.mean([flat for flat, _ in variances]))
    return ErrorCurve(*(scale * float(value) for value in np.mean([curve for _, curve in variances], axis=0)))


def expected_largest(items: int) -> float:
    """E max|Z_i| of ``items`` independent standard normals: ∫ 1 − (2Φ(t)−1)^k dt."""
    places = np.linspace(0.0, _FARTHEST_NORMAL, 24_001)
    # log(2Φ−1) = log1p(−2·(1−Φ)), exact where 1−Φ is tiny.
    with np.errstate(divide="ignore"):
        logarithms = np.log1p(-2 * special.ndtr(-places))
    return float(np.trapezoid(-np.expm1(items * logarithms), places))


def tally_bytes(layout: TallyLayout, reports: int) -> int:
    """Memory of a tally's counters, which follows min(reports, counters)."""
    share = reports / len(layout.blocks)
    filled = sum(expected_filled(size, share * weight) if weight else size for size, weight in layout.blocks)
    return expected_bytes(layout.length, filled)
