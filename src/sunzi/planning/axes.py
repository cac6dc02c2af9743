"""What a plan gives its users, on every axis: error, bits, work and attackability.

All figures are formulas, each checked against simulated collections in the tests. Errors are about the users at hand
and, unless said otherwise, about an item that nobody holds while all users are spread evenly over the others. For
protocols with support counts it makes no difference what the others hold. For modular ones it does: the item shares
residues with values that are held, which adds little on large domains and much on small ones at large ε.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from math import ceil, inf, sqrt
from statistics import NormalDist
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import special

from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.planning.decoding import decode_work, expected_cells
from sunzi.planning.item_rows import ItemRow, item_rows
from sunzi.planning.poisoning import SHARE, push, push_of_row
from sunzi.protocols.base import Protocol, check_users
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.support import SupportProtocol
from sunzi.tally import TallyLayout

LEVEL, POWER = 0.95, 0.8
"""An item counts as detected if it is told from 0 with 95 % confidence (two-sided) in 80 % of all collections."""

# Modular protocols: so many items stand for all; in a large domain one solve each takes seconds, and they differ less.
_ITEMS, _ITEMS_WHEN_LARGE, _LARGE = 8, 2, 100_000
# The best block of a liar is found by looking at all blocks, up to so many for all items together.
_MOST_MESSAGES = 1 << 26
_FARTHEST_NORMAL = 12.0
# When counters are held sparsely, as sunzi.numerics.counters decides it.
_SPARSE_COST, _ALWAYS_DENSE = 4, 4096


@dataclass(frozen=True)
class Axes:
    """One plan and a number of users, on the four axes."""

    protocol: str
    domain_size: int
    epsilon: Fraction
    users: int
    standard_error: float
    """Of the share of an item that nobody holds."""
    largest_error: float
    """Expected maximum of the absolute error over all items, if all are light and err independently."""
    detectable_share: float
    """The smallest share that is told from 0 with 95 % confidence in 80 % of all collections; infinite if none is."""
    bits: float
    """Mean bits of a report."""
    max_bits: int
    """Bits of the longest report."""
    client_words: float
    """Mean number of random 64-bit words that a report draws."""
    tally_counters: int
    """Counters of the tally."""
    tally_bytes: int
    """What they take in memory: only counters that are not zero are held while they are few."""
    decode_work: float | None
    """Elementary operations of one decoding (:mod:`sunzi.planning.decoding`); None for designs of your own."""
    decode_route: str | None
    """The way that the decoder takes."""
    attackability: float
    """How often the best attacker who sees one report guesses the value, if all are equally likely."""
    push: float | None
    """By how much 1 % of lying clients can raise the share of an item that nobody holds; None where finding the
    best lie would take too long (many values at a large ε)."""

    @property
    def mean_squared_error(self) -> float:
        """The square of the standard error."""
        return self.standard_error**2

    def to_json(self) -> dict[str, Any]:
        """Plain numbers by name; what is infinite is null, ε a string."""
        record = {field.name: getattr(self, field.name) for field in fields(self)}
        record["epsilon"] = str(self.epsilon)
        record["detectable_share"] = self.detectable_share if self.detectable_share < inf else None
        return record


@dataclass(frozen=True)
class ErrorCurve:
    """n·Var = a + b·f + c·f²: the variance of one report's worth at an item of share f, the others spread evenly."""

    constant: float
    linear: float
    square: float

    def standard_error(self, users: int, share: float = 0.0) -> float:
        """Of an item of that share, about the users at hand."""
        return sqrt(max(self.constant + self.linear * share + self.square * share**2, 0.0) / users)

    def detectable_share(self, users: int, confidence: float = LEVEL, power: float = POWER) -> float:
        """The least root of f = z_level·σ(0) + z_power·σ(f), a quadratic equation in f; infinite if it exceeds 1."""
        threshold = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error(users)
        factor = NormalDist().inv_cdf(power) ** 2 / users
        # (f − t)² = z²·(a + b·f + c·f²)/n on the branch f ≥ t (power above one half).
        a = 1 - factor * self.square
        b = threshold + factor * self.linear / 2
        c = threshold**2 - factor * self.constant
        if a <= 0 or b * b < a * c:
            return inf
        share = (b + sqrt(b * b - a * c)) / a
        return share if share <= 1 else inf


def axes(plan: Plan, users: int) -> Axes:
    """The plan with so many users on every axis."""
    check_users(users)
    protocol = plan.protocol
    curve, pushed = error_and_push(protocol)
    error = curve.standard_error(users)
    work = decode_work(protocol, users)
    return Axes(
        protocol=protocol.name,
        domain_size=protocol.domain_size,
        epsilon=plan.epsilon,
        users=users,
        standard_error=error,
        largest_error=error * expected_largest(protocol.domain_size),
        detectable_share=curve.detectable_share(users),
        bits=plan.report_bits,
        max_bits=plan.max_report_bits,
        client_words=protocol.words_per_report,
        tally_counters=protocol.tally_layout.length,
        tally_bytes=tally_bytes(protocol.tally_layout, users),
        decode_work=None if work is None else work.operations,
        decode_route=None if work is None else work.route,
        attackability=plan.attackability,
        push=pushed,
    )


def error_curve(protocol: Protocol) -> ErrorCurve:
    """The error of an item by its share: exact for support protocols; for modular ones averaged over a few items and
    scaled to the exact mean trace(T⁻¹)/k of all.
    """
    if isinstance(protocol, SupportProtocol):
        rates = protocol.probabilities
        return ErrorCurve(rates.variance(0.0), rates.variance(1.0) - rates.variance(0.0), 0.0)
    if isinstance(protocol, ModularProtocol):
        items = _typical_items(protocol.domain_size)
        return _mean_curve(protocol, items, [row.variance_by_share() for row in item_rows(protocol, items)])
    raise ParameterError(f"axes are known for support and modular protocols, not for {protocol.name!r}")


def error_and_push(protocol: Protocol) -> tuple[ErrorCurve, float | None]:
    """The error curve, and how far 1 % of liars push an item. Neither depends on the number of users, so both are kept
    as long as the protocol lives.
    """
    if not isinstance(protocol, ModularProtocol):
        return error_curve(protocol), push(protocol, SHARE).expected
    if protocol not in _known:
        _known[protocol] = _modular_error_and_push(protocol)
    return _known[protocol]


_known: WeakKeyDictionary[ModularProtocol, tuple[ErrorCurve, float | None]] = WeakKeyDictionary()


def _modular_error_and_push(protocol: ModularProtocol) -> tuple[ErrorCurve, float | None]:
    """The same rows serve both."""
    items = _typical_items(protocol.domain_size)
    curves, pushes = [], []
    for row, is_pushed in zip(item_rows(protocol, items), _affordable(protocol, len(items)), strict=True):
        curves.append(row.variance_by_share())
        if is_pushed:
            pushes.append(_pushed(row))
    return _mean_curve(protocol, items, curves), max(pushes, default=None)


def _typical_items(size: int) -> list[int]:
    """Items in the middle of equal parts of the domain's first half; the second half is its mirror image."""
    number = min(_ITEMS if size <= _LARGE else _ITEMS_WHEN_LARGE, (size + 1) // 2)
    half = (size + 1) // 2
    return [half * (2 * index + 1) // (2 * number) for index in range(number)]


def _mean_curve(protocol: ModularProtocol, items: list[int], curves: list[tuple[float, float, float]]) -> ErrorCurve:
    diagonal = protocol.gram.inverse_diagonal()
    scale = float(np.mean(diagonal) / np.mean(diagonal[items]))
    return ErrorCurve(*(scale * float(value) for value in np.mean(curves, axis=0)))


def _affordable(protocol: ModularProtocol, items: int) -> Iterator[bool]:
    """For how many of the items the best lie is looked for: those nearest the edge, which are pushed farthest."""
    messages = sum(
        response.design.message_count if response.design.counts_blocks else response.design.points
        for response in protocol.responses
    )
    for index in range(items):
        yield (index + 1) * messages <= _MOST_MESSAGES


def _pushed(row: ItemRow) -> float:
    return push_of_row(row, SHARE).expected


def expected_largest(items: int) -> float:
    """E max|Z_i| of so many independent standard normals: ∫ 1 − (2Φ(t)−1)^k dt."""
    places = np.linspace(0.0, _FARTHEST_NORMAL, 24_001)
    # log(2Φ−1) = log1p(−2·(1−Φ)), exact where 1−Φ is tiny.
    with np.errstate(divide="ignore"):
        logarithms = np.log1p(-2 * special.ndtr(-places))
    return float(np.trapezoid(-np.expm1(items * logarithms), places))


def tally_bytes(layout: TallyLayout, reports: int) -> int:
    """8 bytes a counter, or 16 for each that is not zero while few are: memory follows min(reports, counters)."""
    total, filled = layout.length, 0.0
    for size, weight in layout.blocks:
        filled += expected_cells(size, reports / len(layout.blocks) * weight) if weight else size
    is_sparse = total > _ALWAYS_DENSE and _SPARSE_COST * filled < total
    return 16 * ceil(filled) if is_sparse else 8 * total
