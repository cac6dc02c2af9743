"""Health tests: calibrated for honest reports, sensitive to dishonest ones."""

import json

import numpy as np
import pytest
from scipy import stats
from small_records import RECORD_PLANS

import sunzi
from sunzi.analysis import check_health
from sunzi.analysis.health import DEFAULT_SIGNIFICANCE
from sunzi.client.errors import ParameterError
from sunzi.errors import TallyError
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.numerics.toeplitz import fold
from sunzi.planning import Population
from sunzi.tally import Tally

FALSE_ALARM = 1e-6


def honest_tally(plan, users, seed, population="zipf:1"):
    values = Population.parse(population).draw(plan.domain.size, users, [seed, 1])
    counters = plan.protocol.simulate(values, ReproducibleSource([seed, 2]))
    return Tally(plan.digest, plan.protocol.tally_layout, users, counters)


def make(name, size, epsilon):
    return RECORD_PLANS[name](epsilon) if name in RECORD_PLANS else sunzi.make_plan(name, size, epsilon)


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
    return Tally(plan.digest, layout, reports, Counters(layout.length, None, np.asarray(counts)))


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
    found = check_health(plan, Tally(plan.digest, layout, 20_000, counters))
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
    found = check_health(plan, Tally(plan.digest, protocol.tally_layout, 6000, counters))
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
    foreign = Tally(plan.digest, plan.protocol.tally_layout, 20_000, counters)
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
