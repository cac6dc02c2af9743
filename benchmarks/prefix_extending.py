"""The prefix extending method (Wang, Li and Jha 2017) with optimal local hashing: the reference for open domains.

Users are divided into groups; group i reports the first bits of its value, more with every group. The server extends
the best prefixes of one group by all endings and keeps the best by the reports of the next. It must keep all reports,
and hashes every candidate for every report.

pure-ldp 1.2 has this method too, but its server of local hashing allocates an array of all possible prefixes: 512 GiB
for those of 36 bits.
"""

from __future__ import annotations

from math import exp, log2
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]

GROUPS = 7
FIRST_BITS = 12


def depths(bits: int) -> list[int]:
    """The bits that every group reports."""
    return [FIRST_BITS + round((bits - FIRST_BITS) * place / (GROUPS - 1)) for place in range(GROUPS)]


def report_bits(epsilon: float) -> float:
    """A seed of 64 bits and the hashed value."""
    return 64 + log2(round(exp(epsilon)) + 1)


@numba.njit
def _hashed(code: Any, seed: Any, buckets: Any) -> Any:
    """A bucket, by the finaliser of MurmurHash3."""
    mixed = code * np.uint64(0x9E3779B97F4A7C15) ^ seed
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed % buckets


@numba.njit
def _hash_all(codes: Any, seeds: Any, buckets: Any) -> Any:
    found = np.empty(codes.size, dtype=np.uint64)
    for place in range(codes.size):
        found[place] = _hashed(codes[place], seeds[place], buckets)
    return found


@numba.njit
def _supports(candidates: Any, seeds: Any, answers: Any, buckets: Any) -> Any:
    found = np.zeros(candidates.size, dtype=np.int64)
    for place in range(candidates.size):
        code, total = candidates[place], 0
        for report in range(seeds.size):
            total += _hashed(code, seeds[report], buckets) == answers[report]
        found[place] = total
    return found


class PrefixExtending:
    """Reports of all users about ``bits`` bits, and the search in them."""

    def __init__(self, codes: Codes, bits: int, epsilon: float, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.depths, self.bits = depths(bits), bits
        self.buckets = np.uint64(round(exp(epsilon)) + 1)
        group = generator.integers(0, GROUPS, codes.size)
        self.groups = [
            self._reports(codes[group == place], depth, epsilon, generator) for place, depth in enumerate(self.depths)
        ]

    def _reports(self, codes: Codes, depth: int, epsilon: float, generator: np.random.Generator) -> tuple[Codes, Codes]:
        """Seeds and answers: the bucket of the prefix, or with probability (g−1)/(e^ε+g−1) another one."""
        seeds = generator.integers(0, 1 << 63, codes.size, dtype=np.uint64)
        buckets = _hash_all(codes >> np.uint64(self.bits - depth), seeds, self.buckets)
        others = int(self.buckets) - 1
        shift = generator.integers(1, others + 1, codes.size).astype(np.uint64)
        lies = generator.random(codes.size) < others / (exp(epsilon) + others)
        return seeds, np.where(lies, (buckets + shift) % self.buckets, buckets)

    def best(self, number: int, kept: int) -> Codes:
        """The ``number`` values of most support, following ``kept`` prefixes from group to group."""
        prefixes, before = np.zeros(1, dtype=np.uint64), 0
        for depth, (seeds, answers) in zip(self.depths, self.groups, strict=True):
            endings = np.arange(1 << (depth - before), dtype=np.uint64)
            candidates = (prefixes[:, None] << np.uint64(depth - before) | endings).reshape(-1)
            supports = _supports(candidates, seeds, answers, self.buckets)
            wanted = number if depth == self.bits else kept
            prefixes, before = candidates[np.argsort(-supports, kind="stable")[:wanted]], depth
        return prefixes
