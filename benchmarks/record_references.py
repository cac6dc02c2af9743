"""What a user might take instead of a plan of numbers or records, each as its paper describes it.

Every reference simulates a whole collection: it takes the users' values and returns the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations
from math import exp

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.plan import Plan, make_plan
from sunzi.protocols.ordered_views import OrderedViews
from sunzi.protocols.views import View, integer_shares
from sunzi.record_plans import make_ordered
from sunzi.tally import Tally

Generator = np.random.Generator
Histogram = Callable[[Integers, int, float, Generator], Floats]
"""Takes the users' bins, the number of bins, ε and a generator; returns the estimated frequencies."""
Mean = Callable[[Floats, float, Generator], Floats]
"""Takes numbers in [−1, 1], ε and a generator; returns one unbiased report per number."""
Pairs = dict[tuple[int, int], Floats]
"""The table of every two attributes."""
Tables = Callable[[Integers, tuple[int, ...], float, Generator], Pairs]
"""Takes one row of users' values per attribute, the attributes' sizes, ε and a generator."""

_MOST_STEPS = 10_000


def flat(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """A histogram of single bins by ``ss-compact``, moved to sum 1; ranges add them up."""
    plan = _subsets(size, epsilon)
    found = plan.estimate(simulated(plan, bins, generator)).frequencies
    return found + (1 - found.sum()) / size


@lru_cache
def four_ary_plan(size: int, epsilon: float) -> Plan:
    """A tree of four children per node with uniform levels, and otherwise as ours: the best response on every level,
    and least squares. Every second halving level has an equal share.
    """
    plan = make_ordered(0, size, size, str(epsilon))
    height = size.bit_length() - 1
    levels = range(2 - height % 2, height + 1, 2)
    shares = integer_shares([1 / len(levels)] * len(levels))
    responses = (_subsets(1 << level, epsilon).protocol.responses[0] for level in levels)
    views = tuple(map(View, (1 << level for level in levels), shares, responses))
    made = OrderedViews(size, views, tuple(levels))
    return Plan(made, plan.domain)


def four_ary(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """The estimate of :func:`four_ary_plan`."""
    plan = four_ary_plan(size, epsilon)
    return plan.estimate(simulated(plan, bins, generator)).frequencies


def hadamard_response(nodes: Integers, signs: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """The mean of signs·(one-hot vector of the node), from one bit of its Hadamard transform per user."""
    rows = generator.integers(0, size, nodes.size)
    bits = signs * (1 - 2 * (np.bitwise_count(rows & nodes).astype(np.int64) & 1))
    flipped = generator.random(nodes.size) < 1 / (1 + exp(epsilon))
    sums = np.bincount(rows, np.where(flipped, -1.0, 1.0) * bits, size)
    gap = (exp(epsilon) - 1) / (exp(epsilon) + 1)
    return _walsh(sums.astype(np.float64)) / (gap * max(1, nodes.size))


def _walsh(vector: Floats) -> Floats:
    """The Walsh-Hadamard transform."""
    width = 1
    while width < vector.size:
        pairs = vector.reshape(-1, 2, width)
        vector = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        width *= 2
    return vector


def hierarchical_hadamard(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """Hierarchical histograms with four children per node, uniform levels and Hadamard response, made consistent by the
    two passes of Hay et al. (Cormode, Kulkarni and Srivastava, PVLDB 2019). ``size`` is a power of four.
    """
    height = (size.bit_length() - 1) // 2
    drawn = generator.integers(1, height + 1, bins.size)
    levels = [np.ones(1)]
    for level in range(1, height + 1):
        nodes = bins[drawn == level] >> 2 * (height - level)
        levels.append(hadamard_response(nodes, np.ones_like(nodes), 4**level, epsilon, generator))
    for level in range(height - 1, 0, -1):  # upwards: a node's own estimate, and the sum of its children's
        below = 4 ** (height - level)
        own = (4 * below - below) / (4 * below - 1)
        levels[level] = own * levels[level] + (1 - own) * levels[level + 1].reshape(-1, 4).sum(axis=1)
    for level in range(1, height + 1):  # downwards: children add up to their parent
        missing = levels[level - 1] - levels[level].reshape(-1, 4).sum(axis=1)
        levels[level] = levels[level] + np.repeat(missing / 4, 4)
    return levels[height]


def haar_hadamard(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """Haar coefficients with uniform levels and Hadamard response, HaarHRR of the same paper."""
    height = size.bit_length() - 1
    drawn = generator.integers(1, height + 1, bins.size)
    found = np.ones(1)
    for level in range(1, height + 1):
        children = bins[drawn == level] >> (height - level)
        signs = 1 - 2 * (children & 1)
        differences = hadamard_response(children >> 1, signs, 1 << (level - 1), epsilon, generator)
        found = np.stack([found + differences, found - differences], axis=1).reshape(-1) / 2
    return found


def square_wave(bins: Integers, size: int, epsilon: float, generator: Generator) -> Floats:
    """The square wave mechanism with EM and smoothing (Li et al., SIGMOD 2020)."""
    odds = exp(epsilon)
    half = (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
    near = 2 * half * odds / (2 * half * odds + 1)
    values = (bins + generator.random(bins.size)) / size
    # A report is near the value, or uniform on what remains of [−half, 1 + half]: first all left of the value's wave.
    uniform = generator.random(bins.size)
    far = np.where(uniform < values, uniform - half, uniform + half)
    close = values + half * (2 * generator.random(bins.size) - 1)
    reports = np.where(generator.random(bins.size) < near, close, far)
    counts = np.histogram(reports, size, (-half, 1 + half))[0].astype(np.float64)
    return _smoothed_em(_square_wave_matrix(size, half, odds), counts)


def _square_wave_matrix(size: int, half: float, odds: float) -> Floats:
    """The probability of every bin of reports (rows), given a value uniform in every bin (columns)."""
    edges = np.linspace(-half, 1 + half, size + 1)[:, np.newaxis]
    low, high = np.arange(size) / size, np.arange(1, size + 1) / size

    def area(bound: Floats, start: Floats) -> Floats:
        """The integral of max(0, t − start) for t up to the bound."""
        return np.maximum(bound - start, 0.0) ** 2 / 2

    # The share of the wave around a value that lies below an edge, averaged over the values of a bin.
    below = (area(edges + half, low) - area(edges + half, high)) - (area(edges - half, low) - area(edges - half, high))
    masses = np.diff(below * size, axis=0)
    widths = np.diff(edges, axis=0)
    return ((odds - 1) * masses + widths) / (2 * half * odds + 1)


def _smoothed_em(matrix: Floats, counts: Floats) -> Floats:
    """Expectation maximisation with the kernel (1, 2, 1)/4 after every step, until the likelihood stands still."""
    size = matrix.shape[1]
    found, before = np.full(size, 1 / size), -np.inf
    for _ in range(_MOST_STEPS):
        expected = matrix @ found
        likelihood = float(counts @ np.log(expected))
        if likelihood - before < 1e-3:
            break
        before = likelihood
        found = found * (matrix.T @ (counts / expected))
        padded = np.pad(found, 1, mode="edge")
        found = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        found /= found.sum()
    return found


HISTOGRAMS: dict[str, Histogram] = {
    "flat histogram": flat,
    "four-ary tree": four_ary,
    "hierarchical Hadamard": hierarchical_hadamard,
    "HaarHRR": haar_hadamard,
    "square wave, EMS": square_wave,
}


def duchi(values: Floats, epsilon: float, generator: Generator) -> Floats:
    """Two outputs (Duchi, Jordan and Wainwright, JASA 2018)."""
    size = (exp(epsilon) + 1) / (exp(epsilon) - 1)
    return np.where(generator.random(values.size) < (1 + values / size) / 2, size, -size)


def piecewise(values: Floats, epsilon: float, generator: Generator) -> Floats:
    """The piecewise mechanism (Wang et al., ICDE 2019): near the number with density e^ε times that of elsewhere."""
    root = exp(epsilon / 2)
    bound = (root + 1) / (root - 1)
    left = (bound + 1) / 2 * values - (bound - 1) / 2
    uniform = generator.random(values.size)
    far = (bound + 1) * uniform - bound
    far = np.where(far < left, far, far + bound - 1)
    near = left + (bound - 1) * uniform
    return np.where(generator.random(values.size) < root / (root + 1), near, far)


def hybrid(values: Floats, epsilon: float, generator: Generator) -> Floats:
    """The hybrid mechanism (the same paper): piecewise with probability 1 − e^(−ε/2), else Duchi's; below ε = .61
    always the latter.
    """
    share = 1 - exp(-epsilon / 2) if epsilon > 0.61 else 0.0
    chosen = generator.random(values.size) < share
    return np.where(chosen, piecewise(values, epsilon, generator), duchi(values, epsilon, generator))


MEANS: dict[str, Mean] = {"Duchi et al.": duchi, "piecewise mechanism": piecewise, "hybrid mechanism": hybrid}


def pairs_of(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """All pairs of attributes."""
    return list(combinations(range(len(sizes)), 2))


def split_tables(columns: Integers, sizes: tuple[int, ...], epsilon: float, generator: Generator) -> Pairs:
    """All tables of two attributes, if every attribute is reported by randomised response with its part of ε."""
    odds = exp(epsilon / len(sizes))
    reports, inverses = [], []
    for column, size in zip(columns, sizes, strict=True):
        kept = generator.random(column.size) < (odds - 1) / (odds + size - 1)
        reports.append(np.where(kept, column, generator.integers(0, size, column.size)))
        inverses.append(((odds + size - 1) * np.eye(size) - 1) / (odds - 1))
    found = {}
    for first, second in pairs_of(sizes):
        shape = sizes[first], sizes[second]
        joint = reports[first] * shape[1] + reports[second]
        table = np.bincount(joint, minlength=shape[0] * shape[1]).reshape(shape) / joint.size
        found[first, second] = inverses[first] @ table @ inverses[second]
    return found


def single_tables(columns: Integers, sizes: tuple[int, ...], epsilon: float, generator: Generator) -> Pairs:
    """All tables of two attributes, if every user reports one of them, each table from its own reports alone."""
    pairs = pairs_of(sizes)
    drawn, found = generator.integers(0, len(pairs), columns.shape[1]), {}
    for number, (first, second) in enumerate(pairs):
        some = columns[:, drawn == number]
        joint = some[first] * sizes[second] + some[second]
        plan = _subsets(sizes[first] * sizes[second], epsilon)
        table = plan.estimate(simulated(plan, joint, generator)).frequencies
        found[first, second] = table.reshape(sizes[first], sizes[second])
    return found


def joint_tables(columns: Integers, sizes: tuple[int, ...], epsilon: float, generator: Generator) -> Pairs:
    """All tables of two attributes as margins of one histogram of all combinations."""
    plan = _subsets(int(np.prod(sizes)), epsilon)
    records = np.ravel_multi_index(tuple(columns), sizes)
    joint = plan.estimate(simulated(plan, records, generator)).frequencies.reshape(sizes)
    return {
        pair: joint.sum(axis=tuple(axis for axis in range(len(sizes)) if axis not in pair)) for pair in pairs_of(sizes)
    }


TABLES: dict[str, Tables] = {
    "splitting ε": split_tables,
    "one pair per user": single_tables,
    "all combinations": joint_tables,
}


@lru_cache(maxsize=64)
def _subsets(size: int, epsilon: float) -> Plan:
    return make_plan("ss-compact", size, str(epsilon))


def simulated(plan: Plan, values: object, generator: Generator) -> Tally:
    """The tally of simulated reports, with a seed from the generator."""
    return plan.simulate(values, seed=int(generator.integers(1 << 30)))
