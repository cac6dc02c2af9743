"""Domains without a list of values: texts, read as digits of a public alphabet (docs/mathematics.md §18)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from ..errors import DomainError, PlanError, shown, whole_number
from ..strict_json import integer_parameter, keys_of
from .labels import SILENCE, Domain, is_missing
from .ranges import CONTROL

MOST_SYMBOLS = 1 << 15
LONGEST = 1 << 10
"""The largest ``longest`` of a plan."""
LETTERS, BYTES = "letters", "bytes"
_LARGEST_SIZE = (1 << 53) - 1
_LONGEST_NOTE = 200


@dataclass(frozen=True, init=False, eq=False, repr=False)
class OpenDomain(Domain):
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

    >>> from sunzi.client import OpenDomain
    >>> OpenDomain("letters", longest=5).index("ab")
    (1, 2, 28, 0, 0, 0)
    """

    symbols: tuple[str, ...]
    unknown: str | None
    longest: int
    note: str

    def __init__(
        self, alphabet: str | Iterable[str], longest: int, *, unknown: str | None = None, note: str = ""
    ) -> None:
        if alphabet == BYTES and unknown is not None:
            raise DomainError(f"every text is bytes, so there is no unknown token; omit unknown={unknown!r}")
        if type(note) is not str or len(note) > _LONGEST_NOTE or CONTROL.search(note):
            raise DomainError(f"a note must be printable text of at most {_LONGEST_NOTE} characters, got {shown(note)}")
        symbols = _symbols(alphabet)
        unknown = None if alphabet == BYTES else "?" if unknown is None else _checked_symbol(unknown)
        if unknown is not None and unknown not in symbols:
            symbols = (*symbols, unknown)
        if not 2 <= len(symbols) <= MOST_SYMBOLS:
            raise DomainError(f"an alphabet must have between 2 and {MOST_SYMBOLS:,} tokens, got {len(symbols):,}")
        longest = whole_number("longest", longest, 1, LONGEST)
        size = min(sum(len(symbols) ** length for length in range(longest + 1)), _LARGEST_SIZE)
        self._set(size, symbols=symbols, unknown=unknown, longest=longest, note=note)

    @property
    def is_open(self) -> bool:
        """Always True."""
        return True

    @property
    def end(self) -> int:
        """The digit that ends a text, which is also the largest digit."""
        return len(self.symbols) + 1

    @property
    def width(self) -> int:
        """The maximum number of digits of a text: its tokens and the end."""
        return self.longest + 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of choices for each token of a random text."""
        return (len(self.symbols),) * self.longest

    @property
    def is_bytes(self) -> bool:
        """Whether tokens are bytes."""
        return self.unknown is None

    def index(self, value: object) -> tuple[int, ...]:
        """The digits of one text, used instead of an index: token i as i + 1, the end digit, then zeros."""
        if not isinstance(value, str):
            raise self.refusal(value)
        text = valid_text(value)
        found = [byte + 1 for byte in text.encode()] if self.is_bytes else self.matched(text)
        digits = found[: self.longest] if len(found) > self.longest else [*found, self.end]
        return (*digits, *[0] * (self.width - len(digits)))

    def matched(self, text: str) -> list[int]:
        """The tokens of one text by greedy longest match, at most one more than ``longest``."""
        numbers, unknown, place = self.numbers, self.numbers[self.unknown or ""], 0
        found: list[int] = []
        while place < len(text) and len(found) <= self.longest:
            for length in range(min(self.longest_symbol, len(text) - place), 0, -1):
                digit = numbers.get(text[place : place + length])
                if digit is not None:
                    break
            else:
                digit = unknown
            found.append(digit)
            place += length
        return found

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The digit of every token."""
        return {symbol: place + 1 for place, symbol in enumerate(self.symbols)}

    @cached_property
    def longest_symbol(self) -> int:
        """The most characters of a token."""
        return max(map(len, self.symbols))

    def check_index(self, index: Any) -> None:
        """Raise DomainError unless this is a row of digits."""
        is_row = isinstance(index, Sequence) and len(index) == self.width
        if not is_row or not all(isinstance(digit, int) and 0 <= digit <= self.end for digit in index):
            raise DomainError(f"texts are rows of {self.width} digits from 0 to {self.end}: use the domain's index")

    def joined(self, digits: Sequence[int]) -> Any:
        """A text of the maximum length."""
        return (*(digit + 1 for digit in digits), self.end)

    def refusal(self, value: object) -> DomainError:
        """The error that says why a value is not text."""
        if is_missing(value):
            return DomainError(f"a value is missing (null or NaN); fill it in, for example with '', {SILENCE}")
        return DomainError(f"value {shown(value)} is not text; use str() on it")

    def shown(self, index: Any) -> str:
        """The text with these digits."""
        joined = "".join(self.symbols[digit - 1] for digit in index if 0 < digit < self.end)
        return joined.encode("latin-1").decode(errors="backslashreplace") if self.is_bytes else joined

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        named = {"symbols": BYTES} if self.is_bytes else {"symbols": list(self.symbols), "unknown": self.unknown}
        return {**named, "longest": self.longest, **({"note": self.note} if self.note else {})}

    @classmethod
    def from_json(cls, record: object) -> Self:
        """The inverse of :meth:`to_json`."""
        is_bytes = isinstance(record, dict) and record.get("symbols") == BYTES
        needed = ["symbols", "longest"] if is_bytes else ["symbols", "longest", "unknown"]
        fields = keys_of("an open domain", record, needed, ["note"])
        symbols, unknown, note = fields["symbols"], fields.get("unknown"), fields.get("note", "")
        if not is_bytes and (not isinstance(symbols, list) or not isinstance(unknown, str)):
            raise PlanError(f'symbols must be "bytes" or a list of tokens, unknown one of them, got {shown(record)}')
        if "note" in fields and not note:
            raise PlanError("a note must not be empty; omit it")
        longest = integer_parameter(fields, "longest", 1, LONGEST)
        domain = cls(symbols, longest, unknown=unknown, note=note)
        if not is_bytes and list(domain.symbols) != symbols:
            raise PlanError(f"unknown must be one of the symbols, got {shown(unknown)}")
        return domain

    def __repr__(self) -> str:
        """The alphabet and the length."""
        kind = "bytes" if self.is_bytes else f"{len(self.symbols):,} tokens"
        return f"OpenDomain(texts of up to {self.longest:,} out of {kind})"


def _symbols(alphabet: object) -> tuple[str, ...]:
    if alphabet == LETTERS:
        return tuple("abcdefghijklmnopqrstuvwxyz")
    if alphabet == BYTES:
        return tuple(map(chr, range(256)))
    if isinstance(alphabet, str) or not isinstance(alphabet, Iterable):
        raise DomainError(f'an alphabet must be "letters", "bytes" or a list of tokens, got {shown(alphabet)}')
    found = tuple(_checked_symbol(symbol) for symbol in alphabet)
    if len(set(found)) != len(found):
        seen: set[str] = set()
        twice = next(each for each in found if each in seen or seen.add(each))  # type: ignore[func-returns-value]
        raise DomainError(f"the token {shown(twice)} occurs twice in the alphabet")
    return found


def _checked_symbol(symbol: object) -> str:
    if not isinstance(symbol, str) or not symbol or valid_text(symbol) != symbol:
        raise DomainError(f"a token must be a text of at least one character, got {shown(symbol)}")
    return symbol


def valid_text(text: str) -> str:
    """The text, with U+FFFD for lone surrogates; surrogate pairs become characters."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
