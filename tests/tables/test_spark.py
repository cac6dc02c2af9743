"""On a real cluster: tallies are bit for bit those of one process, and a column of values becomes reports once."""

import datetime
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from report_tables import COUNTRIES, reports_of, table_of, write

import sunzi
from sunzi.client.errors import DomainError, ParameterError, PlanError, ReportError
from sunzi.tables import BadReportsWarning, UnknownValuesWarning, privatize, sift, tally
from sunzi.tables.spark_session import read_parquet

pytestmark = pytest.mark.slow

USERS = 3000
ROWS = 400  # values to be written as reports


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("ss-compact", 60, 1)


@pytest.fixture(scope="module")
def reports(plan):
    return reports_of(plan, USERS)


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_equal_to_the_local_tally_for_every_protocol(spark, tmp_path, name):
    plan = sunzi.make_plan(name, 60, 1)
    reports = reports_of(plan, USERS)
    df = spark.read.parquet(write(table_of(reports), tmp_path / "reports"))
    assert tally(df, plan).to_bytes() == plan.tally(reports).to_bytes()


def test_a_large_domain_with_a_sparse_tally(spark, tmp_path):
    plan = sunzi.make_plan("ss-compact", 22_000, 2)
    reports = reports_of(plan, 200)
    df = spark.read.parquet(write(table_of(reports), tmp_path / "reports"))
    assert tally(df, plan).to_bytes() == plan.tally(reports).to_bytes()


def test_one_tally_a_group_in_one_pass(spark, tmp_path, plan, reports):
    df = spark.read.parquet(write(table_of(reports), tmp_path / "reports"))
    found = tally(df, plan, ["country", "version"])
    assert set(found) == {(country, version) for country in COUNTRIES for version in range(4)}
    for (country, version), counted in found.items():
        rows = [row for row in range(USERS) if (COUNTRIES[row % 3], row % 4) == (country, version)]
        assert counted.to_bytes() == plan.tally([reports[row] for row in rows]).to_bytes()


def test_each_id_counts_once(spark, tmp_path, plan, reports):
    table = table_of(reports)
    repeated = pa.concat_tables([table, table.slice(0, 700), table.slice(300, 900), table.slice(0, 700)])
    folder = write(repeated, tmp_path / "reports", files=5)
    found = sift(spark.read.parquet(folder), plan, (), "report", "id")
    assert found.tally.to_bytes() == plan.tally(reports).to_bytes()
    assert (found.repeated, found.refused.total) == (2300, 0)
    without = tally(spark.read.parquet(folder), plan)
    assert without.reports == USERS + 2300


def test_the_same_as_one_machine_for_cells_of_every_kind(spark, tmp_path, plan, reports):
    """Nulls, truncated and overlong cells, values out of range, batches, another plan's batches, null ids and
    conflicts.
    """
    other = sunzi.make_plan("ss-compact", 60, 2)
    strange = [
        *(None, b"", reports[0] + b"\x00", reports[0][:-1], b"\xff" * len(reports[0])),
        *(plan.client(seed=1).report_batch(range(50)), other.client(seed=1).report_batch(range(50))),
        plan.client(seed=1).report_batch(range(50))[:-1] + b"\x00",
    ]
    more = table_of(strange * 2, id=pa.array([None, *(bytes([number] * 16) for number in range(2 * len(strange) - 1))]))
    cut = table_of([report[:-1] for report in reports[:40]])  # with the ids of good reports
    swapped = table_of(reports[1:41])  # other bytes with the same ids
    folder = write(pa.concat_tables([table_of(reports), more, cut, swapped]), tmp_path / "reports", files=4)
    df = spark.read.parquet(folder)
    for by in ((), ("country",), ("version", "country")):
        for identifier in (None, "id"):
            found = sift(df, plan, by, "report", identifier)
            assert found == sift(folder, plan, by, "report", identifier, jobs=1)
    total = sift(df, plan, (), "report", "id")
    assert total.tally.reports == USERS + 50 * 2
    assert set(total.refused.counts) == {
        *("missing", "wrong length", "out of range", "malformed", "of another plan", "without an id")
    }


def test_bad_cells_are_reported_or_fail_the_job(spark, tmp_path, plan, reports):
    cells = [*reports[:100], None, b"cut"]
    df = spark.read.parquet(write(table_of(cells), tmp_path / "reports"))
    with pytest.warns(BadReportsWarning, match=r"2 cells hold .*: 1 missing, 1 wrong length \(such as 637574\)"):
        assert tally(df, plan) == plan.tally(reports[:100])
    with pytest.raises(ReportError, match="1 missing, 1 wrong length"):
        tally(df, plan, bad_reports="fail")
    with pytest.raises(ParameterError, match="'warn' or 'fail', got 'drop'"):
        tally(df, plan, bad_reports="drop")


def test_empty_and_skewed_partitions(spark, plan, reports):
    table = table_of(reports)
    rows = spark.createDataFrame(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BadReportsWarning)
        assert tally(rows.limit(0), plan) == plan.empty_tally()
        assert tally(rows.limit(0), plan, ["country"]) == {}
        assert tally(rows.repartition(1), plan) == plan.tally(reports)
        # One partition has all rows of one country, and other partitions are empty.
        assert tally(rows.repartition(20, "country"), plan) == plan.tally(reports)


def test_one_large_file(spark, tmp_path, plan):
    """A million reports in a single row group: one task, several pieces."""
    few = reports_of(plan, 1000)
    df = spark.read.parquet(write(table_of(few * 1100), tmp_path / "reports", files=1, row_group_size=1 << 21))
    expected = plan.tally(few)
    found = tally(df, plan)
    assert found.reports == 1_100_000
    assert (found.counts == expected.counts * 1100).all()


def test_more_partitions_than_one_round_adds(spark, plan, reports):
    df = spark.createDataFrame(table_of(reports)).repartition(40)
    assert tally(df, plan) == plan.tally(reports)


def troubled_copy(df, attempts, trouble):
    """The same rows from tasks that record every attempt and whose first attempt fails half-way."""

    def troubled(batches):
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        (Path(attempts) / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            if context.attemptNumber() == 0:
                trouble(context.partitionId())
            yield batch.slice(batch.num_rows // 2)

    return df.mapInArrow(troubled, df.schema)


def test_tasks_that_fail_and_are_retried_change_nothing(spark, tmp_path, plan, reports):
    def fail(partition):
        raise OSError(f"partition {partition} fails at first")

    df = troubled_copy(spark.createDataFrame(table_of(reports)).repartition(4), str(tmp_path), fail)
    found = tally(df, plan, ["country"], id_column="id")
    assert sum(found.values()).to_bytes() == plan.tally(reports).to_bytes()
    assert {f"{partition}-{attempt}" for partition in range(4) for attempt in (0, 1)} <= _names(tmp_path)


def test_tasks_that_run_twice_by_speculation_change_nothing(spark, tmp_path, plan, reports):
    attempts = str(tmp_path)

    def dawdle(partition):
        import time
        from pathlib import Path

        until = time.monotonic() + 120
        while partition == 0 and not (Path(attempts) / "0-1").exists() and time.monotonic() < until:
            time.sleep(0.1)

    df = troubled_copy(spark.createDataFrame(table_of(reports)).repartition(8), attempts, dawdle)
    assert tally(df, plan).to_bytes() == plan.tally(reports).to_bytes()
    assert {"0-0", "0-1"} <= _names(tmp_path)


def _names(folder):
    return {path.name for path in folder.iterdir()}


def test_the_wrong_plan_is_refused(spark, tmp_path, plan, reports):
    metadata = {"sunzi_plan": plan.fingerprint}
    df = spark.read.parquet(write(table_of(reports[:10]), tmp_path / "reports")).withMetadata("report", metadata)
    assert tally(df, plan).reports == 10
    with pytest.raises(PlanError, match=f"of the plan {plan.fingerprint[:16]}…, not of"):
        tally(df, sunzi.make_plan("ss-compact", 60, 2))
    wider = sunzi.make_plan("oue", 60, 1)
    plain = df.withMetadata("report", {})
    with pytest.warns(BadReportsWarning, match="10 wrong length"):
        assert tally(plain, wider) == wider.empty_tally()


def test_a_folder_is_counted_once_however_it_is_spelled(spark, tmp_path, plan, reports):
    folder = write(table_of(reports), tmp_path / "reports")
    other = write(table_of(reports), tmp_path / "reports-of-others")
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    for spelled in (folder, f"{folder}/", f"file://{folder}", f"{folder[:-1]}?", f"{folder}/*.parquet", str(linked)):
        with pytest.raises(ParameterError, match=r"reports.* would be counted twice, since file:/.*reports"):
            read_parquet(spark, [folder, spelled])
    assert tally(read_parquet(spark, [folder, f"{other}/*"]), plan).reports == 2 * len(reports)


def test_a_folders_name_goes_before_a_column_inside(spark, tmp_path, plan, reports):
    write(table_of(reports[:90]), tmp_path / "t" / "country=ES", files=1)
    found = tally(spark.read.parquet(str(tmp_path / "t")), plan, ["country"])
    assert found == {("ES",): plan.tally(reports[:90])}


def test_mistakes_are_named(spark, plan, reports):
    df = spark.createDataFrame(table_of(reports[:10]))
    with pytest.raises(ParameterError, match="no column 'reports'; the columns are 'report', 'id', 'country'"):
        tally(df, plan, report_column="reports")
    with pytest.raises(ParameterError, match="no column 'uid'"):
        tally(df, plan, id_column="uid")
    with pytest.raises(ParameterError, match="'country' must hold binary values, it holds string"):
        tally(df, plan, report_column="country")
    with pytest.raises(ParameterError, match=r"write \['country'\]"):
        tally(df, plan, "country")
    with pytest.raises(ParameterError, match="'id' is named twice"):
        tally(df, plan, ["id"], id_column="id")


def test_kinds_that_cannot_serve_are_named(spark, plan, reports):
    table = (
        table_of(reports[:10]).append_column("list", pa.array([[1]] * 10)).append_column("share", pa.array([0.5] * 10))
    )
    df = spark.createDataFrame(table)
    with pytest.raises(ParameterError, match="'list' must hold values that can be compared and sorted, it holds array"):
        tally(df, plan, ["list"])
    with pytest.raises(ParameterError, match="'share' must hold bytes, texts or integers, it holds double"):
        tally(df, plan, id_column="share")


def test_columns_of_one_name(spark, plan, reports):
    df = spark.createDataFrame(table_of(reports[:90]))
    twice = df.select("report", "id", "country", "version", "version")
    assert tally(twice, plan, id_column="id") == plan.tally(reports[:90])
    with pytest.raises(ParameterError, match="there are 2 columns 'version'; rename all but one"):
        tally(twice, plan, ["version"])


def test_groups_of_all_kinds_are_those_of_one_machine(spark, tmp_path, plan, reports):
    """Days, times in an hour that occurs twice, nan, zeros of either sign, and bytes; with conflicting ids."""
    count = 120
    moments = [datetime.datetime(2026, 10, 25, row % 3, 30, tzinfo=datetime.UTC) for row in range(count)]
    table = table_of(
        reports[:count],
        day=pa.array([datetime.date(2026, 11, 1 + row % 5) for row in range(count)]),
        moment=pa.array(moments, pa.timestamp("us", "Europe/Berlin")),
        share=pa.array([(float("nan"), 0.0, -0.0, 0.5, None)[row % 5] for row in range(count)]),
        digest=pa.array([bytes([row % 7]) for row in range(count)], pa.binary()),
    )
    conflicts = table.slice(0, 40).set_column(0, "report", table.column("report").slice(40, 40))
    folder = write(pa.concat_tables([table, conflicts]), tmp_path / "reports")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    df = spark.read.parquet(folder)
    try:
        for by in (["day"], ["moment"], ["share"], ["digest", "day"]):
            # nan differs from itself, so groups are compared as text.
            found, expected = (
                sift(df, plan, by, "report", "id"),
                sift(folder, plan, by, "report", "id", jobs=1),
            )
            assert {repr(key): sifted for key, sifted in found.items()} == {
                repr(key): sifted for key, sifted in expected.items()
            }
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_names_with_dots_and_quotes(spark, plan, reports):
    table = table_of(reports[:90]).rename_columns(["a.report", "the `id`", "where.from", "version"])
    df = spark.createDataFrame(table)
    found = tally(df, plan, ["where.from"], "a.report", "the `id`")
    assert sum(found.values()) == plan.tally(reports[:90])
    assert set(found) == {("DE",), ("FR",), (None,)}


@pytest.fixture
def values(spark):
    """The same value for all users, in 8 partitions, with a row number."""
    return spark.range(ROWS, numPartitions=8).selectExpr("id AS `row.number`", "3 AS value")


def test_it_writes_once_and_returns_what_it_wrote(spark, tmp_path, values):
    plan = sunzi.make_plan("oue", 200, 1)
    written = privatize(values, plan, "value", str(tmp_path / "out"))
    assert written.columns == ["row.number", "report"]
    first = sorted(map(tuple, written.collect()))
    assert first == sorted(map(tuple, written.collect()))  # a lazy column would be randomised again
    assert [row for row, _ in first] == list(range(ROWS))
    reports = [bytes(report) for _, report in first]
    assert tally(written, plan) == plan.tally(reports) == tally(tmp_path / "out", plan, jobs=1)
    with pytest.raises(ParameterError, match="out exists, and reports are written once; name a new folder"):
        privatize(values, plan, "value", str(tmp_path / "out"))
    assert sorted(map(tuple, written.collect())) == first


def test_workers_share_no_randomness(tmp_path, values):
    """Two reports of one value with 200 noisy bits are equal with probability below 2^-100, unless they share words."""
    plan = sunzi.make_plan("oue", 200, 1)
    reports = [bytes(row.report) for row in privatize(values, plan, "value", str(tmp_path / "out")).collect()]
    assert len(set(reports)) == ROWS


def test_a_pool_filled_before_the_fork_is_not_shared(spark, tmp_path):
    """The same for clients that workers inherit from their executor's daemon, with random words already drawn. A failed
    task ends its worker, so each task runs in a separate fork.
    """
    folder = str(tmp_path)

    def reports(batches):
        import os
        from pathlib import Path

        import preloaded_daemon
        from pyspark import TaskContext

        assert preloaded_daemon.filled_by != os.getpid(), "this worker did not inherit its client"
        for batch in batches:
            with (Path(folder) / str(os.getpid())).open("ab") as file:
                file.writelines(preloaded_daemon.client.report(3) for _ in range(4))
            if TaskContext.get().attemptNumber() == 0:
                raise OSError("fails at first")
            yield batch

    spark.range(8, numPartitions=8).mapInArrow(reports, "id bigint").collect()
    length = len(sunzi.make_plan("oue", 200, 1).client().report(3))
    made = [file.read_bytes() for file in tmp_path.iterdir()]
    found = [content[start : start + length] for content in made for start in range(0, len(content), length)]
    assert len(made) >= 8
    assert len(set(found)) == len(found) >= 64


def test_tasks_that_fail_half_way_leave_one_report_a_row(spark, tmp_path, values):
    """Reports of a failed attempt are never visible; its values are randomised once more, and only once."""
    attempts = str(tmp_path)

    def failing(batches):
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        (Path(attempts) / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        for batch in batches:
            yield batch
            if context.attemptNumber() == 0:
                raise OSError("fails at first, when reports have been made")

    plan, values = sunzi.make_plan("oue", 200, 1), values.toDF("row", "value")
    written = privatize(values.mapInArrow(failing, values.schema), plan, "value", str(tmp_path / "out"))
    assert {f"{partition}-{attempt}" for partition in range(8) for attempt in (0, 1)} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert sorted(row["row"] for row in written.collect()) == list(range(ROWS))


def test_the_column_names_its_plan(tmp_path, values):
    plan, other = (sunzi.make_plan("oue", 200, epsilon) for epsilon in (1, 2))
    written = privatize(values, plan, "value", str(tmp_path / "out"))
    with pytest.raises(PlanError, match=plan.fingerprint[:16]):
        tally(written, other)
    with pytest.raises(PlanError, match=plan.fingerprint[:16]):
        tally(tmp_path / "out", other)


def test_labels_in_a_file_of_their_own_travel_along(spark, tmp_path):
    (tmp_path / "labels").write_text("red\ngreen\nblue\n")
    domain = sunzi.Domain.from_file(tmp_path / "labels", other="blue")
    plan = sunzi.make_plan("grr", domain, 8)
    rows = spark.createDataFrame([("red",)] * 60 + [("green",)] * 30 + [("mauve",)] * 10, ["colour"])
    with pytest.warns(UnknownValuesWarning, match="of 100 rows, 10 unknown and 0 missing are reported as 'blue'"):
        written = privatize(rows, plan, "colour", str(tmp_path / "out"), report_column="noisy")
    with pytest.raises(DomainError, match="10 unknown and 0 missing are reported as 'blue'; choose another column"):
        privatize(rows, plan, "colour", str(tmp_path / "refused"), max_unknown=0.05)
    assert not (tmp_path / "refused").exists()
    shares = plan.estimate(tally(written, plan, report_column="noisy")).frequencies
    # At epsilon 8 one report in 1,500 is noise; more than 8 of 100 have a probability below 1e-12.
    assert abs(shares - [0.6, 0.3, 0.1]).max() < 0.085


def test_what_is_reported_as_another_value_is_counted_by_attribute(spark, tmp_path):
    attributes = {
        "crashed": sunzi.Domain(["no", "yes", "unknown"], other="unknown"),
        "load": sunzi.OrderedDomain(0, 8, 4, clamp=True),
    }
    plan = sunzi.make_tables(attributes, [("crashed", "load")], epsilon=4)
    rows = [("no", 3.0)] * 60 + [("maybe", 9.5)] * 30 + [(None, -1.0)] * 10
    df = spark.createDataFrame([(row,) for row in rows], "record struct<crashed: string, load: double>")
    said = (
        "crashed: of 100 rows, 30 unknown and 10 missing are reported as 'unknown'; "
        "load: 40 of 100 rows outside the range are reported as its nearest end"
    )
    with pytest.warns(UnknownValuesWarning, match=f"^{said}$"):
        written = privatize(df, plan, "record", str(tmp_path / "out"))
    assert tally(written, plan).reports == 100
    with pytest.raises(DomainError, match=r"crashed: of 100 rows, 30 unknown and 10 missing .* max_unknown=1"):
        privatize(df, plan, "record", str(tmp_path / "refused"), max_unknown=0.2)
    assert not (tmp_path / "refused").exists()


def test_bad_columns_and_values_are_refused_before_anything_is_written(spark, tmp_path, values):
    plan = sunzi.make_plan("grr", 3, 1)
    with pytest.raises(ParameterError, match=r"no column 'values'; the columns are 'row.number', 'value'"):
        privatize(values, plan, "values", str(tmp_path / "out"))
    with pytest.raises(ParameterError, match=r"a column 'row.number' already"):
        privatize(values, plan, "value", str(tmp_path / "out"), report_column="row.number")
    with pytest.raises(PythonException, match="value 3 is not in the domain 0 … 2"):
        privatize(values, plan, "value", str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("*.parquet"))


def slow_copy(df):
    """The same rows, delayed by half a second in every partition."""

    def slowly(batches):  # imported here so that the function is pickled by value: workers cannot import this module
        for batch in batches:
            time.sleep(0.5)
            yield batch

    return df.mapInArrow(slowly, df.schema)


def test_a_worker_killed_in_mid_job_changes_nothing(spark, cluster, tmp_path, plan, reports):
    """Finished tasks of the dead worker are lost with their results and run again elsewhere.

    This test must be the last: afterwards both executors are on one worker, where Spark never speculates.
    """
    table = pa.concat_tables([table_of(reports), table_of(reports).slice(0, 500)])
    df = slow_copy(spark.read.parquet(write(table, tmp_path / "reports")).repartition(16))
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(sift, df, plan, (), "report", "id")
        status = spark.sparkContext.statusTracker()
        while not job.done() and _finished_tasks(status) < 4:
            time.sleep(0.05)
        finished = _finished_tasks(status)
        cluster.kill_worker()
        found = job.result(timeout=180)
    assert 4 <= finished < 16
    assert found.tally.to_bytes() == plan.tally(reports).to_bytes()
    assert found.repeated == 500


def _finished_tasks(status):
    """Number of finished tasks of the slow stage while it runs."""
    stages = [status.getStageInfo(number) for number in status.getActiveStageIds()]
    return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == 16), default=0)


def test_records_are_a_column_of_structs(spark, tmp_path):
    """Reports of records and of numbers, made and counted by Spark; no attribute is kept beside them."""
    from pyspark.sql import functions

    plan = sunzi.make_tables({"version": ["1", "2"], "crashed": ["no", "yes"]}, [("version", "crashed")], epsilon=4)
    df = spark.createDataFrame(
        [("1", "no", "DE"), ("2", "yes", "FR")] * 50, "version string, crashed string, country string"
    )
    records = df.select("country", functions.struct("version", "crashed").alias("record"))
    written = privatize(records, plan, "record", str(tmp_path / "reports"))
    assert written.columns == ["country", "report"]
    counted = tally(written, plan, by=["country"])
    assert {key: found.reports for key, found in counted.items()} == {("DE",): 50, ("FR",): 50}


def test_texts_are_counted_without_a_list(spark, tmp_path):
    """Reports of texts, made and counted by Spark; the tally is that of one process, and texts are found in it."""
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=8, cells=5000)
    df = spark.createDataFrame([("yes", "DE"), ("no", "FR"), ("longer", "FR")] * 700, "word string, country string")
    written = privatize(df, plan, "word", str(tmp_path / "reports"))
    assert written.columns == ["country", "report"]
    counted = tally(written, plan)
    reports = [bytes(row.report) for row in written.collect()]
    assert counted.to_bytes() == plan.tally(reports).to_bytes() == tally(str(tmp_path / "reports"), plan).to_bytes()
    assert {"lon…", "no", "yes"} <= set(plan.discover(counted).labels)  # a few false ones are allowed
    missing = spark.createDataFrame([("yes",), (None,)], "word string")
    with pytest.raises(PythonException, match="a value is missing"):
        privatize(missing, plan, "word", str(tmp_path / "missing"))
