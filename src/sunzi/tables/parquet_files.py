"""Counting reports in Parquet files on all cores of one machine.

Row groups are counted by several processes and added up, so memory holds a few row groups at a time. With an id column
the rows are first partitioned by id over temporary files, so that all copies of an id are in one of them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi._typing import Progress
from sunzi.client.errors import ParameterError, PlanError
from sunzi.plan import Plan
from sunzi.processes import number_of_cores, pool_of_processes
from sunzi.tables.arrow import arrow_errors, need_pyarrow, plain
from sunzi.tables.deduplication import count_partition, number_of_partitions, partition_rows
from sunzi.tables.group_counts import Key, TallyRequest, add_groups, count_groups
from sunzi.tables.report_cells import Sifted

if TYPE_CHECKING:
    import pyarrow as pa

_LEAST_ROWS = 1 << 18
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A Parquet file, a folder of them, or a list of files and folders."""

ParallelMap = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]


def sift_parquet(
    source: Source,
    plan: Plan,
    by: Sequence[str],
    report_column: str,
    id_column: str | None,
    *,
    jobs: int | None,
    progress: Progress | None,
) -> dict[Key, Sifted]:
    """What :func:`sunzi.tables.sift` finds in Parquet files, by group."""
    need_pyarrow("counting reports in Parquet")
    if jobs is not None and jobs < 1:
        raise ParameterError(f"jobs must be at least 1, got {jobs}")
    with arrow_errors():
        dataset = open_dataset(source)
        request = TallyRequest.checked(plan, by, report_column, id_column, _column_names(dataset))
        schema = _common_schema(request, dataset)
        _check_types(request, schema)
        pieces = split_into_pieces(request, dataset)
    # The folder is removed last, when no process can write to it any more.
    with _partition_folders(request, pieces) as folders:
        jobs = min(jobs or number_of_cores(), max(len(pieces), len(folders), 1))
        with _parallel_map(jobs) as run:
            return _count(request, schema, pieces, folders, run, progress)


def open_dataset(source: Source) -> Any:
    """All files of the source as one Arrow dataset."""
    from pyarrow import dataset

    paths = _paths(source)
    if not paths:
        raise ParameterError("there are no Parquet files to count: the list is empty")
    for path in paths:
        if not path.exists():
            raise ParameterError(f"there is no file or folder {str(path)!r}")
    files = [str(path) for path in paths if not path.is_dir()]
    sources: list[Any] = [*([files] if files else []), *(str(path) for path in paths if path.is_dir())]
    parts = []
    for one in sources:
        parts.append(dataset.dataset(one, format="parquet", partitioning="hive", exclude_invalid_files=False))
        if not parts[-1].files:
            raise ParameterError(f"there is no Parquet file in {one!r}")
    return parts[0] if len(parts) == 1 else dataset.dataset(parts)


def _paths(source: Source) -> list[Path]:
    listed = list(source) if isinstance(source, Iterable) and not isinstance(source, str) else [source]
    for one in listed:
        if not isinstance(one, (str, os.PathLike)):
            raise ParameterError(
                "the source must be a Parquet file, a folder, a list of them or a Spark data frame, got "
                f"{type(source).__name__}"
            )
    return [Path(one) for one in listed]


def _column_names(dataset: Any) -> list[str]:
    """The columns of the first file, then those that only other files have."""
    all_names = {name for fragment in dataset.get_fragments() for name in fragment.physical_schema.names}
    return [*dataset.schema.names, *sorted(all_names - set(dataset.schema.names))]


def _common_schema(request: TallyRequest, dataset: Any) -> pa.Schema:
    """The requested columns over all files: a file without a column has nulls there, and of several widths of one type
    the widest is taken.
    """
    import pyarrow

    def requested(schema: pa.Schema) -> pa.Schema:
        return pyarrow.schema([field for field in schema if field.name in request.columns])

    found = requested(dataset.schema)
    for fragment in dataset.get_fragments():
        with arrow_errors(fragment.path):
            found = pyarrow.unify_schemas([found, requested(fragment.physical_schema)], promote_options="permissive")
    return found


def _check_types(request: TallyRequest, schema: pa.Schema) -> None:
    from pyarrow import types

    def type_of(name: str) -> Any:
        return plain(schema.empty_table().column(name)).type

    def require(good: bool, name: str, needed: str) -> None:
        if not good:
            raise ParameterError(f"the column {name!r} must hold {needed}, it holds {schema.field(name).type}")

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))

    require(is_bytes(type_of(request.report_column)), request.report_column, "binary values")
    if request.id_column is not None:
        kind = type_of(request.id_column)
        is_text = types.is_string(kind) or types.is_large_string(kind)
        require(is_bytes(kind) or is_text or types.is_integer(kind), request.id_column, "bytes, texts or integers")
    for name in request.by:
        kind = type_of(name)
        unsortable = types.is_nested(kind) or types.is_float16(kind) or types.is_interval(kind)
        require(not unsortable, name, "values that can be compared and sorted")


def split_into_pieces(request: TallyRequest, dataset: Any) -> list[Any]:
    """The row groups of all files, small ones joined. No file may occur twice or name another plan."""
    seen: set[str] = set()
    pieces: list[Any] = []
    for fragment in dataset.get_fragments():
        path = os.path.realpath(fragment.path)
        if path in seen:
            raise ParameterError(f"{fragment.path} is named twice and would be counted twice")
        seen.add(path)
        try:
            request.check_plan(_metadata(fragment.physical_schema, request.report_column))
        except PlanError as error:
            raise PlanError(f"{fragment.path}: {error}") from None
        pieces += _join_row_groups(fragment)
    return pieces


def _join_row_groups(fragment: Any) -> Iterator[Any]:
    """A file's row groups, small ones joined: every piece costs a task, and with ids a file per partition."""
    joined: list[int] = []
    rows = 0
    for group in fragment.row_groups:
        joined.append(group.id)
        rows += group.num_rows
        if rows >= _LEAST_ROWS:
            yield fragment.subset(row_group_ids=joined)
            joined, rows = [], 0
    if joined:
        yield fragment.subset(row_group_ids=joined)


def number_of_rows(piece: Any) -> int:
    """The number of rows of a piece; Arrow's own ``count_rows`` returns that of the whole file."""
    return sum(group.num_rows for group in piece.row_groups)


def _metadata(schema: pa.Schema, column: str) -> dict[str, Any]:
    """The metadata of a column, as Arrow and as Spark write it."""
    place = schema.get_field_index(column)
    own = (schema.field(place).metadata or {}) if place >= 0 else {}
    found: dict[str, Any] = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in own.items()}
    written = (schema.metadata or {}).get(_SPARK_SCHEMA)
    fields = json.loads(written)["fields"] if written else []
    return found | next((field["metadata"] for field in fields if field["name"] == column), {})


@contextmanager
def _partition_folders(request: TallyRequest, pieces: Sequence[Any]) -> Iterator[list[Path]]:
    """Temporary folders, one per partition of the ids; none without an id column."""
    if request.id_column is None:
        yield []
        return
    number = number_of_partitions(request.plan, sum(map(number_of_rows, pieces)))
    with tempfile.TemporaryDirectory(prefix="sunzi-") as parent:
        folders = [Path(parent, str(partition)) for partition in range(number)]
        for folder in folders:
            folder.mkdir()
        yield folders


def _count(
    request: TallyRequest,
    schema: pa.Schema,
    pieces: Sequence[Any],
    folders: list[Path],
    run: ParallelMap,
    progress: Progress | None,
) -> dict[Key, Sifted]:
    total: dict[Key, Sifted] = {}
    done, steps = 0.0, max(len(pieces) * (2 if folders else 1), 1)

    def collect(results: Iterator[dict[Key, Sifted]], weight: float) -> None:
        nonlocal done
        for found in results:
            add_groups(total, found.items())
            done += weight
            if progress is not None:
                progress(min(done / steps, 1.0))

    if folders:
        work = ((request, schema, piece, folders, number) for number, piece in enumerate(pieces))
        collect(run(_partition_piece, work), 1)
        collect(run(count_partition, ((request, folder) for folder in folders)), len(pieces) / len(folders))
    else:
        collect(run(_count_piece, ((request, schema, piece) for piece in pieces)), 1)
    return total


def _count_piece(request: TallyRequest, schema: pa.Schema, piece: Any) -> dict[Key, Sifted]:
    return count_groups(request, _batches(request, schema, piece))


def _partition_piece(
    request: TallyRequest, schema: pa.Schema, piece: Any, folders: list[Path], number: int
) -> dict[Key, Sifted]:
    return partition_rows(request, _batches(request, schema, piece), folders, number)


def _batches(request: TallyRequest, schema: pa.Schema, piece: Any) -> Iterator[pa.RecordBatch]:
    with arrow_errors(piece.path):
        yield from piece.to_batches(schema=schema, columns=request.columns, use_threads=False)


@contextmanager
def _parallel_map(jobs: int) -> Iterator[ParallelMap]:
    """A map over tuples of arguments, in this process or in several; results come in any order."""
    if jobs == 1:
        yield lambda function, work: (function(*arguments) for arguments in work)
        return
    with pool_of_processes(jobs) as pool:
        yield lambda function, work: _as_completed({pool.submit(function, *some) for some in work})


def _as_completed(waiting: set[Future[Any]]) -> Iterator[Any]:
    """Results as they come, each released at once. ``Executor.map`` would cancel the rest if the caller fails, and a
    pool whose processes end while work is being cancelled raises errors.
    """
    try:
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            while done:
                yield done.pop().result()
    except BrokenProcessPool:
        raise ParameterError(
            "a counting process was killed, most likely because memory ran out; try with fewer jobs"
        ) from None
