"""The choice of columns, and Arrow arrays as rows."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from sunzi.client.errors import ParameterError
from sunzi.tables.column_rows import choose_columns, rows_of


def test_columns_are_chosen_by_name():
    assert choose_columns(["a", "b", "c"], "b", ["c", "a"]) == [1, 2, 0]
    assert choose_columns(["a"], None) == [0]
    assert choose_columns(["a", "b", "c"], None, ["c", "a"]) == [1, 2, 0], "the only one that is not public"


@pytest.mark.parametrize(
    ("names", "column", "public", "message"),
    [
        (["a", "b"], None, [], "the table has 2 columns; name one of them: 'a', 'b'"),
        (["a", "b", "c"], None, ["a"], "the table has 2 columns; name one of them: 'b', 'c'"),
        (["a", "b"], "x", [], "there is no column named 'x'"),
        (["a", "b"], "a", ["x"], "there is no column named 'x'; the columns are 'a', 'b'"),
        (["a", "b", "b"], "a", ["b"], "2 columns named 'b'"),
        (["a", "b"], "a", ["a"], "'a' holds the values to protect, so it cannot be public"),
    ],
)
def test_a_bad_choice_is_refused(names, column, public, message):
    with pytest.raises(ParameterError, match=message):
        choose_columns(names, column, public)


def test_public_columns_of_any_type_become_text():
    day = datetime.date(2026, 11, 16)
    public = [pa.array([day, None]), pa.array([True, False]), pa.array([1.5, 2]), pa.array([7, None])]
    (rows,) = rows_of([[pa.array(["x", "y"]), *public]])
    assert rows.value(1) == "y"
    assert [[column.value(row) for row in (0, 1)] for column in rows.public[:3]] == [
        ["2026-11-16", None],
        ["true", "false"],
        ["1.5", "2"],
    ]
    assert rows.public[3].codes.tolist()[0] == 7
    assert np.array_equal(rows.public[3].missing, [False, True])
