"""The efficient estimate: exactly unbiased for a fixed pilot, at the bound of the reports otherwise."""

import pickle

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.plan import make_plan
from sunzi.protocols import efficient

SIZE = 43
PLANS = [
    ("mss", 3, {"moduli": (5, 11, 17, 23)}),
    ("mss-compact", 1, {"moduli": (5, 11, 17, 23)}),
    ("mss-compact", 3, {"moduli": (7, 11, 37, 53)}),
    ("ss-compact", 1, {}),
    ("ss-compact", 2, {}),
    ("pgr", 2, {"order": 8}),
]


def random_histograms(number, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(SIZE, 0.2), size=number)


@pytest.mark.parametrize(("name", "epsilon", "options"), PLANS)
def test_a_fixed_pilot_is_exactly_unbiased(name, epsilon, options):
    """The estimate is linear in the counts for a fixed pilot, so this proves it, for pilots far from the truth."""
    plan = make_plan(name, SIZE, epsilon, **options)
    for truth, pilot in zip(random_histograms(3), random_histograms(3, seed=1), strict=True):
        estimate = plan.estimate(oracle.expected_tally(plan, truth), pilot=pilot)
        assert estimate.weights == "efficient"
        np.testing.assert_allclose(estimate.frequencies, truth, rtol=0, atol=2e-8)


@pytest.mark.parametrize(("name", "epsilon", "options"), PLANS)
def test_no_unbiased_estimate_errs_less(name, epsilon, options):
    """The stated error is the Cramér–Rao bound, from the probabilities of all messages; for ``mss`` from its counts."""
    plan = make_plan(name, SIZE, epsilon, **options)
    for truth in (*random_histograms(2), np.full(SIZE, 1 / SIZE), np.eye(SIZE)[5]):
        bound = np.trace(oracle.efficient_covariance(plan.protocol, truth, 1)) / SIZE
        assert plan.expected_mse(1, truth) == pytest.approx(bound, rel=1e-6)
        assert plan.expected_mse(1, truth) <= statistics.stated_variances(plan.protocol, truth, 1).mean() * (1 + 1e-9)


def histograms(size):
    ranks = np.arange(1.0, size + 1)
    shuffled = np.random.default_rng(3).permutation(size)
    for skew in (0.0, 1.1, 3.0):
        frequencies = ranks**-skew
        yield (frequencies / frequencies.sum())[shuffled]
    yield np.eye(size)[size // 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "epsilon", "runs"),
    [
        ("mss", 64, 3, 60),
        pytest.param("mss", 64, 5, 60, marks=pytest.mark.long),
        ("mss", 100, 5, 40),
        pytest.param("mss", 256, 5, 40, marks=pytest.mark.long),
        ("ss-compact", 100, 3, 40),
        pytest.param("ss-compact", 256, 3, 40, marks=pytest.mark.long),
    ],
)
def test_errors_reach_the_bound(name, size, epsilon, runs):
    """10,000 users: within 5 % of the bound, bias of the five most frequent items within 0.1 standard errors, and 94 to
    98 % of the intervals cover. False alarms: below one in a million each, five deviations.
    """
    users, plan = 10_000, make_plan(name, size, epsilon)
    for histogram in histograms(size):
        values, truth = statistics.values_of(histogram, users)
        squares, scores, covered = [], [], []
        for run in range(runs):
            estimate = plan.estimate(plan.simulate(values, seed=run))
            low, high = estimate.interval()
            squares.append(np.mean((estimate.frequencies - truth) ** 2))
            scores.append((estimate.frequencies - truth) / estimate.standard_errors())
            covered.append((low <= truth) & (truth <= high))
        top, slack = np.argsort(-truth)[:5], 5 / runs**0.5
        assert np.mean(squares) < 1.05 * plan.expected_mse(users, truth) + slack * np.std(squares)
        assert np.abs(np.mean(scores, axis=0)[top]).max() < 0.1 + slack * 1.1
        assert 0.94 - slack * 0.22 / size**0.5 < np.mean(covered) < 0.98
        assert np.mean(np.array(covered)[:, top]) > 0.93 - slack * 0.3 / 5**0.5


def test_a_third_pass_changes_next_to_nothing():
    plan, ranks = make_plan("mss", 64, 5), np.arange(1.0, 65)
    values = np.random.default_rng(7).choice(64, 10_000, p=ranks**-1.1 / np.sum(ranks**-1.1))
    changes = []
    for seed in range(12):
        uncertainty = plan.estimate(plan.simulate(values, seed=seed))._uncertainty
        flat, second = uncertainty.information.flat, uncertainty.frequencies
        pilot = efficient._shrunk(second, uncertainty.information.quick_trace)
        third = efficient._reweighted(uncertainty.blocks, flat, second, pilot).frequencies
        changes.append((third - second) / np.sqrt(uncertainty.population))
    assert np.sqrt(np.mean(np.square(changes), axis=0)).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mss", "mss-compact", "ss-compact", "pgr"])
def test_weights_from_few_reports_cost_next_to_nothing(name):
    """50 reports per block at the flat histogram, where weights are best left alone: at most 3 % more error."""
    plan = make_plan(name, 64, 4)
    users = 50 * len(plan.protocol.responses)
    values, truth = statistics.values_of(np.full(64, 1 / 64), users)
    tallies = [plan.simulate(values, seed=run) for run in range(60)]
    errors = {
        rule: np.mean([(plan.estimate(tally, weights=rule).frequencies - truth) ** 2 for tally in tallies])
        for rule in ("efficient", "planned")
    }
    assert errors["efficient"] <= 1.03 * errors["planned"]


def test_fewer_reports_are_weighted_as_planned():
    plan = make_plan("mss", SIZE, 2)
    fewest = 50 * len(plan.protocol.responses)
    for users, rule in ((fewest - 1, "planned"), (fewest, "efficient")):
        assert plan.estimate(plan.simulate(np.arange(users) % SIZE, seed=1)).weights == rule


@pytest.mark.parametrize("name", ["grr", "ss", "oue", "rappor"])
def test_counts_of_points_have_one_estimate(name):
    plan = make_plan(name, SIZE, 2)
    tally = plan.simulate(np.arange(5000) % 7, seed=1)
    default, planned = plan.estimate(tally), plan.estimate(tally, weights="planned")
    np.testing.assert_array_equal(default.frequencies, planned.frequencies)
    assert default.weights == "planned"


def test_pilots():
    """A histogram, another tally of the plan, or any estimate of the domain."""
    plan, other = make_plan("mss-compact", SIZE, 2), make_plan("grr", SIZE, 2)
    values = np.arange(9000) ** 2 % SIZE
    tally, before = plan.simulate(values, seed=1), plan.simulate(values, seed=2)
    truth = np.bincount(values, minlength=SIZE) / values.size
    found = [
        plan.estimate(tally, pilot=pilot).frequencies
        for pilot in (
            truth,
            truth.tolist(),
            before,
            plan.estimate(before),
            other.estimate(other.simulate(values, seed=3)),
        )
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[2], found[3])
    for frequencies in found:
        assert frequencies.sum() == pytest.approx(1)
        assert np.mean((frequencies - truth) ** 2) < 2 * plan.expected_mse(9000, truth)


@pytest.mark.parametrize("name", ["grr", "rappor", "oue", "ss", "ss-compact", "pgr", "mss", "mss-compact"])
def test_every_protocol_accepts_the_common_options(name):
    """Where an option has nothing to choose, it gives the planned estimate."""
    plan = make_plan(name, 20, 2)
    tally = plan.simulate(np.arange(5000) % 20, seed=1)
    planned = plan.estimate(tally, weights="planned")
    for options in ({"errors": "quick"}, {"weights": "planned", "errors": "quick", "ridge": 0}):
        found = plan.estimate(tally, **options)
        assert found.weights == "planned"
        np.testing.assert_array_equal(found.frequencies, planned.frequencies)
        assert np.all(found.standard_errors() >= planned.standard_errors() * (1 - 1e-9))
    assert plan.estimate(tally, weights="paper").frequencies == pytest.approx(planned.frequencies, abs=0.05)
    assert plan.estimate(tally, errors="full").frequencies.sum() == pytest.approx(1, abs=0.2)


def test_what_is_refused():
    plan, other = make_plan("mss", SIZE, 2), make_plan("ss-compact", 20, 2)
    tally = plan.simulate(np.arange(5000) % SIZE, seed=1)
    with pytest.raises(ParameterError, match="efficient, planned or paper, got 'best'"):
        plan.estimate(tally, weights="best")
    with pytest.raises(ParameterError, match="take no pilot"):
        plan.estimate(tally, weights="planned", pilot=np.full(SIZE, 1 / SIZE))
    with pytest.raises(ParameterError, match="43 non-negative frequencies"):
        plan.estimate(tally, pilot=np.ones(SIZE))
    with pytest.raises(ParameterError, match="take no pilot; omit it"):
        plan.estimate(tally, ridge=1.0, pilot=np.full(SIZE, 1 / SIZE))
    with pytest.raises(ParameterError, match="tally of another plan"):
        plan.estimate(tally, pilot=other.simulate([1] * 500, seed=1))
    counts = make_plan("ss", SIZE, 2)
    with pytest.raises(ParameterError, match="43 non-negative frequencies"):
        counts.estimate(counts.simulate([1] * 500, seed=1), pilot=[1.0])
    with pytest.raises(ParameterError, match="20 values, this plan 43"):
        plan.estimate(tally, pilot=other.estimate(other.simulate([1] * 500, seed=1)))
    with pytest.raises(ParameterError, match="ss-compact needs none: omit it"):
        other.estimate(other.simulate([1] * 500, seed=1), ridge=1.0)
    for each in (plan, other):
        with pytest.raises(ParameterError, match="errors must be full or quick, got 'slow'"):
            each.estimate(each.simulate(np.arange(5000) % 20, seed=1), errors="slow")
    with pytest.raises(EstimateError, match="weights='planned'"):
        plan.estimate(tally).interval(method="exact")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "epsilon"), [("mss", 64, 5), ("ss-compact", 100, 3)])
def test_a_wrong_pilot_costs_accuracy_and_no_coverage(name, size, epsilon):
    """A pilot at a value that nobody holds. False alarms: below one in a million, five deviations of 40 runs."""
    plan, users = make_plan(name, size, epsilon), 10_000
    values, truth = statistics.values_of(next(iter(list(histograms(size))[2:])), users)
    pilot = np.eye(size)[np.argmin(truth)]
    covered = []
    for run in range(40):
        low, high = plan.estimate(plan.simulate(values, seed=run), pilot=pilot).interval()
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(covered) > 0.94 - 5 * np.std(covered) / 40**0.5


def test_rare_and_large_jumps_have_finite_ends():
    """A handful of users, nearly all of whom tell the truth."""
    for name, size, epsilon, users in (("mss", 3, 10, 900), ("mss-compact", 4, 12, 100), ("mss", 30, 12, 100)):
        plan = make_plan(name, size, epsilon)
        estimate = plan.estimate(plan.simulate(np.zeros(users, dtype=int), seed=1))
        single, all_at_once = estimate.interval(), estimate.interval(simultaneous=True)
        assert -1 < all_at_once[0].min() <= single[0].min() < 0
        assert 1 < single[1].max() <= all_at_once[1].max() < 3


@pytest.mark.slow
def test_frequent_items_of_large_domains_have_errors():
    """More heavy residues than there are columns for."""
    plan = make_plan("mss", 20_000, 8)
    frequencies = 1 / np.arange(1.0, 20_001) ** 1.1
    values, truth = statistics.values_of(frequencies / frequencies.sum(), 50_000)
    estimate = plan.estimate(plan.simulate(values, seed=1))
    scores = (estimate.frequencies - truth) / estimate.standard_errors()
    assert np.abs(scores[:200]).max() < 6


def test_an_estimate_can_be_sent_to_another_process():
    plan = make_plan("ss-compact", SIZE, 2)
    estimate = plan.estimate(plan.simulate(np.arange(5000) % 7, seed=1))
    copy = pickle.loads(pickle.dumps(estimate))
    np.testing.assert_array_equal(copy.interval()[0], estimate.interval()[0])
