"""Sums over dyadic intervals: the least-squares estimate of an ordered histogram from its halving levels.

Level i has N_i = 2^i nodes of c_i = D/N_i neighbouring bins, for i = 1 … h with D = 2^h; the root is known to be 1.
With weights w_i of the levels, T = Σ_i w_i·A_iᵀA_i is diagonal in the Haar spaces, so that T⁻¹ is a formula
(docs/mathematics.md §13): T⁻¹b = Σ_i (E_i − E_{i−1})b/t_i, E_i the mean over a node, t_i = Σ_{l≥i} w_l·c_l.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sunzi._typing import Floats, Integers


@dataclass(frozen=True, eq=False)
class RangeSums:
    """For ranges of bins, and every level: sums over the nodes b of the level of Z(b)², Z the mean of T⁻¹a over a node
    and a the indicator of the range. One row per range, one column per level.
    """

    squares: Floats
    """Σ_b Z(b)²."""
    weighted: Floats
    """Σ_b g(b)·Z(b)², g the frequencies of the nodes."""
    means: Floats
    """Σ_b g(b)·Z(b)."""
    contrasts: Floats
    """The mean of Z(b)² over the bins of the range less that over the others."""


@dataclass(frozen=True, eq=False)
class Dyadic:
    """D = 2^h bins, and a weight for each of the levels 1 … h; that of the last one is positive."""

    weights: Floats

    @property
    def levels(self) -> int:
        """h."""
        return int(self.weights.size)

    @property
    def size(self) -> int:
        """D."""
        return 1 << self.levels

    @cached_property
    def widths(self) -> Integers:
        """c_i of the levels 1 … h: how many bins a node has."""
        return 1 << np.arange(self.levels - 1, -1, -1)

    @cached_property
    def spectrum(self) -> Floats:
        """t_1 … t_h."""
        products = self.weights * self.widths
        return np.cumsum(products[::-1])[::-1]

    def node_sums(self, rows: Floats, level: int) -> Floats:
        """The sums over the nodes of a level, along the last axis."""
        return rows.reshape(*rows.shape[:-1], 1 << level, -1).sum(axis=-1)

    def solve(self, rows: Floats) -> Floats:
        """T⁻¹ of every row, less its mean: along the last axis."""
        result = np.zeros(rows.shape)
        coarser = np.broadcast_to(rows.mean(axis=-1, keepdims=True), rows.shape)
        for level, value in enumerate(self.spectrum.tolist(), start=1):
            finer = np.repeat(self.node_sums(rows, level) / self.widths[level - 1], self.widths[level - 1], axis=-1)
            result += (finer - coarser) / value
            coarser = finer
        return result

    def combine(self, levels: Sequence[Floats | None]) -> Floats:
        """The least-squares histogram of sum 1, from the estimated histogram of every level; None for weight 0."""
        total = np.zeros(self.size)
        for weight, width, found in zip(self.weights.tolist(), self.widths.tolist(), levels, strict=True):
            if found is not None:
                total += weight * np.repeat(found, width)
        return 1 / self.size + self.solve(total)

    def range_sums(self, low: Integers, high: Integers, cumulative: Floats) -> RangeSums:
        """The sums of :class:`RangeSums` for the ranges [low, high), in O(log D) each.

        Two *paths* lead from the root to the first and to the last bin of the range. T⁻¹a is constant within every node
        that is on neither of them, so that all nodes of a level are those on the paths, and what is below the siblings
        of these and of the ones before.

        Parameters
        ----------
        low, high: the ends, 0 ≤ low < high ≤ D.
        cumulative: the frequency of all bins before each of the D + 1 ends of bins.
        """
        low, high = low[:, np.newaxis], high[:, np.newaxis]

        def shares(nodes: Integers) -> Floats:
            """How much of each node is in its range."""
            starts = nodes * self.widths
            return np.maximum(np.minimum(high, starts + self.widths) - np.maximum(low, starts), 0) / self.widths

        def masses(nodes: Integers) -> Floats:
            return cumulative[(nodes + 1) * self.widths] - cumulative[nodes * self.widths]

        # Axes: the two paths, ranges, levels.
        paths = np.stack([low, high - 1]) // self.widths
        siblings = paths ^ 1
        is_counted = np.stack([np.ones(paths.shape[1:], dtype=np.bool_), paths[0] != paths[1]])
        root = np.broadcast_to((high - low) / self.size, (2, low.size, 1))
        covered = np.concatenate([root, shares(paths)], axis=2)
        steps = np.concatenate([0 * root, np.cumsum(np.diff(covered) / self.spectrum, axis=2)], axis=2)
        on = np.where(is_counted, steps[..., 1:], 0.0)
        beside_shares = shares(siblings)
        beside = steps[..., :-1] + (beside_shares - covered[..., :-1]) / self.spectrum
        beside = np.where(is_counted & (siblings != paths[::-1]), beside, 0.0)
        on_mass, beside_mass = masses(paths), masses(siblings)

        def total(on_paths: Floats, besides: Floats) -> Floats:
            return np.asarray((on_paths + np.cumsum(besides, axis=2)).sum(axis=0))

        squares = total(on**2 * self.widths, beside**2 * self.widths)
        inside = total(on**2 * covered[..., 1:] * self.widths, beside**2 * beside_shares * self.widths)
        return RangeSums(
            squares / self.widths,
            total(on**2 * on_mass, beside**2 * beside_mass),
            total(on * on_mass, beside * beside_mass),
            inside / (high - low) - (squares - inside) / np.maximum(self.size - (high - low), 1),
        )


def level_shares(costs: Floats, energies: Floats) -> Floats:
    """How often to ask each level, for the least mean variance of a workload; sums to 1.

    Minimises Σ_i 𝓔_i/t_i under Σ_i t_i·δ_i = 1 and falling t, δ_i = c_i − c_{i−1}: t_i = √(𝓔_i/δ_i), pooled with its
    neighbours where it would rise; the share of level i is (t_i − t_{i+1})·c_i.

    Parameters
    ----------
    costs: c_i of every level, its variance of one report times N_i/D.
    energies: 𝓔_i, the mean of |E_i a|² − |E_{i−1} a|² over the queries a of the workload.
    """
    pools: list[tuple[float, float, int]] = []
    for energy, price in zip(energies.tolist(), np.diff(costs, prepend=0.0).tolist(), strict=True):
        pool = energy, price, 1
        # A level that costs no more than a coarser one makes that one useless: the two are pooled.
        while pools and pool[0] * max(pools[-1][1], 0.0) >= pools[-1][0] * max(pool[1], 0.0):
            pool = tuple(map(sum, zip(pool, pools.pop(), strict=True)))  # type: ignore[assignment]  # three numbers
        pools.append(pool)
    values = np.concatenate([np.full(number, (energy / price) ** 0.5) for energy, price, number in pools])
    shares = -np.diff(values, append=0.0) * costs
    return shares / shares.sum()


def workload_energies(levels: int) -> Floats:
    """𝓔_i of a workload of all ranges and all prefixes, in equal parts."""
    size = 1 << levels
    bins = np.arange(size, dtype=np.float64)
    return np.diff([_mean_norm(bins, size, level) for level in range(levels + 1)])


def bin_energies(levels: int) -> Floats:
    """𝓔_i of a workload of all single bins: half of N_i/D."""
    return np.exp2(-np.arange(levels, 0, -1, dtype=np.float64))


def _mean_norm(bins: Floats, size: int, level: int) -> float:
    """The mean of |E_i a|², from how often two bins of a node, x ≤ y, are both in the query."""
    place, width = bins.reshape(1 << level, -1), size >> level
    after = size - place  # ends after y
    ranges = 2 * after * np.cumsum(place + 1, axis=1) - after * (place + 1)
    prefixes = 2 * after * np.arange(1, width + 1) - after
    return float(ranges.sum() / (size * (size + 1) / 2) + prefixes.sum() / size) / (2 * width)
