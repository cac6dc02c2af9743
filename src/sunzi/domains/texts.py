"""Domains without a list of values: texts, read as digits of a public alphabet (docs/mathematics.md §18)."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.domains import texts as client
from sunzi.client.domains.labels import is_missing
from sunzi.client.domains.texts import valid_text
from sunzi.client.errors import DomainError
from sunzi.domains.columns import as_list, check_column
from sunzi.domains.labels import MISSING, UNUSABLE, Domain

LONGER = "…"
"""Marks a truncated text."""

Digits = NDArray[np.uint16]
"""One row per text: token i of the alphabet as i + 1, then the end digit, then zeros."""

_TEXTS_AT_ONCE = 1 << 20


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OpenDomain(client.OpenDomain, Domain):
    """All texts. Every text is read as tokens of an alphabet, and no text is refused. Immutable.

    Tokens are found by greedy longest match; a character that begins no token counts as ``unknown``. Texts of more than
    ``longest`` tokens count as their first ``longest`` tokens with an ellipsis: one separate value per prefix. An empty
    text is a value. A lone surrogate, which is not a character, counts as U+FFFD.

    Parameters
    ----------
    alphabet: "letters" (a to z), "bytes" (UTF-8), or a list of tokens such as "https://", "www.", "a", "b".
    longest: the maximum length of a text in tokens; longer texts are truncated. More tokens need more users.
    unknown: the token for characters that begin no token, added to the alphabet if it is not in it.
    note: how the application normalises texts, such as "lower case, NFC"; stored as information, since Sunzi does not
        normalise texts.

    >>> import sunzi
    >>> domain = sunzi.OpenDomain("letters", longest=5)
    >>> domain.text(domain.digits(["don't"])[0]), domain.text(domain.digits(["letters"])[0])
    ('don?t', 'lette…')
    """

    @property
    def is_indices(self) -> bool:
        """Always False."""
        return False

    def digits(self, texts: Sequence[str]) -> Digits:
        """The digits of texts, one row each."""
        parts = [self._digits(texts[start : start + _TEXTS_AT_ONCE]) for start in range(0, len(texts), _TEXTS_AT_ONCE)]
        return np.concatenate(parts) if parts else np.empty((0, self.width), dtype=np.uint16)

    def _digits(self, texts: Sequence[str]) -> Digits:
        tokens, lengths = self._tokens(texts if "".join(texts).isascii() else [valid_text(text) for text in texts])
        starts, found = np.cumsum(lengths) - lengths, np.zeros((len(texts), self.width), dtype=np.uint16)
        for length in range(self.longest + 1):
            rows = np.flatnonzero(lengths == length if length < self.longest else lengths >= length)
            found[rows, :length] = tokens[starts[rows, None] + np.arange(length)]
        whole = np.flatnonzero(lengths <= self.longest)
        found[whole, lengths[whole]] = self.end
        return found

    def _tokens(self, texts: Sequence[str]) -> tuple[Digits, Integers]:
        """The concatenated tokens of all texts, and their number in each text."""
        if self.is_bytes:
            encoded = [text.encode() for text in texts]
            return np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.uint16) + np.uint16(1), _lengths(encoded)
        if self.longest_symbol == 1:
            codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
            return self._of_characters[np.minimum(codes, self._of_characters.size - 1)], _lengths(texts)
        found = [self.matched(text) for text in texts]
        return np.array([digit for row in found for digit in row], dtype=np.uint16), _lengths(found)

    @cached_property
    def _of_characters(self) -> Digits:
        """The digit of every character up to the last one of the alphabet; all others are at the end."""
        table = np.full(max(map(ord, self.symbols)) + 2, self.numbers[self.unknown or ""], dtype=np.uint16)
        table[[ord(symbol) for symbol in self.symbols]] = np.arange(1, len(self.symbols) + 1)
        return table

    def text(self, digits: Sequence[int] | Digits) -> str:
        """The text with these digits; :data:`LONGER` ends those that are longer than planned."""
        row = [int(digit) for digit in digits if digit]
        joined = "".join(self.symbols[digit - 1] for digit in row if digit != self.end)
        if self.is_bytes:
            joined = joined.encode("latin-1").decode(errors="backslashreplace")
        return joined if self.end in row else joined + LONGER

    def texts(self, digits: Digits) -> Iterator[str]:
        """The texts of many rows of digits; fast for alphabets of single characters."""
        if self.is_bytes or self.longest_symbol > 1 or "\0" in self.symbols:  # NumPy drops zeros at the end
            yield from map(self.text, digits)
            return
        characters = np.array([0, *map(ord, self.symbols), 0], dtype=np.uint32)
        for start in range(0, len(digits), _TEXTS_AT_ONCE):
            part = digits[start : start + _TEXTS_AT_ONCE]
            codes = characters[part]
            codes[self.is_longer(part), self.longest] = ord(LONGER)
            yield from codes.view(f"U{self.width}")[:, 0].tolist()

    def is_longer(self, digits: Digits) -> NDArray[np.bool_]:
        """Which rows are texts of more tokens than planned."""
        return ~(digits == self.end).any(axis=1)

    def locate(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        """The digits of every text; rows of UNUSABLE and MISSING for values that are not texts."""
        listed = list(values)
        found = np.full((len(listed), self.width), MISSING, dtype=np.int64)
        places = [place for place, value in enumerate(listed) if isinstance(value, str)]
        found[places] = self.digits([listed[place] for place in places])
        for place, value in enumerate(listed):
            if not isinstance(value, str) and not is_missing(value):
                found[place] = UNUSABLE
        return found

    def indices(self, values: object) -> Integers:
        """The digits of many texts: a list, an array, or a column of a data frame."""
        listed = as_list(check_column(values, "values must be a list, an array or a column"))
        found = self.locate(listed)
        wrong = np.flatnonzero(found[:, 0] < 0)
        if wrong.size:
            raise self.refusal(listed[int(wrong[0])])
        return found

    def exact_index(self, value: object) -> Any:
        """As :meth:`index`: every text is in an open domain."""
        return self.index(value)

    def check_indices(self, indices: Integers) -> None:
        """Raise DomainError unless these are rows of digits."""
        if indices.ndim != 2 or (indices.size and not 0 <= indices.min() <= indices.max() <= self.end):
            raise DomainError(f"texts are rows of digits from 0 to {self.end}: use the domain's indices")

    def label(self, index: int) -> str:
        """Not supported: values have no indices."""
        raise DomainError(f"an open domain has no list of values, so there is no value {index}")

    def in_words(self) -> str:
        """The alphabet and the maximum length."""
        kind = "bytes" if self.is_bytes else f"{len(self.symbols):,} tokens"
        note = f" ({self.note})" if self.note else ""
        return f"texts{note} of up to {self.longest:,} out of {kind}; longer ones are truncated"

    @property
    def size_in_words(self) -> str:
        """A description instead of a number of values."""
        return "texts without a list"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TextList(Domain):
    """Any number of texts of an open domain, looked up by any text that reads the same. Immutable."""

    source: OpenDomain

    def __init__(self, source: OpenDomain, digits: Digits) -> None:
        self._set(len(digits), labels=tuple(source.texts(digits)), source=source)

    def locate(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        """The place of each text in the list, or UNKNOWN, UNUSABLE or MISSING if it has none."""
        return super().locate([self._read(value) if isinstance(value, str) else value for value in values])

    def _read(self, text: str) -> str:
        return text if text in self.positions else self.source.text(self.source.digits([text])[0])


def distinct(digits: Digits) -> Digits:
    """The different rows, in order of appearance."""
    rows = np.ascontiguousarray(digits).view(np.dtype((np.void, digits.dtype.itemsize * digits.shape[1])))[:, 0]
    return digits[np.sort(np.unique(rows, return_index=True)[1])]


def read_texts(source: str | Path | Iterable[str]) -> Iterator[list[str]]:
    """Texts in chunks: those given, or the lines of a UTF-8 file, which may be compressed by gzip."""
    if not isinstance(source, (str, Path)):
        if not _is_texts(listed := list(source)):
            raise DomainError("expected texts, or the name of a file with one text per line")
        yield listed
        return
    opened = gzip.open if Path(source).suffix == ".gz" else open
    try:
        with opened(source, "rt", encoding="utf-8-sig", newline=None) as stream:
            while piece := stream.read(_TEXTS_AT_ONCE << 3):
                yield (piece + stream.readline()).removesuffix("\n").split("\n")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise DomainError(f"{source} is not UTF-8 text with one text per line: {error}") from None


def _is_texts(values: list[Any]) -> TypeGuard[list[str]]:
    return all(isinstance(value, str) for value in values)


def _lengths(values: Sequence[Any]) -> Integers:
    return np.fromiter(map(len, values), dtype=np.int64, count=len(values))
