"""Bit packing, against one Python integer that holds all values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.client.designs.design import index_bits
from sunzi.client.errors import ReportError
from sunzi.client.reports import WIDEST_NARROW, byte_length
from sunzi.numerics.bits import as_integers, as_rows, pack, place_rows, take_rows, unpack


def one_integer(values, widths):
    """The definition: value i starts at the bit given by the sum of the widths before it."""
    number = position = 0
    for value, width in zip(values, widths, strict=True):
        number |= value << position
        position += width
    return number.to_bytes((position + 7) // 8, "little")


@pytest.mark.parametrize("width", range(1, WIDEST_NARROW + 1))
def test_every_narrow_width(width):
    generator = np.random.default_rng(width)
    for count in (1, 2, 7, 8, 9, 64, 100):
        values = generator.integers(0, 1 << width, count, dtype=np.uint64)
        values[0] = (1 << width) - 1
        data = pack(values, width)
        assert data == one_integer(values.tolist(), [width] * count)
        assert np.array_equal(unpack(data, count, width), values)
        assert np.array_equal(unpack(memoryview(data), count, width), values)


@pytest.mark.parametrize("width", [1, 3, 8, 13, 17, 31, 56])
def test_many_values(width):
    values = np.random.default_rng(width).integers(0, 1 << width, 100_003, dtype=np.uint64)
    data = pack(values, width)
    assert data == one_integer_fast(values, width)
    assert np.array_equal(unpack(data, values.size, width), values)


def one_integer_fast(values, width):
    """The same with one string of binary digits, most significant first."""
    digits = "".join(f"{value:0{width}b}" for value in values[::-1].tolist())
    return int(digits, 2).to_bytes(byte_length(len(digits)), "little")


def test_nothing_takes_no_bytes():
    empty = np.empty(0, dtype=np.uint64)
    assert pack(empty, 13) == b""
    assert unpack(b"", 0, 13).size == 0
    assert pack(np.zeros(5, dtype=np.uint64), 0) == b""
    assert unpack(b"", 5, 0).tolist() == [0] * 5
    buffer = np.zeros(3, dtype=np.uint8)
    for count, width in ((0, 13), (5, 0)):
        rows, starts = np.zeros((count, byte_length(width)), dtype=np.uint8), np.zeros(count, dtype=np.int64)
        place_rows(buffer, starts, rows, width)
        assert take_rows(buffer, starts, width).shape == rows.shape
    assert not buffer.any()


@pytest.mark.parametrize("width", [1, 3, 7, 9, 13, 55])
def test_any_padding_bit_is_refused(width):
    values = np.array([1, 0, 1], dtype=np.uint64)
    data = bytearray(pack(values, width))
    for bit in range(3 * width, 8 * len(data)):
        damaged = bytearray(data)
        damaged[-1] ^= 1 << bit % 8
        with pytest.raises(ReportError, match="padding"):
            unpack(bytes(damaged), 3, width)


@pytest.mark.parametrize("change", [-2, -1, 1, 9])
def test_a_wrong_length_is_refused(change):
    data = pack(np.arange(9, dtype=np.uint64), 13)
    wrong = data[:change] if change < 0 else data + bytes(change)
    with pytest.raises(ReportError, match="bytes"):
        unpack(wrong, 9, 13)


def as_row(value, width):
    return list(value.to_bytes(byte_length(width), "little"))


@given(st.lists(st.integers(0, 300).flatmap(lambda width: st.tuples(st.integers(0, (1 << width) - 1), st.just(width)))))
def test_rows_of_mixed_widths(pairs):
    """Values of one width are placed together, among those of other widths."""
    values, widths = [value for value, _ in pairs], np.array([width for _, width in pairs], dtype=np.int64)
    starts = np.cumsum(widths) - widths
    buffer = np.zeros(byte_length(int(widths.sum())) + 1, dtype=np.uint8)
    for width in sorted(set(widths.tolist())):
        rows = [as_row(value, width) for value, own in pairs if own == width]
        place_rows(buffer, starts[widths == width], np.array(rows, dtype=np.uint8).reshape(len(rows), -1), width)
    assert buffer[:-1].tobytes() == one_integer(values, widths.tolist())
    assert buffer[-1] == 0
    for width in sorted(set(widths.tolist())):
        rows = [as_row(value, width) for value, own in pairs if own == width]
        assert take_rows(buffer, starts[widths == width], width).tolist() == rows


@given(st.integers(1, WIDEST_NARROW), st.data())
def test_integers_and_rows_agree(width, data):
    values = np.array(data.draw(st.lists(st.integers(0, (1 << width) - 1), max_size=30)), dtype=np.uint64)
    rows = as_rows(values, width)
    assert rows.tolist() == [as_row(value, width) for value in values.tolist()]
    assert np.array_equal(as_integers(rows), values)
    assert as_rows(rows, width) is rows
    buffer = np.zeros(byte_length(values.size * width) + 1, dtype=np.uint8)
    place_rows(buffer, np.arange(values.size) * width, rows, width)
    assert buffer[:-1].tobytes() == pack(values, width)


def test_index_bits_is_the_smallest_width_that_tells_messages_apart():
    for count in range(1, 2000):
        bits = index_bits(count)
        assert 1 << bits >= count
        assert bits == 0 or 1 << (bits - 1) < count


def test_byte_length_rounds_up():
    assert [byte_length(bits) for bits in (0, 1, 7, 8, 9, 16, 17)] == [0, 1, 1, 1, 2, 2, 3]
