"""Parquet files on one machine: tallies do not depend on files, row groups, partitions or processes."""

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sunzi
from sunzi.client.errors import ParameterError, PlanError
from sunzi.tables import deduplication, group_counts, parquet_files, tally
from sunzi.tables.group_counts import TallyRequest

PLAN = sunzi.make_plan("grr", 60, 1)
OTHER = sunzi.make_plan("grr", 60, 2)
REPORTS = PLAN.client(seed=1).reports([index % 60 for index in range(200)])


def sift_by(source, plan, by=(), report_column="report", id_column=None, *, jobs=None, progress=None):
    return parquet_files.sift_parquet(source, plan, by, report_column, id_column, jobs=jobs, progress=progress)


def write(path: Path, columns: dict, rows_a_group: int = 1 << 20, schema: pa.Schema | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns, schema=schema)
    pq.write_table(table, path, row_group_size=rows_a_group)
    return path


CELLS = [*REPORTS[:60], PLAN.client(seed=3).report_batch([5, 6]), None, b"", b"\xff", b"\x01\x02"]
KINDS = {"id": pa.string(), "report": pa.binary(), "country": pa.string(), "day": pa.int32()}


def rows_of_every_kind(count, seed=4):
    """Repeated ids, missing ids, good and bad cells, and two group columns with nulls."""
    generator = random.Random(seed)
    ids = [None, *map(str, range(count // 3))]
    columns = (ids, CELLS, ["DE", "FR", None], [1, 2, None])
    return [tuple(map(generator.choice, columns)) for _ in range(count)]


def table_of(rows):
    columns = [[row[place] for row in rows] for place in range(len(KINDS))]
    return pa.table({name: pa.array(some, KINDS[name]) for name, some in zip(KINDS, columns, strict=True)})


def null_first(value):
    return () if value is None else (value,)


def slowly(rows, by, with_id):
    """The tally, the bad cells and the repeated rows of every group, in plain Python."""
    good = {cell for cell in CELLS if cell in REPORTS or len(cell or b"") > 10}
    rows = [(row[0], row[1], tuple(row[list(KINDS).index(name)] for name in by)) for row in rows]
    kept = [(cell, group, 1, not with_id) for identifier, cell, group in rows if not with_id or identifier is None]
    for one in {identifier for identifier, *_ in rows if with_id and identifier is not None}:
        copies = [(cell, group) for identifier, cell, group in rows if identifier == one]
        cell, group = min(copies, key=lambda row: (row[0] not in good, *map(null_first, (row[0], *row[1]))))
        kept.append((cell, group, len(copies), True))
    found = {}
    for cell, group, copies, named in kept:
        counts = found.setdefault(group, [[], 0, 0])
        counts[2] += copies - 1
        if named and cell in good:
            counts[0].append(cell)
        else:
            counts[1] += 1
    return {key: (PLAN.tally(cells), bad, repeated) for key, (cells, bad, repeated) in found.items()}


def summary(found):
    return {key: (sifted.tally, sifted.refused.total, sifted.repeated) for key, sifted in found.items()}


TERMS = [((), None), ((), "id"), (("country",), None), (("day", "country"), "id")]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "id_column"), TERMS)
@pytest.mark.parametrize("rows_a_group", [7, 100, 1000])
def test_row_groups_and_files_change_nothing(tmp_path, by, id_column, rows_a_group, monkeypatch):
    monkeypatch.setattr(deduplication, "_BYTES_PER_PARTITION", 5000)
    monkeypatch.setattr(parquet_files, "_LEAST_ROWS", 20)
    rows = rows_of_every_kind(150)
    one = write(tmp_path / "one.parquet", table_of(rows), rows_a_group)
    expected = slowly(rows, by, id_column is not None)
    found = sift_by(one, PLAN, by, id_column=id_column, jobs=1)
    assert summary(found) == expected
    many = [
        write(tmp_path / f"many/{at}.parquet", table_of(rows[at : at + 45]), rows_a_group) for at in range(0, 150, 45)
    ]
    for source in (many, many[::-1], tmp_path / "many", str(tmp_path / "many")):
        assert sift_by(source, PLAN, by, id_column=id_column, jobs=1) == found


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_rows_in_any_order_in_any_number_of_partitions(data, tmp_path_factory, monkeypatch):
    rows = data.draw(st.lists(st.sampled_from(rows_of_every_kind(60)), max_size=30))
    by, id_column = data.draw(st.sampled_from(TERMS))
    monkeypatch.setattr(deduplication, "_BYTES_PER_PARTITION", data.draw(st.sampled_from([100, 1000, 10**9])))
    monkeypatch.setattr(parquet_files, "_LEAST_ROWS", data.draw(st.sampled_from([1, 10, 100])))
    folder = tmp_path_factory.mktemp("any")
    one = write(folder / "a.parquet", table_of(rows), data.draw(st.integers(1, 30)))
    found = sift_by(one, PLAN, by, id_column=id_column, jobs=1)
    assert summary(found) == slowly(rows, by, id_column is not None)
    other = write(folder / "b.parquet", table_of(data.draw(st.permutations(rows))), data.draw(st.integers(1, 30)))
    assert sift_by(other, PLAN, by, id_column=id_column, jobs=1) == found


def test_small_row_groups_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_files, "_LEAST_ROWS", 25)
    path = write(tmp_path / "one.parquet", table_of(rows_of_every_kind(95)), 10)
    pieces = parquet_files.split_into_pieces(TallyRequest(PLAN, "report"), parquet_files.open_dataset(path))
    assert [parquet_files.number_of_rows(piece) for piece in pieces] == [30, 30, 30, 5]


def test_a_folders_name_goes_before_a_column_inside(tmp_path):
    columns = {"report": pa.array(REPORTS[:50]), "country": pa.array(["DE"] * 50)}
    write(tmp_path / "t/country=FR/a.parquet", columns)
    assert tally(tmp_path / "t", PLAN, ["country"], jobs=1) == {("FR",): PLAN.tally(REPORTS[:50])}


@pytest.mark.slow
def test_processes_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(deduplication, "_BYTES_PER_PARTITION", 5000)
    monkeypatch.setattr(parquet_files, "_LEAST_ROWS", 50)
    rows = rows_of_every_kind(300)
    path = write(tmp_path / "one.parquet", table_of(rows), 50)
    fractions = []
    terms = {"by": ("country", "day"), "id_column": "id"}
    found = sift_by(path, PLAN, **terms, jobs=2, progress=fractions.append)
    assert found == sift_by(path, PLAN, **terms, jobs=1)
    assert summary(found) == slowly(rows, terms["by"], True)
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)


@pytest.mark.slow
def test_errors_come_back_from_processes(tmp_path):
    paths = [
        write(
            tmp_path / f"{n}.parquet", {"report": pa.array(REPORTS), "g": pa.array([2**50] * 200).cast("timestamp[ms]")}
        )
        for n in range(3)
    ]
    with pytest.raises(ParameterError, match="the column 'g' holds a value that cannot name a group"):
        tally(paths, PLAN, ["g"], jobs=2)


@pytest.mark.parametrize("protocol", sunzi.catalogue())
@pytest.mark.parametrize("kind", ["binary", "large_binary", "dictionary", "view"])
def test_every_protocol(tmp_path, protocol, kind):
    plan = sunzi.make_plan(protocol, 60, 1)
    reports = plan.client(seed=9).reports(np.arange(150) % 60)
    column = pa.array(reports, pa.binary())
    kinds = {"dictionary": column.dictionary_encode(), "view": column.cast(pa.binary_view())}
    column = kinds[kind] if kind in kinds else column.cast(kind)
    path = write(tmp_path / "a.parquet", {"report": column, "id": [str(index) for index in range(150)]}, 40)
    expected = plan.tally(reports).to_bytes()
    assert tally(path, plan, jobs=1).to_bytes() == expected
    assert tally(path, plan, id_column="id", jobs=1).to_bytes() == expected


def test_folders_named_by_a_column(tmp_path):
    for day, start in (("2026-11-14", 0), ("2026-11-15", 50), ("__HIVE_DEFAULT_PARTITION__", 100)):
        write(tmp_path / f"t/day={day}/country=DE/a.parquet", {"report": pa.array(REPORTS[start : start + 50])})
    (tmp_path / "t/_SUCCESS").touch()
    found = tally(tmp_path / "t", PLAN, ["day", "country"], jobs=1)
    assert found == {
        ("2026-11-14", "DE"): PLAN.tally(REPORTS[:50]),
        ("2026-11-15", "DE"): PLAN.tally(REPORTS[50:100]),
        (None, "DE"): PLAN.tally(REPORTS[100:150]),
    }
    assert tally(tmp_path / "t", PLAN, jobs=1) == PLAN.tally(REPORTS[:150])


def test_several_folders_and_files(tmp_path):
    for name, start in (("a/day=1", 0), ("b/day=2", 50)):
        write(tmp_path / name / "x.parquet", {"report": pa.array(REPORTS[start : start + 50])})
    extra = write(tmp_path / "c" / "day=3" / "extra.parquet", {"report": pa.array(REPORTS[100:110])})
    found = tally([tmp_path / "a", tmp_path / "b", extra], PLAN, ["day"], jobs=1)
    assert {key: tally.reports for key, tally in found.items()} == {(1,): 50, (2,): 50, (3,): 10}


def test_a_file_that_is_named_twice_is_not_counted_twice(tmp_path):
    path = write(tmp_path / "t/a.parquet", {"report": pa.array(REPORTS)})
    (tmp_path / "link.parquet").symlink_to(path)
    for source in ([path, path], [path, tmp_path / "t"], [path, tmp_path / "link.parquet"]):
        with pytest.raises(ParameterError, match="is named twice and would be counted twice"):
            tally(source, PLAN, jobs=1)


def test_tables_without_rows(tmp_path):
    empty = pa.table(
        {"report": pa.array([], pa.binary()), "id": pa.array([], pa.int64()), "g": pa.array([], pa.string())}
    )
    path = write(tmp_path / "t/empty.parquet", empty)
    for id_column in (None, "id"):
        assert tally(path, PLAN, id_column=id_column, jobs=2) == PLAN.empty_tally()
        assert tally(path, PLAN, ["g"], id_column=id_column, jobs=2) == {}
    with pq.ParquetWriter(tmp_path / "t/groups.parquet", empty.schema) as writer:
        writer.write_table(empty)
        writer.write_table(pa.table({"report": REPORTS[:3], "id": [1, 2, 3], "g": ["a"] * 3}))
        writer.write_table(empty)
    assert tally(tmp_path / "t", PLAN, id_column="id", jobs=1) == PLAN.tally(REPORTS[:3])


@pytest.mark.parametrize("name", ["a.b", ".x", "[0]", "", '`ü"', "../x", "x"])
def test_names_are_taken_as_they_are(tmp_path, name):
    columns = {name: pa.array(["b", "a", "b"]), "y": [1, 2, 3], "a": [{"b": 1}] * 3}
    path = write(tmp_path / "a.parquet", {**columns, "an.id": [1, 1, 2], "re.port": REPORTS[:1] * 3})
    found = sift_by(path, PLAN, [name], "re.port", "an.id", jobs=1)
    assert {key: (sifted.tally.reports, sifted.repeated) for key, sifted in found.items()} == {
        ("a",): (1, 1),
        ("b",): (1, 0),
    }


def test_names_that_are_not_there_are_named(tmp_path):
    path = write(tmp_path / "a.parquet", {"report": pa.array(REPORTS), "day": [1] * 200, "sunzi_bad": [1] * 200})
    cases = [
        ({"report_column": "rapport"}, "there is no column 'rapport'; the columns are 'report', 'day', 'sunzi_bad'"),
        ({"id_column": "who"}, "there is no column 'who'"),
        ({"by": ["country"]}, "there is no column 'country'"),
        ({"by": ["day", "day"]}, "the column 'day' is named twice"),
        ({"by": ["report"]}, "the column 'report' is named twice"),
        ({"by": "day"}, r"write \['day'\]"),
        ({"by": ["sunzi_bad"]}, "names that begin with 'sunzi_' are reserved"),
        ({"jobs": 0}, "jobs must be at least 1, got 0"),
        ({"jobs": -3}, "jobs must be at least 1, got -3"),
    ]
    for options, message in cases:
        with pytest.raises(ParameterError, match=message):
            sift_by(path, PLAN, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"report": pa.array(["a"])}, "the column 'report' must hold binary values, it holds string"),
        ({"report": pa.array([1])}, "the column 'report' must hold binary values, it holds int64"),
        ({"report": pa.array([[b"a"]])}, "the column 'report' must hold binary values, it holds list"),
        ({"report": pa.array([[b"a"]]).slice(1)}, "the column 'report' must hold binary values, it holds list"),
        ({"id": pa.array([1.5])}, "the column 'id' must hold bytes, texts or integers, it holds double"),
        ({"id": pa.array([True])}, "the column 'id' must hold bytes, texts or integers, it holds bool"),
        ({"id": pa.array([[1]])}, "the column 'id' must hold bytes, texts or integers, it holds list"),
        ({"g": pa.array([[1]])}, "the column 'g' must hold values that can be compared and sorted, it holds list"),
        ({"g": pa.array([{"a": 1}])}, "the column 'g' must hold values that can be compared and sorted, it holds"),
        ({"g": pa.array(np.ones(1, dtype=np.float16))}, "the column 'g' must hold .*, it holds halffloat"),
    ],
)
def test_types_that_do_not_serve_are_refused_before_any_work(tmp_path, columns, message):
    rows = len(next(iter(columns.values())))
    whole = {"report": pa.array(REPORTS[:rows]), "id": pa.array(range(rows)), "g": pa.array(range(rows))} | columns
    path = write(tmp_path / "a.parquet", whole)
    with pytest.raises(ParameterError, match=message):
        sift_by(path, PLAN, ["g"], id_column="id")


def test_files_of_different_types(tmp_path):
    write(tmp_path / "t/a.parquet", {"report": pa.array(REPORTS)})
    write(tmp_path / "t/b.parquet", {"report": pa.array([1, 2, 3])})
    with pytest.raises(ParameterError, match=r"b\.parquet"):
        tally(tmp_path / "t", PLAN, jobs=1)
    write(tmp_path / "u/g=1/a.parquet", {"report": pa.array(REPORTS)})
    write(tmp_path / "v/g=x/a.parquet", {"report": pa.array(REPORTS)})
    with pytest.raises(ParameterError, match=r"the table cannot be read: .*g"):
        tally([tmp_path / "u", tmp_path / "v"], PLAN, jobs=1)


def test_files_that_lack_a_column_or_have_a_narrower_one(tmp_path):
    """The first file does not determine the types, and columns that are not requested may have any type."""
    write(tmp_path / "t/a.parquet", {"report": pa.array(REPORTS[:20]), "besides": pa.array(["x"] * 20)})
    write(tmp_path / "t/b.parquet", {"report": pa.array(REPORTS[20:30]), "g": pa.array([None] * 10, pa.null())})
    write(tmp_path / "t/c.parquet", {"report": pa.array(REPORTS[30:40]), "g": pa.array([7] * 10, pa.int8())})
    wide = {"report": pa.array(REPORTS[40:50], pa.large_binary()), "g": pa.array([7] * 10, pa.int64())}
    write(tmp_path / "t/d.parquet", wide | {"besides": pa.array([1] * 10)})
    found = tally(tmp_path / "t", PLAN, ["g"], jobs=1)
    assert found == {(None,): PLAN.tally(REPORTS[:30]), (7,): PLAN.tally(REPORTS[30:50])}


def test_two_columns_of_one_name(tmp_path):
    table = pa.table([pa.array(REPORTS), pa.array(REPORTS)], names=["report", "report"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ParameterError, match="the table cannot be read"):
        tally(tmp_path / "a.parquet", PLAN)


def test_files_that_are_no_parquet(tmp_path):
    good = write(tmp_path / "t/good.parquet", {"report": pa.array(REPORTS)})
    data = good.read_bytes()
    for name, bad in {"cut": data[: len(data) // 2], "other": b"id,report\n1,00\n" * 20, "empty": b""}.items():
        path = tmp_path / "t" / f"{name}.parquet"
        path.write_bytes(bad)
        for source in (path, [good, path], tmp_path / "t"):
            with pytest.raises(ParameterError, match=f"the table cannot be read: .*{name}"):
                tally(source, PLAN, jobs=1)
        path.unlink()
    damaged = tmp_path / "t/damaged.parquet"
    damaged.write_bytes(data[:4] + bytes(100) + data[104:])
    for id_column in (None, "report"):
        with pytest.raises(ParameterError):
            tally(damaged, PLAN, id_column=id_column, jobs=1)


@pytest.mark.slow
def test_processes_name_a_damaged_file(tmp_path):
    good = write(tmp_path / "t/good.parquet", {"report": pa.array(REPORTS)})
    data, damaged = good.read_bytes(), tmp_path / "t/damaged.parquet"
    damaged.write_bytes(data[:4] + bytes(100) + data[104:])
    with pytest.raises(ParameterError, match=r"damaged\.parquet.*the table cannot be read|cannot be read.*damaged"):
        tally([good, damaged], PLAN, jobs=2)


def test_places_with_nothing(tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(ParameterError, match="there is no Parquet file in"):
        tally(tmp_path / "none", PLAN)
    with pytest.raises(ParameterError, match=r"there is no file or folder .*gone"):
        tally(tmp_path / "gone", PLAN)
    with pytest.raises(ParameterError, match="the list is empty"):
        tally([], PLAN)


def schema_that_says(plan):
    return pa.schema([pa.field("report", pa.binary(), metadata={"sunzi_plan": plan.fingerprint})])


def spark_schema_that_says(plan):
    """The metadata that Spark writes for a column with metadata."""
    field = {"name": "report", "type": "binary", "nullable": True, "metadata": {"sunzi_plan": plan.fingerprint}}
    written = json.dumps({"type": "struct", "fields": [field]})
    return pa.schema([("report", pa.binary())], metadata={"org.apache.spark.sql.parquet.row.metadata": written})


@pytest.mark.parametrize("schema_of", [schema_that_says, spark_schema_that_says])
def test_a_column_of_another_plan_is_refused(tmp_path, schema_of):
    columns = {"report": pa.array(REPORTS)}
    mine = write(tmp_path / "a-mine.parquet", columns, schema=schema_of(PLAN))
    other = write(tmp_path / "b-other.parquet", columns, schema=schema_of(OTHER))
    silent = write(tmp_path / "c-silent.parquet", columns)
    assert tally([mine, silent], PLAN, jobs=1).reports == 400
    for source in (other, [mine, other], [silent, other], tmp_path):  # even if it is not the first one
        with pytest.raises(PlanError, match=r"b-other\.parquet: the column 'report' holds reports of the plan"):
            tally(source, PLAN, jobs=1)


def test_metadata_that_spark_did_not_write(tmp_path):
    schema = pa.schema([("report", pa.binary())], metadata={"org.apache.spark.sql.parquet.row.metadata": "{"})
    path = write(tmp_path / "a.parquet", {"report": pa.array(REPORTS)}, schema=schema)
    with pytest.raises(ParameterError, match="the table cannot be read"):
        tally(path, PLAN)


def test_a_file_without_a_group_column_has_nulls_there(tmp_path):
    write(tmp_path / "a.parquet", {"report": pa.array(REPORTS[:50]), "g": ["x"] * 50})
    write(tmp_path / "b.parquet", {"report": pa.array(REPORTS[50:])})
    found = tally(tmp_path, PLAN, ["g"], jobs=1)
    assert {key: tally.reports for key, tally in found.items()} == {("x",): 50, (None,): 150}


def test_nothing_stays_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(parquet_files.tempfile, "tempdir", None)
    (tmp_path / "tmp").mkdir()
    good = write(tmp_path / "a.parquet", {"report": pa.array(REPORTS), "id": range(200)}, 20)
    assert tally(good, PLAN, id_column="id", jobs=2).reports == 200

    def stop(_):
        raise KeyboardInterrupt

    for jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            sift_by(good, PLAN, id_column="id", jobs=jobs, progress=stop)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_large_row_group_is_counted_in_pieces(tmp_path, monkeypatch):
    """Each piece is small, so memory is bounded."""
    monkeypatch.setattr(group_counts, "_MOST_BYTES", 1 << 14)
    pieces = []
    original = group_counts.split_by_group
    monkeypatch.setattr(
        group_counts, "split_by_group", lambda table, *terms: pieces.append(table.nbytes) or original(table, *terms)
    )
    plan = sunzi.make_plan("rappor", 4000, 1)
    reports = plan.client(seed=1).reports([1, 2, 3, 4] * 100)
    path = write(tmp_path / "a.parquet", {"report": pa.array(reports)})
    assert tally(path, plan, jobs=1) == plan.tally(reports)
    assert len(pieces) > 10
    assert max(pieces) <= 1 << 14
