"""One column of a Parquet or Arrow file, by pyarrow, the ``frames`` extra.

Texts come as positions in a dictionary, the file's own where it has one, so that each distinct text is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sunzi.errors import MissingExtraError, ParameterError, SunziError
from sunzi.tables.rows import ROWS_AT_ONCE, Column, Rows, choose_column


def find_pyarrow() -> Any:
    """The library, or None."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        return None
    return pyarrow


def need_pyarrow(feature: str) -> Any:
    """The library, or an error that names the extra."""
    pyarrow = find_pyarrow()
    if pyarrow is None:
        raise MissingExtraError(feature, "frames")
    return pyarrow


@contextmanager
def arrow_errors() -> Iterator[None]:
    """pyarrow's complaints about what a file holds, which are of many classes and lines, as one of ours in one line."""
    try:
        yield
    except SunziError:
        raise
    except (ValueError, OSError, NotImplementedError, KeyError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ParameterError(f"the table cannot be read: {reason}") from None


def parquet_column(path: Path, column: str | None) -> Column:
    """The column of a Parquet file."""
    need_pyarrow("reading Parquet")
    from pyarrow import parquet

    with arrow_errors():
        schema = parquet.read_schema(path)
        position, name = choose_column(schema.names, column)
        kind = _checked_type(schema.field(position))
        # With the last two, memory holds a few pages at a time instead of a row group's whole column.
        file = parquet.ParquetFile(
            path, read_dictionary=[name] if _is_text(kind) else None, buffer_size=1 << 20, pre_buffer=False
        )
    total = file.metadata.num_rows
    done = 0

    def arrays() -> Iterator[Any]:
        nonlocal done
        with file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[name], use_threads=False):
                yield batch.column(0)
                done += len(batch)

    return Column(name, pieces_of(arrays()), lambda: done / total if total else None)


def arrow_column(path: Path, column: str | None) -> Column:
    """The column of an Arrow file, of the random-access or the streaming kind."""
    pyarrow = need_pyarrow("reading Arrow files")
    from pyarrow import ipc

    def open_reader(options: Any) -> Any:
        try:
            return ipc.open_file(pyarrow.memory_map(str(path)), options=options)
        except pyarrow.ArrowInvalid:
            return ipc.open_stream(pyarrow.memory_map(str(path)), options=options)

    with arrow_errors():
        schema = open_reader(None).schema
        position, name = choose_column(schema.names, column)
        _checked_type(schema.field(position))
        reader = open_reader(ipc.IpcReadOptions(included_fields=[position], use_threads=False))
    total = getattr(reader, "num_record_batches", None)
    done = 0

    def arrays() -> Iterator[Any]:
        nonlocal done
        for batch in reader if total is None else map(reader.get_batch, range(total)):
            yield batch.column(0)
            done += 1

    return Column(name, pieces_of(arrays()), lambda: done / total if total else None)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _checked_type(field: Any) -> Any:
    from pyarrow import types

    kind = field.type
    values = kind.value_type if types.is_dictionary(kind) else kind
    if not (_is_text(values) or types.is_integer(values)):
        raise ParameterError(f"the column {field.name!r} holds {kind}; cast it to text or to integers")
    return kind


def pieces_of(arrays: Iterable[Any]) -> Iterator[Rows]:
    """Arrow arrays as rows. Arrays in turn with equal dictionaries share one list of texts."""
    dictionary: Any = None
    texts: list[str | None] = []
    with arrow_errors():
        for array in arrays:
            simple = _simplified(array)
            for start in range(0, len(simple), ROWS_AT_ONCE):
                piece = simple.slice(start, ROWS_AT_ONCE)
                if not hasattr(piece, "dictionary"):
                    yield _integer_rows(piece)
                    continue
                if dictionary is None or not piece.dictionary.equals(dictionary):
                    dictionary = piece.dictionary
                    texts = [*dictionary.to_pylist(), None]
                yield Rows(_codes(piece.indices, len(texts) - 1), texts)


def _simplified(array: Any) -> Any:
    """Integers, or a dictionary of texts."""
    from pyarrow import string, types

    if types.is_dictionary(array.type):
        return array if _is_text(array.type.value_type) else array.dictionary_decode()
    if types.is_string_view(array.type):
        array = array.cast(string())
    return array.dictionary_encode() if _is_text(array.type) else array


def _integer_rows(array: Any) -> Rows:
    if not array.null_count:
        return Rows(array.to_numpy(zero_copy_only=False))
    missing = array.is_null().to_numpy(zero_copy_only=False)
    return Rows(array.fill_null(0).to_numpy(zero_copy_only=False), None, missing)


def _codes(indices: Any, missing: int) -> Any:
    """Positions in the dictionary, that of a missing value being ``missing``."""
    from pyarrow import int64

    filled = indices.cast(int64()).fill_null(missing) if indices.null_count else indices
    return filled.to_numpy(zero_copy_only=False)
