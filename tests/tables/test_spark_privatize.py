"""A column of values written as reports, once, by a real cluster."""

import pytest
from pyspark.errors import PythonException

import sunzi
from sunzi.errors import ParameterError, PlanError
from sunzi.tables import privatize, tally

USERS = 400


@pytest.fixture
def values(spark):
    """Everybody holds the same value, in 8 partitions, beside a number that tells rows apart."""
    return spark.range(USERS, numPartitions=8).selectExpr("id AS `row.number`", "3 AS value")


def test_it_writes_once_and_returns_what_it_wrote(spark, tmp_path, values):
    plan = sunzi.make_plan("oue", 200, 1)
    written = privatize(values, plan, "value", str(tmp_path / "out"))
    assert written.columns == ["row.number", "report"]
    first = sorted(map(tuple, written.collect()))
    assert first == sorted(map(tuple, written.collect()))  # a lazy column would have been drawn again
    assert [row for row, _ in first] == list(range(USERS))
    reports = [bytes(report) for _, report in first]
    assert tally(written, plan) == plan.tally(reports) == tally(tmp_path / "out", plan, jobs=1)
    with pytest.raises(ParameterError, match="out exists, and reports are written once; name a new folder"):
        privatize(values, plan, "value", str(tmp_path / "out"))
    assert sorted(map(tuple, written.collect())) == first


def test_workers_share_no_randomness(tmp_path, values):
    """Two reports of 200 noisy bits of one value are equal with probability below 2^-100, unless words were shared."""
    plan = sunzi.make_plan("oue", 200, 1)
    reports = [bytes(row.report) for row in privatize(values, plan, "value", str(tmp_path / "out")).collect()]
    assert len(set(reports)) == USERS


def test_a_pool_filled_before_the_fork_is_not_shared(spark, tmp_path):
    """The same for clients that workers inherited, with random words already drawn, from the daemon of their executor.
    A task that fails ends its worker, so each is tried in a fork of its own.
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
    """Reports that a failed attempt had made are never seen; its values are randomised once more, and once only."""
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
    assert sorted(row["row"] for row in written.collect()) == list(range(USERS))


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
    written = privatize(rows, plan, "colour", str(tmp_path / "out"), report_column="noisy")
    shares = plan.estimate(tally(written, plan, report_column="noisy")).frequencies
    # At epsilon 8 one report in 1,500 is noise; more than 8 of 100 have a probability below 1e-12.
    assert abs(shares - [0.6, 0.3, 0.1]).max() < 0.085


def test_what_cannot_be_privatized_is_refused_before_anything_is_written(spark, tmp_path, values):
    plan = sunzi.make_plan("grr", 3, 1)
    with pytest.raises(ParameterError, match=r"no column 'values'; the columns are 'row.number', 'value'"):
        privatize(values, plan, "values", str(tmp_path / "out"))
    with pytest.raises(ParameterError, match=r"a column 'row.number' already"):
        privatize(values, plan, "value", str(tmp_path / "out"), report_column="row.number")
    with pytest.raises(PythonException, match="value 3 is not in the domain 0 … 2"):
        privatize(values, plan, "value", str(tmp_path / "out"))
    assert not list((tmp_path / "out").glob("*.parquet"))
