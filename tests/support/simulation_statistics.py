"""Bounds with a stated false-alarm rate, histograms, and thousands of tallies drawn from their exact distribution.

Imported as ``simulation_statistics``.
"""

import numpy as np
import oracle
from scipy import stats

from sunzi.client.epsilon import parse_epsilon
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan
from sunzi.protocols.modular_variance import ModularVariance
from sunzi.protocols.registry import find
from sunzi.tally import Tally

FALSE_ALARM = 1e-6
"""Probability that a test fails although the code is correct; with fixed seeds it fails always or never."""


def normal_bound(checks):
    """z such that, except for a false alarm, ``checks`` standard normals all lie within ±z."""
    return float(stats.norm.isf(FALSE_ALARM / (2 * checks)))


def variance_bounds(runs, checks):
    """Bounds on the ratio of sample variance (known mean) to true variance, for nearly normal estimates."""
    tail = FALSE_ALARM / (2 * checks)
    return stats.chi2.ppf(tail, runs) / runs, stats.chi2.isf(tail, runs) / runs


def mean_square_bound(covariance, runs, checks):
    """Bound on the relative error of the mean of x·x over ``runs`` runs, for normal x."""
    spread = np.sqrt(2 * np.sum(covariance**2) / runs) / np.trace(covariance)
    return normal_bound(checks) * spread


def histogram(name, size):
    """Uniform, Zipf with exponent 3, everything on one value, or a mixture of heavy, medium and absent values."""
    if name == "uniform":
        return np.full(size, 1 / size)
    if name == "zipf":
        weights = 1 / np.arange(1, size + 1) ** 3.0
        return weights / weights.sum()
    frequencies = np.zeros(size)
    if name == "spike":
        frequencies[5] = 1
    else:
        frequencies[5], frequencies[17] = 0.4, 0.15
        frequencies[20:40] = 0.45 / 20
    return frequencies


def values_of(frequencies, users):
    """Values of ``users`` users with a histogram as close to the frequencies as integers allow; and that histogram."""
    holders = np.floor(frequencies * users).astype(np.int64)
    largest = np.argsort(holders - frequencies * users, kind="stable")
    holders[largest[: users - holders.sum()]] += 1
    return np.repeat(np.arange(frequencies.size), holders), holders / users


def stated_variances(protocol, frequencies, users):
    """The library's variance around the reporters' histogram, at the true frequencies and equal block sizes."""
    if not hasattr(protocol, "moduli"):
        return protocol.probabilities.variance(frequencies) / users
    shares = [users / len(protocol.responses)] * len(protocol.responses)
    variance = ModularVariance(protocol.gram, protocol.moments, protocol.planned_weights, shares)
    return variance.full(frequencies) - frequencies * (1 - frequencies) / users


def plan_of_designs(name, size, epsilon, designs):
    """A modular plan with given designs that the planner would not choose."""
    budget = parse_epsilon(epsilon)
    protocol = find(name)(size, [BlockResponse(design, budget) for design in designs])
    return Plan(protocol, Domain(size))


class Sampler:
    """Draws tallies with the distribution of real reports, thousands of runs at once.

    For a block response P(y|x) = P0 + (P1 − P0)·1{x in y}. So with probability M·P0 a report is uniform over all M
    messages, independent of x, and otherwise uniform over the messages whose block contains x. A few binomials and
    multinomials therefore replace the reports. ``kept_matrix`` of a block is compared with the distribution of
    messages.
    """

    def __init__(self, plan):
        self.plan, self.protocol = plan, plan.protocol
        self.unary = not self.protocol.responses
        self.blocks = [] if self.unary else [_Block(response) for response in oracle.blocks_of(self.protocol)]

    def tallies(self, holders, generator):
        """One tally per row of ``holders``, the numbers of users who hold each value."""
        users = holders.sum(axis=1)
        counts = self._unary(holders, users, generator) if self.unary else self._blocks(holders, generator)
        fingerprint, layout = self.plan.digest, self.protocol.tally_layout
        for row, number in zip(counts, users.tolist(), strict=True):
            yield Tally(fingerprint, layout, number, Counters(row.size, None, row))

    def _unary(self, holders, users, generator):
        rates = self.protocol.probabilities
        others = users[:, None] - holders
        return generator.binomial(holders, rates.true) + generator.binomial(others, rates.false)

    def _blocks(self, holders, generator):
        left, parts = holders, []
        for index, block in enumerate(self.blocks):
            mine = generator.binomial(left, 1 / (len(self.blocks) - index))
            left = left - mine
            parts.append(block.counts(_fold(mine, block.points), generator))
        return np.concatenate(parts, axis=1)


class _Block:
    def __init__(self, response):
        self.design, self.points = response.design, response.design.points
        self.table = oracle.incidence(self.design)
        self.messages = len(self.table)
        self.kept = float(1 - self.messages * response.message_probabilities()[1])
        self.members = [np.flatnonzero(column) for column in self.table.T]

    def kept_matrix(self):
        """P(y|x) of the drawing in :meth:`counts`."""
        return (1 - self.kept) / self.messages + self.kept * self.table / self.table.sum(axis=0)

    def counts(self, holders, generator):
        kept = generator.binomial(holders, self.kept)
        rest = holders.sum(axis=1) - kept.sum(axis=1)
        drawn = generator.multinomial(rest, np.full(self.messages, 1 / self.messages))
        for point, members in enumerate(self.members):
            if kept[:, point].any():
                drawn[:, members] += generator.multinomial(kept[:, point], np.full(members.size, 1 / members.size))
        if self.design.counts_blocks:
            return drawn
        # Single precision is exact, because no count reaches 2^24.
        return np.rint(drawn.astype(np.float32) @ self.table.astype(np.float32)).astype(np.int64)


def _fold(rows, modulus):
    folded = np.zeros((rows.shape[0], modulus), dtype=rows.dtype)
    for start in range(0, rows.shape[1], modulus):
        part = rows[:, start : start + modulus]
        folded[:, : part.shape[1]] += part
    return folded


class Simulator:
    """The same by the library's simulation, one run at a time: for designs with too many blocks to list."""

    def __init__(self, plan):
        self.plan = plan

    def tallies(self, holders, generator):
        """One tally per row of ``holders``."""
        for row in holders:
            values = np.repeat(np.arange(row.size), row)
            yield self.plan.simulate(values, seed=int(generator.integers(1 << 62)))


def run_batches(source, frequencies, users, runs, seed, batch=500):
    """``runs`` pairs of the users' own histogram and their tally; the users are drawn from a population."""
    generator = np.random.default_rng(seed)
    for start in range(0, runs, batch):
        holders = generator.multinomial(users, frequencies, size=min(batch, runs - start))
        yield from zip(holders / users, source.tallies(holders, generator), strict=True)
