"""Questions as texts, and their answers."""

import datetime

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError, SunziError
from sunzi.results.record_answers import Answer, Questions


@pytest.fixture(scope="module")
def ordered():
    plan = sunzi.make_ordered(0, 64, 16, epsilon=4)
    return plan.estimate(plan.simulate(np.arange(64).repeat(20), seed=1))


@pytest.fixture(scope="module")
def table():
    plan = sunzi.make_tables({"a": ["x", "y, z"], "b": ["0", "1"]}, [("a", "b")], epsilon=4)
    return plan.estimate(plan.simulate({"a": ["x", "y, z"] * 400, "b": ["0", "1", "1", "0"] * 200}, seed=1))


def test_answers_come_in_the_order_of_the_questions(ordered):
    asked = Questions(ranges=["0:16", "16:64"], quantiles=[0.5], mean=True)
    found = asked.ask(ordered)
    assert [answer.question for answer in found] == ["0 to 16", "16 to 64", "quantile 0.5", "mean"]
    assert found[0].value == ordered.range(0, 16).value
    assert found[0].is_share
    assert found[2].low == ordered.quantile(0.5).low
    assert not Questions()
    assert asked


def test_a_range_within_bins_is_answered_by_the_bins_around_it(ordered):
    (found,) = Questions(ranges=["5:31.5"]).ask(ordered)
    assert (found.question, found.value) == ("4 to 32", ordered.range(4, 32).value)
    assert found.note == "5 to 31.5 does not consist of whole bins; the answer is about 4 to 32, which encloses it."
    (exact, first) = Questions(ranges=["4:32", "0:32"]).ask(ordered)
    assert not exact.note
    assert not first.note
    for wrong, message in (("5:5", "low must be below high"), ("5:65", "65.0 is outside 0 to 64; give an end within")):
        with pytest.raises(SunziError, match=message):
            Questions(ranges=[wrong]).ask(ordered)


def test_a_quantile_at_the_end_of_clamped_values_may_lie_beyond():
    first = datetime.date(2026, 1, 1)
    plan = sunzi.make_ordered(first, datetime.date(2026, 1, 17), 16, epsilon=4, clamp=True)
    days = [first + datetime.timedelta(days=number % 40) for number in range(2000)]
    middle, late, mean = Questions(quantiles=[0.2, 0.9], mean=True).ask(plan.estimate(plan.simulate(days, seed=1)))
    assert not middle.note
    assert "reaches an end of the range" in late.note
    assert {answer.unit for answer in (middle, late, mean)} == {"days since 1970-01-01"}


@pytest.mark.parametrize(
    "make",
    [lambda **given: sunzi.make_ordered(0, 64, 16, 4, **given), lambda **given: sunzi.make_number(0, 64, 4, **given)],
)
def test_means_of_clamped_values_say_so(make):
    for clamp in (False, True):
        plan = make(clamp=clamp)
        (mean,) = Questions(mean=True).ask(plan.estimate(plan.simulate([30] * 500, seed=1)))
        assert mean.note == ("Values outside 0 to 64 count as its nearest end, also in this mean." if clamp else "")


def test_ranges_at_an_end_of_clamped_values_say_so():
    plan = sunzi.make_ordered(0, 64, 16, 4, clamp=True)
    estimate = plan.estimate(plan.simulate([30] * 500, seed=1))
    first, inner, last = Questions(ranges=["0:16", "4:60", "5:64"]).ask(estimate)
    assert first.note == "0 to 16 also counts all values below 0."
    assert not inner.note
    assert last.note.endswith("which encloses it. 4 to 64 also counts all values above 64.")
    (everything,) = Questions(ranges=["0:64"]).ask(estimate)
    assert everything.note == "0 to 64 also counts all values below 0 and above 64."


def test_means_have_the_unit_of_the_numbers():
    plan = sunzi.make_number(0, 100, epsilon=4, unit="ms")
    (mean,) = Questions(mean=True).ask(plan.estimate(plan.simulate([30] * 500, seed=1)))
    assert mean.unit == "ms"


def test_tables_are_asked_by_attribute_and_value(table):
    found = Questions(shares=['"a=y, z"'], given="b=1", independence=True).ask(table, 0.9, "population")
    expected = table.share({"a": "y, z"}, {"b": "1"}, 0.9, target="population")
    assert (found[0].low, found[0].high) == (expected.low, expected.high)
    assert found[2].value == table.independence().p_value


def test_an_attribute_alone_asks_for_the_shares_within_each_of_its_values(table):
    found = Questions(given="b").ask(table, 0.9)
    assert [answer.question for answer in found] == [
        f"a={a} among b={b}" for a, b in (("x", "0"), ("x", "1"), ("y, z", "0"), ("y, z", "1"))
    ]
    for answer, (a, b) in zip(found, (("x", "0"), ("x", "1"), ("y, z", "0"), ("y, z", "1")), strict=True):
        expected = table.share({"a": a}, {"b": b}, 0.9)
        assert (answer.value, answer.low, answer.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Questions(ranges=["16"]), "LOW:HIGH"),
        (Questions(shares=["a=x"]), "a share needs a condition"),
        (Questions(given="a"), "needs a plan of tables"),
        (Questions(shares=["a=x"], given="b=1"), "needs a plan of tables"),
        (Questions(independence=True), "needs a plan of tables"),
    ],
)
def test_questions_of_other_plans_are_refused(ordered, asked, message):
    with pytest.raises(ParameterError, match=message):
        asked.ask(ordered)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Questions(given="a=x"), "give a share with the condition a=x"),
        (Questions(shares=["a\rb"], given="b=1"), "with commas between them"),
        (Questions(shares=[""], given="b=1"), "got none"),
        (Questions(shares=["a"], given="b=1"), "values must be ATTRIBUTE=VALUE such as crashed=yes, got 'a'"),
        (Questions(shares=["a==x"], given="b=1"), "'=x'"),
    ],
)
def test_wrong_questions_about_tables_are_refused(table, asked, message):
    with pytest.raises(SunziError, match=message):
        asked.ask(table)


def test_names_of_attributes_and_values_may_contain_the_sign():
    plan = sunzi.make_tables({"x=1": ["a=b", "c"], "=": ["0", "1"]}, [("x=1", "=")], epsilon=4)
    estimate = plan.estimate(plan.simulate({"x=1": ["a=b", "c"] * 400, "=": ["0", "1", "1", "0"] * 200}, seed=1))
    (found,) = Questions(shares=["x=1=a=b"], given="==1").ask(estimate)
    assert found.value == estimate.share({"x=1": "a=b"}, {"=": "1"}).value
    assert len(Questions(given="x=1").ask(estimate)) == 4


@pytest.mark.parametrize(("share", "given"), [("a=x", "b=0,b=1"), ("a=x,a=x", "b=0"), ('a=x,"a=y, z"', "b=0")])
def test_an_attribute_is_named_once(table, share, given):
    """The last value answered for both."""
    with pytest.raises(ParameterError, match=r"names the attribute '[ab]' twice; ask about one of its"):
        Questions(shares=[share], given=given).ask(table)


def test_a_mean_of_tables_names_both_plans_that_have_one(table):
    with pytest.raises(ParameterError, match=r"an ordered plan or one of a number .*make_number"):
        Questions(mean=True).ask(table)


def test_other_plans_have_no_ranges(table):
    for asked in (Questions(ranges=["0:1"]), Questions(quantiles=[0.5]), Questions(mean=True)):
        with pytest.raises(ParameterError, match="needs an ordered plan"):
            asked.ask(table)


def test_records_have_no_infinite_numbers():
    assert Answer("a", 0.5, -np.inf, np.inf).record() == {
        "question": "a",
        "value": 0.5,
        "low": None,
        "high": None,
        "standard_error": None,
        "is_share": False,
        "unit": "",
        "note": "",
    }
