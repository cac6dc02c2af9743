"""Variances of the modular estimator: of every item, for any histogram, and a quick upper bound.

See docs/mathematics.md §3.3.

S_j = diag(d0 + d1·g) + α11ᵀ + β(1gᵀ + g1ᵀ) − ggᵀ is the covariance of one debiased report of block j when residues
follow g. With H_j = w_j T⁻¹A_jᵀ the decoder's part for block j, Var(f̂_i) = Σ_j (1/n_j)(H_j S_j H_jᵀ)_ii.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from sunzi._typing import Floats
from sunzi.designs.response import BlockResponse
from sunzi.numerics.intervals import Jumps, OwnCount
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.numerics.toeplitz import ToeplitzGram, adjoint, fold, tile

# Up to this domain size nothing is approximated: it takes a tenth of a second, and few residues average badly.
_FORMED_SIZE = 1024
# Solving for one column of H_j takes as long as forming this many columns when all are formed.
_COLUMN_COST = 6
# Rows of the inverse are worked on together up to this many numbers: more would leave the cache.
_STACK_CELLS = 1 << 17
# At most this many numbers in all columns that are solved for, which takes ten to thirty seconds.
_MOST_CELLS = 1 << 28
# The quick bound solves for this many columns per block that has heavy residues, and for fewer (but at least one) where
# their numbers in all blocks would exceed the second limit.
_QUICK_COLUMNS = 4
_QUICK_CELLS = 1 << 20
# What residues that count as typical may add to a variance or take from it, as a share of it, as far as one item tells.
_NEGLIGIBLE = 0.02
_ROUNDING = 1e-14


@dataclass(frozen=True)
class BlockMoments:
    """d0 (light), d1 (heavy), β (mixed) and α (constant) of one block."""

    points: int
    light: float
    heavy: float
    mixed: float
    constant: float

    @classmethod
    def of(cls, response: BlockResponse) -> BlockMoments:
        """The moments of a certified response."""
        return cls._from(response.probabilities, response.design.points, response.design.block_size)

    @classmethod
    def at(cls, points: int, block_size: int, epsilon: Fraction) -> BlockMoments:
        """The moments of the response that these sizes would have, for planning."""
        return cls._from(SupportProbabilities.planned(points, block_size, epsilon), points, block_size)

    @classmethod
    def _from(cls, probabilities: SupportProbabilities, points: int, size: int) -> BlockMoments:
        """P1, P0: two points both in the block, the value one of them or neither (exact for subsets, near for other
        2-designs).
        """
        true, gap = probabilities.true, probabilities.gap
        with_value = true * (size - 1) / (points - 1)
        pairs = (points - 1) * (points - 2)
        # With two points there are no two other ones; any P0 gives the same covariance, and 0 is the simplest.
        without = (true * (size - 1) * (size - 2) + (1 - true) * size * (size - 1)) / pairs if pairs else 0.0
        light = (probabilities.false - without) / gap**2
        heavy = (gap - 2 * with_value + 2 * without) / gap**2
        mixed = (1 - heavy) / points
        return cls(points, light, heavy, mixed, -(light + mixed) / points)

    def query(self, rows: Floats, frequencies: Floats, reports: float) -> tuple[Floats, Floats]:
        """For queries on the points, whose rows sum to 0, their covariance and its excess per point
        (:class:`~sunzi.results.uncertainty.QueryErrors`): α and β drop out.

        Frequencies are unbiased estimates, so that the variance is; Σ g·h² stays between the smallest and largest h².
        """
        squares, means = rows**2, rows @ frequencies
        weighted = (rows * frequencies) @ rows.T
        places = np.diag_indices(len(rows))
        weighted[places] = np.clip(weighted[places], squares.min(axis=1), squares.max(axis=1))
        covariance = self.light * (rows @ rows.T) + self.heavy * weighted - np.outer(means, means)
        return covariance / reports, self.heavy / reports * squares

    def flat(self, domain_size: int) -> float:
        """d0 + d1·Σ_a g_a²: the mean variance at the residue of a value, if all values are equally frequent."""
        each, more = divmod(domain_size, self.points)
        pairs = more * (each + 1) ** 2 + (self.points - more) * each**2
        return self.light + self.heavy * pairs / domain_size**2


def flat_error(gram: ToeplitzGram, domain_size: int) -> float:
    """The mean variance of all items for one report about the actual users, if all values are equally frequent and the
    weights of ``gram`` are 1/(ℓ·:meth:`BlockMoments.flat`).

    It is the mean diagonal of T⁻¹ − ττᵀ/1ᵀτ, τ = T⁻¹1, less f(1−f) at f = 1/k (docs/mathematics.md §3.3). Exact where
    all residues are equally frequent; elsewhere at most 6 % too large on small domains, and 1 % from 1,000 values on.
    """
    ones = gram.ones_solution
    population = (gram.inverse_trace() - float(ones @ ones) / float(ones.sum())) / gram.size
    # At a huge ε hardly any error is left, and rounding must not make it negative.
    return max(population - sampling_variance(domain_size), _ROUNDING * population)


def worst_error(gram: ToeplitzGram, moments: Sequence[BlockMoments]) -> float:
    """At least the mean variance of all items for one report, at any histogram: the error of residues that nobody holds
    plus what one value held by everyone can add, by the smallest eigenvalue of T.
    """
    operator = LinearOperator((gram.size, gram.size), matvec=gram.solve, dtype=np.float64)
    tiny = 3
    largest = (
        float(eigsh(operator, k=1, return_eigenvectors=False, tol=1e-2, v0=np.ones(gram.size))[0])
        if gram.size > tiny
        else gram.inverse_trace()
    )
    heavy = sum(
        len(moments) * (block.heavy + block.mixed**2) * weight * largest * 1.01
        for block, weight in zip(moments, gram.weights.tolist(), strict=True)
    )
    light = len(moments) * gram.weights**2 * [block.light for block in moments]
    return (float(gram.sandwich_diagonal(light).sum()) + heavy) / gram.size


def sampling_variance(domain_size: int) -> float:
    """f(1−f) at f = 1/k: part of the variance about a population, but no error about the actual users."""
    return (1 - 1 / domain_size) / domain_size


@dataclass(frozen=True)
class ModularVariance:
    """Variances of f̂ = T⁻¹Σ_j w_j A_jᵀ s_j, corrected to sum to 1, given the number of reports n_j of every block."""

    gram: ToeplitzGram
    moments: Sequence[BlockMoments]
    weights: Floats
    reports: Sequence[float]

    def full(self, frequencies: Floats) -> Floats:
        """The variance of every item about the population: exact on small domains and where that is the least work,
        elsewhere mostly within 2 %; with two or three moduli near each other, within a few per cent. Time is bounded:
        where more residues are heavy than can be solved for in ten to thirty seconds, the lightest count as typical.
        """
        residues = [fold(frequencies, moments.points) for moments in self.moments]
        if self.gram.size <= _FORMED_SIZE:
            return self._formed(residues)
        heavy = self._heavy_residues(residues)
        needed, most = sum(chosen.size for chosen in heavy), max(1, _MOST_CELLS // self.gram.size)
        if min(needed, most) > sum(block.size for block in residues) / _COLUMN_COST:
            return self._formed(residues)
        if needed > most:
            heavy = [chosen[-max(1, most // len(heavy)) :] for chosen in heavy]
        return self._by_columns(residues, heavy)

    def _formed(self, residues: Sequence[Floats]) -> Floats:
        """Σ_j (1/n_j)·diag(C H_j S_j H_jᵀ Cᵀ), C = 1 − c·1ᵀ the correction of the sum, with all rows of H_j formed."""
        ones = self.gram.ones_solution
        share, sums = ones / ones.sum(), [fold(ones, block.size) for block in residues]
        total = np.zeros(self.gram.size)
        for place, inverse in self.gram.inverse_rows(max(1, _STACK_CELLS // self.gram.size)):
            blocks = zip(residues, sums, self.moments, self.weights.tolist(), self.reports, strict=True)
            for block, column_sums, moments, weight, reports in blocks:
                decoder = _fold_rows(inverse, block.size)
                decoder -= np.outer(share[place], column_sums)
                decoder *= weight
                along_ones, along_block = decoder.sum(axis=1), decoder @ block
                variance = np.square(decoder, out=decoder) @ (moments.light + moments.heavy * block)
                variance += moments.constant * along_ones**2 + 2 * moments.mixed * along_ones * along_block
                total[place] += (variance - along_block**2) / reports
        return total

    def _heavy_residues(self, residues: Sequence[Floats]) -> list[NDArray[np.intp]]:
        """The residues of every block that cannot count as typical. What the others deviate from one another changes
        the variance of a light item little, even where it meets the largest entry of H_j off the item's own residue.

        How large that entry is, and that variance, the first item tells: its row of H_j is a fold of u.
        """
        column, strongest, variance = self.gram.inverse_column, [], 0.0
        for block, moments, weight, reports in zip(residues, self.moments, self.weights, self.reports, strict=True):
            squares = (weight * fold(column, moments.points)) ** 2 / reports
            strongest.append(float(squares[1:].max()) * moments.heavy)
            variance += moments.light * float(squares.sum()) + moments.heavy * block.mean() * float(squares[1:].sum())
        allowed = _NEGLIGIBLE * variance / len(residues) ** 0.5
        return [_outstanding(entry * block, allowed) for entry, block in zip(strongest, residues, strict=True)]

    def _by_columns(self, residues: Sequence[Floats], heavy: Sequence[NDArray[np.intp]]) -> Floats:
        """As :meth:`_formed`, from the columns of H_j for heavy residues and an item's own and the norm of the rest."""
        typical = [_typical(block, chosen) for block, chosen in zip(residues, heavy, strict=True)]
        coefficients = [
            weight**2 * (moments.light + moments.heavy * mean) / reports
            for weight, moments, mean, reports in zip(self.weights, self.moments, typical, self.reports, strict=True)
        ]
        total = self.gram.sandwich_diagonal(np.array(coefficients))
        for index, block in enumerate(residues):
            total += self._heavy_part(index, block, heavy[index], typical[index])
            total += self._common_part(index, block)
        return total + self._sum_correction(residues)

    def query(self, rows: Floats, frequencies: Floats) -> tuple[Floats, Floats]:
        """The covariance of linear queries about a population, and its excess per value: one solve for each row."""
        solved = np.array([self.gram.solve(row, total=0.0) for row in rows])
        covariance, excess = np.zeros((len(rows), len(rows))), np.zeros(rows.shape)
        for moments, weight, reports in zip(self.moments, self.weights.tolist(), self.reports, strict=True):
            directions = weight * _fold_rows(solved, moments.points)
            added, more = moments.query(directions, fold(frequencies, moments.points), reports)
            covariance += added
            excess += np.array([tile(row, rows.shape[1]) for row in more])
        return covariance, excess

    def own_slopes(self) -> Floats:
        """Σ_j (d1_j/n_j)·H_j[i, i mod m_j]²: how fast the variance of an item grows with the item's own frequency."""
        slopes = np.zeros(self.gram.size)
        for moments, reports, own in zip(self.moments, self.reports, self._own_entries(), strict=True):
            slopes += moments.heavy / reports * own**2
        return slopes

    def _own_entries(self) -> Iterator[Floats]:
        """H_j[i, i mod m_j] of every item, block by block."""
        for moments, weight in zip(self.moments, self.weights.tolist(), strict=True):
            yield weight * self.gram.product_diagonal(moments.points)

    def jumps(self, frequencies: Floats, rates: Sequence[SupportProbabilities], at_hand: bool) -> Jumps:
        """How far the errors come in few large steps: see :class:`Jumps`. ``rates`` are those of the blocks."""
        blocks = zip(self._own_entries(), rates, self.reports, self.moments, strict=True)
        counts = [own_count(own, frequencies, rate, reports, moments.points) for own, rate, reports, moments in blocks]
        return Jumps.of_counts(counts, self.typical_step(rates), at_hand)

    def typical_step(self, rates: Sequence[SupportProbabilities]) -> float:
        """By how much a lie moves the estimate of an item whose residue it does not name: the root of the ratio of the
        fourth to the second cumulant, for the first item, whose row of H_j is a fold of u.
        """
        column, fourth, second = self.gram.inverse_column, 0.0, 0.0
        for moments, rate, weight, reports in zip(
            self.moments, rates, self.weights.tolist(), self.reports, strict=True
        ):
            squares = (weight * fold(column, moments.points)[1:] / (rate.gap * reports)) ** 2
            second += reports * rate.false * float(squares.sum())
            fourth += reports * rate.false * float(squares @ squares)
        return (fourth / second) ** 0.5 if second else 0.0

    def _heavy_part(self, index: int, block: Floats, chosen: NDArray[np.intp], mean: float) -> Floats:
        """Σ_a (g_a − ḡ)·H[i,a]² over the item's own residue and the heavy ones; every other g_a counts as ḡ."""
        size, modulus, weight = self.gram.size, self.moments[index].points, float(self.weights[index])
        total = self._own_part(modulus, weight**2 * (block - mean))
        stack = max(1, _STACK_CELLS // size)
        for start in range(0, chosen.size, stack):
            part = chosen[start : start + stack]
            combs = np.zeros((part.size, size))
            for row, residue in zip(combs, part, strict=True):
                row[residue::modulus] = weight
            columns = self.gram.apply_inverse(combs)
            np.square(columns, out=columns)
            for column, residue in zip(columns, part, strict=True):
                column[residue::modulus] = 0.0  # the item's own residue is in already
            total += (block[part] - mean) @ columns
        total *= self.moments[index].heavy / self.reports[index]
        return total

    def _own_part(self, modulus: int, excess: Floats) -> Floats:
        """excess[a]·(T⁻¹A_jᵀ)[i,a]² at the item's own residue a = i mod m_j."""
        own = self.gram.product_diagonal(modulus)
        own *= own
        return own * tile(excess, own.size)

    def _own_bound(self, excesses: Iterable[Floats]) -> Floats:
        """At least the sum of the own parts, for excesses that are nowhere positive."""
        floors = self.gram.product_floors
        shape = floors.shape[1], -(-self.gram.size // floors.shape[1])
        total = np.zeros(shape)
        for excess, floor in zip(excesses, floors, strict=True):
            total += floor[:, None] * tile(excess, total.size).reshape(shape)
        return total.reshape(-1)[: self.gram.size]

    def _common_part(self, index: int, block: Floats) -> Floats:
        """α(H1)² + 2β(H1)(Hg) − (Hg)², with H_j·1 = w_j·T⁻¹1."""
        moments, weight = self.moments[index], float(self.weights[index])
        ones = weight * self.gram.ones_solution
        mean = weight * self.gram.apply_inverse(tile(block, self.gram.size))
        return (moments.constant * ones**2 + 2 * moments.mixed * ones * mean - mean**2) / self.reports[index]

    def _sum_correction(self, residues: Sequence[Floats]) -> Floats:
        """What making the frequencies sum to 1 changes: −2·c·Cov(f̂, 1ᵀf̂) + c²·Var(1ᵀf̂) with c = T⁻¹1/(1ᵀT⁻¹1)."""
        ones = self.gram.ones_solution
        share = ones / ones.sum()
        spreads, variance = [], 0.0
        for block, moments, weight, reports in zip(residues, self.moments, self.weights, self.reports, strict=True):
            direction = weight * fold(ones, moments.points)
            spreads.append(covariance_times(moments, block, direction) / reports)
            variance += float(direction @ spreads[-1])
        right_side = adjoint(spreads, [moments.points for moments in self.moments], self.weights, self.gram.size)
        covariance = self.gram.apply_inverse(right_side)
        return share * (share * variance - 2 * covariance)

    def quick(self, frequencies: Floats) -> Floats:
        """An upper bound on :meth:`full` in about one solve, or in tens of solves where frequent values matter: some
        heavy residues have exact columns, and the heaviest of the rest stands for all others but the item's own. Making
        the frequencies sum to 1 is taken to add to every error.
        """
        residues = [fold(frequencies, moments.points) for moments in self.moments]
        heaviest = np.array([block.max() for block in residues])
        light = np.array([moments.light for moments in self.moments])
        heavy = np.array([max(moments.heavy, 0.0) for moments in self.moments])
        shares = self.weights**2 / np.array(self.reports)
        spread = (shares * (light + heavy * heaviest)) @ self.gram.ones_spreads
        number = max(1, min(_QUICK_COLUMNS, _QUICK_CELLS // (self.gram.size * len(residues))))
        exact = {
            index: np.argsort(residues[index])[-number:] for index in np.flatnonzero(heavy * heaviest > light).tolist()
        }
        for index, chosen in exact.items():
            heaviest[index] = np.delete(residues[index], chosen).max(initial=0.0)
        total = self.gram.sandwich_diagonal(shares * (light + heavy * heaviest))
        for index, chosen in exact.items():
            total += self._heavy_part(index, residues[index], chosen, heaviest[index])
        # The blocks without exact columns: the item's own part in the decoder counts as the least of items near it.
        bounded = np.where(np.isin(np.arange(len(residues)), list(exact)), 0.0, shares * heavy)
        blocks = zip(bounded, residues, heaviest, strict=True)
        total += self._own_bound(share * np.minimum(block - peak, 0.0) for share, block, peak in blocks)
        # α(H1)² + 2β(H1)(Hg) − (Hg)² ≤ (α + β²)(H1)², with H_j·1 = w_j·T⁻¹1.
        common = shares @ [max(moments.constant + moments.mixed**2, 0.0) for moments in self.moments]
        ones = self.gram.ones_solution
        total += common * ones**2
        # √Var(f̂_i − c_i·1ᵀf̂) ≤ √Var(f̂_i) + |c_i|·√Var(1ᵀf̂), with c = T⁻¹1/(1ᵀT⁻¹1). And Var(1ᵀf̂) = Σ_j dᵀS_j d/n_j for
        # d = w_j A_j T⁻¹1, or d less its mean, since S·1 = 0: then at most Σ_a (d0 + d1·g_a)·d_a².
        np.sqrt(np.maximum(total, 0.0, out=total), out=total)
        total += (float(spread) ** 0.5 / ones.sum()) * np.abs(ones)
        return np.square(total, out=total)


def own_count(own: Floats, frequencies: Floats, rates: SupportProbabilities, reports: float, points: int) -> OwnCount:
    """How a block's count of every item's own residue enters its estimate, with weight ``own``."""
    others = tile(fold(frequencies, points), own.size) - frequencies
    rate = rates.false + rates.gap * np.clip(others, 0.0, 1.0)
    return OwnCount(own, rate, rates.gap, rates, round(reports))


def _fold_rows(rows: Floats, modulus: int) -> Floats:
    """The sums of every row over each residue class."""
    result = np.zeros((len(rows), modulus))
    for start in range(0, rows.shape[1], modulus):
        part = rows[:, start : start + modulus]
        result[:, : part.shape[1]] += part
    return result


def _outstanding(effects: Floats, allowed: float) -> NDArray[np.intp]:
    """The places of the fewest effects without which the others are the same within what is allowed, added up as the
    squares of independent errors; the largest last.
    """
    deviations = np.square(effects - np.median(effects))
    ascending = np.argsort(deviations)
    return ascending[np.cumsum(deviations[ascending]) > allowed**2]


def _typical(block: Floats, chosen: NDArray[np.intp]) -> float:
    """The mean of all residues that are not heavy."""
    rest = block.size - chosen.size
    return float((block.sum() - block[chosen].sum()) / rest) if rest else 0.0


def covariance_times(moments: BlockMoments, block: Floats, direction: Floats) -> Floats:
    """The product S·v of the block's covariance matrix with ``direction``."""
    total, inner = float(direction.sum()), float(block @ direction)
    result = moments.heavy * block
    result += moments.light
    result *= direction
    result += (moments.mixed * total - inner) * block
    result += moments.constant * total + moments.mixed * inner
    return result
