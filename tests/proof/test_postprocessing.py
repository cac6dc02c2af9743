"""Post-processed copies satisfy the conditions of a best fit, and the slow decoder agrees with ours."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import simplex
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue

SIZE = 43
MODULI = (7, 11, 31, 37)
USERS = 3000


def estimated(name, epsilon=1, histogram="zipf", **options):
    if name.startswith("mss") and not options:
        options = {"moduli": MODULI}
    plan = make_plan(name, SIZE, epsilon, **options)
    values, _ = statistics.values_of(statistics.histogram(histogram, SIZE), USERS)
    tally = plan.simulate(values, seed=31)
    return plan, tally, plan.estimate(tally, weights="planned")


def check_histogram(frequencies):
    assert frequencies.min() >= 0
    assert frequencies.sum() == pytest.approx(1, abs=1e-9)


def test_estimates_of_whole_designs_sum_to_one():
    """Every estimate over all points of a design does; truncated designs and unary encodings need not."""
    for name in ("grr", "ss", "mss", "mss-compact"):
        assert estimated(name)[2].frequencies.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", catalogue())
def test_the_simplex_copy_is_the_nearest_histogram(name):
    """x is the projection of v if and only if v − x is constant where x > 0, and at most that constant elsewhere."""
    _, _, estimate = estimated(name)
    nearest = estimate.postprocess("simplex").frequencies
    check_histogram(nearest)
    gap = estimate.frequencies - nearest
    kept = nearest > 0
    assert np.ptp(gap[kept]) < 1e-12
    assert gap[~kept].max() <= gap[kept].max() + 1e-12


def test_weighted_projection_is_optimal():
    generator = np.random.default_rng(7)
    for _ in range(200):
        values, variances = generator.normal(0, 1, 12), generator.uniform(0.1, 3, 12)
        found = simplex.project_weighted(values, variances)
        check_histogram(found)
        slopes, kept = (values - found) / variances, found > 0
        assert np.ptp(slopes[kept]) < 1e-9
        assert np.all(slopes[~kept] <= slopes[kept].max() + 1e-9)


@pytest.mark.parametrize("histogram", ["uniform", "zipf", "spike"])
@pytest.mark.parametrize("weights", ["planned", "paper"])
@pytest.mark.parametrize("ridge", [0, 1000])
def test_for_subsets_of_residues_the_constrained_copy_is_the_best_weighted_fit(weights, histogram, ridge):
    """∇ = T·f − Σ w_j·A_jᵀ·s_j is constant where f > 0, and no smaller elsewhere; the ridge has no effect."""
    plan, tally, _ = estimated("mss", 1, histogram)
    best = plan.estimate(tally, weights=weights, ridge=ridge).postprocess("constrained").frequencies
    check_histogram(best)
    gradient, scale = np.zeros(SIZE), 0.0
    for index, response in enumerate(plan.protocol.responses):
        rates, reports = response.probabilities, tally.block_reports[index]
        rate = rates.false + rates.gap / response.design.points
        paper = reports * rates.gap**2 / (rate * (1 - rate))
        weight = paper if weights == "paper" else plan.protocol.planned_weights[index]
        matrix = oracle.residue_matrix(response.design.points, SIZE)
        residues = (tally.block(index).dense() / reports - rates.false) / rates.gap
        gradient += weight * matrix.T @ (matrix @ best - residues)
        scale += weight
    level = best @ gradient
    kept = best > 1e-6
    assert np.abs(gradient[kept] - level).max() < 1e-5 * scale
    assert gradient.min() > level - 1e-5 * scale


@pytest.mark.parametrize("name", ["ss", "rappor", "oue"])
def test_for_counted_points_the_constrained_copy_is_the_best_weighted_fit(name):
    _, _, estimate = estimated(name)
    best = estimate.postprocess("constrained").frequencies
    check_histogram(best)
    slopes = (estimate.frequencies - best) / estimate.standard_errors() ** 2
    kept = best > 0
    assert np.ptp(slopes[kept]) < 1e-9 * np.abs(slopes).max()
    assert slopes[~kept].max() <= slopes[kept].max() * (1 + 1e-9)


@pytest.mark.parametrize("histogram", ["uniform", "zipf"])
@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "oue", "mss", "mss-compact"])
def test_constraints_lower_the_error(name, histogram):
    """The mean error over all items: histograms form a convex set, so projecting onto it cannot increase the error."""
    plan, _, _ = estimated(name)
    values, truth = statistics.values_of(statistics.histogram(histogram, SIZE), USERS)
    raw = constrained = 0.0
    for seed in range(4):
        estimate = plan.estimate(plan.simulate(values, seed=seed))
        error = np.sum((estimate.frequencies - truth) ** 2)
        raw += error
        constrained += np.sum((estimate.postprocess("constrained").frequencies - truth) ** 2)
        assert np.sum((estimate.postprocess("simplex").frequencies - truth) ** 2) <= error
    assert constrained < raw


@pytest.mark.parametrize("ridge", [0.5, "paper"])
@pytest.mark.parametrize("weights", ["planned", "paper"])
def test_a_ridge_estimate_has_no_intervals(weights, ridge):
    plan, tally, _ = estimated("mss")
    estimate = plan.estimate(tally, weights=weights, ridge=ridge)
    assert not estimate.is_unbiased
    for ask in (estimate.interval, estimate.top, lambda: estimate.postprocess("significant"), estimate.standard_errors):
        with pytest.raises(EstimateError, match="biased"):
            ask()
    check_histogram(estimate.postprocess("simplex").frequencies)


@pytest.mark.parametrize(
    "options", [{"weights": "best"}, {"ridge": -1}, {"ridge": float("nan")}, {"errors": "none"}], ids=str
)
def test_options_that_mean_nothing_are_refused(options):
    plan, tally, _ = estimated("mss")
    with pytest.raises(ParameterError, match="must be"):
        plan.estimate(tally, **options)


@pytest.mark.parametrize(("name", "epsilon"), [("mss", 1), ("mss", 4), ("mss-compact", 1), ("mss-compact", 4)])
def test_the_slow_decoder_of_the_paper_agrees(name, epsilon):
    """Explicit sparse matrix and LSMR against Toeplitz algebra: planned weights, the paper's weights, and its ridge."""
    for options in ({"moduli": MODULI}, {}):
        plan, tally, estimate = estimated(name, epsilon, **options)
        np.testing.assert_allclose(estimate.frequencies, oracle.decode(plan.protocol, tally), rtol=0, atol=1e-6)
        paper = plan.estimate(tally, weights="paper").frequencies
        np.testing.assert_allclose(paper, oracle.decode(plan.protocol, tally, "paper"), rtol=0, atol=1e-6)
        ridge = 1 / epsilon**2
        for rule in ("planned", "paper"):
            ridged = plan.estimate(tally, weights=rule, ridge="paper").frequencies
            slow = oracle.decode(plan.protocol, tally, rule, ridge)
            np.testing.assert_allclose(ridged, slow, rtol=0, atol=1e-6)


def test_the_slow_decoder_agrees_on_a_large_domain():
    plan = make_plan("mss-compact", 512, 2)
    values, _ = statistics.values_of(statistics.histogram("zipf", 512), 20_000)
    tally = plan.simulate(values, seed=5)
    estimate = plan.estimate(tally, weights="planned")
    np.testing.assert_allclose(estimate.frequencies, oracle.decode(plan.protocol, tally), rtol=0, atol=1e-6)
