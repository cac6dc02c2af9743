"""Cyclotomic designs: the accuracy of all subsets in about log2(k) + 1.44·ε bits (docs/mathematics.md §2).

m prime, e | m−1, g a primitive root, C_c = {g^(c+e·i)}. The base block D is a union of classes, with or without 0; the
blocks are B(a,b) = g^a·D + b for a in [e], b in Z_m. The affine group is 2-transitive on Z_m, so this is an exact
2-design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log2
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sunzi._typing import Floats, Integers
from sunzi.client.designs import cyclotomic as client
from sunzi.client.designs.primes import is_prime
from sunzi.designs.base import DecodingCost, Design
from sunzi.numerics.counters import Counters, expected_filled
from sunzi.numerics.primes import cyclotomic_order, powers, primitive_root

Spectrum = NDArray[np.complex128]

_CACHED_SPECTRA_BYTES = 1 << 28
_CHUNK_CELLS = 1 << 20
_POINTS_PER_REPORT = 64  # use tables if they have at most this many entries per report; both take as long there
_ADDED_CELLS = 1 << 17
_SHORT_TRANSFORM = 1 << 13
# Measured: nanoseconds of one added point, and of one cell of a padded real transform per bit of its length.
_COST_OF_ADDITION = 4.0
_COST_OF_TRANSFORM = 0.75


@dataclass(frozen=True)
class Cyclotomic(client.Cyclotomic, Design):
    """The e·m messages (a,b), sent as a·m + b, each naming the block g^a·D + b of Z_m.

    ``generator`` is a primitive root of the prime m = ``points``; 0 chooses the smallest.

    >>> design = Cyclotomic(points=7, classes=3)
    >>> design.block_size, design.message_count
    (2, 21)
    """

    def __post_init__(self) -> None:
        if not self.generator and is_prime(self.points):
            object.__setattr__(self, "generator", primitive_root(self.points))
        super().__post_init__()

    @property
    def message_count(self) -> int:
        """The number of blocks, e·m."""
        return self.classes * self.points

    @property
    def class_count(self) -> int:
        """Multipliers g^a: each has equally many blocks with, and without, any given point."""
        return self.classes

    @classmethod
    def smallest(cls) -> tuple[Self, ...]:
        """On 7 points, where −1 is not a square, so that x + d and x − d give different blocks, and on 5."""
        return cls(7, 2), cls(5, 4, (0, 2))

    @cached_property
    def _points(self) -> Integers:
        """D, then the rest of Z_m."""
        return cyclotomic_order(self.points, self.classes, self.generator, self.union, self.with_zero)

    @cached_property
    def _multipliers(self) -> Integers:
        return powers(self.generator, self.points, self.classes)

    def respond(self, values: Integers, truth: NDArray[np.bool_], variates: NDArray[np.uint64]) -> Integers:
        """a uniform; d uniform in g^a·D (truth) or in the rest; b = x − d; the message a·m + b."""
        scale = variates[:, 0].astype(np.int64)
        position = np.where(truth, variates[:, 1], variates[:, 2] + np.uint64(self.block_size)).view(np.int64)
        if values.size * _POINTS_PER_REPORT < self.points:
            shift = self._scaled_points(scale, position)
        else:
            shift = self._points[position]
            shift *= self._multipliers[scale]
            shift %= self.points
        shift = values - shift
        shift += (shift < 0) * np.int64(self.points)
        shift += scale * self.points
        return shift

    def _scaled_points(self, scale: Integers, position: Integers) -> Integers:
        """g^a·d for the points d at these positions, without tables: few reports of a large design."""
        places = zip(scale.tolist(), position.tolist(), strict=True)
        return np.array([self._point(multiplier, place) for multiplier, place in places], dtype=np.int64)

    @cached_property
    def _in_base_block(self) -> NDArray[np.bool_]:
        member = np.zeros(self.points, dtype=np.bool_)
        member[self._points[: self.block_size]] = True
        return member

    def contains(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """(x − b)/g^a in D."""
        scale, shift = np.divmod(messages, self.points)
        inverses = np.array([pow(int(step), -1, self.points) for step in self._multipliers], dtype=np.int64)
        return self._in_base_block[(points - shift) % self.points * inverses[scale] % self.points]

    def point_counts(self, counters: Counters, limit: int) -> Integers:
        """Σ_a c_a ∗ 1_{g^a·D}, by adding the counted blocks or by Fourier transform, whichever is cheaper."""
        counters.check_total()
        if self.additions_are_cheaper(counters.filled):
            return self._add_blocks(*counters.nonzero())[:limit]
        return np.rint(self._convolve(counters.dense()))[:limit].astype(np.int64)

    def point_counts_cost(self, reports: float, limit: int) -> DecodingCost:  # noqa: ARG002 - all points at once
        """One addition per point of every counted block, or e+1 padded transforms."""
        filled = expected_filled(self.counter_count, reports)
        if self.additions_are_cheaper(round(filled)):
            return DecodingCost(filled * self.block_size, "additions")
        return DecodingCost((self.classes + 1) * self._padded_length * log2(self._padded_length), "transforms")

    def additions_are_cheaper(self, filled: int) -> bool:
        """Whether w additions for each of ``filled`` counted blocks cost less than e+1 padded transforms."""
        length = self._padded_length
        transforms = (self.classes + 1) * length * np.log2(length) * _COST_OF_TRANSFORM
        return bool(filled * self.block_size * _COST_OF_ADDITION < transforms)

    @cached_property
    def _blocks(self) -> Integers:
        """Row a holds g^a·D."""
        return self._scaled_blocks(slice(0, self.classes))

    def _scaled_blocks(self, chunk: slice) -> Integers:
        return self._multipliers[chunk, None] * self._points[None, : self.block_size] % self.points

    def _add_blocks(self, messages: Integers, multiplicities: Integers) -> Integers:
        if multiplicities.sum() <= 2 * messages.size:  # counting a block twice is quicker than weighing it
            messages, weights = np.repeat(messages, multiplicities), None
        else:
            weights = multiplicities.astype(np.float64)
        rows = max(1, _ADDED_CELLS // self.block_size)
        cells = np.empty((rows, self.block_size), dtype=np.int64)
        totals: Floats = np.zeros(2 * self.points)
        for start in range(0, messages.size, rows):
            scale, shift = np.divmod(messages[start : start + rows], self.points)
            part = cells[: scale.size]
            np.take(self._blocks, scale, axis=0, out=part, mode="clip")
            part += shift[:, None]
            each = None if weights is None else np.repeat(weights[start : start + rows], self.block_size)
            totals += np.bincount(part.reshape(-1), each, minlength=totals.size)
        return (totals[: self.points] + totals[self.points :]).astype(np.int64)

    @cached_property
    def _padded_length(self) -> int:
        return int(fft.next_fast_len(2 * self.points - 1, real=True))

    def _spectra(self) -> Iterator[tuple[slice, Spectrum]]:
        """The transforms of 1_{g^a·D}, a few a at a time; kept between calls where they fit in 256 MiB."""
        rows = max(1, _CHUNK_CELLS // self._padded_length)
        are_kept = 8 * self.classes * self._padded_length <= _CACHED_SPECTRA_BYTES
        for start in range(0, self.classes, rows):
            chunk = slice(start, min(start + rows, self.classes))
            yield chunk, self._cached_spectra[chunk] if are_kept else self._transform_blocks(chunk)

    @cached_property
    def _cached_spectra(self) -> Spectrum:
        return self._transform_blocks(slice(0, self.classes))

    def _transform_blocks(self, chunk: slice) -> Spectrum:
        blocks = self._scaled_blocks(chunk)
        indicators = np.zeros((blocks.shape[0], self.points))
        np.put_along_axis(indicators, blocks, 1.0, axis=1)
        return fft.rfft(indicators, self._padded_length, axis=1)

    def _convolve(self, weights: Integers | Floats) -> Floats:
        rows = weights.reshape(self.classes, self.points)
        total = np.zeros(self._padded_length // 2 + 1, dtype=np.complex128)
        for chunk, spectra in self._spectra():
            if self._padded_length < _SHORT_TRANSFORM:
                total += np.einsum("ij,ij->j", fft.rfft(rows[chunk], self._padded_length, axis=1), spectra)
                continue
            for row, spectrum in zip(rows[chunk], spectra, strict=True):  # one by one they stay in the cache
                transformed = fft.rfft(row, self._padded_length)
                transformed *= spectrum
                total += transformed
        linear = fft.irfft(total, self._padded_length)
        folded = linear[: self.points].copy()
        folded[: self.points - 1] += linear[self.points : 2 * self.points - 1]
        return folded

    def spread(self, weights: Floats, limit: int) -> Floats:
        """The convolution, for real weights."""
        return self._convolve(weights)[:limit]

    def block_sums(self, values: Floats) -> Floats:
        """The correlation Σ_{d in g^a·D} values[b + d], for every (a,b)."""
        sums = np.empty((self.classes, self.points))
        transformed = fft.rfft(values, self._padded_length)
        for chunk, spectra in self._spectra():
            circular = fft.irfft(transformed * spectra.conj(), self._padded_length, axis=1)
            sums[chunk] = circular[:, : self.points]
            # A shift of b − m stands at the end of the padded circle; b = 0 has none.
            sums[chunk, 1:] += circular[:, self._padded_length - self.points + 1 :]
        return sums.reshape(-1)

    def missing_messages(self, limit: int) -> int:
        """A block misses [limit] for one shift for every step by which a gap between its points exceeds the limit."""
        if self.points - limit < self.block_size:
            return 0
        total, rows = 0, max(1, _CHUNK_CELLS // self.block_size)
        for start in range(0, self.classes, rows):
            blocks = np.sort(self._scaled_blocks(slice(start, start + rows)), axis=1)
            gaps = np.diff(blocks, axis=1, append=blocks[:, :1] + self.points)
            total += int(np.maximum(gaps - limit, 0).sum())
        return total
