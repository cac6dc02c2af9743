"""Plans of numbers and records beside other methods."""

import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.planning import compare_records
from sunzi.planning.record_comparison import AVERAGE, OURS, best_first

ATTRIBUTES = {"a": ["0", "1"], "b": ["0", "1", "2"], "c": ["0", "1"]}
WANTED = [("a", "b"), ("c",)]


def ordered(epsilon):
    return sunzi.make_ordered(0, 64, 64, epsilon)


def tables(epsilon):
    return sunzi.make_tables(ATTRIBUTES, WANTED, epsilon)


def test_every_setting_question_and_method_has_a_row():
    rows = list(compare_records(ordered, [1, "5/2"], [100, 400]))
    assert len(rows) == 2 * 2 * 2 * 4
    assert [row.columns()["epsilon"] for row in rows[::16]] == [1, 2.5]
    for row in rows:
        assert row.is_ours == (row.method == OURS) == (row.variance == row.our_variance)
        assert row.columns()["standard_error"] == row.variance**0.5
    (bins,) = {row.variance for row in rows[:16] if row.is_ours and row.question == "a single bin" and row.users == 400}
    assert bins == pytest.approx(ordered(1).expected_mse(400))


def test_users_needed_give_the_error_of_the_plan():
    few = [row for row in compare_records(tables, [1], [10_000], WANTED) if not row.is_ours]
    for row in few:
        (same,) = (
            other
            for other in compare_records(tables, [1], [row.users_needed], WANTED)
            if (other.question, other.method) == (row.question, row.method)
        )
        assert same.variance == pytest.approx(row.our_variance, rel=1e-3)


def test_tables_are_the_wanted_ones_and_in_order():
    rows = best_first(list(compare_records(tables, [1], [100], WANTED)))
    assert list(dict.fromkeys(row.question for row in rows)) == ["a × b", "c", AVERAGE]
    ours = [row.variance for row in rows if row.is_ours]
    assert ours[2] == pytest.approx((ours[0] + ours[1]) / 2)
    assert rows[8].is_ours, "the plan makes it as small as possible"
    assert [row.variance for row in rows[:4]] == sorted(row.variance for row in rows[:4])


def test_progress_and_wrong_users():
    seen = []
    assert (
        len(list(compare_records(lambda epsilon: sunzi.make_number(0, 1, epsilon), [1, 2], [5], None, seen.append)))
        == 20
    )
    assert seen == [0.5, 1]
    with pytest.raises(ParameterError, match="users"):
        list(compare_records(ordered, [1], [0]))
