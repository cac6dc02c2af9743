"""What a person at a terminal sees: tables, colour where it is welcome, and progress that leaves no trace.

Nothing of this appears in a pipe or a file. Text from elsewhere, such as labels, is shown without control characters,
so that no plan can steer a terminal.
"""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Sequence
from typing import Self, TextIO

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}
_SECONDS_BETWEEN_LINES = 0.1
_SLOWEST_START = 0.5


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is likely to be looking."""
    return stream.isatty()


def welcomes_colour(stream: TextIO) -> bool:
    """A terminal that can, and nobody who said no (https://no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str, stream: TextIO) -> str:
    """Text in a style, where the stream welcomes it."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if welcomes_colour(stream) else text


def printable(text: str) -> str:
    """Text with escapes in place of whatever is not printed as itself."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def display_width(text: str) -> int:
    """Columns that a text takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def shortened(text: str, width: int) -> str:
    """Text that takes at most so many columns."""
    if display_width(text) <= width:
        return text
    taken, used = "", 1
    for character in text:
        used += display_width(character)
        if used > width:
            break
        taken += character
    return taken + "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines, the first ``left`` columns to the left and numbers to the right."""
    widths = [max(display_width(line[column]) for line in [header, *rows]) for column in range(len(header))]

    def aligned(line: Sequence[str]) -> str:
        cells = []
        for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - display_width(cell))
            cells.append(cell + space if column < left else space + cell)
        return "  ".join(cells).rstrip()

    return [aligned(line) for line in [header, *rows]]


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print a line, with substitutes for what the stream's encoding lacks."""
    stream = sys.stdout if stream is None else stream
    encoding = stream.encoding or "ascii"
    print(text.encode(encoding, "replace").decode(encoding), file=stream)


class Progress:
    """A line on standard error that tells how far it is and how fast, if that is a terminal; gone at the end."""

    def __init__(self, unit: str) -> None:
        self._unit, self._stream = unit, sys.stderr
        self._watched = is_terminal(self._stream)
        self._start = time.monotonic()
        self._shown_at, self._shown = 0.0, 0

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Wipe the line, whatever happened."""
        if self._shown:
            self._write("")
            self._write("")

    def update(self, done: int, fraction: float | None = None) -> None:
        """So many units are done, and this part of all of them if that is known."""
        now = time.monotonic()
        elapsed = now - self._start
        if not self._watched or elapsed < _SLOWEST_START or now - self._shown_at < _SECONDS_BETWEEN_LINES:
            return
        self._shown_at = now
        share = "" if fraction is None else f"{min(fraction, 1):4.0%}  {_bar(fraction)}  "
        self._write(f"{share}{done:,} {self._unit}, {done / elapsed:,.0f} {self._unit}/s")

    def _write(self, line: str) -> None:
        # Spaces wipe what was there before, on terminals that know no escape sequences as well.
        self._stream.write("\r" + line + " " * (self._shown - len(line)))
        if not line:
            self._stream.write("\r")
        self._stream.flush()
        self._shown = len(line)


def _bar(fraction: float, width: int = 20) -> str:
    filled = round(width * min(max(fraction, 0), 1))
    return "[" + "#" * filled + "." * (width - filled) + "]"
