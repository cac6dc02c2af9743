"""Reports in Spark data frames: tallies of a column of reports, and a column of values turned into reports.

A tally is a vector of integers whose merge is addition, so Spark does all the work: every partition becomes a partial
tally (``mapInArrow``), and partial tallies are added up in three rounds, so that the driver receives one per group. All
of it is a function of the data, without accumulators: a task that is retried, or run twice by speculation, changes
nothing.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.labels import MISSING, UNKNOWN, Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.errors import MissingExtraError
from sunzi.plan import Plan
from sunzi.tables.deduplication import BAD, COPIES, count_unique, judge_rows, split_by_presence_of_id
from sunzi.tables.group_counts import (
    PLAN_KEY,
    Key,
    TallyRequest,
    add_groups,
    bounded_tables,
    count_groups,
    refuse_without_id,
)
from sunzi.tables.index_lookup import MAX_UNKNOWN, UnknownValuesWarning, may_replace, replaced_in_words
from sunzi.tables.report_cells import Refused, Sifted
from sunzi.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

FAN_IN = 32
"""The number of neighbouring partitions whose partial tallies are added by one task of the first round; the second adds
as many of these sums.
"""

_ALL = 1 << 62
_ROUNDS = (FAN_IN, _ALL, 1)
"""The factor by which the number of buckets shrinks after each round; the last adds the rest, to one sum per group."""

# Names of the columns that this module adds.
_BUCKET = "sunzi_bucket"
_TALLY, _REFUSED, _REPEATED = "sunzi_tally", "sunzi_refused", "sunzi_repeated"
_KEPT, _SALT = "sunzi_kept", "sunzi_salt"
_REPORT = "sunzi_report"

_ID_TYPES = ("binary", "string", "byte", "short", "integer", "long")
_UNSORTABLE_TYPES = ("array", "map", "struct", "variant", "interval", "calendarinterval")
_BYTES_PER_BATCH = 1 << 26

# A task's files appear when the job is committed and not before. With version 2 a task that fails while it commits
# leaves files behind, and its second attempt adds other reports of the same values.
_COMMITTER = "mapreduce.fileoutputcommitter.algorithm.version"


def is_spark_frame(source: object) -> TypeGuard[DataFrame]:
    """Whether this is a data frame of Spark, classic or Connect; without importing Spark."""
    kinds = type(source).__mro__
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.") for kind in kinds)


def need_spark() -> Any:
    """Return pyspark.sql, or raise an error that names the extra."""
    try:
        import pyspark.sql
    except ModuleNotFoundError:
        raise MissingExtraError("working with Spark", "spark") from None
    return pyspark.sql


def sift_frame(
    df: DataFrame, plan: Plan, by: Sequence[str], report_column: str, id_column: str | None
) -> dict[Key, Sifted]:
    """What :func:`sunzi.tables.sift` finds in a data frame, by group."""
    need_spark()
    request = TallyRequest.checked(plan, by, report_column, id_column, df.columns)
    request.check_plan(df.schema[report_column].metadata)
    _check_types(request, df)
    request, rows = _select(request, df)
    schema = _partial_schema(rows, request.by)
    added = _count_partitions(rows, request, schema)
    for shrink in _ROUNDS:
        added = added.groupBy(*request.by, _BUCKET).applyInArrow(_adder(request.by, shrink), schema)
    found: dict[Key, Sifted] = {}
    add_groups(found, _read_partials(added.toArrow(), request.by))
    return found


def privatize(
    df: DataFrame,
    plan: Plan,
    column: str,
    path: str,
    *,
    report_column: str = "report",
    max_unknown: float = MAX_UNKNOWN,
) -> DataFrame:
    """Replace a column of values by reports, write the table to a new Parquet folder, and return what was written.

    It writes first and reads back, because a lazy column of fresh noise would be drawn again whenever Spark computes
    it, and spend ε each time. A task that fails or is run twice leaves one set of reports, provided that the job is
    committed by Hadoop's file committer, Spark's default. If the job fails there are no reports to read; what its tasks
    have written lies under ``_temporary`` until the folder is removed, and counts as spent.

    Parameters
    ----------
    df: a Spark data frame. Its other columns are kept as they are, and nothing protects what they reveal.
    plan: the plan to report under.
    column: the column of values.
    path: the folder to write, which must not exist.
    report_column: the name of the column of reports. Its metadata names the plan, so that no other plan counts it.
    max_unknown: if the plan has an ``other``, the column is read once before anything is written, and refused if more
        than this share of its values is unknown, or of an attribute's. An :class:`UnknownValuesWarning` counts those
        reported as ``other``, and with ``clamp`` those reported as an end of the range.

    >>> from sunzi.tables import privatize
    >>> written = privatize(df, plan, "colour", "hdfs:///private")    # doctest: +SKIP
    """
    sql = need_spark()
    from pyspark.errors import AnalysisException

    if df.columns.count(column) != 1:
        found = "no column" if column not in df.columns else "more than one column"
        raise ParameterError(f"there is {found} {column!r}; the columns are {', '.join(map(repr, df.columns))}")
    if report_column in set(df.columns) - {column}:
        raise ParameterError(f"there is a column {report_column!r} already; choose another report_column")
    place, plain = df.columns.index(column), _with_plain_names(df)
    _check_replaced(plain.select(_plain_name(place)), plan, max_unknown)
    kept = [number for number in range(len(df.columns)) if number != place]
    metadata = {PLAN_KEY: plan.fingerprint}
    field = sql.types.StructField(_REPORT, sql.types.BinaryType(), nullable=False, metadata=metadata)
    schema = sql.types.StructType([*(plain.schema[_plain_name(number)] for number in kept), field])
    reports = plain.mapInArrow(partial(_randomise, plan, _plain_name(place)), schema)
    named = reports.toDF(*(df.columns[number] for number in kept), report_column)
    try:
        named.write.mode("errorifexists").option(_COMMITTER, "1").parquet(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise ParameterError(f"{path} exists, and reports are written once; name a new folder") from None
    return df.sparkSession.read.parquet(path)


def _check_replaced(values: DataFrame, plan: Plan, max_unknown: float) -> None:
    """Refuse a column of mostly unknown values, and warn of a few, and of numbers outside a range."""
    parts = _replacing(plan.domain)
    if not parts:
        return
    schema = "part string, row_count long, unknown long, missing long, clamped long"
    counts = values.mapInArrow(partial(_count_replaced, plan), schema)
    sums = {row[0]: [int(count) for count in row[1:]] for row in counts.groupBy("part").sum().collect()}
    notes = []
    for name, domain in parts.items():
        rows, unknown, missing, clamped = sums.get(name, [0, 0, 0, 0])
        said = replaced_in_words(domain, rows, unknown, missing, clamped)
        if said is None:
            continue
        said = f"{name}: {said}" if name else said
        if unknown > max_unknown * rows:
            raise DomainError(f"{said}; choose another column, or allow it with max_unknown=1")
        notes.append(said)
    if notes:
        warnings.warn("; ".join(notes), UnknownValuesWarning, stacklevel=3)


def _replacing(domain: Domain) -> dict[str, Domain]:
    """The attributes of records that may report another value than the given one; of other plans the domain itself."""
    parts = domain.attributes if isinstance(domain, RecordDomain) else {"": domain}
    return {name: part for name, part in parts.items() if may_replace(part)}


def _count_replaced(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow

    for batch in batches:
        column = batch.column(0).to_pylist()
        rows = []
        for name, part in _replacing(plan.domain).items():
            values = [None if record is None else record.get(name) for record in column] if name else column
            located = part.locate(values)
            clamped = part.count_outside(values) if isinstance(part, OrderedDomain) else 0
            unknown, missing = (int(np.count_nonzero(located == reason)) for reason in (UNKNOWN, MISSING))
            counts = {"row_count": located.size, "unknown": unknown, "missing": missing, "clamped": clamped}
            rows.append({"part": name, **counts})
        yield pyarrow.RecordBatch.from_pylist(rows)


def _randomise(plan: Plan, column: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reports by a client of this task, with randomness from the operating system."""
    import pyarrow

    client = plan.client()
    for batch in batches:
        reports = pyarrow.array(client.reports(batch.column(column)), pyarrow.binary())
        names = [name for name in batch.schema.names if name != column]
        arrays = [batch.column(name) for name in names]
        yield pyarrow.RecordBatch.from_arrays([*arrays, reports], names=[*names, _REPORT])


def _plain_name(place: int) -> str:
    """A column's name by its position: Spark cannot pass a column with a dot or a backtick in its name to Python."""
    return f"sunzi_column_{place}"


def _with_plain_names(df: DataFrame) -> DataFrame:
    return df.toDF(*map(_plain_name, range(len(df.columns))))


def _select(request: TallyRequest, df: DataFrame) -> tuple[TallyRequest, DataFrame]:
    """The requested columns under plain names."""
    plain = {name: _plain_name(df.columns.index(name)) for name in request.columns}
    identifier = None if request.id_column is None else plain[request.id_column]
    by = tuple(plain[name] for name in request.by)
    renamed = TallyRequest(request.plan, plain[request.report_column], identifier, by)
    return renamed, _with_plain_names(df).select(*renamed.columns)


def _check_types(request: TallyRequest, df: DataFrame) -> None:
    def require(name: str, good: bool, needed: str) -> None:
        if not good:
            kind = df.schema[name].dataType.simpleString()
            raise ParameterError(f"the column {name!r} must hold {needed}, it holds {kind}")

    def type_of(name: str) -> str:
        return df.schema[name].dataType.typeName()

    require(request.report_column, type_of(request.report_column) == "binary", "binary values")
    if request.id_column is not None:
        require(request.id_column, type_of(request.id_column) in _ID_TYPES, "bytes, texts or integers")
    for name in request.by:
        unsortable = any(word in type_of(name) for word in _UNSORTABLE_TYPES)
        require(name, not unsortable, "values that can be compared and sorted")


def _count_partitions(rows: DataFrame, request: TallyRequest, schema: StructType) -> DataFrame:
    """One partial tally per partition and group."""
    if request.id_column is None:
        return rows.mapInArrow(partial(_run_task, count_groups, request), schema)
    return _deduplicated(rows, request).mapInArrow(partial(_run_task, _count_unique, request), schema)


def _deduplicated(rows: DataFrame, request: TallyRequest) -> DataFrame:
    """The first row of every id in the order of :mod:`sunzi.tables.deduplication`, with the number of its copies.

    Rows without an id are all kept, each under its own number, so that the data is read once.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, StructField, StructType

    judged_schema = StructType([*rows.schema.fields, StructField(BAD, BooleanType(), nullable=False)])
    judged = rows.mapInArrow(partial(_judge, request), judged_schema)
    identifier = str(request.id_column)
    own_number = functions.when(judged[identifier].isNull(), functions.monotonically_increasing_id())
    first = functions.min(functions.struct(BAD, request.report_column, *request.by)).alias(_KEPT)
    copies = functions.count(functions.lit(1)).alias(COPIES)
    kept = judged.withColumn(_SALT, own_number).groupBy(identifier, _SALT).agg(first, copies)
    columns = (f"{_KEPT}.{name}" for name in (request.report_column, *request.by))
    return kept.select(identifier, *columns, COPIES)


def _judge(request: TallyRequest, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in bounded_tables(batches):
        yield from judge_rows(request, table).to_batches()


def _count_unique(request: TallyRequest, batches: Iterable[pa.RecordBatch]) -> dict[Key, Sifted]:
    found: dict[Key, Sifted] = {}
    for table in bounded_tables(batches):
        without, with_id = split_by_presence_of_id(request, table)
        add_groups(found, refuse_without_id(request, without))
        add_groups(found, count_unique(request, with_id).items())
    return found


def _run_task(
    count: Callable[[TallyRequest, Iterable[Any]], dict[Key, Sifted]],
    request: TallyRequest,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The partial tallies of one partition: none for an empty one."""
    from pyspark import TaskContext

    schemas: list[Any] = []

    def remember_schema() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            schemas[:] = [batch.schema]
            yield batch

    found = count(request, remember_schema())
    if found:
        context = TaskContext.get()
        bucket = 0 if context is None else context.partitionId() // FAN_IN
        yield from _write_partials([schemas[0].field(name) for name in request.by], bucket, found)


def _adder(by: Sequence[str], shrink: int) -> Callable[[pa.Table], pa.Table]:
    # A lambda of one argument: Spark treats functions with annotations or more arguments differently.
    return lambda table: _add_partials(by, shrink, table)


def _add_partials(by: Sequence[str], shrink: int, table: pa.Table) -> pa.Table:
    """The sum of the partial tallies of one group and one bucket."""
    import pyarrow

    found: dict[Key, Sifted] = {}
    add_groups(found, _read_partials(table, by))
    bucket = table.column(_BUCKET)[0].as_py() // shrink
    return pyarrow.Table.from_batches(_write_partials([table.schema.field(name) for name in by], bucket, found))


def _partial_schema(df: DataFrame, by: Sequence[str]) -> StructType:
    """The group columns as they are, and a partial tally."""
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

    own = {_BUCKET: LongType(), _TALLY: BinaryType(), _REFUSED: StringType(), _REPEATED: LongType()}
    fields = [StructField(name, kind, nullable=False) for name, kind in own.items()]
    return StructType([*(df.schema[name] for name in by), *fields])


def _write_partials(fields: Sequence[pa.Field], bucket: int, found: Mapping[Key, Sifted]) -> Iterator[pa.RecordBatch]:
    """One row per group, in batches that Arrow can hold; ``fields`` are the group columns."""
    import pyarrow

    names = [*(field.name for field in fields), _BUCKET, _TALLY, _REFUSED, _REPEATED]
    own_types = [pyarrow.int64(), pyarrow.binary(), pyarrow.string(), pyarrow.int64()]
    types = [*(_accepted_type(field.type) for field in fields), *own_types]
    rows: list[tuple[Any, ...]] = []
    size = 0
    for key, sifted in found.items():
        rows.append((*key, bucket, sifted.tally.to_bytes(), _to_json(sifted.refused), sifted.repeated))
        size += len(rows[-1][len(key) + 1])
        if size >= _BYTES_PER_BATCH:
            yield _batch(names, types, rows)
            rows, size = [], 0
    if rows:
        yield _batch(names, types, rows)


def _accepted_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark takes back: it passes times in the session's time zone, and expects them in UTC."""
    import pyarrow

    is_zoned = pyarrow.types.is_timestamp(kind) and kind.tz is not None
    return pyarrow.timestamp(kind.unit, "UTC") if is_zoned else kind


def _batch(names: Sequence[str], types: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow

    columns = [pyarrow.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pyarrow.RecordBatch.from_arrays(columns, names=list(names))


def _read_partials(table: pa.Table, by: Sequence[str]) -> Iterator[tuple[Key, Sifted]]:
    """The groups and partial tallies of all rows, one at a time."""
    for row in range(table.num_rows):
        cells = {name: table.column(name)[row].as_py() for name in (*by, _TALLY, _REFUSED, _REPEATED)}
        tally, refused = Tally.from_bytes(cells[_TALLY]), _from_json(cells[_REFUSED])
        yield tuple(cells[name] for name in by), Sifted(tally, refused, cells[_REPEATED])


def _to_json(refused: Refused) -> str:
    return json.dumps([dict(refused.counts), {reason: list(few) for reason, few in refused.samples.items()}])


def _from_json(text: str) -> Refused:
    counts, samples = json.loads(text)
    return Refused(counts, {reason: tuple(few) for reason, few in samples.items()})
