"""Word pieces: tokens for the alphabet of an open domain, learned from public texts by byte-pair encoding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from sunzi.client.domains.texts import MOST_SYMBOLS, valid_text
from sunzi.client.errors import DomainError, whole_number
from sunzi.domains.texts import read_texts

Pair = tuple[str, str]

_LONGEST_PIECE = 32


def word_pieces(texts: str | Path | Iterable[str], number: int) -> list[str]:
    """Tokens that shorten such texts: their most frequent characters, and pieces of several characters.

    Byte-pair encoding repeatedly merges the most frequent pair of adjacent tokens. Learn from public texts only: the
    tokens are in the plan, which anyone can read.

    Parameters
    ----------
    texts: public texts of the same kind as those of users, frequent ones repeated; or a file with one per line.
    number: the maximum number of tokens.

    >>> import sunzi
    >>> pieces = sunzi.word_pieces(["www.a.org", "www.b.org", "www.c.org"], 20)
    >>> {"www.", ".org"} <= {*pieces}
    True
    >>> domain = sunzi.OpenDomain(pieces, longest=3)
    >>> domain.text(domain.digits(["www.a.org"])[0])
    'www.a.org'
    """
    number = whole_number("number", number, 2, MOST_SYMBOLS - 1)
    counts = Counter(valid_text(text) for part in read_texts(texts) for text in part)
    characters: Counter[str] = Counter()
    for text, count in counts.items():
        for character in text:
            characters[character] += count
    if len(characters) < 2:
        raise DomainError(f"word pieces need texts with at least 2 different characters, got {len(characters)}")
    tokens = sorted(characters, key=lambda each: (-characters[each], each))[:number]
    merging = _Merging(counts, frozenset(tokens))
    while len(tokens) < number and (merged := merging.merge()) is not None:
        if merged not in tokens:
            tokens.append(merged)
    return tokens


class _Merging:
    """Texts as rows of tokens, and the places of every pair of adjacent tokens."""

    def __init__(self, counts: Counter[str], characters: frozenset[str]) -> None:
        self._characters = characters
        self._rows = [list(text) for text in counts]
        self._weights = list(counts.values())
        self._numbers: Counter[Pair] = Counter()
        self._places: dict[Pair, set[int]] = {}
        for place in range(len(self._rows)):
            self._count(place, 1)

    def _count(self, place: int, sign: int) -> None:
        """Add or remove the pairs of a row."""
        for pair in pairwise(self._rows[place]):
            merged = "".join(pair)
            if len(merged) > _LONGEST_PIECE or not self._characters.issuperset(merged):
                continue  # too long, or with a rare character, which is not a token
            self._numbers[pair] += sign * self._weights[place]
            self._places.setdefault(pair, set()).add(place)

    def merge(self) -> str | None:
        """Merge the most frequent pair everywhere; None if no pair occurs twice."""
        pair = max(self._numbers, key=lambda each: (self._numbers[each], each), default=None)
        if pair is None or self._numbers[pair] < 2:
            return None
        for place in self._places.pop(pair):
            self._count(place, -1)
            self._rows[place] = _joined(self._rows[place], pair)
            self._count(place, 1)
        del self._numbers[pair]
        return "".join(pair)


def _joined(row: list[str], pair: Pair) -> list[str]:
    """The row with this pair merged."""
    found: list[str] = []
    for token in row:
        if found and (found[-1], token) == pair:
            found[-1] += token
        else:
            found.append(token)
    return found
