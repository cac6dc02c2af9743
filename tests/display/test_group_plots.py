"""The picture with a chart per group."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.display.group_plots import plot_groups
from sunzi.tables import estimate_groups

PLAN = sunzi.make_plan("grr", 12, 2)


def groups(number):
    return estimate_groups(PLAN, {(i,): PLAN.simulate([3] * (200 + i), seed=i) for i in range(number)}, ["day"])


def test_every_group_has_bars_with_intervals(tmp_path):
    found = groups(4)
    figure = plot_groups(found, tmp_path / "groups.png", top=5)
    assert (tmp_path / "groups.png").read_bytes().startswith(b"\x89PNG")
    rows = found.common_rows(5, 0.95, "reporters")
    assert [axes.get_title(loc="left").partition(",")[0] for axes in figure.axes] == list(rows)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1, "one scale"
    for axes, each in zip(figure.axes, rows.values(), strict=True):
        assert np.allclose([bar.get_width() for bar in axes.patches], [row.frequency for row in each])
        assert len(axes.collections[0].get_segments()) == 5


def test_many_groups_are_cut_and_the_title_says_so():
    figure = plot_groups(groups(32), top=1)
    assert len(figure.axes) == 30
    assert "the 30 largest of 32 groups" in figure.get_suptitle()


def test_a_bad_number_is_refused():
    with pytest.raises(ParameterError, match="top must be at least 1"):
        groups(1).plot(top=0)
