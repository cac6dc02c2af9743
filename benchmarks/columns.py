"""Reports in Parquet, tallied by Spark on a cluster of two workers and by one machine without Spark.

Times are wall-clock times, because other processes do the work; the two sides of a ratio run alternately.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import settings
from benchmarks.measure import Comparison, paired
from benchmarks.results import Result
from sunzi.client.reports import byte_length
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import Plan, make_plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

REPORTS = 100_000_000
_FILES = 20
_PARTITIONS = (2, 8, 32, 128)
_BOUND = 3.0


def by_spark(scale: float) -> Iterator[Result]:
    """100 million compact reports: time against the number of reports and against the number of partitions."""
    from benchmarks.spark_cluster import driver, running_cluster

    plan = make_plan("ss-compact", 1024, 1)
    with tempfile.TemporaryDirectory(prefix="sunzi-bench-") as directory:
        folders = {
            reports: written(plan, reports, Path(directory) / str(reports))
            for reports in (settings.users(REPORTS // part, scale) for part in (100, 10, 1))
        }
        (Path(directory) / "cluster").mkdir()
        with running_cluster(Path(directory) / "cluster") as cluster, driver(cluster) as session:
            yield from _against_reports(session, plan, folders, scale)
            yield from _against_partitions(session, plan, folders[max(folders)], max(folders), scale)


def by_one_machine(scale: float) -> Iterator[Result]:
    """The same reports without Spark, and reports with ids, one in ten of which is a duplicate."""
    from sunzi.tables import sift, tally

    plan = make_plan("ss-compact", 1024, 1)
    with tempfile.TemporaryDirectory(prefix="sunzi-bench-") as directory:
        reports = settings.users(REPORTS, scale)
        folder = written(plan, reports, Path(directory) / "reports")
        compared = _in_turn(lambda: tally(folder, plan), lambda: _read(folder), settings.rounds(3, scale))
        yield Result(
            "parquet/reports",
            f"tally {reports:,} reports in Parquet on all cores{_rate(reports, compared.measured)}",
            compared.measured,
            "reading the column with pyarrow on all cores",
            compared.reference,
            compared.slowdown,
            details={"reports": reports},
        )
        fewer = settings.users(REPORTS // 10, scale)
        folder = written(plan, fewer, Path(directory) / "ids", with_ids=True)
        start = time.perf_counter()
        found = sift(folder, plan, id_column="id")
        taken = time.perf_counter() - start
        yield Result(
            "parquet/ids",
            f"tally {fewer:,} reports in Parquet on all cores, each id once{_rate(fewer, taken)}; "
            f"{found.repeated:,} of them repeat an id",
            taken,
            details={"reports": fewer},
        )


def _against_reports(session: SparkSession, plan: Plan, folders: dict[int, Path], scale: float) -> Iterator[Result]:
    from sunzi.tables import tally

    for reports, folder in folders.items():
        df = session.read.parquet(str(folder))
        rounds = settings.rounds(3, scale)
        compared = _in_turn(lambda df=df: tally(df, plan), lambda df=df: _count_rows(df), rounds)  # type: ignore[misc]
        yield Result(
            f"spark/reports/{reports}",
            f"tally {reports:,} reports on a cluster of two workers{_rate(reports, compared.measured)}, "
            f"{_driver_peak(session) >> 20:,} MiB in the driver at most",
            compared.measured,
            "a mapInArrow pass that only counts rows",
            compared.reference,
            compared.slowdown,
            _BOUND if reports == max(folders) else None,
            details={"reports": reports},
        )


def _against_partitions(
    session: SparkSession, plan: Plan, folder: Path, reports: int, scale: float
) -> Iterator[Result]:
    from sunzi.tables import tally

    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    for partitions in _PARTITIONS if scale >= 1 else _PARTITIONS[:2]:
        session.conf.set("spark.sql.files.maxPartitionBytes", str(max(size // partitions, 1)))
        df = session.read.parquet(str(folder))
        start = time.perf_counter()
        tally(df, plan)
        taken = time.perf_counter() - start
        found = df.rdd.getNumPartitions()
        yield Result(
            f"spark/partitions/{partitions}",
            f"tally {reports:,} reports in {found} partitions on a cluster of two workers",
            taken,
            details={"reports": reports, "partitions": found},
        )


def written(plan: Plan, reports: int, folder: Path, *, with_ids: bool = False) -> Path:
    """Write reports to twenty files; with ids, part of every file is a copy of its first rows."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    width = byte_length(plan.protocol.report_layout.payload_bits[0])
    for number in range(_FILES):
        count = reports // _FILES
        values = settings.values(count, plan.domain.size)
        source = ReproducibleSource([settings.SEED, number])
        payloads = plan.protocol.encode(plan.protocol.randomize(values, source)).payloads[0]
        data = np.asarray(payloads, dtype="<u8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()
        cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(data)])
        table = pa.table({"report": cells.cast(pa.binary())})
        if with_ids:
            ids = np.random.default_rng([settings.SEED, number]).bytes(16 * count)
            column = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, pa.py_buffer(ids)])
            table = table.append_column("id", column.cast(pa.binary()))
            table = pa.concat_tables([table.slice(0, count - count // 11), table.slice(0, count // 11)])
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=1 << 20)
    return folder


def _rate(reports: int, taken: float) -> str:
    return f": {reports / taken / 1e6:.1f} million per second"


def _in_turn(measured: Callable[[], object], reference: Callable[[], object], rounds: int) -> Comparison:
    for action in (measured, reference):  # the first calls start processes and fill caches
        action()
    return paired([(_wall(measured), _wall(reference)) for _ in range(rounds)])


def _wall(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _read(folder: Path) -> int:
    from pyarrow import dataset

    return sum(batch.num_rows for batch in dataset.dataset(str(folder)).to_batches(columns=["report"]))


def _count_rows(df: DataFrame) -> int:
    def rows_of_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow  # imported here so that the function is pickled by value: workers cannot import this module

        yield pyarrow.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

    rows = df.select("report").mapInArrow(rows_of_partition, "rows bigint").collect()
    return sum(row.rows for row in rows)


def _driver_peak(session: SparkSession) -> int:
    """Peak memory of the driver's Java process."""
    process = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
