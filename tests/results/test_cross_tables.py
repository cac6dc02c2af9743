"""Cells, margins, conditional shares and the test of independence."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError, SunziError
from sunzi.errors import EstimateError
from sunzi.results.uncertainty import QueryUncertainty

SIZES = {"a": 2, "b": 3, "c": 4}
ATTRIBUTES = {name: [str(value) for value in range(size)] for name, size in SIZES.items()}
PAIRS = [("a", "b"), ("b", "c"), ("a", "c")]
TRUTH = np.random.default_rng(1).dirichlet(np.full(24, 0.5)).reshape(2, 3, 4)


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_tables(ATTRIBUTES, PAIRS, epsilon=2)


def records(users, truth=TRUTH, seed=2):
    """Columns of records drawn from a joint distribution."""
    drawn = np.random.default_rng(seed).choice(truth.size, users, p=truth.reshape(-1))
    columns = np.unravel_index(drawn, truth.shape)
    return {name: [str(value) for value in column] for name, column in zip(ATTRIBUTES, columns, strict=False)}


@pytest.fixture(scope="module")
def tally(plan):
    return plan.simulate(records(4000), seed=1)


def test_tables_agree_in_their_margins(plan, tally):
    by_b, by_c, alone = (plan.estimate(tally, table=table) for table in (("a", "b"), ("b", "c"), ("b",)))
    np.testing.assert_allclose(by_b.margin("b").frequencies, by_c.margin("b").frequencies, atol=1e-12)
    np.testing.assert_allclose(by_b.margin("b").frequencies, alone.frequencies, atol=1e-12)
    np.testing.assert_allclose(by_b.margin("b").standard_errors(), alone.standard_errors(), rtol=1e-9)
    assert by_b.table.shape == (2, 3)
    assert by_b.attributes == ("a", "b")


def test_rows_name_their_cells(plan, tally):
    top = plan.estimate(tally, table=("c", "b")).top(1)[0]
    assert top.label.startswith("b ")
    assert top.low < top.frequency < top.high


@pytest.mark.slow
def test_intervals_cover_and_errors_are_as_stated(plan):
    """Over 150 runs of 18 cells: coverage within 93–97 %, squared errors over stated variances within 8 %."""
    columns = records(3000, seed=3)
    joint = np.ravel_multi_index([np.array(column, dtype=int) for column in columns.values()], TRUTH.shape)
    truth = np.bincount(joint, minlength=24).reshape(TRUTH.shape) / 3000
    covered, ratios = [], []
    for seed in range(150):
        tally = plan.simulate(columns, seed=seed)
        for axis, table in ((2, ("a", "b")), (0, ("b", "c"))):
            estimate, real = plan.estimate(tally, table=table), truth.sum(axis=axis).reshape(-1)
            low, high = estimate.interval()
            covered.append(((low <= real) & (real <= high)).mean())
            ratios.append(((estimate.frequencies - real) ** 2 / estimate.standard_errors() ** 2).mean())
    assert 0.93 <= np.mean(covered) <= 0.97
    assert 0.92 <= np.mean(ratios) <= 1.08


@pytest.mark.slow
def test_conditional_shares_cover(plan):
    """Fieller's intervals, 150 runs: at least 84 %; less by chance once in 1e-7."""
    columns = records(4000, seed=4)
    chosen = [c for b, c in zip(columns["b"], columns["c"], strict=True) if b == "1"]
    truth = chosen.count("2") / len(chosen)
    found = [
        plan.estimate(plan.simulate(columns, seed=seed), table=("b", "c")).share({"c": "2"}, given={"b": "1"})
        for seed in range(150)
    ]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.84
    assert np.mean([each.is_bounded for each in found]) > 0.9


@pytest.mark.long
def test_intervals_and_tests_hold_over_many_runs():
    """12,000 collections: cells are covered 94–96 % of the time, their variances are within 5 %; Fieller's intervals
    cover 94–97 %; the test of independence rejects 4–6 % of independent attributes at 5 %. Rates of 95 % and 5 % leave
    these bounds with probability 1e-6.
    """
    runs, users = 12_000, 4000
    plan = sunzi.make_tables({name: sunzi.Domain(size) for name, size in SIZES.items()}, PAIRS, epsilon=2)
    generator = np.random.default_rng(7)
    joint = np.random.default_rng(4).choice(24, users, p=TRUTH.reshape(-1))
    columns = dict(zip(SIZES, np.unravel_index(joint, TRUTH.shape), strict=True))
    cells = np.bincount(joint, minlength=24).reshape(TRUTH.shape).sum(axis=0).reshape(-1) / users
    share = cells.reshape(3, 4)[1, 2] / cells.reshape(3, 4)[1].sum()
    marginals = [TRUTH.sum(axis=tuple({0, 1, 2} - {axis})) for axis in range(3)]
    independent = np.einsum("i,j,k->ijk", *marginals).reshape(-1)
    covered, ratios, fieller, rejected = [], [], [], []
    for seed in range(runs):
        estimate = plan.estimate(plan.simulate(columns, seed=seed), table=("b", "c"))
        low, high = estimate.interval()
        covered.append(((low <= cells) & (cells <= high)).mean())
        ratios.append((((estimate.frequencies - cells) / estimate.standard_errors()) ** 2).mean())
        found = estimate.share({"c": 2}, given={"b": 1})
        fieller.append(found.low <= share <= found.high)
        drawn = np.unravel_index(generator.choice(24, users, p=independent), TRUTH.shape)
        free = plan.simulate(dict(zip(SIZES, drawn, strict=True)), seed=seed)
        rejected.append(plan.estimate(free, table=("b", "c")).independence().p_value < 0.05)
    assert 0.94 <= np.mean(covered) <= 0.96
    assert 0.95 <= np.mean(ratios) <= 1.05
    assert 0.94 <= np.mean(fieller) <= 0.97
    assert 0.04 <= np.mean(rejected) <= 0.06


@pytest.mark.parametrize("given", ["b", ["c", "a"]])
def test_shares_of_all_cells_are_those_of_each(given):
    plan = sunzi.make_tables(ATTRIBUTES, [("a", "b", "c")], epsilon=3)
    estimate = plan.estimate(plan.simulate(records(3000), seed=1))
    found = estimate.shares(given, 0.9, target="population")
    assert len(found) == 24
    for index in (0, 7, 23):
        cell = estimate.cell(index)
        condition = {name: cell.pop(name) for name in given}
        expected = estimate.share(cell, condition, 0.9, target="population")
        assert vars(found[index]) == {name: pytest.approx(value) for name, value in vars(expected).items()}
    with pytest.raises(ParameterError, match="an attribute that is not given"):
        estimate.shares(["a", "b", "c"])
    with pytest.raises(SunziError, match="there is no attribute 'd'"):
        estimate.shares("d")


def test_an_attribute_of_another_table_is_not_called_unknown():
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"]}, [("a", "b"), ("b", "c")], epsilon=3)
    estimate = plan.estimate(plan.simulate([{"a": "0", "b": "1", "c": "0"}] * 300, seed=1), table=("a", "b"))
    message = r"attribute 'c' is not in this table of a × b; name the table to estimate: table=\['c', …\]"
    for asked in (
        lambda: estimate.share({"a": "0"}, given={"c": "1"}),
        lambda: estimate.share({"c": "1"}, given={"a": "0"}),
        lambda: estimate.shares("c"),
        lambda: estimate.margin("c"),
    ):
        with pytest.raises(ParameterError, match=message):
            asked()
    with pytest.raises(SunziError, match="attribute 'b': label 'oops' is not in the domain; check its spelling"):
        estimate.share({"a": "0"}, given={"b": "oops"})


@pytest.mark.parametrize("given", [("a",), ("b", "c")])
def test_covariances_with_a_margin_are_those_of_sums_of_cells(given):
    """Against one row with a weight for every cell, for views that have all, some and none of the given attributes."""
    plan = sunzi.make_tables(ATTRIBUTES, [("a", "b", "c"), ("b",), ("c",), ("a", "c")], epsilon=2)
    assert len(plan.protocol.tables) > 2
    estimate = plan.estimate(plan.simulate(records(3000), seed=1), table=("a", "b", "c"))
    known, margin = (each._known_uncertainty() for each in (estimate, estimate.margin(*given)))
    same = [
        [all(estimate.cell(i)[name] == estimate.cell(j)[name] for name in given) for j in range(24)] for i in range(24)
    ]
    rows = np.concatenate([np.eye(24), np.array(same, dtype=float)])
    matrix = known.query(rows).covariance("reporters")
    variances = known.spread(margin.variances("reporters"), margin)
    np.testing.assert_allclose(known.covariances(margin), matrix[:24, 24:].diagonal(), rtol=1e-9)
    np.testing.assert_allclose(variances, matrix[24:, 24:].diagonal(), rtol=1e-9)


@pytest.mark.slow
def test_shares_of_many_cells_take_no_matrix():
    """300 × 300 cells, of which a matrix of all rows would take 60 GB."""
    labels = [str(value) for value in range(300)]
    plan = sunzi.make_tables({"a": labels, "b": labels}, [("a", "b")], epsilon=4)
    estimate = plan.estimate(plan.simulate({"a": ["7"] * 5000, "b": ["8"] * 5000}, seed=1))
    found = estimate.shares("a")
    assert found[7 * 300 + 8].low < 1 < found[7 * 300 + 8].high
    assert estimate.margin("a")[{"a": "7"}].low > 0.5


def test_a_condition_that_nobody_may_meet_leaves_the_share_unbounded():
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"]}, [("a", "b")], epsilon=1)
    estimate = plan.estimate(plan.simulate({"a": ["0"] * 500, "b": ["1"] * 500}, seed=1))
    found = estimate.share({"b": "1"}, given={"a": "1"})
    assert not found.is_bounded
    assert (found.low, found.high) == (-np.inf, np.inf)


def test_cells_of_a_few_lies_are_not_significant():
    """Some of 256 cells are supported by two or more lies. All intervals cover in at least 42 of 60 collections: in
    fewer less than once in 1e-6, if they cover in 93 % of cases.
    """
    labels = [str(value) for value in range(16)]
    plan, covered = sunzi.make_tables({"a": labels, "b": labels}, [("a", "b")], epsilon=6), 0
    truth = np.zeros((16, 16))
    truth[8, 0], truth[0, 3], truth[15, 14] = 0.9, 0.05, 0.05
    columns = {"a": ["8"] * 270 + ["0"] * 15 + ["15"] * 15, "b": ["0"] * 270 + ["3"] * 15 + ["14"] * 15}
    for seed in range(60):
        low, high = plan.estimate(plan.simulate(columns, seed=seed)).interval(simultaneous=True)
        covered += bool(((low <= truth.reshape(-1)) & (truth.reshape(-1) <= high)).all())
    assert covered >= 42


def test_shares_of_few_reports_with_little_noise_cover_the_population():
    """In at least 80 % of 200 collections of 50 users, below that with a coverage of at least 91 % less than once in
    1e-6. About five users meet the condition, and often none of them has the value.
    """
    attributes = {"a": ["0", "1"], "b": ["0", "1"]}
    plan, truth = sunzi.make_tables(attributes, [("a", "b")], epsilon=10), np.outer([0.9, 0.1], [0.95, 0.05])
    covered = []
    for seed in range(200):
        estimate = plan.estimate(plan.simulate(records(50, truth, seed), seed=seed))
        found = estimate.share({"b": "1"}, given={"a": "1"}, target="population")
        same = estimate.shares("a", target="population")[3]
        assert (found.low, found.high) == pytest.approx((same.low, same.high))
        covered.append(found.low <= 0.05 <= found.high)
    assert np.mean(covered) >= 0.8


@pytest.mark.parametrize(
    ("values", "given", "message"),
    [
        ({"c": "9"}, {"b": "1"}, "'9' is not in the domain"),
        ({"d": "1"}, {"b": "1"}, "no attribute 'd'"),
        ({"c": "1"}, {"c": "2"}, "in both values and given"),
        ({"c": "1"}, {}, "mapping"),
        ({"c": "1"}, None, "give a mapping of attributes to values, got None"),
        ("c", {"b": "1"}, "give a mapping of attributes to values, got 'c'"),
    ],
)
def test_wrong_shares_are_refused(plan, tally, values, given, message):
    with pytest.raises(SunziError, match=message):
        plan.estimate(tally, table=("b", "c")).share(values, given=given)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "epsilon"), [((2, 2), 1), ((3, 4), 2)])
def test_independence_is_rejected_as_often_as_stated(sizes, epsilon):
    """At 5 %, 200 runs: at most 14 % (more by chance once in 1e-6), and sometimes; Pearson's test far more often."""
    from scipy.stats import chi2_contingency

    margins = [np.random.default_rng(8).dirichlet(np.full(size, 3.0)) for size in sizes]
    attributes = {name: [str(value) for value in range(size)] for name, size in zip("ab", sizes, strict=True)}
    plan = sunzi.make_tables(attributes, [("a", "b")], epsilon)
    rejected, naive = [], []
    for seed in range(200):
        columns = records(3000, np.outer(*margins), seed)
        estimate = plan.estimate(plan.simulate({"a": columns["a"], "b": columns["b"]}, seed=seed))
        rejected.append(estimate.independence().p_value < 0.05)
        naive.append(chi2_contingency(np.maximum(estimate.table, 1e-9) * 3000).pvalue < 0.05)
    assert 0 < np.mean(rejected) <= 0.14
    assert np.mean(naive) > 0.3


def test_dependence_is_found():
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"]}, [("a", "b")], epsilon=1)
    columns = {"a": ["0", "1"] * 1500, "b": ["0", "1"] * 1500}
    assert plan.estimate(plan.simulate(columns, seed=1)).independence().p_value < 1e-6


def test_independence_takes_two_attributes(plan, tally):
    with pytest.raises(EstimateError, match="two attributes"):
        plan.estimate(tally, table=("b",)).independence()


def test_by_default_it_is_the_table_asked_about_most_often(plan, tally):
    shares = {table: view.share for table, view in zip(plan.protocol.tables, plan.protocol.views, strict=True)}
    names = list(ATTRIBUTES)
    assert plan.estimate(tally).attributes == tuple(names[number] for number in max(shares, key=shares.get))
    joint = sunzi.make_tables(ATTRIBUTES, [("a", "b", "c")], epsilon=2)
    assert joint.estimate(joint.simulate(records(100), seed=1)).attributes == ("a", "b", "c")


@pytest.mark.parametrize("epsilon", [0.5, 2, 5])
def test_one_report_excludes_no_cell_altogether(epsilon):
    """Its user holds a cell or does not: some frequency between 0 and 1 is in every interval, whatever the report."""
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1", "2"]}, [("a", "b")], epsilon)
    for seed in range(40):
        estimate = plan.estimate(plan.simulate([{"a": "1", "b": "2"}], seed=seed), table=("a", "b"))
        for target in ("reporters", "population"):
            low, high = estimate.interval(target=target)
            assert low.max() <= 1
            assert high.min() >= 0


def test_intervals_hold_for_a_handful_of_reports():
    """Of 10 users, 8 in one cell. In 6,000 collections 95 % intervals covered it in 94.8 %; with that coverage, 1,000
    have less than 91.2 % with a probability below 1e-6.
    """
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1", "2"]}, [("a",), ("a", "b")], 2)
    records, runs = [{"a": "0", "b": "0"}] * 8 + [{"a": "1", "b": "2"}] * 2, 1000
    covered = 0
    for seed in range(runs):
        low, high = plan.estimate(plan.simulate(records, seed=seed), table=("a", "b")).interval()
        covered += bool(low[0] <= 0.8 <= high[0])
    assert covered / runs > 0.912


def test_a_margin_takes_names_not_a_list(plan, tally):
    with pytest.raises(DomainError, match="there is no attribute"):
        plan.estimate(tally, table=("a", "b")).margin(["a", "b"])


def test_unknown_tables_are_refused(plan, tally):
    with pytest.raises(SunziError, match="no attribute 'd'"):
        plan.estimate(tally, table=("d",))
    with pytest.raises(EstimateError, match="this plan does not cover a × b × c"):
        plan.estimate(tally, table=("a", "b", "c"))
    with pytest.raises(ParameterError, match="does not accept the options"):
        plan.estimate(tally, ridge=1)


def test_margins_of_ranges_are_sums_of_cells():
    plan = sunzi.make_tables({"v": ["1", "2"], "t": sunzi.OrderedDomain(0, 100, 4)}, [("v", "t")], epsilon=8)
    estimate = plan.estimate(plan.simulate([{"v": "1", "t": 10}] * 300 + [{"v": "2", "t": 80}] * 700, seed=1))
    np.testing.assert_allclose(estimate.margin("t").frequencies, estimate.table.sum(axis=0), atol=1e-12)
    assert estimate.margin("t").top(1)[0].label == "t 75 to 100"
    assert estimate.share({"v": "2"}, given={"t": 80}).low > 0.9


@pytest.mark.parametrize("table", [("a", "b"), ("c",), ("a", "c")])
def test_errors_of_cells_are_those_of_queries(plan, tally, table):
    estimate = plan.estimate(tally, table=table)
    known = estimate._known_uncertainty()
    cells = QueryUncertainty(known, np.eye(len(estimate)), estimate.frequencies)
    for target in ("reporters", "population"):
        np.testing.assert_allclose(known.variances(target), cells.variances(target), rtol=1e-9)
        for method in ("auto", "normal"):
            found, same = (each.interval(0.95, target, method) for each in (known, cells))
            np.testing.assert_allclose(found, same, rtol=1e-7, atol=1e-12)


def test_large_tables_have_intervals():
    sizes = {name: [str(value) for value in range(100)] for name in "ab"}
    plan = sunzi.make_tables(sizes, [("a", "b")], epsilon=4)
    estimate = plan.estimate(plan.simulate({"a": ["1"] * 500, "b": ["2"] * 500}, seed=1))
    low, high = estimate.interval()
    assert low.size == 10_000
    assert np.all(low <= high)
