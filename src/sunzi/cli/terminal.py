"""Terminal output: lines, tables, colour and a progress bar.

Colour and progress appear on a terminal only, never in a pipe or a file. Untrusted text such as labels is escaped with
:func:`printable`, so that a plan cannot send control sequences to the terminal.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TextIO

from sunzi.formatting import display_width, printable, shortened

EMPTY_TEXT = "(empty text)"
"""What tables show for a value that is an empty text."""

_LONGEST_LABEL = 40
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32"}
_BAR_WIDTH = 20
_LEAST_LABEL = 16
_UNBROKEN = "\N{NO-BREAK SPACE}"
_SECONDS_BEFORE_PROGRESS = 0.5
_SECONDS_BETWEEN_UPDATES = 0.1


def supports_colour(stream: TextIO) -> bool:
    """Return whether to colour output to this stream; NO_COLOR (https://no-color.org) turns it off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def shown_label(label: object) -> str:
    """Return a value's label as tables show it."""
    return shortened(printable(str(label)), _LONGEST_LABEL)


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return text in a style (bold, dim, red, green) if the stream, by default standard output, supports colour."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if supports_colour(stream or sys.stdout) else text


def columns() -> int:
    """Return the width of the terminal, or 80 where there is none; the environment variable COLUMNS sets it."""
    return shutil.get_terminal_size().columns


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print a line; characters that the stream's encoding lacks become question marks."""
    stream = sys.stdout if stream is None else stream
    encoding = stream.encoding or "ascii"
    print(text.encode(encoding, "replace").decode(encoding), file=stream)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the warnings of the block as notes on standard error, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"sunzi: note: {message}", sys.stderr)


def say_wrapped(text: str, style: str | None = None, hanging: int = 0) -> None:
    """Print a paragraph to standard output, wrapped between words; ``hanging`` indents all lines but the first."""
    for line in wrapped(text, hanging):
        say(line if style is None else styled(line, style))


def say_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and, next to them, wrapped texts."""
    width = max(len(name) for name, _ in facts)
    for name, text in facts:
        say_wrapped(f"{name:{width}}  {text}", hanging=width + 2)


def wrapped(text: str, hanging: int = 0) -> list[str]:
    """Return the lines of a paragraph, as wide as the terminal at most unless a single word is wider."""
    lines = textwrap.wrap(
        text.replace(" %", _UNBROKEN + "%"),
        max(columns(), 2 * hanging),
        subsequent_indent=" " * hanging,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, gap: int = 2) -> list[str]:
    """Return aligned lines: the first ``left`` columns left-aligned, the others right-aligned."""
    widths = [max(display_width(line[column]) for line in [header, *rows]) for column in range(len(header))]

    def aligned(line: Sequence[str]) -> str:
        cells = []
        for column, (cell, width) in enumerate(zip(line, widths, strict=True)):
            space = " " * (width - display_width(cell))
            cells.append(cell + space if column < left else space + cell)
        return (" " * gap).join(cells).rstrip()

    return [aligned(line) for line in [header, *rows]]


def _fitted_tables(header: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Iterator[list[str]]:
    """Yield the lines of one table as wide as the terminal or, if that is impossible, of several.

    A table that is too wide gets its widest label column shortened, then narrower gaps, and is then split into tables
    that begin with the same ``left`` columns.
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(map(display_width, column)) for column in zip(*lines, strict=True)]
    available = columns()
    longest = max(range(left), key=widths.__getitem__)
    most = max(_LEAST_LABEL, widths[longest] - max(0, sum(widths) + 2 * (len(widths) - 1) - available))
    if most < widths[longest]:
        for line in lines:
            line[longest] = shortened(line[longest], most)
        widths[longest] = most
    fits = [gap for gap in (2, 1) if sum(widths) + gap * (len(widths) - 1) <= available]
    gap = fits[0] if fits else 2
    for chosen in _parts(widths, left, gap, available):
        first, *others = ([line[column] for column in chosen] for line in lines)
        yield table(first, others, left, gap)


def _parts(widths: Sequence[int], left: int, gap: int, available: int) -> list[list[int]]:
    """Return the columns of each part, the ``left`` ones in all of them; as few parts as fit, about equally wide."""
    found = _filled(widths, left, gap, available)
    while len(narrower := _filled(widths, left, gap, available - 1)) == len(found) > 1:
        found, available = narrower, available - 1
    return found


def _filled(widths: Sequence[int], left: int, gap: int, available: int) -> list[list[int]]:
    labels = list(range(left))
    parts = [labels[:]]
    for column in range(left, len(widths)):
        used = sum(widths[place] + gap for place in parts[-1])
        if used + widths[column] > available and len(parts[-1]) > left:
            parts.append(labels[:])
        parts[-1].append(column)
    return parts


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: int = 1,
    styles: Sequence[str | None] | None = None,
) -> None:
    """Print a table with a bold header to standard output; ``styles`` names the style of each row.

    A table wider than the terminal is printed in parts.
    """
    for number, (first, *lines) in enumerate(_fitted_tables(header, rows, left)):
        if number:
            say()
        say(styled(first, "bold"))
        for line, style in zip(lines, styles or [None] * len(lines), strict=True):
            say(line if style is None else styled(line, style))


class ProgressBar:
    """A progress line on standard error if that is a terminal, erased at the end.

    Without a unit, :meth:`show` takes the fraction done and shows the time left. With a unit such as ``"rows"``,
    :meth:`update` takes the number done and shows the rate.
    """

    def __init__(self, unit: str = "") -> None:
        self._unit, self._stream = unit, sys.stderr
        self._is_visible = self._stream.isatty()
        self._start = time.monotonic()
        self._shown_at, self._shown = 0.0, 0

    def __enter__(self) -> Self:
        """Return the progress bar itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Erase the line, also after an error."""
        if self._shown:
            self._write("")
            self._write("")

    def show(self, fraction: float) -> None:
        """Show the fraction done and the time left."""
        elapsed = self._elapsed_if_due()
        if elapsed is not None:
            left = f"about {elapsed / fraction - elapsed:,.0f} s left" if fraction > 0 else ""
            self._write(f"{fraction:4.0%}  {_bar(fraction)}  {left}".rstrip())

    def update(self, done: int, fraction: float | None = None) -> None:
        """Show how many units are done, the rate, and the fraction of the total if it is known."""
        elapsed = self._elapsed_if_due()
        if elapsed is not None:
            bar = "" if fraction is None else f"{min(fraction, 1):4.0%}  {_bar(fraction)}  "
            self._write(f"{bar}{done:,} {self._unit}, {done / elapsed:,.0f} {self._unit}/s")

    def _elapsed_if_due(self) -> float | None:
        """Return the seconds since the start, or None if the line should not be updated now."""
        now = time.monotonic()
        elapsed = now - self._start
        is_due = elapsed >= _SECONDS_BEFORE_PROGRESS and now - self._shown_at >= _SECONDS_BETWEEN_UPDATES
        if not (self._is_visible and is_due):
            return None
        self._shown_at = now
        return elapsed

    def _write(self, line: str) -> None:
        # Overwrites with spaces, which also works on terminals without escape sequences.
        self._stream.write("\r" + line + " " * (self._shown - len(line)))
        if not line:
            self._stream.write("\r")
        self._stream.flush()
        self._shown = len(line)


def _bar(fraction: float) -> str:
    filled = round(_BAR_WIDTH * min(max(fraction, 0), 1))
    return "[" + "#" * filled + "." * (_BAR_WIDTH - filled) + "]"
