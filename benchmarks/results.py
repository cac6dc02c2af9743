"""Benchmark results as JSON and as a table for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Sense = Literal["at most", "at least"]

NEAR = 0.2
"""Relative variation of a ratio between runs on a busy machine."""


@dataclass(frozen=True)
class Result:
    """One result. The ratio needs a reference; only results with a bound can fail."""

    name: str
    measured: str
    """Description of the timed work."""
    seconds: float
    reference: str = ""
    reference_seconds: float | None = None
    ratio: float | None = None
    bound: float | None = None
    sense: Sense = "at most"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool | None:
        """Whether the ratio is within its bound."""
        if self.ratio is None or self.bound is None:
            return None
        return self.ratio <= self.bound if self.sense == "at most" else self.ratio >= self.bound

    @property
    def margin(self) -> float | None:
        """Distance between the ratio and its bound as a fraction of the bound; negative if the bound is violated."""
        if self.ratio is None or self.bound is None:
            return None
        share = self.ratio / self.bound
        return 1 - share if self.sense == "at most" else 1 - 1 / share

    def to_json(self) -> dict[str, Any]:
        """Name, ratio, bound and holds first, then the details."""
        details = {
            "measured": self.measured,
            "seconds": self.seconds,
            "reference": self.reference,
            "reference_seconds": self.reference_seconds,
            "sense": self.sense,
            **self.details,
        }
        return {"name": self.name, "ratio": self.ratio, "bound": self.bound, "holds": self.holds, "details": details}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Result:
        """The inverse of :meth:`to_json`."""
        details = dict(entry["details"])
        own = {name: details.pop(name) for name in ("measured", "seconds", "reference", "reference_seconds", "sense")}
        return cls(name=entry["name"], ratio=entry["ratio"], bound=entry["bound"], details=details, **own)


def save(results: Iterable[Result], path: Path) -> None:
    """Write a list of results."""
    path.write_text(json.dumps([result.to_json() for result in results], indent=2) + "\n", encoding="utf-8")


def load(path: Path) -> list[Result]:
    """Read what :func:`save` wrote."""
    return [Result.from_json(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def table(results: Sequence[Result]) -> str:
    """Aligned columns for a terminal, and a count of the bounds that hold."""
    rows = [("benchmark", "ratio", "bound", "holds", "time", "reference")]
    rows += [
        (
            result.name,
            number(result.ratio),
            bound_text(result),
            verdict(result),
            duration(result.seconds),
            duration(result.reference_seconds),
        )
        for result in results
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, summary(results)])


def summary(results: Sequence[Result]) -> str:
    """How many bounds hold, as one sentence."""
    bounded = [result for result in results if result.holds is not None]
    return f"{sum(result.holds is True for result in bounded)} of {len(bounded)} bounds hold."


def near_bounds(results: Sequence[Result]) -> str:
    """One sentence that names the results close enough to their bound for a busy machine to change the verdict."""
    near = [result.measured for result in results if result.margin is not None and abs(result.margin) < NEAR]
    return f"Within {100 * NEAR:.0f} % of their bound: {'; '.join(near) or 'none'}."


def bound_text(result: Result) -> str:
    """≤ or ≥ and the number."""
    if result.bound is None:
        return ""
    return f"{'≤' if result.sense == 'at most' else '≥'} {result.bound:g}"


def verdict(result: Result) -> str:
    """``holds`` as a word."""
    return {True: "yes", False: "NO", None: ""}[result.holds]


def number(value: float | None) -> str:
    """Format a number with three digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float | None) -> str:
    """Format a time with three digits and a unit."""
    if seconds is None:
        return ""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{number(seconds / factor)} {unit}"
    return f"{number(seconds * 1e9)} ns"
