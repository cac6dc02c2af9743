"""Result tables as files: the bytes of every format."""

import csv
import io
import json

import numpy as np
import pytest
from pyarrow import parquet

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.tables.writers import HistogramTable, histogram_table, records_as

RECORDS = [{"label": "é", "count": 1.5}, {"label": 'a "b",\nc', "count": None}]


def test_records_as_text():
    assert records_as("csv", RECORDS).decode() == 'label,count\né,1.5\n"a ""b"",\nc",\n'
    written = '[\n {"label": "é", "count": 1.5},\n {"label": "a \\"b\\",\\nc", "count": null}\n]\n'
    assert records_as("json", RECORDS).decode() == written
    assert records_as("json", []) == b"[]\n"


def test_records_as_parquet():
    assert parquet.read_table(io.BytesIO(records_as("parquet", RECORDS))).to_pylist() == RECORDS


def test_json_has_no_nan():
    with pytest.raises(ValueError, match="JSON"):
        records_as("json", [{"count": float("nan")}])


def written(table, form):
    stream = io.BytesIO()
    table.write(form, stream)
    return stream.getvalue()


TABLE = HistogramTable(np.array([1, 0]), {"label": ["é", "b"], "frequency": [0.75, 0.25]}, {"reports": 4, "plan": "ü"})


def test_histograms_carry_notes():
    text = '{\n "reports": 4,\n "plan": "ü",\n "histogram": [\n'
    text += '  {"label": "é", "frequency": 0.75},\n  {"label": "b", "frequency": 0.25}\n ]\n}\n'
    assert written(TABLE, "json").decode() == text
    assert written(TABLE, "csv").decode() == "label,frequency\né,0.75\nb,0.25\n"
    found = parquet.read_table(io.BytesIO(written(TABLE, "parquet")))
    assert found.to_pydict() == TABLE.columns
    assert found.schema.metadata == {b"reports": b"4", b"plan": "ü".encode()}


def test_a_histogram_without_rows():
    empty = HistogramTable(np.empty(0, dtype=np.int64), {"label": [], "frequency": []}, {"reports": 4})
    assert json.loads(written(empty, "json")) == {"reports": 4, "histogram": []}
    assert written(empty, "csv") == b"label,frequency\n"


@pytest.mark.parametrize("write", [lambda form: records_as(form, RECORDS), lambda form: written(TABLE, form)])
def test_unknown_formats_are_refused(write):
    with pytest.raises(ParameterError, match="format must be one of csv, json, parquet; got 'xls'"):
        write("xls")


def test_rows_of_a_histogram():
    plan = sunzi.make_plan("grr", ["a", "b", "c"], 3)
    estimate = plan.estimate(plan.simulate(["b"] * 500 + ["c"] * 300, seed=1))
    table = histogram_table(estimate)
    assert table.columns["label"] == ["a", "b", "c"]
    assert len(table) == 3
    assert histogram_table(estimate, top=2).columns["label"] == ["b", "c"]
    among = histogram_table(estimate, top=1, among=np.array([0, 2]))
    assert among.columns["label"] == ["c"]
    assert among.indices.tolist() == [2]
    simplex = estimate.postprocess("simplex")
    processed = histogram_table(estimate, processed=simplex, notes={"plan": "x"})
    assert processed.columns["frequency_simplex"] == simplex.frequencies.tolist()
    assert next(iter(processed.notes)) == "plan"


def test_a_spreadsheet_runs_no_label_of_a_csv_file():
    labels = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", "a=b", ""]
    written = records_as("csv", [{"label": label, "count": -1} for label in labels]).decode()
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    assert [row["label"] for row in rows] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "plain", "a=b", ""]
    assert {row["count"] for row in rows} == {"-1"}  # numbers stay numbers
