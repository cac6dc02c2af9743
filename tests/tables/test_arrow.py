"""Arrow's binary columns as numpy arrays, against Arrow's own values."""

import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.errors import ReportError
from sunzi.numerics.bits import mix_bits
from sunzi.tables.arrow import Cells, cells_of, plain

VALUES = [b"ab", None, b"", b"cde", b"\x00", None, b"ab", bytes(range(40)), b"z"]
FIXED = [b"abc", None, b"def", b"\x00\x00\x00", b"abc"]


def columns():
    """The same values in every type that holds bytes."""
    plain_column = pa.array(VALUES, pa.binary())
    fixed = pa.array(FIXED, pa.binary(3))
    return {
        "binary": plain_column,
        "large": pa.array(VALUES, pa.large_binary()),
        "view": pa.array(VALUES, pa.binary_view()),
        "dictionary": plain_column.dictionary_encode(),
        "large dictionary": pa.array(VALUES, pa.large_binary()).dictionary_encode(),
        "dictionary that holds a null": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, None, 2], pa.int8()), pa.array([b"a", None, b"bc"])
        ),
        "fixed": fixed,
        "fixed dictionary": fixed.dictionary_encode(),
        "no nulls": pa.array([b"a", b"bc"]),
        "only nulls": pa.nulls(4, pa.binary()),
        "empty": pa.array([], pa.binary()),
        "empty fixed": pa.array([], pa.binary(3)),
        "text": pa.array(["a", "ü", None], pa.string()),
        "text view": pa.array(["a", "ü", None], pa.string_view()),
    }


def as_bytes(value):
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("name", columns())
def test_every_cell_of_every_type_and_slice(name):
    column = columns()[name]
    for start in range(len(column) + 1):
        for length in range(len(column) - start + 1):
            part = column.slice(start, length)
            cells = cells_of(part)
            assert len(cells) == length
            expected = [as_bytes(value) for value in part.to_pylist()]
            assert [cells.cell(row) for row in range(length)] == [value or b"" for value in expected]
            assert cells.present.tolist() == [value is not None for value in expected]
            assert cells.lengths.tolist() == [len(value or b"") for value in expected]


def test_a_null_that_keeps_its_bytes_is_still_missing():
    """Arrow leaves arbitrary bytes under a null."""
    ends = pa.py_buffer(np.array([0, 2, 4], dtype=np.int32))
    column = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x01"), ends, pa.py_buffer(b"abcd")])
    cells = cells_of(column)
    assert [cells.cell(0), cells.cell(1)] == [b"ab", b""]
    assert cells.lengths.tolist() == [2, 0]
    assert cells.words(np.arange(2)).tolist() == [int.from_bytes(b"ab", "little"), 0]


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.binary()), pa.null(), pa.float32()], ids=str)
def test_columns_of_other_values_are_refused(kind):
    with pytest.raises(ReportError, match="a column of reports must hold binary values, this one holds"):
        cells_of(pa.nulls(3, kind))


def test_plain_leaves_plain_columns_alone():
    for column in (pa.array([b"a"]), pa.array([1]), pa.chunked_array([pa.array(["a"])])):
        assert plain(column) is column


def test_plain_columns_of_every_kind():
    column = pa.chunked_array([pa.array(["a", "b", "a"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()])
    assert plain(column).type == pa.string()
    assert plain(column).to_pylist() == ["a", "b", "a", "c"]
    if hasattr(pa, "uuid"):
        identifiers = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None], pa.binary(16)))
        assert plain(identifiers).to_pylist() == [b"a" * 16, None]


@given(st.lists(st.binary(max_size=20), max_size=12), st.integers(0, 24), st.data())
def test_words_are_the_bytes(values, place, data):
    cells = cells_of(pa.array(values, pa.binary()))
    rows = data.draw(st.lists(st.integers(0, max(len(values) - 1, 0)), max_size=12 if values else 0))
    found = cells.words(np.array(rows, dtype=np.int64), place)
    assert found.dtype == np.uint64
    assert found.tolist() == [int.from_bytes(values[row][place : place + 8], "little") for row in rows]


@given(st.integers(1, 7), st.lists(st.tuples(st.booleans(), st.binary(min_size=7, max_size=7)), max_size=12))
def test_integers_with_and_without_gaps(width, marked):
    """Selected cells of one width, with cells of another width between them."""
    values = [value[:width] if wanted else value + b"x" for wanted, value in marked]
    rows = np.flatnonzero([wanted for wanted, _ in marked]).astype(np.int64)
    found = cells_of(pa.array(values, pa.binary())).integers(rows, width)
    assert found.tolist() == [int.from_bytes(values[row], "little") for row in rows]


@pytest.mark.slow
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=8))
def test_hashes_depend_on_the_bytes_alone(values):
    """They depend neither on the column's type nor on the cell's position; otherwise duplicates of an id would be
    missed.
    """
    expected = cells_of(pa.array(values, pa.binary())).hashes()
    variants = [
        pa.array([b"before", *values], pa.binary()).slice(1),
        pa.array(values, pa.large_binary()),
        pa.array(values, pa.binary()).dictionary_encode(),
        pa.array(values, pa.binary_view()),
    ]
    for column in variants:
        assert cells_of(column).hashes().tolist() == expected.tolist()
    assert cells_of(pa.array(values[-1:], pa.binary())).hashes()[0] == expected[-1]


def test_different_cells_have_different_hashes():
    """A collision among 20,000 has probability 10^-11."""
    generator = random.Random(1)
    values = {generator.randbytes(generator.randrange(24)) for _ in range(20_000)} | {bytes(n) for n in range(100)}
    assert np.unique(cells_of(pa.array(sorted(values))).hashes()).size == len(values)


@pytest.mark.parametrize("form", ["{}", "user-{:08}", "{:064}", "{}@a-long-domain-name.example"])
def test_numbered_names_are_shared_out_evenly(form):
    """Each of 16 parts holds 1,000 ± 180 of 16,000 names: six standard deviations of a fair draw."""
    hashes = cells_of(pa.array([form.format(number) for number in range(16_000)])).hashes()
    shares = np.bincount((hashes % np.uint64(16)).astype(np.int64), minlength=16)
    assert np.abs(shares - 1000).max() < 180
    numbers = mix_bits(np.arange(16_000, dtype=np.uint64))
    assert np.abs(np.bincount((numbers % np.uint64(16)).astype(np.int64), minlength=16) - 1000).max() < 180


def test_one_enormous_cell_costs_nothing():
    cells = cells_of(pa.array([b"a", b"x" * (1 << 25)]))
    tracemalloc.start()
    try:
        cells.hashes()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_no_cells():
    nothing = cells_of(pa.array([], pa.binary()))
    rows = np.zeros(0, dtype=np.int64)
    assert isinstance(nothing, Cells)
    assert nothing.integers(rows, 2).size == nothing.words(rows).size == nothing.hashes().size == 0
