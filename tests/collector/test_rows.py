"""Rows of a damaged store are refused."""

import re

import numpy as np
import pytest

from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Contribution, Epoch
from sunzi.collector.rows import RowReader

ROWS = RowReader("store.db")
EPOCH = (1, "web", 2, 500, 10, 1.5, None)
CONTRIBUTION = (1, "partner", 10, None, "country=DE")


def test_rows_of_a_sound_store():
    assert ROWS.epoch(EPOCH) == Epoch(*EPOCH)
    assert ROWS.contribution(CONTRIBUTION) == Contribution(*CONTRIBUTION)
    assert ROWS.minute((60, 3)) == (60, 3)
    page = np.arange(4, dtype="<i8")
    np.testing.assert_array_equal(ROWS.pages({7: page.tobytes(), 2: bytes(32)}, 4), [page, 4 * [0]])
    assert ROWS.pages({}, 4).shape == (0, 4)


@pytest.mark.parametrize("column", range(7))
@pytest.mark.parametrize("value", ["Text", b"", -1, float("inf"), float("nan"), 1 << 70])
def test_a_wrong_cell_is_refused(column, value):
    with pytest.raises(StoreError, match=re.escape("store.db is damaged")):
        ROWS.epoch((*EPOCH[:column], value, *EPOCH[column + 1 :]))
    if column < len(CONTRIBUTION) and (column, value) != (1, "Text"):
        with pytest.raises(StoreError, match=re.escape("store.db is damaged")):
            ROWS.contribution((*CONTRIBUTION[:column], value, *CONTRIBUTION[column + 1 :]))


@pytest.mark.parametrize(
    "pages",
    [
        {0: b""},
        {0: bytes(31)},
        {0: bytes(40)},
        {0: "a" * 32},
        {0: None},
        {-1: bytes(32)},
        {0: np.array([0, 1, -5, 2], dtype="<i8").tobytes()},
    ],
)
def test_a_wrong_page_is_refused(pages):
    with pytest.raises(StoreError, match=re.escape("store.db is damaged")):
        ROWS.pages(pages, 4)


def test_a_sum_that_overflows_is_refused():
    largest = np.array([np.iinfo(np.int64).max])
    with pytest.raises(StoreError, match="a counter is -9223372036854775808"):
        ROWS.counts(largest + 1)
