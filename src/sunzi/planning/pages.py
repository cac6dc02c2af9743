"""Recommendations, comparisons and guarantees of batches as self-contained web pages."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sunzi.client.errors import ParameterError
from sunzi.display.markup import facts_table, page, plain_table
from sunzi.errors import MissingExtraError
from sunzi.formatting import counted
from sunzi.planning.axes_table import AxesTable
from sunzi.planning.central import CENTRAL_HEADER, CENTRAL_LEGEND
from sunzi.planning.record_comparison import METHODS_HEADER, best_first

if TYPE_CHECKING:
    from sunzi.planning.central import CentralPlan
    from sunzi.planning.central_curves import BatchCurves
    from sunzi.planning.comparison import ComparisonRow
    from sunzi.planning.plots import Varied
    from sunzi.planning.recommendation import Recommendation
    from sunzi.planning.record_comparison import MethodRow


def _picture_style(width: int) -> str:
    """The picture has dark lines, so it stays on white paper in a dark page. Where it would be narrower than this, in
    rem, it is scrolled rather than shrunk.
    """
    paper = f"width: 100%; min-width: {width}rem; height: auto; background: #fff; border-radius: .3rem;"
    return f".picture {{ overflow-x: auto; }}\n.picture svg {{ {paper} }}"


def recommendation_page(recommendation: Recommendation) -> str:
    """The chosen plan, its reason, and the table of all protocols with its legend."""
    found = recommendation.axes
    title = (
        f"{counted(found.domain_size, 'value')}, {counted(found.users, 'user')}, epsilon {float(found.epsilon):.4g}: "
        f"{recommendation.protocol}"
    )
    chosen = recommendation.options.index(recommendation.chosen)
    table = plain_table(*recommendation.table_rows(), chosen=[chosen])
    content = [
        f"<p>{escape(recommendation.reason)}</p>",
        f'<div class="scroll">\n{table}\n</div>',
        *_soft(recommendation.table.legend),
        "<h2>The plan</h2>",
        facts_table(recommendation.plan.facts()),
    ]
    return page(title, "\n".join(content))


def comparison_page(records: Sequence[ComparisonRow], varied: Varied | None) -> str:
    """The table, and a picture of what ``varied``, unless that is None; without matplotlib, what to install for it."""
    settings = [record.setting for record in records]
    protocols = counted(len({record.protocol for record in records}), "protocol")
    parameters = {
        "epsilon": [f"{float(setting.epsilon):g}" for setting in settings],
        "values": [f"{setting.domain_size:,}" for setting in settings],
        "users": [f"{setting.users:,}" for setting in settings],
    }
    fixed = [
        f"epsilon {texts[0]}" if name == "epsilon" else f"{texts[0]} {name}"
        for name, texts in parameters.items()
        if len(set(texts)) == 1
    ]
    swept = {name: texts for name, texts in parameters.items() if len(set(texts)) > 1}
    table = AxesTable.of(record.axes for record in records)
    rows = [
        [*(texts[number] for texts in swept.values()), *table.cells(record.protocol, record.axes), record.note]
        for number, record in enumerate(records)
    ]
    header = [*swept, *table.header, ""]
    content = [
        *([] if varied is None else [_picture(lambda plots: plots.draw_comparison(records, varied))]),
        f'<div class="scroll">\n{plain_table(header, rows)}\n</div>',
        *_soft(table.legend),
    ]
    return page(", ".join([protocols, *fixed]), "\n".join(content), _picture_style(64))


def record_comparison_page(rows: Sequence[MethodRow], varied: Varied | None, legend: Sequence[str] = ()) -> str:
    """A plan of numbers or records compared with other methods: the table, and a picture over ``varied`` if given."""
    ordered = best_first(rows)
    settings = {
        "epsilon": [f"{float(row.epsilon):g}" for row in ordered],
        "users": [f"{row.users:,}" for row in ordered],
    }
    swept = [name for name, texts in settings.items() if len(set(texts)) > 1]
    cells = [[*row.cells(), *(settings[name][number] for name in swept)] for number, row in enumerate(ordered)]
    chosen = [number for number, row in enumerate(ordered) if row.is_ours]
    content = [
        *([] if varied is None else [_picture(lambda plots: plots.draw_record_comparison(rows, varied))]),
        f'<div class="scroll">\n{plain_table([*METHODS_HEADER, *swept], cells, chosen=chosen)}\n</div>',
        *_soft(legend),
    ]
    fixed = {"epsilon": f"epsilon {settings['epsilon'][0]}", "users": f"{settings['users'][0]} users"}
    title = ", ".join(["this plan and other methods", *(text for name, text in fixed.items() if name not in swept)])
    return page(title[0].upper() + title[1:], "\n".join(content), _picture_style(46))


def central_page(found: CentralPlan) -> str:
    """A plan for a central guarantee, compared with other methods, with what it does not cover."""
    content = [
        f"<p>{escape(found.reason)}</p>",
        f"<p>{escape(found.warning)}</p>",
        f'<div class="scroll">\n{plain_table(CENTRAL_HEADER, found.rows(), chosen=[0])}\n</div>',
        *_soft(CENTRAL_LEGEND),
        "<h2>The guarantee</h2>",
        f"<p>{escape(found.guarantee.in_words())}</p>",
        facts_table(found.guarantee.facts()),
        "<h2>The plan</h2>",
        facts_table(found.plan.facts()),
    ]
    size, users = counted(found.plan.domain.size, "value"), counted(found.guarantee.minimum_reports, "user")
    return page(f"{size}, {users}, central epsilon {found.target:g}: {found.plan.protocol.name}", "\n".join(content))


def batch_page(curves: BatchCurves, facts: Iterable[tuple[str, str]]) -> str:
    """What a batch reveals, with all conditions, and how that changes with its size and with ε."""
    own = curves.own
    content = [
        f"<p>{escape(own.in_words())}</p>",
        f'<div class="scroll">\n{facts_table(facts)}\n</div>',
        _picture(lambda plots: plots.draw_batch(curves), "central_plots"),
    ]
    title = f"A batch of {own.minimum_reports:,} reports, {curves.protocol}, {counted(curves.domain_size, 'value')}"
    return page(title, "\n".join(content), _picture_style(46))


def _soft(lines: Iterable[str]) -> list[str]:
    return [f'<p class="soft">{escape(line)}</p>' for line in lines]


def _picture(draw: Callable[[Any], Any], module: str = "plots") -> str:
    """The picture as SVG, or why there is none; ``draw`` gets the module, which needs matplotlib."""
    try:
        plots = import_module(f"sunzi.planning.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return f'<p class="soft">{escape(str(MissingExtraError("a picture", "plot")))}</p>'
    try:
        figure = draw(plots)
    except ParameterError as error:
        return f'<p class="soft">{escape(str(error))}</p>'
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    text = drawn.getvalue()
    return f'<div class="picture">\n{text[text.index("<svg") :]}\n</div>'
