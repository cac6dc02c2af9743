"""Parquet files as a table to count: where its pieces are, which columns it has, and whether each serves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sunzi.errors import ParameterError, PlanError
from sunzi.tables.arrow_reader import arrow_errors
from sunzi.tables.binary import plain
from sunzi.tables.terms import Terms

if TYPE_CHECKING:
    import pyarrow as pa

Source = str | Path | Sequence[str | Path]

_ROWS_OF_A_PIECE = 1 << 18
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


@contextmanager
def reading(path: str | None = None) -> Iterator[None]:
    """pyarrow's complaints as ours, with the file's name."""
    import pyarrow

    try:
        with arrow_errors():
            try:
                yield
            except pyarrow.ArrowTypeError as error:  # files whose columns are of different types
                raise ValueError(str(error)) from None
    except ParameterError as error:
        raise ParameterError(str(error) if path is None or path in str(error) else f"{path}: {error}") from None


def opened(source: Source) -> Any:
    """The files, the folders with all that is in them, or both, as one dataset of Arrow's."""
    from pyarrow import dataset

    listed = [source] if isinstance(source, (str, Path)) else list(source)
    paths = [Path(path) for path in listed]
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


def names_of(dataset: Any) -> list[str]:
    """The columns of all files: those of the first, and what others have besides."""
    besides = {name for fragment in dataset.get_fragments() for name in fragment.physical_schema.names}
    return [*dataset.schema.names, *sorted(besides - set(dataset.schema.names))]


def schema_of(terms: Terms, dataset: Any) -> pa.Schema:
    """The columns that are counted, over all files: one that lacks a column has nulls there, and of kinds that differ
    in width the widest serves.
    """
    import pyarrow

    def counted(schema: pa.Schema) -> pa.Schema:
        return pyarrow.schema([field for field in schema if field.name in terms.columns])

    found = counted(dataset.schema)
    for fragment in dataset.get_fragments():
        with reading(fragment.path):
            found = pyarrow.unify_schemas([found, counted(fragment.physical_schema)], promote_options="permissive")
    return found


def check_kinds(terms: Terms, schema: pa.Schema) -> None:
    """Every column holds what it is asked for."""
    from pyarrow import types

    def kind_of(name: str) -> Any:
        return plain(schema.empty_table().column(name)).type

    def require(good: bool, name: str, needed: str) -> None:
        if not good:
            raise ParameterError(f"the column {name!r} must hold {needed}, it holds {schema.field(name).type}")

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))

    require(is_bytes(kind_of(terms.report_column)), terms.report_column, "binary values")
    if terms.id_column is not None:
        kind = kind_of(terms.id_column)
        is_text = types.is_string(kind) or types.is_large_string(kind)
        require(is_bytes(kind) or is_text or types.is_integer(kind), terms.id_column, "bytes, texts or integers")
    for name in terms.by:
        kind = kind_of(name)
        unsorted = types.is_nested(kind) or types.is_float16(kind) or types.is_interval(kind)
        require(not unsorted, name, "values that can be told apart and sorted")


def pieces_of(terms: Terms, dataset: Any) -> list[Any]:
    """The row groups of all files, small ones together, none of them twice, and each of this plan as far as it says."""
    seen: set[str] = set()
    pieces: list[Any] = []
    for fragment in dataset.get_fragments():
        path = os.path.realpath(fragment.path)
        if path in seen:
            raise ParameterError(f"{fragment.path} is named twice, and would be counted twice")
        seen.add(path)
        try:
            terms.check_owner(_metadata(fragment.physical_schema, terms.report_column))
        except PlanError as error:
            raise PlanError(f"{fragment.path}: {error}") from None
        pieces += _pieces(fragment)
    return pieces


def _pieces(fragment: Any) -> Iterator[Any]:
    """A file's row groups, small ones together: every piece costs a task, and with ids a file for each share."""
    together: list[int] = []
    rows = 0
    for group in fragment.row_groups:
        together.append(group.id)
        rows += group.num_rows
        if rows >= _ROWS_OF_A_PIECE:
            yield fragment.subset(row_group_ids=together)
            together, rows = [], 0
    if together:
        yield fragment.subset(row_group_ids=together)


def rows_of(piece: Any) -> int:
    """Rows of a piece; Arrow's own ``count_rows`` says how many the whole file has."""
    return sum(group.num_rows for group in piece.row_groups)


def _metadata(schema: pa.Schema, column: str) -> dict[str, Any]:
    """What the column says of itself: in Arrow's own metadata, or in what Spark writes beside it."""
    place = schema.get_field_index(column)
    own = (schema.field(place).metadata or {}) if place >= 0 else {}
    found: dict[str, Any] = {key.decode(errors="replace"): value.decode(errors="replace") for key, value in own.items()}
    written = (schema.metadata or {}).get(_SPARK_SCHEMA)
    fields = json.loads(written)["fields"] if written else []
    return found | next((field["metadata"] for field in fields if field["name"] == column), {})
