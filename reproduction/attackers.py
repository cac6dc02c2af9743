"""The paper's attacker: considers all values equally likely and guesses at random among those that a report supports.

Whether a guess is right depends on whether the report supports the value, and on how many values it supports. Reports
of short designs are drawn by the library's randomiser; for subsets and unary encodings both are drawn from their exact
distributions, in time independent of k: the other members of a subset are hypergeometric between residues with more and
with fewer values, and false bits are binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import sunzi
from sunzi._typing import Floats, Integers
from sunzi.designs import BlockResponse, Design
from sunzi.testing import ReproducibleSource


def success_rate(plan: sunzi.Plan, values: Integers, seed: Sequence[int]) -> float:
    """The share of users whose value the paper's attacker guesses from one report each."""
    generator = np.random.default_rng([*seed, 2])
    chances = _chances(plan, values, generator, seed)
    return float(np.mean(generator.random(values.size) < chances))


def success_chance(plan: sunzi.Plan, values: Integers, seed: Sequence[int]) -> float:
    """The mean of :func:`success_rate` over the attacker's random guesses, which needs fewer users."""
    return float(np.mean(_chances(plan, values, np.random.default_rng([*seed, 2]), seed)))


def _chances(plan: sunzi.Plan, values: Integers, generator: np.random.Generator, seed: Sequence[int]) -> Floats:
    """For every user the probability that a guess among the supported values is right."""
    supported, candidates = _support(plan, values, generator, ReproducibleSource([*seed, 3]))
    chances = np.where(supported, 1 / np.maximum(candidates, 1), 0.0)
    # A report that supports nothing leaves all values equally likely.
    chances[candidates == 0] = 1 / plan.domain.size
    return chances


def _support(
    plan: sunzi.Plan, values: Integers, generator: np.random.Generator, source: ReproducibleSource
) -> tuple[NDArray[np.bool_], Integers]:
    """For every user: whether a report supports the value, and how many values it supports."""
    protocol, size = plan.protocol, plan.domain.size
    if not protocol.responses:
        (channel,) = protocol.channels
        assert channel.has_independent_bits
        own = generator.random(values.size) < channel.probabilities.true
        return own, own + generator.binomial(size - 1, channel.probabilities.false, values.size)
    if len(protocol.responses) == 1:
        return _block_support(protocol.responses[0], size, values, generator, source)
    supported, candidates = np.zeros(values.size, dtype=np.bool_), np.zeros(values.size, dtype=np.int64)
    selectors = generator.integers(len(protocol.responses), size=values.size)
    for index, response in enumerate(protocol.responses):
        chosen = np.flatnonzero(selectors == index)
        if chosen.size:
            residues = values[chosen] % response.design.points
            supported[chosen], candidates[chosen] = _block_support(response, size, residues, generator, source)
    return supported, candidates


def _block_support(
    response: BlockResponse, size: int, points: Integers, generator: np.random.Generator, source: ReproducibleSource
) -> tuple[NDArray[np.bool_], Integers]:
    design = response.design
    if design.kind in ("subsets", "singletons"):
        return _subset_support(response, size, points, generator)
    messages = response.randomize(points, source)
    return design.contains(messages, points), values_behind_messages(design, size)[messages]


@lru_cache(maxsize=512)
def values_behind_messages(design: Design, size: int) -> Integers:
    """The number of values that each message supports."""
    values_behind = np.bincount(np.arange(size) % design.points, minlength=design.points)
    return np.rint(design.block_sums(values_behind.astype(np.float64))).astype(np.int64)


def _subset_support(
    response: BlockResponse, size: int, points: Integers, generator: np.random.Generator
) -> tuple[NDArray[np.bool_], Integers]:
    """Residues below k mod m represent one value more than the others."""
    total, chosen = response.design.points, response.design.block_size
    few, common = divmod(size, total)
    own = generator.random(points.size) < response.probabilities.true
    own_common = points < common
    others = chosen - own
    good, bad = common - own_common, total - common - ~own_common
    common_others = generator.hypergeometric(good, bad, others)
    return own, np.asarray(own * (few + own_common) + few * others + common_others, dtype=np.int64)


def expected_rate(plan: sunzi.Plan, chances: Floats) -> float:
    """The mean of :func:`success_rate` for ``mss`` or ``ss`` if values have these probabilities: the paper's appendix,
    p·E[1/(values behind the subset)], with each value's probability in place of 1/k.
    """
    return float(
        np.mean([expected_of_block(response, plan.domain.size, chances) for response in plan.protocol.responses])
    )


def expected_of_block(response: BlockResponse, size: int, chances: Floats) -> float:
    """The same for one block of subsets."""
    design, true = response.design, response.probabilities.true
    assert design.kind in ("subsets", "singletons")
    assert design.points <= size
    few, common = divmod(size, design.points)
    is_common = np.arange(size) % design.points < common
    total = 0.0
    for own in (False, True):
        share = float(chances[is_common == own].sum())
        if share:
            fillers = np.arange(design.block_size)
            law = stats.hypergeom(design.points - 1, common - own, design.block_size - 1)
            total += share * true * float(np.sum(law.pmf(fillers) / (few * design.block_size + own + fillers)))
    return total


def boxed_rate(plan: sunzi.Plan) -> float:
    """The paper's Eq. (8), which its prose calls an upper bound: the mean of p_j/(w_j·⌈k/m_j⌉)."""
    size = plan.domain.size
    return float(
        np.mean(
            [
                response.probabilities.true / (response.design.block_size * ceil(size / response.design.points))
                for response in plan.protocol.responses
            ]
        )
    )
