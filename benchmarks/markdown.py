"""The measured block of a documentation page, generated from results."""

from __future__ import annotations

import os
import platform
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy

from benchmarks.growth import growth_markdown
from benchmarks.results import Result, bound_text, duration, near_bounds, number, summary, verdict

BEGIN = "<!-- measured: written by scripts/bench --markdown, do not edit by hand -->"
END = "<!-- measured: end -->"
ELSEWHERE = ("planning", "open-domains", "record-errors", "parquet", "spark")
"""Benchmarks that are reported on other pages."""


def write_into(path: Path, results: Sequence[Result]) -> None:
    """Replace the text between the page's two marks and keep the rest."""
    replace_between(path, BEGIN, END, section(_of_one_page(results)))


def replace_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marks of a page and keep the rest."""
    page = path.read_text(encoding="utf-8")
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"{path} must contain the lines {begin!r} and {end!r}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def _of_one_page(results: Sequence[Result]) -> Sequence[Result]:
    """The results for the general page, or all results if none belongs there."""
    return [result for result in results if result.name.split("/")[0] not in ELSEWHERE] or results


def section(results: Sequence[Result]) -> str:
    """Tables of ratios, of times without a reference, and of growth; empty tables are left out."""
    compared = [result for result in results if result.ratio is not None]
    alone = [result for result in results if result.ratio is None and not result.name.startswith("growth/")]
    parts = [machine()]
    if compared:
        parts += ["### Ratios", _ratios(compared), _wrapped(f"{summary(compared)} {near_bounds(compared)}")]
    if alone:
        parts += ["### Times alone", _times(alone)]
    if grown := growth_markdown(results):
        parts += ["### Growth", grown]
    return "\n\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def machine() -> str:
    """The machine and the versions that were measured."""
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}"
    return f"A machine of {os.cpu_count()} cores ({_processor()}), {platform.system()}, {versions}."


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _ratios(results: Sequence[Result]) -> str:
    lines = ["| what | time | against | time | ratio | bound | holds |", "|---|--:|---|--:|--:|--:|---|"]
    for result in results:
        cells = (
            result.measured,
            duration(result.seconds),
            result.reference,
            duration(result.reference_seconds),
            number(result.ratio),
            bound_text(result),
            verdict(result),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(results: Sequence[Result]) -> str:
    lines = ["| what | time |", "|---|--:|"]
    lines += [f"| {result.measured} | {duration(result.seconds)} |" for result in results]
    return "\n".join(lines)
