"""Sources of random words, and uniform integers made from them without bias.

A *word* is an unsigned integer of ``word_bits`` bits: 64, or fewer in proofs. Everything random in Sunzi is a pure
function of words, taken in the order that ``docs/format.md`` fixes, so that proofs can enumerate a randomiser and tests
can compare clients byte for byte.
"""

from __future__ import annotations

import hmac
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import unpack
from typing import ClassVar

from .thresholds import FULL_BITS


class WordSource(ABC):
    """Delivers uniform, independent words of ``word_bits`` bits.

    >>> isinstance(SystemSource(), WordSource)
    True
    """

    word_bits: int = FULL_BITS
    reproducible: ClassVar[bool]
    """Whether others could draw the same words, so that reports protect nobody."""

    @abstractmethod
    def read(self, count: int) -> bytes:
        """The next ``count`` words, each in 8 bytes, the lowest first."""

    def words(self, count: int) -> tuple[int, ...]:
        """The next ``count`` words."""
        return unpack(f"<{count}Q", self.read(count))


class SystemSource(WordSource):
    """The operating system's generator: the only source that gives privacy. It never returns a word twice, not even
    across ``fork``.

    >>> len(SystemSource().words(3))
    3
    """

    reproducible = False

    def read(self, count: int) -> bytes:
        """The next ``count`` words from the system."""
        return os.urandom(8 * count)


class DerivedSource(WordSource):
    """Words derived from a secret key, the same every time: for reports that must repeat.

    Block c of the stream is HMAC-SHA256(key, c as 8 bytes, little-endian); each gives four words of 8 bytes,
    little-endian. Without the key the words are computationally indistinguishable from random ones.
    """

    reproducible = False

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._block = 0
        self._left = b""

    def read(self, count: int) -> bytes:
        """The next ``count`` words of the stream."""
        parts, missing = [self._left], 8 * count - len(self._left)
        while missing > 0:
            parts.append(hmac.digest(self._key, self._block.to_bytes(8, "little"), "sha256"))
            self._block += 1
            missing -= 32
        stream = b"".join(parts)
        self._left = stream[8 * count :]
        return stream[: 8 * count]


def uniform_integers(words: Sequence[int], bounds: Sequence[int], source: WordSource) -> list[int]:
    """A uniform integer below each bound, from a word each, by Lemire's multiplication.

    A word is rejected if the low half of its product with the bound s is below 2^b mod s. Rejected words are replaced
    in rounds, in order, until none is rejected.

    Parameters
    ----------
    words: random words, as many as bounds.
    bounds: from 1 to 2^32 − 1.
    source: delivers the words that replace rejected ones.
    """
    bits = source.word_bits
    full = 1 << bits
    drawn = [word * bound for word, bound in zip(words, bounds, strict=True)]
    rejected = [place for place, bound in enumerate(bounds) if drawn[place] & (full - 1) < full % bound]
    while rejected:
        for place, word in zip(rejected, source.words(len(rejected)), strict=True):
            drawn[place] = word * bounds[place]
        rejected = [place for place in rejected if drawn[place] & (full - 1) < full % bounds[place]]
    return [product >> bits for product in drawn]
