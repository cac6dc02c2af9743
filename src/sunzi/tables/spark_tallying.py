"""From a data frame of reports to tallies.

A tally is a vector of integers whose merge is addition, so Spark does all the work: every partition becomes a partial
tally (``mapInArrow``), and partial tallies are added up in three rounds, so that the driver sees one a group whatever
the number of reports. All of it is a function of the data, without accumulators: a task that is retried, or run twice
by speculation, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.tables import counting, once
from sunzi.tables import spark_partials as partials
from sunzi.tables.sifting import Sifted
from sunzi.tables.spark_frames import chosen, need_spark
from sunzi.tables.terms import BadReports, Key, Terms, check_bad_reports, tallies
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FAN_IN = 32
"""So many neighbouring partitions share a task of the first round, and so many of its sums one of the second."""

_ALL = 1 << 62
_ROUNDS = (FAN_IN, _ALL, 1)
"""After each round, by how much the number of buckets shrinks: the last adds all that is left, to one sum a group."""

_KEPT, _SALT = "sunzi_kept", "sunzi_salt"


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
    terms.check_owner(df.schema[report_column].metadata)
    terms, rows = chosen(terms, df)
    schema = partials.schema_of(rows, terms.by)
    added, groups = _counted(rows, terms, schema), terms.by
    for shrink in _ROUNDS:
        added = added.groupBy(*groups, partials.BUCKET).applyInArrow(_adder(groups, shrink), schema)
    found: dict[Key, Sifted] = {}
    counting.add(found, partials.read(added.toArrow(), groups))
    return found


def _counted(rows: DataFrame, terms: Terms, schema: StructType) -> DataFrame:
    """A partial tally of every partition and group."""
    count = _count if terms.id_column is None else _count_kept
    once_each = rows if terms.id_column is None else _kept(rows, terms)
    return once_each.mapInArrow(partial(_in_task, count, terms), schema)


def _kept(rows: DataFrame, terms: Terms) -> DataFrame:
    """The first row of every id in the order of :mod:`sunzi.tables.once`, and the number of its copies.

    Rows without an id stay as they are, each under a number of its own, so that the data is gone through once.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, StructField, StructType

    judged_schema = StructType([*rows.schema.fields, StructField(once.BAD, BooleanType(), nullable=False)])
    judged = rows.mapInArrow(partial(_judge, terms), judged_schema)
    identifier = str(terms.id_column)
    own_number = functions.when(judged[identifier].isNull(), functions.monotonically_increasing_id())
    first = functions.min(functions.struct(once.BAD, terms.report_column, *terms.by)).alias(_KEPT)
    copies = functions.count(functions.lit(1)).alias(once.COPIES)
    kept = judged.withColumn(_SALT, own_number).groupBy(identifier, _SALT).agg(first, copies)
    columns = (f"{_KEPT}.{name}" for name in (terms.report_column, *terms.by))
    return kept.select(identifier, *columns, once.COPIES)


Counting = Callable[[Terms, Iterable[Any]], dict[Key, Sifted]]


def _in_task(count: Counting, terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The partial tallies of one partition: nothing for an empty one."""
    from pyspark import TaskContext

    seen = _SchemaSeen(batches)
    found = count(terms, seen)
    if found:
        context = TaskContext.get()
        bucket = 0 if context is None else context.partitionId() // FAN_IN
        yield from partials.write([seen.schema.field(name) for name in terms.by], bucket, found)


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
    return counting.count(terms, batches)


def _count_kept(terms: Terms, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    found: dict[Key, Sifted] = {}
    for table in counting.large_pieces(batches):
        lost, named = once.by_id(terms, table)
        counting.add(found, counting.without_id(terms, lost))
        counting.add(found, once.count_kept(terms, named).items())
    return found


def _judge(terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in counting.large_pieces(batches):
        yield from once.judged(terms, table).to_batches()


def _adder(by: Sequence[str], shrink: int) -> Callable[[pa.Table], pa.Table]:
    # A lambda of one argument: of a function with annotations, or with more, Spark would make something else.
    return lambda table: _add(by, shrink, table)


def _add(by: Sequence[str], shrink: int, table: pa.Table) -> pa.Table:
    """The partial tallies of one group and one bucket, added up."""
    import pyarrow

    found: dict[Key, Sifted] = {}
    counting.add(found, partials.read(table, by))
    bucket = table.column(partials.BUCKET)[0].as_py() // shrink
    return pyarrow.Table.from_batches(partials.write([table.schema.field(name) for name in by], bucket, found))
