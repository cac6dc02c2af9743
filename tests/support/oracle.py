"""Brute-force versions of the library's structured algorithms: every block listed, every matrix written out.

Imported as ``oracle``. Slow on purpose, so for small settings only.
"""

from itertools import combinations

import numpy as np
import scipy.linalg
from scipy import sparse
from scipy.sparse.linalg import lsmr

from sunzi.numerics.counters import Counters
from sunzi.tally import Tally


def blocks_of(protocol):
    """The block responses of a design protocol: one, or one per modulus."""
    return list(protocol.responses)


def incidence(design):
    """Boolean matrix: does the block (row, in message order) contain the point (column)?"""
    if design.kind == "subsets":
        members = np.array(list(combinations(range(design.points), design.block_size)))
        table = np.zeros((len(members), design.points), dtype=bool)
        np.put_along_axis(table, members, True, axis=1)
        return table
    messages = np.repeat(np.arange(design.message_count), design.points)
    points = np.tile(np.arange(design.points), design.message_count)
    return design.contains(messages, points).reshape(design.message_count, design.points)


def message_matrix(response):
    """P(y|x) for every message y (row) and point x (column)."""
    inside, outside = (float(probability) for probability in response.message_probabilities())
    return np.where(incidence(response.design), inside, outside)


def residue_matrix(modulus, size):
    """A_m[a, x] = 1{x = a mod m}."""
    return (np.arange(size)[None, :] % modulus == np.arange(modulus)[:, None]).astype(float)


def stacked_matrix(moduli, size):
    """All A_j, stacked vertically."""
    return np.vstack([residue_matrix(modulus, size) for modulus in moduli])


def support_counts(design, counters):
    """Number of counted reports that contain each point."""
    dense = counters.dense()
    return dense @ incidence(design).astype(np.int64) if design.counts_blocks else dense


def decode(protocol, tally, rule="planned", ridge=0.0):
    """The paper's estimator: LSMR on the explicit sparse A_w.

    With ``rule`` "planned" the weights are n/(ℓ·d0_j) and the result is moved along T⁻¹1 so that it sums to 1, as in
    the library; with "paper" they are n_j·Δ²/(π(1−π)). With a ridge the sum is left unchanged.
    """
    rows, right, weights = [], [], []
    for index, response in enumerate(protocol.responses):
        reports, rates = tally.block_reports[index], response.probabilities
        residues = support_counts(response.design, tally.block(index)) / reports
        rate = rates.false + rates.gap / response.design.points
        paper = reports * rates.gap**2 / (rate * (1 - rate))
        weight = paper if rule == "paper" else tally.reports * protocol.planned_weights[index]
        rows.append(residue_matrix(response.design.points, protocol.domain_size))
        right.append((residues - rates.false) / rates.gap)
        weights.append(np.full(response.design.points, weight))
    roots = np.sqrt(np.concatenate(weights))
    matrix = sparse.csr_matrix(np.vstack(rows) * roots[:, None])
    found = _least_squares(matrix, roots * np.concatenate(right), ridge)
    if ridge:
        return found
    gram = (matrix.T @ matrix).toarray()
    direction = np.linalg.solve(gram, np.ones(protocol.domain_size))
    return found + direction * (1 - found.sum()) / direction.sum()


def _least_squares(matrix, right, ridge):
    return lsmr(matrix, right, damp=ridge**0.5, atol=1e-15, btol=1e-15, conlim=0, maxiter=20_000)[0]


def constrained_inverse(information):
    """The covariance of the best unbiased estimate that sums to 1, given the information about all frequencies."""
    basis = scipy.linalg.null_space(np.ones((1, len(information))))
    return basis @ np.linalg.inv(basis.T @ information @ basis) @ basis.T


def listed_covariance(response, residues):
    """Covariance of one debiased report when residues follow a distribution, by listing every block."""
    table, rates = incidence(response.design).astype(float), response.probabilities
    chances = message_matrix(response) @ residues
    debiased = (table - rates.false) / rates.gap
    mean = chances @ debiased
    return (debiased * chances[:, None]).T @ debiased - np.outer(mean, mean)


def formula_covariance(points, block_size, true, residues):
    """The same by docs/mathematics.md §3.3, written in terms of p, w and m alone."""
    false = (block_size - true) / (points - 1)
    gap = true - false
    one_of_two = true * (block_size - 1) / (points - 1)
    neither = true * (block_size - 1) * (block_size - 2) + (1 - true) * block_size * (block_size - 1)
    neither /= (points - 1) * (points - 2)
    light = (false - neither) / gap**2
    heavy = (gap - 2 * one_of_two + 2 * neither) / gap**2
    mixed = (1 - heavy) / points
    constant = -(light + mixed) / points
    ones = np.ones(points)
    crossed = np.outer(ones, residues)
    covariance = np.diag(light + heavy * residues) + constant * np.outer(ones, ones)
    return covariance + mixed * (crossed + crossed.T) - np.outer(residues, residues)


def block_covariance(response, residues, listed=False):
    """Covariance of one debiased report; by the formula for subsets, unless ``listed`` requests the list of blocks.

    The formula needs two points other than the value, so designs with two points are always listed.
    """
    if listed or response.design.points == 2:
        return listed_covariance(response, residues)
    design = response.design
    return formula_covariance(design.points, design.block_size, response.probabilities.true, residues)


def modular_covariance(protocol, frequencies, reports, listed=False, weights=None):
    """Covariance of the modular estimate around the population, given every block's number of reports."""
    size = protocol.domain_size
    weights = protocol.planned_weights if weights is None else weights
    matrices = [residue_matrix(modulus, size) for modulus in protocol.moduli]
    inverse = np.linalg.inv(sum(w * matrix.T @ matrix for w, matrix in zip(weights, matrices, strict=True)))
    direction = inverse.sum(axis=1) / inverse.sum()
    correction = np.eye(size) - np.outer(direction, np.ones(size))
    total = np.zeros((size, size))
    for weight, matrix, response, count in zip(weights, matrices, protocol.responses, reports, strict=True):
        gain = correction @ (weight * inverse @ matrix.T)
        total += gain @ block_covariance(response, matrix @ frequencies, listed) @ gain.T / count
    return total


def estimate_covariance(protocol, frequencies, users, listed=False):
    """Covariance of any protocol's estimate around the reporters' histogram, with equal block sizes."""
    size = frequencies.size
    sampling = (np.diag(frequencies) - np.outer(frequencies, frequencies)) / users
    if hasattr(protocol, "moduli"):
        shares = [users / len(protocol.responses)] * len(protocol.responses)
        return modular_covariance(protocol, frequencies, shares, listed) - sampling
    if protocol.responses:
        padded = np.zeros(protocol.design.points)
        padded[:size] = frequencies
        return block_covariance(protocol.response, padded, listed)[:size, :size] / users - sampling
    return np.diag(protocol.probabilities.variance(frequencies)) / users


def efficient_covariance(protocol, frequencies, users):
    """The Cramér–Rao bound around the reporters' histogram, with equal block sizes: from the probabilities of all
    messages, or for designs that count points from the covariance of those counts.
    """
    total = np.zeros((frequencies.size, frequencies.size))
    for response in protocol.responses:
        tiles = residue_matrix(response.design.points, frequencies.size)
        if response.design.counts_blocks:
            chances = message_matrix(response)
            inner = chances.T @ (chances / (chances @ tiles @ frequencies)[:, None])
        else:
            inner = np.linalg.pinv(block_covariance(response, tiles @ frequencies))
        total += tiles.T @ inner @ tiles / len(protocol.responses)
    sampling = np.diag(frequencies) - np.outer(frequencies, frequencies)
    return (constrained_inverse(total) - sampling) / users


def expected_tally(plan, frequencies, reports=10**12):
    """The expected tally of ``reports`` reports per block, rounded to integers."""
    protocol = plan.protocol
    if not protocol.responses:
        rates = protocol.probabilities
        counts = np.rint(reports * (rates.false + rates.gap * frequencies)).astype(np.int64)
        return Tally(plan.digest, protocol.tally_layout, reports, Counters(counts.size, None, counts))
    parts = []
    for response in blocks_of(protocol):
        design, rates = response.design, response.probabilities
        residues = np.bincount(np.arange(frequencies.size) % design.points, frequencies, design.points)
        if design.counts_blocks:
            parts.append(_whole(reports * (message_matrix(response) @ residues), reports))
        else:
            parts.append(_whole(reports * (rates.false + rates.gap * residues), reports * design.block_size))
    counts = np.concatenate(parts)
    total = reports * len(parts)
    return Tally(plan.digest, protocol.tally_layout, total, Counters(counts.size, None, counts))


def _whole(expected, total):
    """Round, and correct the total in the largest count."""
    counts = np.rint(expected).astype(np.int64)
    counts[np.argmax(counts)] += total - counts.sum()
    return counts
