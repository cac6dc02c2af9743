"""Parquet files of reports with public columns."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.tables import report_files
from sunzi.tables.column_rows import Rows
from sunzi.tables.report_files import check_public, write_reports

PLAN = sunzi.make_plan("grr", ["no", "yes"], 32)  # noise is negligible


def pieces():
    """Rows of two pieces; the last of each is left out."""
    for texts, numbers in ((["DE", None, "FR"], [1, 2, 3]), (["FR", 5, "DE"], [4, 5, 6])):
        country = Rows(np.arange(3), texts)
        release = Rows(np.array(numbers), None, np.array([True, False, False]))
        yield np.array([1, 0, -3]), Rows(np.zeros(3, dtype=int), [""], public=(country, release))


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_reports_lie_beside_their_public_values(monkeypatch, size, rows_at_once):
    monkeypatch.setattr(report_files, "ROWS_AT_ONCE", rows_at_once)
    stream = io.BytesIO()
    write_reports(stream, PLAN.client(), ["country", "release"], pieces(), size)
    table = pq.read_table(stream)
    assert table.column("country").to_pylist() == ["DE", None, "FR", "5"]
    assert table.column("release").to_pylist() == [None, "2", None, "5"]
    assert [PLAN.estimate(PLAN.tally(cell)).frequencies.argmax() for cell in table.column("report").to_pylist()] == [
        *(1, 0),
        *(1, 0),
    ]
    assert table.schema.field("report").metadata[b"sunzi_plan"].decode() == PLAN.fingerprint


@pytest.mark.parametrize(
    ("names", "message"), [(["a", "a"], "twice"), (["report"], "reserved"), (["sunzi_x"], "reserved")]
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(ParameterError, match=message):
        check_public(names)
