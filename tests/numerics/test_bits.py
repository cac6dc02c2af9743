"""Bit packing, against one Python integer that holds all values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sunzi.errors import ReportError
from sunzi.numerics.bits import WIDEST_NARROW, byte_length, index_bits, pack, pack_wide, unpack, unpack_wide


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
    assert pack_wide([], []) == b""
    assert unpack_wide(b"", []) == []
    assert pack_wide([0, 0], [0, 0]) == b""
    assert unpack_wide(b"", [0, 0]) == [0, 0]


@pytest.mark.parametrize("width", [1, 3, 7, 9, 13, 55])
def test_any_padding_bit_is_refused(width):
    values = np.array([1, 0, 1], dtype=np.uint64)
    data = bytearray(pack(values, width))
    for bit in range(3 * width, 8 * len(data)):
        damaged = bytearray(data)
        damaged[-1] ^= 1 << bit % 8
        with pytest.raises(ReportError, match="padding"):
            unpack(bytes(damaged), 3, width)
        with pytest.raises(ReportError, match="padding"):
            unpack_wide(bytes(damaged), [width] * 3)


@pytest.mark.parametrize("change", [-2, -1, 1, 9])
def test_a_wrong_length_is_refused(change):
    data = pack(np.arange(9, dtype=np.uint64), 13)
    wrong = data[:change] if change < 0 else data + bytes(change)
    with pytest.raises(ReportError, match="bytes"):
        unpack(wrong, 9, 13)
    with pytest.raises(ReportError, match="bytes"):
        unpack_wide(wrong, [13] * 9)


@given(st.lists(st.integers(0, 300).flatmap(lambda width: st.tuples(st.integers(0, (1 << width) - 1), st.just(width)))))
def test_wide_values_of_mixed_widths(pairs):
    values, widths = [value for value, _ in pairs], [width for _, width in pairs]
    data = pack_wide(values, widths)
    assert data == one_integer(values, widths)
    assert unpack_wide(data, widths) == values


@given(st.integers(1, WIDEST_NARROW), st.data())
def test_narrow_and_wide_agree(width, data):
    values = data.draw(st.lists(st.integers(0, (1 << width) - 1), max_size=30))
    assert pack(np.array(values, dtype=np.uint64), width) == pack_wide(values, [width] * len(values))


def test_index_bits_is_the_smallest_width_that_tells_messages_apart():
    for count in range(1, 2000):
        bits = index_bits(count)
        assert 1 << bits >= count
        assert bits == 0 or 1 << (bits - 1) < count


def test_byte_length_rounds_up():
    assert [byte_length(bits) for bits in (0, 1, 7, 8, 9, 16, 17)] == [0, 1, 1, 1, 2, 2, 3]
