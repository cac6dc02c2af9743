"""From a data frame of reports to tallies.

A tally is a vector of integers whose merge is addition, so Spark does all the work: every partition becomes a partial
tally (``mapInArrow``), and partial tallies are added up in rounds of 32, so that the driver sees a handful whatever the
number of reports. All of it is a function of the data, without accumulators: a task that is retried, or run twice by
speculation, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.columns import counting, once
from sunzi.columns.sifting import Sifted
from sunzi.columns.terms import BadReports, Key, Terms, check_bad_reports, tallies
from sunzi.errors import MissingExtraError, ParameterError
from sunzi.plan import Plan
from sunzi.spark import partials
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FAN_IN = 32
ROUNDS = 2
"""Partial tallies of 32² partitions become one; the driver adds up the rest, one for every 1,024 partitions."""

_KEPT = "sunzi_kept"


def tally(
    df: DataFrame,
    plan: Plan,
    report_column: str = "report",
    id_column: str | None = None,
    *,
    bad_reports: BadReports = "warn",
) -> Tally:
    """The tally of a column of reports.

    With ``id_column`` all rows with the same id count once: a good one if there is one, and of several the least, so
    that every run counts the same. Cells that are no reports are left out with a BadReportsWarning that counts them by
    reason and shows a few; with ``bad_reports="fail"`` they raise ReportError instead.
    """
    check_bad_reports(bad_reports)
    found = tallies(sift_by(df, plan, (), report_column, id_column), bad_reports)
    return found.get((), plan.empty_tally())


def tally_by(
    df: DataFrame,
    plan: Plan,
    by: Sequence[str],
    report_column: str = "report",
    id_column: str | None = None,
    *,
    bad_reports: BadReports = "warn",
) -> dict[Key, Tally]:
    """One tally for every combination of values of the columns ``by`` (country, version, day), in one pass.

    An id counts once over all groups. A task holds one tally for every group that it meets.
    """
    check_bad_reports(bad_reports)
    if not by:
        raise ParameterError("by must name at least one column; for one tally of all rows use tally()")
    return tallies(sift_by(df, plan, by, report_column, id_column), bad_reports)


def sift_by(
    df: DataFrame,
    plan: Plan,
    by: Sequence[str] = (),
    report_column: str = "report",
    id_column: str | None = None,
) -> dict[Key, Sifted]:
    """For every group its tally, the cells that were no reports by reason, and how many rows repeated an id."""
    need_spark()
    terms = Terms.checked(plan, report_column, id_column, by, df.columns)
    field = df.schema[report_column]
    terms.check_owner(field.metadata)
    if field.dataType.typeName() != "binary":
        kind = field.dataType.simpleString()
        raise ParameterError(f"the column {report_column!r} must hold binary values, it holds {kind}")
    terms, rows = _renamed(terms, df)
    schema = partials.schema_of(rows, terms.by)
    added = _counted(rows, terms, schema)
    for _ in range(ROUNDS):
        # A lambda, since Spark would look for Arrow's types among the annotations of a function that has any.
        groups = added.groupBy(*terms.by, partials.BUCKET)
        added = groups.applyInArrow(lambda partial_tallies: _add(terms.by, partial_tallies), schema)
    found: dict[Key, Sifted] = {}
    counting.add(found, partials.read(added.toArrow(), terms.by))
    return found


def need_spark() -> Any:
    """pyspark, or an error that says which extra it comes with."""
    try:
        import pyspark.sql
    except ModuleNotFoundError:
        raise MissingExtraError("counting with Spark", "spark") from None
    return pyspark.sql


def plain_name(place: int) -> str:
    """A name for a column by its place: Spark cannot hand a column with a dot or a backtick in its name to Python."""
    return f"sunzi_column_{place}"


def _renamed(terms: Terms, df: DataFrame) -> tuple[Terms, DataFrame]:
    """The columns that matter, under plain names."""
    plain = {name: plain_name(place) for place, name in enumerate(df.columns)}
    identifier = None if terms.id_column is None else plain[terms.id_column]
    renamed = Terms(terms.plan, plain[terms.report_column], identifier, tuple(plain[name] for name in terms.by))
    return renamed, df.toDF(*plain.values()).select(*renamed.columns)


def _counted(rows: DataFrame, terms: Terms, schema: StructType) -> DataFrame:
    """A partial tally of every partition and group."""
    if terms.id_column is None:
        return rows.mapInArrow(partial(_in_task, _count, terms), schema)
    identifier = rows[terms.id_column]
    without = rows.where(identifier.isNull()).mapInArrow(partial(_in_task, _count_without_id, terms), schema)
    kept = _kept(rows.where(identifier.isNotNull()), terms)
    return kept.mapInArrow(partial(_in_task, _count_kept, terms), schema).union(without)


def _kept(rows: DataFrame, terms: Terms) -> DataFrame:
    """The first row of every id in the order of :mod:`sunzi.columns.once`, and the number of its copies."""
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, StructField, StructType

    judged_schema = StructType([*rows.schema.fields, StructField(once.BAD, BooleanType(), nullable=False)])
    judged = rows.mapInArrow(partial(_judge, terms), judged_schema)
    first = functions.min(functions.struct(once.BAD, terms.report_column, *terms.by)).alias(_KEPT)
    kept = judged.groupBy(str(terms.id_column)).agg(first, functions.count(functions.lit(1)).alias(once.COPIES))
    return kept.select(*(f"{_KEPT}.{name}" for name in (terms.report_column, *terms.by)), once.COPIES)


Counting = Callable[[Terms, Iterable[Any]], dict[Key, Sifted]]


def _in_task(count: Counting, terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The partial tallies of one partition: nothing for an empty one."""
    from pyspark import TaskContext

    seen = _SchemaSeen(batches)
    found = count(terms, seen)
    if found:
        context = TaskContext.get()
        bucket = 0 if context is None else context.partitionId() // FAN_IN
        yield partials.write([seen.schema.field(name) for name in terms.by], bucket, found)


class _SchemaSeen:
    """Batches that leave their schema behind."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.schema: Any = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.schema = batch.schema
            yield batch


def _count(terms: Terms, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    return counting.count(terms.plan, terms.by, terms.report_column, batches)


def _count_kept(terms: Terms, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    found: dict[Key, Sifted] = {}
    for table in counting.large_pieces(batches):
        counting.add(found, once.count_kept(terms, table).items())
    return found


def _count_without_id(terms: Terms, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    found: dict[Key, Sifted] = {}
    for table in counting.large_pieces(batches):
        counting.add(found, counting.without_id(terms.plan, terms.by, terms.report_column, table))
    return found


def _judge(terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in counting.large_pieces(batches):
        yield from once.judged(terms, table).to_batches()


def _add(by: Sequence[str], table: pa.Table) -> pa.Table:
    """The partial tallies of one group and one bucket, added up."""
    import pyarrow

    found: dict[Key, Sifted] = {}
    counting.add(found, partials.read(table, by))
    bucket = table.column(partials.BUCKET)[0].as_py() // FAN_IN
    return pyarrow.Table.from_batches([partials.write([table.schema.field(name) for name in by], bucket, found)])
