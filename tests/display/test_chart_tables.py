"""The axis and cells of charts. Whole pages are tested with the estimates and differences that they show."""

import re

from sunzi.display.chart_tables import Axis, cell, chart_row, chart_table


def positions(markup, kind):
    return [float(found) for found in re.findall(rf'class="{kind}" x1="([0-9.]+)%"', markup)]


def test_an_axis_has_few_round_ticks_and_zero():
    for low, high in ((-0.0123, 0.4), (0.02, 0.021), (-0.3, -0.2), (-1e-9, 1e-7)):
        axis = Axis(low, high)
        ticks = re.findall(r">([^<]+) %</text>", axis.header())
        assert 2 <= len(ticks) <= 8, (low, high)
        assert float(next(tick for tick in ticks if float(tick) == 0)) == 0


def test_a_drawing_holds_bar_interval_and_zero():
    drawing = Axis(-0.1, 0.4).drawing(-0.05, -0.1, 0.02, "alone")
    assert 'class="bar alone"' in drawing
    assert positions(drawing, "zero") == [23.6]
    assert positions(drawing, "cap") == [6, 27.12]


def test_texts_are_escaped_and_long_labels_shortened():
    row = chart_row("<b>" + 60 * "x", "", [cell("users", 2.5, "2", 'a "name"')])
    assert "<b>" not in row
    assert "…" in row
    assert 'data-value="2.5" data-name="a &quot;name&quot;"' in row
    table = chart_table(["value", "a < b"], 1, Axis(0, 1), [row])
    assert '<th aria-sort="descending" role="columnheader">a &lt; b</th>' in table
    assert "aria-sort" not in chart_table(["value", "b"], None, Axis(0, 1), [row])
