"""Pictures of distributions and tables: they show what the estimate says."""

from datetime import date

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.results.certainty import certainties


@pytest.fixture(scope="module")
def estimate():
    plan = sunzi.make_ordered(0, 256, 64, epsilon=4, unit="ms")
    return plan.estimate(plan.simulate(np.random.default_rng(1).gamma(4, 20, 3000).clip(0, 255), seed=1))


@pytest.fixture(scope="module")
def table():
    plan = sunzi.make_tables({"a": ["x", "y"], "b": ["0", "1", "2"]}, [("a", "b")], epsilon=4)
    return plan.estimate(plan.simulate({"a": ["x", "y", "x"] * 300, "b": ["0", "1", "0"] * 300}, seed=1))


def test_distributions_have_bars_with_intervals_and_a_curve_with_a_band(estimate, tmp_path):
    figure = estimate.plot(tmp_path / "picture.png")
    upper, lower = figure.axes
    heights = [bar.get_height() for bar in upper.patches]
    np.testing.assert_allclose(heights, estimate.histogram(32).frequencies)
    assert len(upper.collections) >= 1  # the intervals
    assert len(lower.collections) == 1  # the band
    median = estimate.quantile(0.5)
    assert any(
        f"median: {median.value:.5g}, {median.low:g} to {median.high:g} ms" in text.get_text() for text in lower.texts
    )
    assert lower.get_xlabel() == "ms"
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_dates_are_on_the_axis():
    plan = sunzi.make_ordered(date(2026, 1, 1), date(2026, 1, 9), 8, epsilon=4)
    figure = plan.estimate(plan.simulate(["2026-01-02"] * 500, seed=1)).plot()
    assert [label.get_text()[-2:] for label in figure.axes[1].get_xticklabels()] == ["01", "03", "05", "07", "09"]
    figure.canvas.draw()
    axes = figure.axes[1]
    for text in axes.texts:  # within the axes, whose width they must not take
        assert axes.bbox.x0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= axes.bbox.x1


@pytest.mark.parametrize("values", [[5] * 3, [5] * 4000, [995] * 4000, [500] * 300])
@pytest.mark.parametrize("unit", ["", "milliseconds of waiting for a page"[:32]])
def test_labels_of_quantiles_stay_within_the_axes(values, unit):
    plan = sunzi.make_ordered(0, 1000, 256, 0.5, unit=unit)
    figure = plan.estimate(plan.simulate(values, seed=1)).plot()
    figure.canvas.draw()
    axes = figure.axes[1]
    assert len(axes.texts) == 2
    for text in axes.texts:
        assert axes.bbox.x0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= axes.bbox.x1


def test_the_band_is_said_to_be_of_each_point_alone(estimate):
    assert "95 %\ninterval of each point alone" in estimate.plot().axes[1].get_ylabel()


def test_means_are_shown_with_their_interval_over_the_points():
    plan = sunzi.make_number(0, 6000, epsilon=3, unit="ms")
    estimate = plan.estimate(plan.simulate([1500] * 2000, seed=1))
    axes = estimate.plot().axes[0]
    mean, band = estimate.mean(), axes.patches[-1]
    assert [mean.value] * 2 in [list(line.get_xdata()) for line in axes.lines]
    assert band.get_x() == pytest.approx(mean.low)
    assert band.get_x() + band.get_width() == pytest.approx(mean.high)
    assert [bar.get_height() for bar in axes.patches[:-1]] == pytest.approx(estimate.frequencies.tolist())
    assert f"The mean is {mean.value:.5g} ms (interval" in axes.get_title(loc="left")
    with pytest.raises(ParameterError, match="truth"):
        estimate.plot(truth=[0.5] * 4)
    dated = sunzi.make_number(date(2026, 1, 1), date(2026, 3, 2), epsilon=4)
    picture = dated.estimate(dated.simulate(["2026-02-01"] * 900, seed=1)).plot()
    assert picture.axes[0].get_xticklabels()[-1].get_text() == "2026-03-02"


def test_tables_are_heat_maps_with_margins_and_grey_noise(table):
    axes = table.plot().axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert len(texts) == 6
    assert texts[0].startswith(f"{100 * table.table[0, 0]:.1f}")
    assert axes.get_yticklabels()[0].get_text().startswith("x\n")
    shown = axes.images[0].get_array()
    assert shown.mask[0, 2]
    assert not shown.mask[0, 0]


def test_cells_above_0_by_their_own_interval_only_are_white():
    plan = sunzi.make_tables({"a": list("wxyz"), "b": ["0", "1", "2"]}, [("a", "b")], epsilon=1)
    generator = np.random.default_rng(2)
    columns = {
        "a": generator.choice(list("wxyz"), 9000, p=[0.6, 0.3, 0.06, 0.04]),
        "b": generator.choice(["0", "1", "2"], 9000, p=[0.7, 0.2, 0.1]),
    }
    estimate = plan.estimate(plan.simulate(columns, seed=3))
    found = np.array(certainties(estimate, 0.95, "reporters")).reshape(4, 3)
    axes = estimate.plot().axes[0]
    places = {(round(patch.get_y() + 0.46), round(patch.get_x() + 0.46)) for patch in axes.patches}
    assert places == set(map(tuple, np.argwhere(found == "alone").tolist())) != set()
    assert np.array_equal(axes.images[0].get_array().mask, found != "clear")
    assert "white: above 0 by its own interval only" in axes.get_xlabel()


def test_dollar_signs_make_no_formulas(tmp_path):
    prices = ["$5 to $10", r"$\frac$"]
    plan = sunzi.make_tables({"price $": prices, "$b$": ["0", "1"]}, [("price $", "$b$")], epsilon=4)
    table = plan.estimate(plan.simulate({"price $": prices * 200, "$b$": ["0", "1"] * 200}, seed=1))
    axes = table.plot(tmp_path / "table.png").axes[0]
    assert axes.get_ylabel() == r"price \$"
    assert axes.get_yticklabels()[0].get_text().startswith("\\$5 to \\$10\n")
    for make in (sunzi.make_number, lambda *range_, **options: sunzi.make_ordered(*range_, 4, **options)):
        plan = make(0, 8, epsilon=4, unit=r"$\frac$")
        figure = plan.estimate(plan.simulate([3] * 400, seed=1)).plot(tmp_path / "numbers.png")
        assert figure.axes[-1].get_xlabel() == r"\$\frac\$"


def test_other_numbers_of_attributes_are_bars(table):
    plan = sunzi.make_tables({"a": ["x", "y"]}, [("a",)], epsilon=4)
    figure = plan.estimate(plan.simulate({"a": ["x"] * 300}, seed=1)).plot()
    assert len(figure.axes[0].patches) == 2


def test_what_has_no_picture_is_refused(estimate):
    with pytest.raises(ParameterError, match="truth"):
        estimate.plot(truth=[0.5] * 64)
    sizes = {"a": [str(value) for value in range(50)], "b": [str(value) for value in range(50)]}
    plan = sunzi.make_tables(sizes, [("a", "b")], epsilon=4)
    with pytest.raises(EstimateError, match="at most 1600 cells"):
        plan.estimate(plan.simulate({"a": ["1"] * 50, "b": ["2"] * 50}, seed=1)).plot()
