"""Random words as arrays, and uniform integers made from them without bias.

Everything random in Sunzi is a pure function of words, taken in the order that ``docs/format.md`` fixes
(:mod:`sunzi.client.randomness`). :func:`uniform_below` is exactly uniform if its words are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sunzi.client.errors import ParameterError, RandomnessError
from sunzi.client.randomness import WordSource
from sunzi.client.thresholds import FULL_BITS

Words = NDArray[np.uint64]

_NARROW_BITS = 32
_ALL_ONES = (1 << 64) - 1

# Up to this many columns it is faster to process column by column.
_FEW_COLUMNS = 16


class ArraySource(WordSource):
    """A source whose words are arrays from the start."""

    reproducible = True

    @abstractmethod
    def array(self, count: int) -> Words:
        """The next ``count`` words."""

    def read(self, count: int) -> bytes:
        """The next ``count`` words, as bytes."""
        return self.array(count).astype("<u8", copy=False).tobytes()


def word_array(source: WordSource, count: int) -> Words:
    """The next ``count`` words of any source."""
    if isinstance(source, ArraySource):
        return source.array(count)
    return np.frombuffer(source.read(count), dtype="<u8").astype(np.uint64)


class ReproducibleSource(ArraySource):
    """A seeded stream for simulation: fast and repeatable, but without privacy.

    >>> ReproducibleSource(seed=1).words(3) == ReproducibleSource(seed=1).words(3)
    True
    """

    def __init__(self, seed: int | Sequence[int]) -> None:
        try:
            if seed is None:  # numpy would draw a seed
                raise ValueError
            self._stream = np.random.SFC64(np.random.SeedSequence(seed))
        except (ValueError, TypeError):
            raise ParameterError(f"seed must be a whole number from 0, or a list of them, got {seed!r}") from None
        self.generator = np.random.Generator(self._stream)
        """Variates of other distributions, from the same stream."""

    def array(self, count: int) -> Words:
        """The next ``count`` words of the stream."""
        return self._stream.random_raw(count)


class ScriptedSource(ArraySource):
    """Replays given words, for proofs and conformance vectors; raises RandomnessError past the last one.

    >>> source = ScriptedSource([5, 6, 7])
    >>> source.words(2), source.remaining
    ((5, 6), 1)
    """

    def __init__(self, words: Sequence[int] | Words, word_bits: int = FULL_BITS) -> None:
        if not (1 <= word_bits <= _NARROW_BITS or word_bits == FULL_BITS):
            raise ParameterError(f"word_bits must be 1..32 or 64, got {word_bits}")
        self.word_bits = word_bits
        self._words = np.asarray(words, dtype=np.uint64)
        if self._words.size and int(self._words.max()) >> word_bits:
            raise ParameterError(f"word {int(self._words.max())} does not fit in {word_bits} bits")
        self._position = 0

    @property
    def remaining(self) -> int:
        """The number of words left."""
        return int(self._words.size) - self._position

    def array(self, count: int) -> Words:
        """The next ``count`` words of the script."""
        if count > self.remaining:
            raise RandomnessError(f"{count} words requested, but the script has only {self.remaining} left")
        taken = self._words[self._position : self._position + count].copy()
        self._position += count
        return taken


def uniform_below(words: Words, bounds: NDArray[np.uint64], source: WordSource) -> Words:
    """Uniform integers below ``bounds[c]`` from the words of column ``c``, by Lemire's multiplication.

    A word is rejected if the low half of its product with the bound s is below 2^b mod s.

    Parameters
    ----------
    words: random words, of shape (rows, columns).
    bounds: one bound per column, from 1 to 2^32 − 1.
    source: replaces rejected words, in row-major order, until none is left.

    >>> source = ReproducibleSource(1)
    >>> dice = uniform_below(word_array(source, 100).reshape(100, 1), np.array([6], dtype=np.uint64), source)
    >>> int(dice.max())
    5
    """
    variates, rejected = _multiply(words, bounds, source.word_bits)
    while rejected is not None:
        rows, columns = np.nonzero(rejected)
        fresh = word_array(source, rows.size)
        variates[rows, columns], still = _multiply_flat(fresh, bounds[columns], source.word_bits)
        if still is None:
            break
        rejected[...] = False
        rejected[rows[still], columns[still]] = True
    return variates


def _multiply(words: Words, bounds: NDArray[np.uint64], bits: int) -> tuple[Words, NDArray[np.bool_] | None]:
    """Variates in column-major memory, and where they were rejected (None if nowhere)."""
    if words.shape[1] > _FEW_COLUMNS:
        return _multiply_flat(words, bounds, bits)
    variates = np.empty(words.shape, dtype=np.uint64, order="F")
    rejected: NDArray[np.bool_] | None = None
    for column, bound in enumerate(bounds):
        variates[:, column], refused = _multiply_flat(words[:, column], bound, bits)
        if refused is not None:
            if rejected is None:
                rejected = np.zeros(words.shape, dtype=np.bool_)
            rejected[:, column] = refused
    return variates, rejected


def _multiply_flat(
    words: Words, bounds: NDArray[np.uint64] | np.uint64, bits: int
) -> tuple[Words, NDArray[np.bool_] | None]:
    """The high half of word × bound, and which words are rejected. The bound fits in 32 bits, so two 32-bit steps give
    the exact 96-bit product.
    """
    half = np.uint64(_NARROW_BITS)
    if bits == FULL_BITS:
        low = words * bounds
        high = words & np.uint64(0xFFFFFFFF)
        high *= bounds
        high >>= half
        high += (words >> half) * bounds
        high >>= half
        surplus = (np.uint64(_ALL_ONES) % bounds + np.uint64(1)) % bounds  # 2^64 mod s
    else:
        product = words * bounds
        high = product >> np.uint64(bits)
        low = product & np.uint64((1 << bits) - 1)
        surplus = np.uint64(1 << bits) % bounds
    rejected = low < surplus
    return high, rejected if rejected.any() else None
