"""The fit residual, against matrices."""

import numpy as np
import pytest
from scipy import stats
from small_records import RECORD_PLANS

import sunzi
from sunzi.analysis.joint_residual import FitResidual, overlap_third_moment
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.planning import Population
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.tally import Tally


def honest_tally(plan, users, seed, population="zipf:1"):
    values = Population.parse(population).draw(plan.domain.size, users, [seed, 1])
    counters = plan.protocol.simulate(values, ReproducibleSource([seed, 2]))
    return Tally(plan.digest, plan.protocol.tally_layout, users, counters)


def dense_residual(decoder, histograms):
    """Q, S and A as matrices."""
    size = decoder.protocol.domain_size
    matrix = np.concatenate([np.equal.outer(np.arange(m), np.arange(size) % m).astype(float) for m in decoder.moduli])
    weights = np.diag(np.repeat(decoder.weights, decoder.moduli))
    inverse = np.linalg.inv(matrix.T @ weights @ matrix)
    ones = inverse.sum(axis=1)
    along = weights @ matrix @ ones
    quadratic = weights - weights @ matrix @ inverse @ matrix.T @ weights + np.outer(along, along) / ones.sum()
    covariance = np.zeros_like(weights)
    start = 0
    for moments, block, reports in zip(decoder.moments, histograms, decoder.reports, strict=True):
        size = moments.points
        part = np.diag(moments.light + moments.heavy * block) + moments.constant
        part += moments.mixed * (block[:, None] + block[None, :]) - np.outer(block, block)
        covariance[start : start + size, start : start + size] = part / reports
        start += size
    return quadratic, covariance, matrix


@pytest.mark.parametrize("population", ["uniform", "spike"])
def test_the_fit_residual_is_constrained_least_squares(population):
    plan = sunzi.make_plan("mss", 12, 2, moduli=[5, 7, 11, 13])
    tally = honest_tally(plan, 2000, 3, population)
    decoder = ModularDecoder(plan.protocol, tally, "planned", 0.0, "quick")
    residual = FitResidual(decoder)
    quadratic, covariance, matrix = dense_residual(decoder, decoder.histograms)
    stacked = np.concatenate(decoder.estimates)
    for histogram in np.random.default_rng(1).dirichlet(np.ones(12), 3):  # for every histogram
        noise = stacked - matrix @ histogram
        assert residual.statistic() == pytest.approx(2000 * noise @ quadratic @ noise)
    assert decoder.degrees_of_freedom == 4 + 6 + 10 + 12 - 11
    product = quadratic @ covariance
    assert residual._mean() == pytest.approx(np.trace(product), rel=1e-4)
    # A quadratic form summed over all unit vectors is its trace.
    traces = np.sum([residual._traces(unit) for unit in np.eye(stacked.size)], axis=0)
    assert traces == pytest.approx([np.trace(product @ product), np.trace(product @ product @ product)])
    # Both ways to compute the cumulants agree with the matrices.
    found = residual.cumulants()
    assert found.mean == pytest.approx(2000 * np.trace(product), rel=1e-4)
    assert found.variance == pytest.approx(2 * 2000**2 * np.trace(product @ product), rel=0.25)


def view_matrices(plan, fit):
    """A, as one matrix over all values, and the weights and the sizes of the views."""
    values, sizes = np.arange(plan.domain.size), [estimates.size for estimates in fit.estimates]
    rows = [np.equal.outer(np.arange(size), plan.protocol.points_of(j, values)) for j, size in enumerate(sizes)]
    return np.concatenate(rows).astype(float), np.repeat(fit.weights, sizes), sizes


@pytest.mark.parametrize("name", ["ordered", "tables"])
@pytest.mark.parametrize("population", ["uniform", "spike"])
def test_the_fit_of_views_is_constrained_least_squares(name, population):
    plan = RECORD_PLANS[name](2)
    fit = plan.protocol.joint_fit(honest_tally(plan, 3000, 5, population))
    matrix, weights, sizes = view_matrices(plan, fit)
    centred = np.eye(plan.domain.size) - 1 / plan.domain.size
    inverse = np.linalg.pinv(centred @ (matrix.T * weights) @ matrix @ centred)
    stacked, starts = np.concatenate(fit.estimates), np.cumsum(sizes)[:-1]
    found = 1 / plan.domain.size + inverse @ (matrix.T * weights) @ stacked
    assert np.concatenate(fit.fitted) == pytest.approx(matrix @ found, abs=1e-12)
    explained = matrix @ inverse @ matrix.T
    assert fit.degrees_of_freedom == sum(sizes) - len(sizes) - round(np.trace(explained * weights))
    for place, (block, part) in enumerate(zip(fit.histograms, np.split(np.arange(stacked.size), starts), strict=True)):
        own = explained[np.ix_(part, part)]
        assert np.diagonal(own) == pytest.approx(fit.own_shares(place))
        assert fit.explained(place, block) == pytest.approx(block @ own @ block)
    # The mean residual by matrices: sums of parts are fixed, so their noise is left out.
    parts = [np.eye(size) - 1 / size for size in sizes]
    centring = np.zeros_like(explained)
    for part, block in zip(np.split(np.arange(stacked.size), starts), parts, strict=True):
        centring[np.ix_(part, part)] = block
    quadratic = centring @ (np.diag(weights) - (weights[:, None] * explained) * weights) @ centring
    covariance = np.zeros_like(explained)
    pieces = zip(np.split(np.arange(stacked.size), starts), fit.moments, fit.histograms, fit.reports, strict=True)
    for part, moments, block, reports in pieces:
        own = np.diag(moments.light + moments.heavy * block) + moments.constant
        own += moments.mixed * (block[:, None] + block[None, :]) - np.outer(block, block)
        covariance[np.ix_(part, part)] = own / reports
    product = quadratic @ covariance
    residual = FitResidual(fit)
    assert residual._mean() == pytest.approx(np.trace(product), rel=0.02)
    traces = np.sum([residual._traces(unit) for unit in np.eye(stacked.size)], axis=0)
    assert traces == pytest.approx([np.trace(product @ product), np.trace(product @ product @ product)])


def test_overlaps_of_random_blocks():
    for points, size in ((11, 3), (7, 1), (20, 9)):
        overlap = stats.hypergeom(points, size, size)
        places = np.arange(size + 1)
        third = np.sum(overlap.pmf(places) * (places - overlap.mean()) ** 3)
        assert overlap_third_moment(points, size) == pytest.approx(third)
