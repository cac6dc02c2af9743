"""A histogram as one self-contained web page, or as a table with bars for a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from sunzi.client.errors import ParameterError
from sunzi.display.chart_tables import Axis, cell, chart_fragment, chart_page, chart_row, chart_table
from sunzi.formatting import counted, decimals_for, lifetime_note, percent, privacy_bound
from sunzi.results.certainty import MEANINGS, Certainty, certainties

if TYPE_CHECKING:
    from sunzi.batch import BatchGuarantee
    from sunzi.plan import Plan
    from sunzi.results.estimate import Estimate
    from sunzi.results.histogram import PostprocessedHistogram, Row
    from sunzi.results.uncertainty import Target


@dataclass(frozen=True)
class EstimatePage:
    """An estimate as a web page, or as the table alone."""

    estimate: Estimate
    top: int = 50
    confidence: float = 0.95
    target: Target = "reporters"
    processed: PostprocessedHistogram | None = None
    """A post-processed copy, for a separate column."""
    in_order: bool = False
    """Whether to show all values in the domain's order, instead of the most frequent ones."""
    remark: str = ""
    """An introductory sentence."""
    batch: BatchGuarantee | None = None
    """What readers of the page can learn about one person."""

    def page(self, title: str | None = None, collection: str | None = None, day: date | None = None) -> str:
        """The whole page; the default title is the number of reports and values, and the day is today."""
        size = self._size()
        about = [f"Collection {collection}"] if collection is not None else []
        about += [] if title is None else [size]
        about.append((day or date.today()).isoformat())
        remark = f"<p>{escape(self.remark)}</p>\n" if self.remark else ""
        introduction = f"{remark}{privacy_paragraph(self.estimate.plan)}{self._batch()}<p>{self._legend()}</p>"
        return chart_page(size if title is None else title, about, introduction, self._table(), self._notes())

    def fragment(self) -> str:
        """The table with its legend, for a notebook."""
        remark = f"{escape(self.remark)} " if self.remark else ""
        return chart_fragment(f"{remark}{self._size()}. {self._legend()}", self._table())

    def _batch(self) -> str:
        """What readers can learn, in words, with all conditions in a collapsed list; empty if nothing is claimed."""
        batch, plan = self.batch, self.estimate.plan
        if batch is None:
            return ""
        if self.estimate.reports < batch.minimum_reports:
            raise ParameterError(
                f"the guarantee is for batches of at least {batch.minimum_reports:,} reports; this estimate has "
                f"{self.estimate.reports:,}"
            )
        if plan is None or plan.fingerprint != batch.plan:
            own = "has no plan" if plan is None else f"belongs to {plan.protocol.name}, plan {plan.fingerprint}"
            raise ParameterError(
                f"the guarantee is for {batch.protocol}, plan {batch.plan}; this estimate {own}. Take the "
                "batch_guarantee of the estimate's own plan"
            )
        facts = "\n".join(f"<li>{escape(f'{name}: {text}')}</li>" for name, text in batch.facts())
        details = f"<details><summary>The guarantee and its conditions</summary>\n<ul>\n{facts}\n</ul>\n</details>"
        return f"<p>{escape(batch.in_words())}</p>\n{details}\n"

    def _size(self) -> str:
        return f"{counted(self.estimate.reports, 'report')}, {counted(self.estimate.domain.size, 'value')}"

    def _legend(self) -> str:
        size, confidence = self.estimate.domain.size, f"{100 * self.confidence:g}&nbsp;%"
        whom = {
            "reporters": "the users who reported",
            "population": "the population from which the users who reported are a random sample",
        }[self.target]
        shown = "All" if self.top >= size or self.in_order else f"The {self.top:,} most frequent of"
        return f"""{shown} {counted(size, "value")}. Each bar is an estimated frequency; the line across its end is the
value's own {confidence} confidence interval for {whom}. {self._keys()}."""

    def _keys(self) -> str:
        """The verdicts that occur."""
        meant = [each for each in MEANINGS if each in {self._certainties[row.index] for row in self._rows}]
        return "; ".join(f'<span class="key {each}"></span> {MEANINGS[each]}' for each in meant)

    @cached_property
    def _rows(self) -> list[Row]:
        if self.in_order:
            return self.estimate.rows(range(self.estimate.domain.size), self.confidence, self.target)
        return self.estimate.top(self.top, self.confidence, target=self.target)

    @cached_property
    def _certainties(self) -> list[Certainty]:
        return certainties(self.estimate, self.confidence, self.target)

    def _notes(self) -> list[str]:
        order = " to first order" if self.estimate.weights == "efficient" else ""
        notes = [
            f"Estimates are unbiased{order}: the noise goes both ways, so a rare value can come out below 0. The "
            "largest estimates tend to be a little too large, because they were selected for being large."
        ]
        if self.processed is not None:
            method, effect = self.processed.method, self.processed.effect
            notes.append(f"The column {method} is post-processed and therefore has no interval: {effect}.")
        if self.estimate.plan is not None:
            notes.append(f"Protocol {self.estimate.plan.protocol.name}, plan {self.estimate.plan.fingerprint}.")
        return notes

    def _table(self) -> str:
        rows = self._rows
        decimals = decimals_for(row.standard_error for row in rows)
        axis = Axis(min(row.low for row in rows), max(row.high for row in rows))
        heads = ["value", "estimate", f"{100 * self.confidence:g} % interval", "users"]
        if self.processed is not None:
            heads.append(f"{self.processed.method}, no interval")
        sorted_by = None if self.in_order else 1
        return chart_table(heads, sorted_by, axis, (self._row(row, axis, decimals) for row in rows))

    def _row(self, row: Row, axis: Axis, decimals: int) -> str:
        interval = f"{percent(row.low, decimals)} to {percent(row.high, decimals)}"
        cells = [
            cell("estimate", row.frequency, percent(row.frequency, decimals)),
            cell("interval", row.low, interval),
            cell("users", row.count, f"{row.count:,.0f}"),
        ]
        if self.processed is not None:
            share = float(self.processed.frequencies[row.index])
            cells.append(cell("processed", share, percent(share, decimals), self.processed.method))
        drawing = axis.drawing(row.frequency, row.low, row.high, self._certainties[row.index])
        return chart_row(row.label, drawing, cells)


def privacy_paragraph(plan: Plan | None) -> str:
    """A paragraph about the plan's privacy; empty where the plan is not known."""
    if plan is None:
        return ""
    guess = plan.attacker_in_words().replace(" %", "&nbsp;%")
    bound = privacy_bound(plan.epsilon)
    devices = lifetime_note(plan)
    return (
        f"<p>Each value was randomised before it was sent, with {bound}. {guess[0].upper()}{guess[1:]}."
        f"{f' {devices}' if devices else ''}</p>\n"
    )
