"""Plots of estimates, differences and trends: intervals, colours by significance, and arguments that are refused."""

import re
from datetime import date

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties, findfont

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.display import plotting
from sunzi.plan import make_plan
from sunzi.results.certainty import certainties

LABELS = ["common", "rare", "costs $5", "a label that is far too long for the axis"]
PLAN = make_plan("oue", LABELS, 3)
ESTIMATE = PLAN.estimate(PLAN.simulate(["common"] * 900 + ["costs $5"] * 100, seed=1))


def colour_of(bar):
    return matplotlib.colors.to_hex(bar.get_facecolor()).upper()


def test_bars_are_the_largest_frequencies_with_their_intervals():
    axes = ESTIMATE.plot(top=3, confidence=0.999).axes[0]
    rows = ESTIMATE.top(3, 0.999)
    assert [bar.get_width() for bar in axes.patches] == [row.frequency for row in rows]
    (segments,) = [line.get_segments() for line in axes.collections]
    for row, segment in zip(rows, segments, strict=True):
        assert segment[:, 0] == pytest.approx([row.low, row.high])
    assert axes.yaxis_inverted()
    assert "each value's own 99.9 % interval" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_only_bars_that_are_surely_above_zero_are_dark():
    axes = ESTIMATE.plot().axes[0]
    found = certainties(ESTIMATE, 0.95, "reporters")
    expected = [plotting.SHADES[found[row.index]][0] for row in ESTIMATE.top(4)]
    assert [colour_of(bar) for bar in axes.patches] == expected
    assert {plotting._CLEAR, plotting._UNCLEAR} <= set(expected)
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named[:2] == ["above 0, tested for all values at once", "above 0 by its own interval only"]


def test_labels_are_shortened_and_never_read_as_mathematics():
    axes = ESTIMATE.plot().axes[0]
    labels = {tick.get_text() for tick in axes.get_yticklabels()}
    assert labels == {"common", "rare", r"costs \$5", "a label that i… for the axis"}


def test_the_truth_is_marked(tmp_path):
    truth = [0.9, 0, 0.1, 0]
    axes = ESTIMATE.plot(tmp_path / "picture.svg", truth=truth).axes[0]
    assert (tmp_path / "picture.svg").read_text().startswith("<?xml")
    markers = [line for line in axes.lines if line.get_marker() == "D"]
    assert markers[0].get_xdata().tolist() == [truth[row.index] for row in ESTIMATE.top(4)]


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match="top must be at least 1, got 0"):
        ESTIMATE.plot(top=0)
    with pytest.raises(ParameterError, match="truth must have 4 frequencies, got 3"):
        ESTIMATE.plot(truth=np.ones(3))


def test_frequencies_are_percentages():
    figure = ESTIMATE.plot()
    figure.draw_without_rendering()
    ticks = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert "20 %" in ticks


def rare_labels(*labels):
    plan = make_plan("grr", [*labels, "usual"], 3)
    return plan.estimate(plan.simulate([*labels] * 50, seed=1))


def test_characters_without_a_font_are_boxes_and_one_warning(monkeypatch, tmp_path, recwarn):
    monkeypatch.setattr(plotting, "_FALLBACK_FONTS", re.compile("no such font"))
    axes = rare_labels("日本語", "日").plot(tmp_path / "picture.png").axes[0]
    assert {tick.get_text() for tick in axes.get_yticklabels()} == {"□□□", "□", "usual"}
    (warning,) = recwarn
    assert warning.category is plotting.MissingGlyphsWarning
    assert "such as Noto Sans CJK" in str(warning.message)
    assert warning.filename == __file__


def test_another_installed_font_helps(monkeypatch, tmp_path, recwarn):
    usual = plotting._characters(findfont(FontProperties()))
    other = plotting._characters(findfont("STIXGeneral"))
    rare = chr(min(point for point in other - usual if chr(point).isprintable() and not 0xE000 <= point < 0xF900))
    monkeypatch.setattr(plotting, "_FALLBACK_FONTS", re.compile("STIXGeneral"))
    axes = rare_labels(rare).plot(tmp_path / "picture.svg").axes[0]
    assert rare in {tick.get_text() for tick in axes.get_yticklabels()}
    assert axes.get_yticklabels()[0].get_fontfamily()[1:] == ["STIXGeneral"]
    assert [str(each.message) for each in recwarn] == []


def test_changes_are_sorted_coloured_and_have_intervals(tmp_path):
    later = PLAN.estimate(PLAN.simulate(["common"] * 500 + ["costs $5"] * 500, seed=2))
    found = sunzi.difference(ESTIMATE, later)
    axes = found.plot(tmp_path / "picture.png", top=4, confidence=0.99).axes[0]
    rows = found.top(4, 0.99)
    assert [bar.get_width() for bar in axes.patches] == [row.change for row in rows]
    assert [colour_of(bar) for bar in axes.patches[:2]] == [plotting._CLEAR] * 2
    (segments,) = [line.get_segments() for line in axes.collections]
    assert segments[0][:, 0] == pytest.approx([rows[0].low, rows[0].high])
    named = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert named[0] == "changed: the probability of any false verdict is at most 1 %"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ParameterError, match="top must be at least 1, got 0"):
        found.plot(top=0)


def test_a_trend_has_a_line_and_a_band_per_value(tmp_path):
    plan = sunzi.make_plan("grr", ["a$b", "other"], 3)
    held = [["a$b"] * 500 + ["other"] * 500] * 6 + [["a$b"] * 900 + ["other"] * 100] * 3
    trend = sunzi.trend([plan.estimate(plan.simulate(values, seed=seed)) for seed, values in enumerate(held)])
    axes = trend.plot(tmp_path / "trend.png").axes[0]
    assert (tmp_path / "trend.png").stat().st_size > 10_000
    assert len(axes.collections) == 2  # the bands
    lines = {line.get_label(): line for line in axes.lines}
    np.testing.assert_array_equal(lines[r"a\$b"].get_ydata(), trend.frequencies[:, 0])
    rings = axes.lines[1].get_ydata()
    assert [place + 1 for place in np.flatnonzero(~np.isnan(rings))] == [
        alarm.moment for alarm in trend.alarms() if alarm.index == 0
    ]
    assert "changed" in axes.get_legend().get_texts()[-1].get_text()
    dated = sunzi.trend([plan.estimate(plan.simulate(held[0], seed=1))] * 2, [date(2026, 1, 1), date(2026, 1, 2)])
    assert len(dated.plot(values=["other"]).axes[0].collections) == 1


def test_many_values_of_a_trend_have_a_chart_each():
    plan = sunzi.make_plan("oue", 20, 3)
    held = [[1] * 2000] * 4 + [[2] * 2000] * 4
    trend = sunzi.trend([plan.estimate(plan.simulate(values, seed=seed)) for seed, values in enumerate(held)])
    panels = trend.plot(values=range(8)).axes
    assert [panel.get_title(loc="left") for panel in panels[:8]] == list(map(str, range(8)))
    assert [panel.axison for panel in panels] == [True] * 8 + [False]
    np.testing.assert_array_equal(panels[3].lines[0].get_ydata(), trend.frequencies[:, 3])
    alarmed = {alarm.index for alarm in trend.alarms()}
    assert {1, 2} <= alarmed
    assert {place for place in range(8) if len(panels[place].lines[1].get_xdata())} == alarmed & set(range(8))
