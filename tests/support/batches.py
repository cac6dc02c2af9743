"""Batches enumerated: the true δ of every dataset on small domains, to hold bounds and attacks against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import exp

import numpy as np

from sunzi._typing import Floats
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.rounding import RoundedNumbers


def report_laws(protocol: Protocol) -> Floats:
    """P(report | value), from the exact probabilities of the shipped channels; a row per value."""
    rows = []
    for value in range(protocol.domain_size):
        row = []
        for index, (channel, share) in enumerate(zip(protocol.channels, protocol.shares, strict=True)):
            law = channel.payload_probabilities(int(protocol.points_of(index, np.array([value]))[0]))
            row += [share * float(law[payload]) for payload in sorted(law)]
        rows.append(row)
    return np.array(rows)


def number_laws(protocol: RoundedNumbers) -> Floats:
    """The same for numbers, which are rounded by chance to one of two points."""
    points = np.array(
        [
            [float(law) for _, law in sorted(protocol.response.payload_probabilities(point).items())]
            for point in range(protocol.grid_points)
        ]
    )
    places = np.arange(protocol.domain_size) * (protocol.grid_points - 1) / (protocol.domain_size - 1)
    lower = np.minimum(places.astype(np.int64), protocol.grid_points - 2)
    share = (places - lower)[:, None]
    return (1 - share) * points[lower] + share * points[lower + 1]


def batch_laws(laws: Floats, users: int) -> Iterator[Floats]:
    """For every dataset of the other users: the law of the multiset of reports, a row per value of the victim."""
    for others in combinations_with_replacement(range(laws.shape[0]), users - 1):
        yield batch_law(laws, others)


def batch_law(laws: Floats, others: Sequence[int]) -> Floats:
    """The law of the multiset of reports if the other users hold these values, a row per value of the victim."""
    law = np.ones(1)
    for size, value in enumerate(others):
        law = _joined(law, laws[value], _transitions(laws.shape[1], size))
    return np.array([_joined(law, own, _transitions(laws.shape[1], len(others))) for own in laws])


@cache
def _transitions(reports: int, size: int) -> np.ndarray:
    """For every multiset of ``size`` reports and every further report, the index of the larger multiset."""
    larger = {chosen: index for index, chosen in enumerate(combinations_with_replacement(range(reports), size + 1))}
    return np.array(
        [
            [larger[tuple(sorted((*chosen, report)))] for report in range(reports)]
            for chosen in combinations_with_replacement(range(reports), size)
        ]
    )


def _joined(law: Floats, report: Floats, step: np.ndarray) -> Floats:
    weights = law[:, None] * report[None, :]
    return np.bincount(step.reshape(-1), weights.reshape(-1))


def true_deltas(laws: Floats, users: int, epsilons: list[float]) -> Floats:
    """The largest δ over all datasets and pairs of values, for each ε."""
    found = np.zeros(len(epsilons))
    for batch in batch_laws(laws, users):
        for index, epsilon in enumerate(epsilons):
            excess = np.maximum(batch[:, None, :] - exp(epsilon) * batch[None, :, :], 0).sum(axis=2)
            found[index] = max(found[index], float(excess.max()))
    return found


def sum_deltas(plan: Plan, users: int, epsilons: list[float]) -> Floats:
    """The same for a reader who sees the sum of every bit: columns are independent, so victims x and x' differ in two
    of them, and a third value is all that others may hold besides.
    """
    true, false = plan.protocol.support_probabilities()[0]
    columns = [_sum_law(holders, users - holders, true, false) for holders in range(users + 1)]
    found = np.zeros(len(epsilons))
    for first in range(users):
        for second in range(users - first):
            here = np.outer(columns[first + 1], columns[second]).reshape(-1)
            there = np.outer(columns[first], columns[second + 1]).reshape(-1)
            for index, epsilon in enumerate(epsilons):
                found[index] = max(found[index], float(np.maximum(here - exp(epsilon) * there, 0).sum()))
    return found


def _sum_law(holders: int, others: int, true: float, false: float) -> Floats:
    law = np.ones(1)
    for chance in [true] * holders + [false] * others:
        law = np.convolve(law, [1 - chance, chance])
    return law
