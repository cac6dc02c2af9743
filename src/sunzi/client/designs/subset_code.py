"""The arithmetic code of w-subsets of {0..m-1}: one word per subset, all of the same length (docs/mathematics.md §9).

The code is normative, for every client in every language (docs/format.md 6.3). It narrows an interval of integers point
by point: when `rest` points remain, of which `left` are chosen, the next one is chosen with probability left / rest.
That is the exact model of a uniform subset, so every subset ends in an interval of nearly the same size, and its word
is the first multiple of 2^-bits in it. All other words are refused.

A word is stored as bytes in the order in which the coder puts them out; the last byte holds the last 1 to 8 bits as a
number.
"""

from __future__ import annotations

import math

MOST_POINTS = (1 << 20) - 1
"""The rounding of m points loses a share of m(m + 1)/2^41, which must stay below 1/2."""

WHOLE, TOP = 1 << 48, 1 << 40
START_BYTES = 6
"""The state of the decoder starts with 48 bits."""
_PRECISION, _TRUSTED_BITS, _FACTORS = 320, 280, 64
"""Up to 2^14 truncations, one for every so many factors, change the leading bits only beyond the trusted ones."""
_DOUBTFUL_BITS = 1e-6
"""Far more than the rounding errors of a logarithm of at most 2^20 bits."""


def word_bits(points: int, block_size: int) -> int:
    """The least B with 2^B·(2^40 − m(m+1)/2) ≥ 2^40·C(m,w): nearly always ⌈log2 C(m,w)⌉."""
    room = TOP - points * (points + 1) // 2
    logarithm = math.lgamma(points + 1) - math.lgamma(block_size + 1) - math.lgamma(points - block_size + 1)
    estimate = (logarithm - math.log(room / TOP)) / math.log(2)
    if abs(estimate - round(estimate)) > _DOUBTFUL_BITS:
        return math.ceil(estimate)
    return _exact_bits(points, block_size, room)


def _exact_bits(points: int, block_size: int, room: int) -> int:
    """:func:`word_bits` where logarithms are too close to a whole number to tell. Leading bits of the binomial nearly
    always do; all of it would take seconds, and a hostile plan could ask for it many times.
    """
    size = min(block_size, points - block_size)
    above, more = _leading_product(points - size + 1, points)
    below, less = _leading_product(1, size)
    ratio = (above << 2 * _PRECISION) // (below * room)
    leading = ratio >> (ratio.bit_length() - _TRUSTED_BITS)
    if leading in (1 << _TRUSTED_BITS - 1, (1 << _TRUSTED_BITS) - 1):  # the other bits decide
        return (-(-math.comb(points, block_size) * TOP // room) - 1).bit_length()
    return ratio.bit_length() + more - less + TOP.bit_length() - 1 - 2 * _PRECISION


def _leading_product(first: int, last: int) -> tuple[int, int]:
    """The leading bits of first·(first + 1)·…·last, and how many bits follow them."""
    mantissa, dropped = 1, 0
    for start in range(first, last + 1, _FACTORS):
        mantissa *= math.prod(range(start, min(start + _FACTORS, last + 1)))
        excess = max(0, mantissa.bit_length() - _PRECISION)
        mantissa, dropped = mantissa >> excess, dropped + excess
    return mantissa, dropped


def encode_subset(members: bytes | bytearray, block_size: int, bits: int) -> bytes:
    """The word of one subset; ``members`` has a byte per point, 1 if it is chosen, else 0."""
    low, width, left, digits, top = 0, WHOLE, block_size, [], TOP
    stop = members.rfind(1) + 1  # after the last chosen point nothing changes, nor where all the rest are chosen
    if stop == len(members):
        stop = members.rfind(0) + 1
    for rest, chosen in zip(range(len(members), 0, -1), members[:stop], strict=False):
        share = width // rest * left
        if chosen:
            width = share
            left -= 1
        else:
            low += share
            width -= share
        while width < top:
            digits.append(low >> 40)
            low = (low & (top - 1)) << 8
            width <<= 8
    tail_bits = bits - 8 * len(digits)
    tail = -(-low >> (48 - tail_bits))
    while tail_bits > 8:
        tail_bits -= 8
        digits.append(tail >> tail_bits)
        tail &= (1 << tail_bits) - 1
    digits.append(tail & ((1 << tail_bits) - 1))
    carry = tail >> tail_bits
    for place in range(len(digits) - 2, -1, -1):
        carry, digits[place] = divmod(digits[place] + carry, 256)
    return bytes(digits)


def decode_subset(word: bytes, points: int, block_size: int, bits: int) -> list[int] | None:
    """The subset of one word, ascending, or None if it has none."""
    if len(word) != (bits + 7) // 8 or word[-1] >> (bits - 1) % 8 + 1:
        return None
    stream = word[:-1] + bytes([word[-1] << -bits % 8]) + bytes(START_BYTES)
    code, width, left, position = int.from_bytes(stream[:START_BYTES], "big"), WHOLE, block_size, START_BYTES
    members: list[int] = []
    for point in range(points):
        rest = points - point
        if left in (0, rest):
            members += range(point, point + left)
            break
        share = width // rest * left
        if code < share:
            width = share
            left -= 1
            members.append(point)
        else:
            code -= share
            width -= share
        while width < TOP:
            code = code << 8 | stream[position]
            width <<= 8
            position += 1
    return members if code >> (8 * position - bits) == 0 else None
