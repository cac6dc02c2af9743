"""A recommendation and a comparison as self-contained web pages."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from sunzi.errors import MissingExtraError, ParameterError
from sunzi.formatting import counted
from sunzi.markup import facts_table, page, plain_table
from sunzi.planning.axes import AXES_HEADER, axes_cells

if TYPE_CHECKING:
    from sunzi.planning.comparison import ComparisonRow
    from sunzi.planning.plots import Varied
    from sunzi.planning.recommendation import Recommendation

# The picture has dark lines, so it stays on white paper in a dark page. On a phone it is scrolled rather than shrunk.
_PICTURE_STYLE = """.picture { overflow-x: auto; }
.picture svg { width: 100%; min-width: 46rem; height: auto; background: #fff; border-radius: .3rem; }"""


def recommendation_page(recommendation: Recommendation, legend: Sequence[str] = ()) -> str:
    """The chosen plan, its reason, and the table of all protocols; ``legend`` explains the columns."""
    found = recommendation.axes
    title = (
        f"{counted(found.domain_size, 'value')}, {counted(found.users, 'user')}, epsilon {float(found.epsilon):.4g}: "
        f"{recommendation.protocol}"
    )
    rows = [
        [option.protocol, *["-"] * (len(AXES_HEADER) - 1), option.excluded or ""]
        if option.axes is None
        else [*axes_cells(option.axes), option.excluded or option.note]
        for option in recommendation.options
    ]
    chosen = recommendation.options.index(recommendation.chosen)
    content = [
        f"<p>{escape(recommendation.reason)}</p>",
        f'<div class="scroll">\n{plain_table([*AXES_HEADER, ""], rows, chosen=chosen)}\n</div>',
        *(f'<p class="soft">{escape(line)}</p>' for line in legend),
        "<h2>The plan</h2>",
        facts_table(recommendation.plan.facts()),
    ]
    return page(title, "\n".join(content))


def comparison_page(records: Sequence[ComparisonRow], varied: Varied | None, legend: Sequence[str] = ()) -> str:
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
    rows = [[*(texts[number] for texts in swept.values()), *_cells(record)] for number, record in enumerate(records)]
    header = [*swept, *AXES_HEADER, ""]
    content = [
        *([] if varied is None else [f'<div class="picture">\n{_picture(records, varied)}\n</div>']),
        f'<div class="scroll">\n{plain_table(header, rows)}\n</div>',
        *(f'<p class="soft">{escape(line)}</p>' for line in legend),
    ]
    return page(", ".join([protocols, *fixed]), "\n".join(content), _PICTURE_STYLE)


def _cells(row: ComparisonRow) -> list[str]:
    """The figures of a protocol and what to know about them."""
    if row.axes is None:
        return [row.protocol, *["-"] * (len(AXES_HEADER) - 1), row.note]
    return [*axes_cells(row.axes), row.note]


def _picture(records: Sequence[ComparisonRow], varied: Varied) -> str:
    """The picture as SVG, or why there is none."""
    try:
        from sunzi.planning.plots import draw_comparison
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return f'<p class="soft">{escape(str(MissingExtraError("a picture", "plot")))}</p>'
    try:
        figure = draw_comparison(records, varied)
    except ParameterError as error:
        return f'<p class="soft">{escape(str(error))}</p>'
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg")
    text = drawn.getvalue()
    return text[text.index("<svg") :]
