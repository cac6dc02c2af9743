"""One tally or one per group, and the handling of cells that are not reports."""

import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sunzi
import sunzi.tables
from sunzi.client.errors import ParameterError, ReportError
from sunzi.tables import BadReportsWarning, Sifted, sift, tally

PLAN = sunzi.make_plan("grr", 60, 1)
REPORTS = PLAN.client(seed=1).reports([index % 60 for index in range(200)])


@pytest.fixture
def damaged(tmp_path):
    cells = pa.array([*REPORTS, None, b"\xff", b"ab"], pa.binary())
    pq.write_table(pa.table({"report": cells, "g": [1] * 203}), tmp_path / "damaged.parquet")
    return tmp_path / "damaged.parquet"


@pytest.fixture
def empty(tmp_path):
    columns = {"report": pa.array([], pa.binary()), "g": pa.array([], pa.string())}
    pq.write_table(pa.table(columns), tmp_path / "empty.parquet")
    return tmp_path / "empty.parquet"


REASONS = "1 missing, 1 out of range .such as ff., 1 wrong length .such as 6162."


def test_bad_reports_warn_at_the_line_that_counts(damaged):
    message = f"3 cells hold no report of this plan, left out of the tally: {REASONS}"
    with pytest.warns(BadReportsWarning, match=message) as caught:
        assert tally(damaged, PLAN, jobs=1) == PLAN.tally(REPORTS)
    assert caught[0].filename == __file__
    with pytest.warns(BadReportsWarning, match="3 cells hold no report") as caught:
        assert tally(damaged, PLAN, ["g"], jobs=1) == {(1,): PLAN.tally(REPORTS)}
    assert caught[0].filename == __file__


@pytest.mark.parametrize("by", [(), ["g"]])
def test_bad_reports_fail(damaged, by):
    with pytest.raises(ReportError, match=f"3 cells hold no report of this plan: {REASONS}"):
        tally(damaged, PLAN, by, bad_reports="fail", jobs=1)


def test_bad_reports_must_be_warn_or_fail(damaged):
    with pytest.raises(ParameterError, match="bad_reports must be 'warn' or 'fail', got 'ignore'"):
        tally(damaged, PLAN, bad_reports="ignore")


def test_good_reports_do_not_warn(tmp_path):
    table = pa.table({"report": pa.array([*REPORTS, *REPORTS]), "id": [*range(200), *range(200)]})
    pq.write_table(table, tmp_path / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tally(tmp_path / "a.parquet", PLAN, id_column="id", bad_reports="fail", jobs=1)
    assert found == PLAN.tally(REPORTS)


def test_sift_counts_bad_cells_and_does_not_warn(damaged):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sift(damaged, PLAN, jobs=1)
        assert sift(damaged, PLAN, ["g"], jobs=1) == {(1,): found}
    assert found.tally == PLAN.tally(REPORTS)
    assert found.refused.counts == {"missing": 1, "out of range": 1, "wrong length": 1}


def test_no_rows_make_an_empty_tally_and_no_groups(empty):
    assert tally(empty, PLAN, jobs=1) == PLAN.empty_tally()
    assert sift(empty, PLAN, jobs=1) == Sifted(PLAN.empty_tally())
    assert tally(empty, PLAN, ["g"], jobs=1) == {}
    assert sift(empty, PLAN, ["g"], jobs=1) == {}


def test_files_may_come_from_a_generator(damaged):
    assert sift(damaged.parent.glob("*.parquet"), PLAN, jobs=1).tally == PLAN.tally(REPORTS)


@pytest.mark.parametrize("source", [None, 3, [3], b"reports", pa.table({"report": REPORTS})], ids=repr)
def test_other_sources_are_refused(source):
    with pytest.raises(ParameterError, match="must be a Parquet file, a folder, a list of them or a Spark data frame"):
        tally(source, PLAN)


def test_jobs_are_not_for_spark():
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(ParameterError, match="jobs=2 is for Parquet files"):
        tally(frame, PLAN, jobs=2)


def test_the_public_names():
    names = [
        "BadReportsWarning",
        "GroupEstimates",
        "Refused",
        "Sifted",
        "UnknownValuesWarning",
        "estimate_groups",
        "load_groups",
        "privatize",
        "save_groups",
        "sift",
        "sift_array",
        "tally",
    ]
    assert sunzi.tables.__all__ == sorted(names)
    assert [name for name in names if getattr(sunzi.tables, name).__name__ != name] == []
