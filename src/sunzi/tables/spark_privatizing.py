"""A column of values becomes a column of reports, written once. For central testing and for migration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.tables.spark_frames import need_spark, plain_frame, plain_name
from sunzi.tables.terms import FINGERPRINT_KEY

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_REPORT = "sunzi_report"

# A task's files appear when the job is committed and not before: with version 2 a task that fails while it commits
# leaves files behind, and its second attempt adds other reports of the same values.
_COMMITTER = "mapreduce.fileoutputcommitter.algorithm.version"


def privatize(df: DataFrame, plan: Plan, column: str, path: str, *, report_column: str = "report") -> DataFrame:
    """Replace a column of values by reports, write the table to a new Parquet folder, and return what was written.

    It writes first and reads back, because a lazy column of fresh noise would be drawn anew whenever Spark computes it
    again, and each time would spend ε once more. A task that fails or is run twice leaves one set of reports, as far
    as the job is committed by Hadoop's file committer, Spark's default. If the job fails, no report is there to read;
    what its tasks had noised lies under ``_temporary`` until the folder is removed, and counts as spent.

    Other columns are kept as they are: whatever else they tell of a person is not protected. The report column names
    its plan, so that no other plan counts it by mistake. A folder that exists is never written to.
    """
    sql = need_spark()
    from pyspark.errors import AnalysisException

    if df.columns.count(column) != 1:
        found = "no column" if column not in df.columns else "more than one column"
        raise ParameterError(f"there is {found} {column!r}; the columns are {', '.join(map(repr, df.columns))}")
    if report_column in set(df.columns) - {column}:
        raise ParameterError(f"there is a column {report_column!r} already; name another with report_column")
    place, plain = df.columns.index(column), plain_frame(df)
    kept = [number for number in range(len(df.columns)) if number != place]
    tag = {FINGERPRINT_KEY: plan.fingerprint}
    field = sql.types.StructField(_REPORT, sql.types.BinaryType(), nullable=False, metadata=tag)
    schema = sql.types.StructType([*(plain.schema[plain_name(number)] for number in kept), field])
    reports = plain.mapInArrow(partial(_randomise, plan, plain_name(place)), schema)
    named = reports.toDF(*(df.columns[number] for number in kept), report_column)
    try:
        named.write.mode("errorifexists").option(_COMMITTER, "1").parquet(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise ParameterError(f"{path} exists, and reports are written once; name a new folder") from None
    return df.sparkSession.read.parquet(path)


def _randomise(plan: Plan, column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reports by a client of this very task; its words come from the operating system."""
    import pyarrow

    client = plan.client()
    for batch in batches:
        reports = pyarrow.array(client.reports(batch.column(column)), pyarrow.binary())
        names = [name for name in batch.schema.names if name != column]
        arrays = [batch.column(name) for name in names]
        yield pyarrow.RecordBatch.from_arrays([*arrays, reports], names=[*names, _REPORT])
