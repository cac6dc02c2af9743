"""A difference of two estimates as one self-contained web page, or as a table with bars for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from sunzi.display.chart_tables import Axis, cell, chart_fragment, chart_page, chart_row, chart_table
from sunzi.display.estimate_page import privacy_paragraph
from sunzi.formatting import counted, decimals_for, percent, signed_percent

if TYPE_CHECKING:
    from sunzi.results.certainty import Certainty
    from sunzi.results.changes import Change, Difference, VerdictRule

WORDS: Mapping[Certainty, str] = {"clear": "changed", "alone": "alone", "unclear": ""}
"""What the column of verdicts says."""


def certainty(row: Change) -> Certainty:
    """Whether a value changed: tested for all values at once, by its own interval only, or not."""
    if row.changed:
        return "clear"
    return "alone" if row.low > 0 or row.high < 0 else "unclear"


def meanings(confidence: float, verdict: VerdictRule) -> dict[Certainty, str]:
    """The meaning of each kind of bar.

    Parameters
    ----------
    confidence, verdict: as in :meth:`sunzi.results.changes.Difference.top`.
    """
    rate = f"{100 * (1 - confidence):.3g} %"
    limit = {
        "any": f"the probability of any false verdict is at most {rate}",
        "discoveries": f"on average at most {rate} of these are false",
    }[verdict]
    return {
        "clear": f"changed: {limit}",
        "alone": "changed by its own interval only: among many values, some are by chance",
        "unclear": "no change found",
    }


def p_value_text(p_value: float) -> str:
    """The p-value of "nothing changed" in words."""
    if p_value < 1e-6:
        return "p < 1e-6"
    return f"p = {p_value:.2g}" if p_value < 1 else "p = 1"


@dataclass(frozen=True)
class ChangesPage:
    """A difference as a web page, or as the table alone."""

    difference: Difference
    top: int = 50
    confidence: float = 0.95
    verdict: VerdictRule = "any"

    def page(self, title: str | None = None, names: tuple[str, str] = ("before", "after")) -> str:
        """The whole page; the default title is the number of changed values. ``names`` are those of both estimates."""
        before, after = self.difference.before, self.difference.after
        reports = [counted(estimate.reports, "report") for estimate in (before, after)]
        about = [f"{names[0]}: {reports[0]}", f"{names[1]}: {reports[1]}", date.today().isoformat()]
        same = after.plan is not None and before.plan is not None and after.plan.epsilon == before.plan.epsilon
        introduction = f"{privacy_paragraph(after.plan) if same else ''}<p>{self._legend()}</p>"
        return chart_page(title or self._summary(), about, introduction, self._table(names), self._notes())

    def fragment(self) -> str:
        """The table with its legend, for a notebook."""
        before, after = self.difference.before, self.difference.after
        sizes = f"{counted(before.reports, 'report')} before, {counted(after.reports, 'report')} after."
        return chart_fragment(f"{sizes} {self._legend()}", self._table(("before", "after")))

    def _summary(self) -> str:
        changed = int(self.difference.changed(1 - self.confidence, self.verdict).sum())
        return f"{changed:,} of {counted(self.difference.domain.size, 'value')} changed"

    def _legend(self) -> str:
        size, level = self.difference.domain.size, f"{100 * self.confidence:g}&nbsp;%"
        whom = {
            "reporters": "the users who reported",
            "population": "the populations that the users who reported are random samples of",
        }[self.difference.target]
        shown = "All" if self.top >= size else f"The {self.top:,} clearest changes of"
        p_value = p_value_text(self.difference.p_value()).replace("<", "&lt;")
        return f"""{shown} {counted(size, "value")}, the clearest first. Each bar is a change of frequency; the line
across its end is its own {level} confidence interval for {whom}. {self._keys()}. Test that nothing changed at all:
{p_value}."""

    def _keys(self) -> str:
        """The verdicts that occur."""
        found, words = {certainty(row) for row in self._rows}, meanings(self.confidence, self.verdict)
        return "; ".join(f'<span class="key {kind}"></span> {words[kind]}' for kind in words if kind in found)

    @cached_property
    def _rows(self) -> list[Change]:
        return self.difference.top(self.top, self.confidence, self.verdict)

    def _notes(self) -> list[str]:
        plans = [each.plan for each in (self.difference.before, self.difference.after) if each.plan is not None]
        named = dict.fromkeys(f"Protocol {plan.protocol.name}, plan {plan.fingerprint}." for plan in plans)
        return [
            "Frequencies are unbiased: the noise goes both ways, so a rare value can come out below 0, before or "
            "after. A change is negative where the value became rarer. The clearest changes tend to be a little too "
            "large, because they were selected for being clear.",
            *named,
        ]

    def _table(self, names: tuple[str, str]) -> str:
        rows = self._rows
        decimals = decimals_for(row.standard_error for row in rows)
        axis = Axis(min(row.low for row in rows), max(row.high for row in rows))
        heads = ["value", "change", f"{100 * self.confidence:g} % interval", "verdict", *names]
        return chart_table(heads, None, axis, (self._row(row, axis, decimals, names) for row in rows))

    def _row(self, row: Change, axis: Axis, decimals: int, names: tuple[str, str]) -> str:
        found = certainty(row)
        score = abs(row.change) / row.standard_error if row.standard_error > 0 else 0.0
        cells = [
            cell("estimate", row.change, signed_percent(row.change, decimals)),
            cell("interval", row.low, f"{signed_percent(row.low, decimals)} to {signed_percent(row.high, decimals)}"),
            cell("verdict", score, WORDS[found]),
            cell("before", row.before, percent(row.before, decimals), names[0]),
            cell("after", row.after, percent(row.after, decimals), names[1]),
        ]
        return chart_row(row.label, axis.drawing(row.change, row.low, row.high, found), cells)
