"""Health tests: correct formulas, calibrated for honest reports, sensitive to dishonest ones."""

import json

import numpy as np
import pytest
from scipy import stats
from small_records import RECORD_PLANS

import sunzi
from sunzi.analysis import check_health
from sunzi.analysis.fit_residual import FitResidual, overlap_third_moment
from sunzi.analysis.health import DEFAULT_SIGNIFICANCE
from sunzi.analysis.health_tests import expected_counts, lowest_counts, uniform_counts
from sunzi.analysis.residuals import (
    CountedDesign,
    _estimated_traces,
    _even_traces,
    _left_over,
    _outside,
    _unused_cumulants,
    _unused_traces,
)
from sunzi.analysis.statistics import Cumulants, largest_count, smallest_count
from sunzi.errors import ParameterError, TallyError
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.numerics.toeplitz import fold
from sunzi.planning import Population
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.tally import Tally

FALSE_ALARM = 1e-6


def honest_tally(plan, users, seed, population="zipf:1"):
    values = Population.parse(population).draw(plan.domain.size, users, [seed, 1])
    counters = plan.protocol.simulate(values, ReproducibleSource([seed, 2]))
    return Tally(plan.contract.fingerprint, plan.protocol.tally_layout, users, counters)


def make(name, size, epsilon):
    return RECORD_PLANS[name](epsilon) if name in RECORD_PLANS else sunzi.make_plan(name, size, epsilon)


def counted(plan, tally, histogram):
    response = plan.protocol.response
    support = response.design.point_counts(tally.block(0), response.design.points)
    return CountedDesign(response, tally.block(0), tally.reports, support, histogram)


def incidence(design):
    messages = np.arange(design.message_count)
    columns = [design.contains(messages, np.full(messages.size, point)) for point in range(design.points)]
    return np.column_stack(columns).astype(float)


# --- formulas against matrices ----------------------------------------------------------------------------------------


def test_the_message_residual_is_the_distance_from_the_range_of_the_incidence_matrix():
    plan = sunzi.make_plan("ss-compact", 12, 1)
    design = plan.protocol.design
    assert design.message_count > design.points
    matrix = incidence(design)
    outside = np.eye(design.message_count) - matrix @ np.linalg.pinv(matrix)
    tally = honest_tally(plan, 500, 1)
    part = counted(plan, tally, np.full(12, 1 / 12))
    assert _outside(part) == pytest.approx(np.sum((outside @ tally.counts) ** 2))
    vector = np.random.default_rng(1).normal(size=design.message_count)
    assert np.allclose(_left_over(design, vector), outside @ vector)
    # Its mean is n(1 − v/M) for every value, hence for every histogram.
    inside, missed = (float(chance) for chance in plan.protocol.response.message_probabilities())
    for value in range(design.points):
        chances = missed + (inside - missed) * matrix[:, value]
        assert np.sum(np.diagonal(outside) * chances) == pytest.approx(1 - design.points / design.message_count)
        assert np.allclose(outside @ chances, 0)


@pytest.mark.parametrize("heavy", [0.0, 0.7])
def test_traces_of_a_design(heavy):
    plan = sunzi.make_plan("ss-compact", 12, 1)
    design = plan.protocol.design
    histogram = np.full(12, (1 - heavy) / 12)
    histogram[3] += heavy
    part = counted(plan, honest_tally(plan, 500, 1), histogram)
    matrix = incidence(design)
    outside = np.eye(design.message_count) - matrix @ np.linalg.pinv(matrix)
    spread = outside @ np.diag(part.expected_counts)
    exact = np.trace(spread @ spread), np.trace(spread @ spread @ spread)
    found = (
        _even_traces(part) if part.is_even else _estimated_traces(design, part.expected_counts, design.message_count)
    )
    assert part.is_even == (heavy == 0)
    assert found[0] == pytest.approx(exact[0], rel=0.15)
    assert found[1] == pytest.approx(exact[1], rel=0.3)


def test_traces_of_unused_points():
    """The formula for equal counts agrees with probing, and both with the covariance of the support counts."""
    plan = sunzi.make_plan("pgr", 50, 1)
    design = plan.protocol.design
    number = design.points - 50
    part = counted(plan, honest_tally(plan, 500, 1), np.full(50, 1 / 50))
    matrix = incidence(design)[:, 50:]
    chances = part.expected_counts / part.reports
    covariance = part.reports * (matrix.T @ np.diag(chances) @ matrix - np.outer(chances @ matrix, chances @ matrix))
    exact = np.trace(covariance @ covariance), np.trace(covariance @ covariance @ covariance)
    rate = plan.protocol.probabilities.false
    assert np.allclose(np.diagonal(covariance), part.reports * rate * (1 - rate))
    assert _unused_traces(part, number) == pytest.approx(exact, rel=0.05)
    extra = number * part.reports * rate * (1 - rate) * (1 - 2 * rate) ** 2
    assert part.is_even
    assert _unused_cumulants(part, number).variance == pytest.approx(2 * exact[0] + extra, rel=0.02)


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


def test_pearsons_statistic_has_the_stated_moments():
    """Over all ways to put 4 reports into 3 cells."""
    tables = np.array(np.meshgrid(*[np.arange(3)] * 4)).reshape(4, -1)
    values = [uniform_counts(np.bincount(column, minlength=3))[0] for column in tables.T]
    cumulants = uniform_counts(np.array([2, 1, 1]))[1]
    assert np.mean(values) == pytest.approx(cumulants.mean)
    assert np.var(values) == pytest.approx(cumulants.variance)


def test_pearsons_statistic_has_the_stated_moments_for_unequal_shares():
    """Over all ways to put 4 reports into 3 cells, by their probabilities."""
    shares = np.array([0.5, 0.3, 0.2])
    tables = np.array(np.meshgrid(*[np.arange(3)] * 4)).reshape(4, -1)
    chances = shares[tables].prod(axis=0)
    values = np.array([expected_counts(np.bincount(column, minlength=3), shares)[0] for column in tables.T])
    cumulants = expected_counts(np.array([2, 1, 1]), shares)[1]
    assert chances @ values == pytest.approx(cumulants.mean)
    assert chances @ (values - cumulants.mean) ** 2 == pytest.approx(cumulants.variance)


def test_tails():
    chi_square = Cumulants.of_traces(7, 7, 7)
    for value in (1.0, 7.0, 30.0):
        assert chi_square.upper_tail(value) == pytest.approx(stats.chi2.sf(value, 7))
    assert chi_square.upper_tail(-5.0) == 1
    # The number of coincidences is Poisson, which is skewed: the gamma curve fits it far into the tail.
    poisson = Cumulants(30, 30, 0, 30)
    assert poisson.upper_tail(59.5) == pytest.approx(stats.poisson.sf(59, 30), rel=0.3)
    assert not poisson.has_too_few_reports
    assert Cumulants(0.5, 0.5, 0, 0.5).has_too_few_reports
    assert smallest_count(3, 20, 0.5, 10) == pytest.approx(10 * stats.binom.cdf(3, 20, 0.5))
    assert largest_count(17, 20, 0.5, 10) == pytest.approx(10 * stats.binom.cdf(3, 20, 0.5))
    assert lowest_counts(np.array([9, 5, 7]), 10, 0.5)[0] == pytest.approx(0)


# --- calibration ------------------------------------------------------------------------------------------------------

SETTINGS = [
    ("grr", 20, 2, 1000, "zipf:1"),
    ("ss", 40, 1, 500, "spike"),
    ("ss-compact", 60, 1, 2000, "uniform"),
    ("ss-compact", 60, 3, 2000, "spike"),
    ("pgr", 60, 1, 500, "spike"),
    ("rappor", 50, 1, 300, "zipf:1"),
    ("oue", 50, 3, 300, "spike"),
    ("mss", 60, 1, 500, "uniform"),
    ("mss", 60, 4, 2000, "spike"),
    ("mss-compact", 60, 1, 2000, "zipf:1"),
    ("mss-compact", 60, 3, 3000, "spike"),
    ("ordered", 0, 1, 2000, "uniform"),
    ("ordered", 0, 3, 2000, "spike"),
    ("number", 0, 4, 1000, "spike"),
    ("tables", 0, 1, 2000, "uniform"),
    ("tables", 0, 2, 2000, "spike"),
]
RUNS = 80
CONSERVATIVE = ("message frequency", "negative frequencies", "sum of frequencies")
ALWAYS_SPEAK = {
    "ss-compact": {"class balance", "message frequency", "message residual", "unused points"},
    "pgr": {"message frequency", "unused points", "sum of frequencies"},
    "rappor": {"bit balance"},
    "oue": {"bit balance"},
    "mss": {"block balance", "fit residual"},
    "mss-compact": {"block balance", "class balance", "message residual", "fit residual"},
    "ordered": {"block balance", "fit residual"},
    "tables": {"block balance", "fit residual"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "epsilon", "users", "population"), SETTINGS)
def test_honest_reports_give_uniform_p_values(name, size, epsilon, users, population):
    plan = make(name, size, epsilon)
    checked = [check_health(plan, honest_tally(plan, users, run, population), significance=0.05) for run in range(RUNS)]
    spoken = {finding.name for finding in checked[0].findings if finding.p_value is not None}
    assert spoken >= ALWAYS_SPEAK.get(name, set()) | {"negative frequencies"}
    for test in spoken:
        p_values = np.array([found[test].p_value for found in checked])
        assert np.all((p_values >= 0) & (p_values <= 1))
        for level in (0.01, 0.1, 0.5):  # never too many alarms
            most = stats.binom.isf(FALSE_ALARM, RUNS, level)
            assert np.count_nonzero(p_values <= level) <= most, test
        if test not in CONSERVATIVE:
            assert stats.kstest(p_values, "uniform").pvalue > FALSE_ALARM, test
    alarms = sum(bool(found.alarms) for found in checked)
    assert alarms <= stats.binom.isf(FALSE_ALARM, RUNS, 0.05)


def test_p_values_are_far_from_useless():
    """A test that always returned 1 would pass the conservative check above; these must reach below one half."""
    plan = sunzi.make_plan("pgr", 60, 1)
    checked = [check_health(plan, honest_tally(plan, 500, run)) for run in range(12)]
    for test in ("sum of frequencies", "negative frequencies"):
        assert min(found[test].p_value for found in checked) < 0.5


# --- any number of reports --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*sunzi.catalogue(), *RECORD_PLANS])
def test_few_reports_raise_no_alarm(name):
    plan = make(name, 200, 1)
    for users in (1, 2, 7, 100, 101):
        found = check_health(plan, honest_tally(plan, users, users), significance=FALSE_ALARM)
        assert not found.alarms
        json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", sunzi.catalogue())
@pytest.mark.parametrize("size", [2, 3, 5])
def test_tiny_domains(name, size):
    plan = sunzi.make_plan(name, size, "1/2")
    found = check_health(plan, honest_tally(plan, 3000, 4), significance=FALSE_ALARM)
    assert not found.alarms
    assert found.p_value is not None


def test_too_few_reports_are_given_as_the_reason():
    plan = sunzi.make_plan("mss-compact", 200, 3)
    found = check_health(plan, honest_tally(plan, 30, 1))
    assert found["block balance"].p_value is None
    assert "too few reports" in found["block balance"].verdict(0.001)
    assert "too few reports" in found["class balance"].reason
    assert "too few reports" in found["message residual"].reason


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ss-compact", "oue"])
def test_ten_million_reports(name):
    plan = sunzi.make_plan(name, 1024, 1)
    values = np.repeat(np.arange(1000), 10_000)
    found = check_health(plan, plan.simulate(values, seed=1), significance=FALSE_ALARM)
    assert not found.alarms
    assert all(finding.p_value is not None for finding in found.findings if finding.name != "fit residual")


def test_large_domains_take_about_ten_decodings():
    """Counted in calls, not in seconds: the cost is in transforms of a design and solves of the Gram matrix."""
    plan = sunzi.make_plan("ss-compact", 22_000, 1)
    design = plan.protocol.design
    calls = []
    for method in ("point_counts", "block_sums", "spread"):
        original = getattr(design, method)
        vars(design)[method] = lambda *words, original=original: calls.append(1) or original(*words)
    tally = honest_tally(plan, 20_000, 1, "uniform")
    assert not check_health(plan, tally, significance=FALSE_ALARM).alarms
    assert 3 <= len(calls) <= 10


# --- dishonest reports ------------------------------------------------------------------------------------------------


def tally_of(plan, counts, reports):
    layout = plan.protocol.tally_layout
    return Tally(plan.contract.fingerprint, layout, reports, Counters(layout.length, None, np.asarray(counts)))


@pytest.mark.parametrize("name", ["ordered", "tables"])
def test_views_that_contradict_each_other(name):
    """Half of the users answer one view for one value and the other views for another, as no histogram can."""
    plan = RECORD_PLANS[name](2)
    protocol = plan.protocol
    source = ReproducibleSource(3)
    selectors = protocol.draw_selectors(20_000, source)
    values = np.where(selectors == selectors.max(), 0, plan.domain.size - 1)
    parts = [
        protocol.responses[view].randomize(protocol.points_of(view, values[selectors == view]), source)
        for view in range(len(protocol.views))
    ]
    layout = protocol.tally_layout
    counters = protocol.count(protocol.join(parts))
    found = check_health(plan, Tally(plan.contract.fingerprint, layout, 20_000, counters))
    assert [finding.name for finding in found.alarms] == ["fit residual"]


@pytest.mark.parametrize("name", ["ordered", "tables"])
def test_views_drawn_by_other_shares(name):
    plan = RECORD_PLANS[name](2)
    protocol, source = plan.protocol, ReproducibleSource(4)
    values = np.random.default_rng(1).integers(0, plan.domain.size, 6000)
    rows = np.array_split(np.arange(6000), len(protocol.views))
    parts = [
        protocol.responses[view].randomize(protocol.points_of(view, values[row]), source)
        for view, row in enumerate(rows)
    ]
    counters = protocol.count(protocol.join(parts))
    found = check_health(plan, Tally(plan.contract.fingerprint, protocol.tally_layout, 6000, counters))
    assert [finding.name for finding in found.alarms] == ["block balance"]


def test_views_without_reports_leave_the_fit_open():
    plan = RECORD_PLANS["ordered"](2)
    single = (plan.simulate([1.5], seed=seed) for seed in range(30))
    found = check_health(plan, next(tally for tally in single if not tally.block_reports[-1]))
    assert not found.alarms
    assert "too few reports" in found["fit residual"].reason


def test_points_that_no_number_can_give():
    """One point of a number is reported less often than randomised response sends any point."""
    plan = RECORD_PLANS["number"](4)
    counts = np.full(plan.protocol.grid_points, 2000)
    counts[1] = 0
    found = check_health(plan, tally_of(plan, counts, int(counts.sum())))
    assert [finding.name for finding in found.alarms] == ["negative frequencies"]


def test_a_client_that_prefers_a_modulus():
    plan = sunzi.make_plan("mss-compact", 60, 1)
    tally = honest_tally(plan, 3000, 1)
    start, stop, _ = next(plan.protocol.tally_layout.slices())
    extra = np.zeros(tally.counts.size, dtype=np.int64)
    extra[start:stop] = tally.counts[start:stop]  # that modulus answered twice
    found = check_health(plan, tally + tally_of(plan, extra, int(extra.sum())))
    assert found.alarms[0].name == "block balance"
    assert "not made by the honest client: block balance" in found.verdict


def test_a_client_that_prefers_a_class():
    plan = sunzi.make_plan("ss-compact", 60, 1)
    design = plan.protocol.design
    counts = honest_tally(plan, 3000, 1).counts.reshape(design.classes, design.points).copy()
    counts[0] += counts[1]
    counts[1] = 0
    found = check_health(plan, tally_of(plan, counts.reshape(-1), 3000))
    assert "class balance" in [finding.name for finding in found.alarms]


@pytest.mark.parametrize("name", ["ss-compact", "pgr", "mss-compact"])
def test_a_message_repeated_too_often(name):
    plan = sunzi.make_plan(name, 200, 1)
    tally = honest_tally(plan, 3000, 1)
    assert check_health(plan, tally)["message frequency"].p_value > 0.01
    extra = np.zeros(tally.counts.size, dtype=np.int64)
    extra[-1] = 250
    found = check_health(plan, tally + tally_of(plan, extra, 250))
    assert "message frequency" in [finding.name for finding in found.alarms]


@pytest.mark.parametrize("name", ["rappor", "oue"])
def test_bits_that_are_too_many(name):
    plan = sunzi.make_plan(name, 50, 1)
    tally = honest_tally(plan, 3000, 1)
    full = tally_of(plan, np.full(50, 60), 60)  # 60 reports that consist of ones only
    found = check_health(plan, tally + full)
    assert [finding.name for finding in found.alarms] == ["bit balance"]
    assert found["bit balance"].statistic > 4


def test_frequencies_below_zero():
    plan = sunzi.make_plan("grr", 20, 1)
    counts = honest_tally(plan, 20_000, 1, "uniform").counts.copy()
    counts[3] += counts[7]
    counts[7] = 0
    found = check_health(plan, tally_of(plan, counts, 20_000))
    assert [finding.name for finding in found.alarms] == ["negative frequencies"]


@pytest.mark.parametrize("name", ["mss", "mss-compact"])
def test_residues_that_fit_no_common_histogram(name):
    """Every modulus answers for another value: each block alone is honest."""
    plan = sunzi.make_plan(name, 60, 2)
    protocol = plan.protocol
    parts = []
    for index, (start, stop, _) in enumerate(protocol.tally_layout.slices()):
        values = np.full(4000, (7 * index) % 60)
        parts.append(plan.simulate(values, seed=index).counts[start:stop])
    counts = np.concatenate(parts)
    blocks = zip(protocol.tally_layout.slices(), strict=False)
    reports = sum(int(counts[start:stop].sum()) // weight for ((start, stop, weight),) in blocks)
    found = check_health(plan, tally_of(plan, counts, reports))
    assert found["fit residual"].p_value < FALSE_ALARM
    if name == "mss-compact":
        assert found["message residual"].p_value > FALSE_ALARM  # each block alone is fine
    assert fold(np.ones(60), protocol.moduli[0]).sum() == 60


def test_points_that_no_value_uses():
    """Honest clients with a larger domain than the plan's: they use points that no value of the plan uses."""
    plan = sunzi.make_plan("pgr", 60, 1)
    design = plan.protocol.design
    values = np.random.default_rng(1).integers(60, design.points, 20_000)
    from sunzi.numerics.randomness import ReproducibleSource

    counters = plan.protocol.simulate(values, ReproducibleSource(1))
    foreign = Tally(plan.contract.fingerprint, plan.protocol.tally_layout, 20_000, counters)
    found = check_health(plan, honest_tally(plan, 20_000, 1) + foreign)
    assert {finding.name for finding in found.alarms} >= {"sum of frequencies", "unused points"}


# --- what it says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grr", "ss", "rappor"])
def test_protocols_without_a_residual_say_so(name):
    plan = sunzi.make_plan(name, 20, 1)
    found = check_health(plan, honest_tally(plan, 500, 1))
    assert found["fit residual"].p_value is None
    assert "leaves no residual" in found["fit residual"].verdict(0.001)
    assert {finding.kind for finding in found.findings} == {"balance", "residual", "consistency"}


def test_verdicts_and_dictionaries():
    plan = sunzi.make_plan("mss", 40, 1)
    found = check_health(plan, honest_tally(plan, 2000, 1))
    assert found.verdict.startswith("no sign of dishonest reports; ")
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (record["reports"], record["alarm"], record["significance"]) == (2000, False, DEFAULT_SIGNIFICANCE)
    assert [test["name"] for test in record["tests"]] == ["block balance", "fit residual", "negative frequencies"]
    for test in record["tests"]:
        assert "\n" not in test["verdict"]
        assert test["verdict"].startswith(f"{test['name']}: consistent with honest reports (")
        assert test["alarm"] is False
    assert "degrees of freedom, p = " in record["tests"][0]["verdict"]
    assert found.p_value == pytest.approx(min(1, 3 * found.strongest.p_value))
    assert found.test_significance == pytest.approx(DEFAULT_SIGNIFICANCE / 3)


def test_no_reports_yet():
    plan = sunzi.make_plan("mss", 40, 1)
    found = check_health(plan, plan.empty_tally())
    assert (found.verdict, found.p_value, found.alarms, found.strongest) == ("no reports yet", None, (), None)
    json.dumps(found.to_dict(), allow_nan=False)


def test_moduli_without_reports():
    """One report leaves most moduli empty: there is no estimate, but no crash either."""
    plan = sunzi.make_plan("mss", 40, 1, moduli=[11, 13, 17, 19])
    found = check_health(plan, plan.simulate([3], seed=1))
    assert "undetermined" in found["fit residual"].reason
    assert found.verdict.startswith("cannot say")


def test_wrong_arguments_are_named():
    plan, other = sunzi.make_plan("grr", 5, 1), sunzi.make_plan("grr", 6, 1)
    with pytest.raises(TallyError, match="belongs to the plan"):
        check_health(plan, other.empty_tally())
    with pytest.raises(ParameterError, match="significance must lie between 0 and 1, got 2"):
        check_health(plan, plan.empty_tally(), significance=2)
    with pytest.raises(ParameterError, match="no test named 'nothing'"):
        check_health(plan, plan.simulate([1, 2], seed=1))["nothing"]
