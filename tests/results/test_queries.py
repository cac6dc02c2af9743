"""Linear queries as rows: sums, weights and groups, and what is refused."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.errors import EstimateError
from sunzi.results.queries import group_rows, indicator, parse_value, weights_row

LABELS = sunzi.Domain(["Chrome", "Edge", "Opera", "Safari", "Firefox"])
NUMBERS = sunzi.Domain(6)
BINS = sunzi.OrderedDomain(0, 16, 4)
RECORDS = sunzi.RecordDomain({"a": ["x", "y"], "b": ["u", "v"]})


def test_rows_have_one_weight_per_value():
    assert indicator(LABELS, ["Edge", "Safari"]).tolist() == [0, 1, 0, 1, 0]
    assert indicator(NUMBERS, range(1, 3)).tolist() == indicator(NUMBERS, np.array([2, 1])).tolist()
    assert indicator(NUMBERS, []).tolist() == [0] * 6
    assert weights_row(LABELS, {"Opera": -1, "Chrome": 0.5}).tolist() == [0.5, 0, -1, 0, 0]
    assert weights_row(NUMBERS, range(6)).tolist() == list(range(6))
    groups = {"rest": ..., "Chromium": iter(["Edge", "Chrome"])}
    assert group_rows(LABELS, groups).tolist() == [[0, 0, 1, 1, 1], [1, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: indicator(LABELS, ["Chromum", "Edge"]), DomainError, r"'Chromum' is not .* did you mean 'Chrome'\?"),
        (lambda: indicator(LABELS, ["?"]), DomainError, "check its spelling"),
        (lambda: indicator(LABELS, [3]), DomainError, "value 3 is not text"),
        (lambda: indicator(NUMBERS, [6]), DomainError, "0 … 5"),
        (lambda: indicator(LABELS, "Chrome"), ParameterError, "give a list"),
        (lambda: indicator(LABELS, ["Edge", "Edge"]), ParameterError, "'Edge' is listed twice"),
        (lambda: weights_row(LABELS, [1, 2]), ParameterError, "5 finite numbers"),
        (lambda: weights_row(BINS, {1: 0.5, 2: 0.5}), ParameterError, "'0 to 4' is listed twice"),
        (lambda: parse_value(RECORDS, "a x"), ParameterError, """such as {"a": "x", "b": "u"}; got 'a x'"""),
        (lambda: parse_value(RECORDS, "[" * 100_000), ParameterError, "a record must be JSON"),
        (lambda: weights_row(LABELS, {"Edge": float("nan")}), ParameterError, "Edge"),
        (lambda: group_rows(LABELS, {"a": ["Edge"]}), ParameterError, "'Chrome' is in no group"),
        (
            lambda: group_rows(LABELS, {"a": ["Edge"], "b": ["Edge"], "c": ...}),
            ParameterError,
            "'Edge' is in more than",
        ),
        (lambda: group_rows(LABELS, {"a": ..., "b": ...}), ParameterError, "only one group"),
        (lambda: group_rows(LABELS, {"a": [], "b": ...}), ParameterError, "'a' has no values"),
    ],
)
def test_bad_queries_are_refused(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


def test_a_protocol_without_query_errors_is_named():
    plan = sunzi.make_plan("grr", ["a", "b", "c"], 1)
    estimate = plan.estimate(plan.simulate(["a"] * 9, seed=1))

    class OwnErrors:
        """The errors of a registered protocol that knows single values only."""

    vars(estimate)["_uncertainty"] = OwnErrors()
    for ask in (lambda: estimate.sum(["a"]), lambda: estimate.regroup({"a": ["a"], "rest": ...})):
        with pytest.raises(
            EstimateError, match=r"'grr' gives errors of single values only.* OwnErrors the method query"
        ):
            ask()
