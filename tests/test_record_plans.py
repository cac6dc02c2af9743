"""Making plans of ordered values, numbers and tables: what is refused."""

import pytest

import sunzi
from sunzi.client.errors import ParameterError, SunziError

ATTRIBUTES = {"a": ["0", "1"], "b": ["0", "1", "2"]}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([], "wanted must be a list of tables"),
        ("ab", "wanted must be a list of tables"),
        ([("a",)], "no table has the attribute 'b'"),
        ([("a", "b"), ("b", "a")], "wanted lists a table twice"),
        ([("a", "d")], "no attribute 'd'"),
        ([("a", "a"), ("b",)], "must be different"),
        ([5], "a table must be a list of attributes, got 5"),
        ([[]], "a table needs at least one attribute, got none"),
        (5, "wanted must be a list of tables, each a list of attributes, got 5"),
        ({"a": 1}, "wanted must be a list of tables, each a list of attributes, got {'a': 1}"),
    ],
)
def test_wrong_tables_are_refused(wanted, message):
    with pytest.raises(SunziError, match=message):
        sunzi.make_tables(ATTRIBUTES, wanted, epsilon=1)


def test_errors_about_an_attribute_name_it():
    with pytest.raises(SunziError, match="attribute 'b': a domain needs between 2 and 2\\^30 values, got 1"):
        sunzi.make_tables({"a": ["x", "y"], "b": ["only"]}, [("a", "b")], epsilon=1)


def test_clamp_is_true_or_false():
    with pytest.raises(SunziError, match="clamp must be true or false, got 'no'"):
        sunzi.make_ordered(0, 8, 8, 1, clamp="no")
    with pytest.raises(SunziError, match="clamp must be true or false, got 1"):
        sunzi.make_number(0, 8, 1, clamp=1)
    assert sunzi.make_number(0, 8, 1, clamp=True).domain.clamp is True


def test_bins_that_no_number_reaches_are_refused():
    """Doubles near 1e14 are 1/64 apart."""
    with pytest.raises(
        ParameterError, match=r"4,096 bins of 0.000244 are too narrow: floating-point numbers .* are 0.0156 apart; use"
    ):
        sunzi.make_ordered(10**14, 10**14 + 1, 4096, epsilon=1)
    plan = sunzi.make_ordered(10**14, 10**14 + 1, 64, epsilon=1)
    assert [plan.domain.index(10**14 + place / 64) for place in range(64)] == list(range(64))


def test_splitting_the_budget_is_never_better():
    """A report of one of two attributes with the whole ε, against one of each with half of it."""
    views = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"]}, [("a",), ("b",)], epsilon=2)
    split = sunzi.make_plan("grr", 2, epsilon=1)
    assert views.protocol.table_variance((0,), 1) < split.expected_mse(1) + 0.25


def test_facts_say_what_is_asked():
    facts = {
        plan.protocol.name: dict(plan.facts())
        for plan in (
            sunzi.make_ordered(0, 1, 4, epsilon=1, clamp=True),
            sunzi.make_number(0, 1, epsilon=1, unit="s"),
            sunzi.make_tables(ATTRIBUTES, [("a", "b")], epsilon=1),
        )
    }
    assert facts["ordered"]["values"] == "0 to 1 in 4 bins; numbers outside count as the nearest end"
    assert "standard error of a single bin" in facts["ordered"]["error"]
    assert facts["number"]["values"] == "0 to 1 s rounded to 2 points"
    assert "standard error of the mean, as a share of the range" in facts["number"]["error"]
    assert facts["tables"]["values"] == "records of a (2), b (3)"


def test_other_protocols_refuse_records():
    with pytest.raises(SunziError, match="for records plan tables"):
        sunzi.make_plan("grr", sunzi.RecordDomain(ATTRIBUTES), epsilon=1)


def test_other_protocols_take_ranges_as_bins():
    plan = sunzi.make_plan("ss-compact", sunzi.OrderedDomain(0, 10, 5), epsilon=2)
    assert plan.estimate(plan.simulate([1.0, 3.5] * 200, seed=1))[3.0].label == "2 to 4"


def test_tables_are_made_by_their_own_maker():
    with pytest.raises(SunziError, match="needs a domain of records"):
        sunzi.make_plan("tables", 6, epsilon=1)


def test_wide_tables_are_refused_before_any_work():
    many = {f"a{number}": ["0", "1"] for number in range(30)}
    with pytest.raises(ParameterError, match="at most 8 attributes, got one of 30"):
        sunzi.make_tables(many, [list(many)], epsilon=2)
    with pytest.raises(ParameterError, match="the table page × city has 100,000,000 cells, more than 2\\^24"):
        sunzi.make_tables({"page": 10_000, "city": 10_000}, [("page",), ("page", "city")], epsilon=2)
    triples = [[f"a{i}", f"a{j}", f"a{k}"] for i in range(25) for j in range(i) for k in range(j)]
    with pytest.raises(ParameterError, match="request fewer"):
        sunzi.make_tables({name: many[name] for name in list(many)[:25]}, triples, epsilon=2)


def test_planned_errors_are_about_the_users_on_both_sides():
    """One binary attribute alone is randomised response either way."""
    plan = sunzi.make_tables({"a": ["0", "1"]}, [("a",)], epsilon=2)
    (found,) = plan.protocol.planned_errors(plan.domain, 1000)
    assert found.alternatives == {name: pytest.approx(found.variance) for name in found.alternatives}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (None, "attributes must be a mapping of names to values, got None"),
        ({"a": sunzi.RecordDomain(ATTRIBUTES)}, "attribute 'a' is itself a record"),
    ],
)
def test_wrong_attributes_are_refused(attributes, message):
    with pytest.raises(SunziError, match=message):
        sunzi.make_tables(attributes, [("a",)], epsilon=1)


@pytest.mark.parametrize("wanted", [(0, 2), (0, 3), ()])
def test_only_tables_of_the_plan_have_a_planned_error(wanted):
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1"]}, [("a", "b"), ("c",)], epsilon=1)
    assert plan.protocol.table_variance((0, 1), 100) > 0
    with pytest.raises(ParameterError, match="this plan has the views"):
        plan.protocol.table_variance(wanted, 100)


@pytest.mark.parametrize("name", ["RS+FD", "rs-fd", "RS+FD[GRR]"])
def test_rs_fd_is_refused_with_the_reason(name):
    with pytest.raises(ParameterError, match="only between records that differ in one attribute"):
        sunzi.make_plan(name, 4, epsilon=1)
