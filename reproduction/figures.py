"""Pictures in one style, for print: vectors with text as text, reproducible to the byte, and readable with colour
blindness. On a phone, the same panels are stacked in one column.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

from sunzi.atomic_files import write_atomically

# Okabe and Ito's palette as in ``sunzi compare``. Every colour has its own marker and dash, for overlapping curves and
# for print in grey. A protocol looks the same in every picture.
_STYLES: dict[str, tuple[str, str, Any]] = {
    "grr": ("#0072B2", "o", "-"),
    "ss": ("#D55E00", "s", "--"),
    "ss-compact": ("#009E73", "^", "-."),
    "pgr": ("#CC79A7", "D", ":"),
    "rappor": ("#56B4E9", "v", (0, (5, 1))),
    "oue": ("#E69F00", "P", (0, (3, 1, 1, 1))),
    "mss": ("#000000", "X", "-"),
    "mss-compact": ("#8C6D00", "*", (0, (7, 2))),
}
_OTHERS = tuple(_STYLES.values())
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: searchable, and set in the reader's font
    "pdf.fonttype": 42,  # TrueType, which publishers accept; the default is Type 3
    "svg.hashsalt": "sunzi",
    "font.size": 9.5,
    "axes.formatter.useoffset": False,
}
_SHORTEST, _LONGEST, _FEW_DECADES = 5e-4, 5e5, 150
_NAMES = {"ss-compact": "SS-compact", "mss-compact": "MSS-compact"}


_NARROW_INCHES, _NARROW_LETTERS = 4.0, 40
_narrow = ContextVar("narrow", default=False)


@contextmanager
def house_style(*, narrow: bool = False) -> Iterator[None]:
    """Matplotlib's defaults, independent of the user's settings, with a few changes. ``narrow`` is for phones."""
    token = _narrow.set(narrow)
    try:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_SETTINGS)
            yield
    finally:
        _narrow.reset(token)


def is_narrow() -> bool:
    """Whether panels are stacked in one column."""
    return _narrow.get()


def style(name: str, place: int = 0) -> dict[str, Any]:
    """Colour, marker and dash of a protocol, or of the ``place``-th of other curves."""
    colour, marker, dash = _STYLES.get(name, _OTHERS[place % len(_OTHERS)])
    return {
        "color": colour,
        "marker": marker,
        "linestyle": dash,
        "linewidth": 1.4,
        "markersize": 5.5,
        "markerfacecolor": "none",
    }


def name_of(method: str) -> str:
    """How a legend shows a protocol, alone or with its decoder: “mss, planned weights” as “MSS, planned weights”."""
    protocol, comma, rest = method.partition(",")
    return _NAMES.get(protocol, protocol.upper()) + comma + rest


def name_of_population(population: str) -> str:
    """How a title shows a population: “zipf:3” as “Zipf(3)”."""
    name, _, exponent = population.partition(":")
    return f"{name.capitalize()}({exponent})" if exponent else name.capitalize()


def panels(rows: int, columns: int, title: str = "", *, height: float = 3.6, width: float = 5.2) -> tuple[Figure, Any]:
    """A figure and its axes as a rows × columns array, in the common style.

    Narrow pictures show the panels of the first column, then those of the second, and so on.
    """
    if is_narrow():
        size = (_NARROW_INCHES, 0.85 * height * rows * columns + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        figure.set_label(textwrap.fill(title, _NARROW_LETTERS))  # the title of the legend, which is above
        axes = figure.subplots(rows * columns, 1, squeeze=False).reshape(columns, rows).T
    else:
        figure = Figure(figsize=(width * columns, height * rows + 0.5), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat:
        dress(panel)
    if title and not is_narrow():
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return figure, axes


def dress(axes: Axes) -> None:
    """Light grid, no box."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(which="major", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def head(axes: Axes, title: str, across: str, upwards: str, *, logarithmic: bool = False) -> None:
    """Titles of one panel."""
    title = textwrap.fill(title, _NARROW_LETTERS) if is_narrow() else title
    axes.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axes.set_xlabel(across)
    axes.set_ylabel(upwards)
    if logarithmic:
        axes.set_yscale("log")
        _label_decades(axes)


def _label_decades(axes: Axes) -> None:
    """Plain numbers where they are short, else powers of ten; 2 and 5 between them if there are few decades."""
    low, high = axes.get_ylim()
    if low < _SHORTEST or high > _LONGEST:
        axes.yaxis.set_major_formatter(LogFormatterMathtext())
        axes.yaxis.set_minor_formatter(NullFormatter())
        return
    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.yaxis.set_major_formatter(plain)
    few = high / low < _FEW_DECADES
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0) if few else range(2, 10)))
    axes.yaxis.set_minor_formatter(plain if few else NullFormatter())


def curve(
    axes: Axes,
    across: Sequence[float] | np.ndarray[Any, Any],
    values: Sequence[float] | np.ndarray[Any, Any],
    label: str,
    *,
    spread: Sequence[float] | np.ndarray[Any, Any] | None = None,
    **look: Any,
) -> None:
    """A line with bars of two standard errors, if ``spread`` gives one."""
    bars = None if spread is None else 2 * np.nan_to_num(np.asarray(spread, dtype=np.float64))
    axes.errorbar(across, values, yerr=bars, label=label, elinewidth=0.9, **look)


def common_legend(figure: Figure, *, columns: int = 10) -> None:
    """One legend for all panels: each label once, as many per line as fit, up to a limit. On a phone it comes first."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    inches = [0.6 + 0.075 * len(label) for label in found]
    width = figure.get_figwidth()
    fitting = len(found) if sum(inches) < width else max(1, int(width / max(inches)))
    columns = max(1, min(columns, fitting))
    look: dict[str, Any] = {"loc": "outside lower center"}
    if is_narrow():
        look = {"loc": "outside upper left", "title": figure.get_label() or None, "alignment": "left"}
    figure.legend(list(found.values()), list(found), ncols=columns, frameon=False, **look)


def save_pictures(figure: Figure, stem: Path) -> None:
    """Write STEM.svg and STEM.pdf, or STEM.narrow.svg in a narrow style, without dates."""
    metadata = {
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    for form, entries in metadata.items():
        if is_narrow() and form != "svg":
            continue
        drawn = io.BytesIO()
        figure.savefig(drawn, format=form, metadata=entries)
        data = drawn.getvalue()
        suffix = f".narrow.{form}" if is_narrow() else f".{form}"
        write_atomically(stem.with_name(stem.name + suffix), _shortened(data) if form == "svg" else data)


def _shortened(picture: bytes) -> bytes:
    """An SVG with the coordinates in its tags rounded to a hundredth of a point. Numbers below 1 stay: some of them
    are scales.
    """
    rounded = re.sub(rb"<[^>]*>", lambda tag: re.sub(rb"\b[1-9]\d*\.\d{3,}", _hundredths, tag[0]), picture)
    return re.sub(rb"\n +", b"\n", rounded)


def _hundredths(number: re.Match[bytes]) -> bytes:
    return b"%.2f" % float(number[0])
