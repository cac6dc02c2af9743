"""The table of protocols."""

import sunzi
from sunzi.planning import evaluate
from sunzi.planning.axes_table import AXES_HEADER, AXES_LEGEND, axes_cells


def row(name, size, epsilon, users):
    return dict(zip(AXES_HEADER, axes_cells(name, evaluate(sunzi.make_plan(name, size, epsilon), users)), strict=True))


def test_every_column_has_a_cell_and_a_meaning():
    cells = row("grr", 500, 1, 10)
    assert cells["protocol"] == "grr"
    assert cells["detects"] == "none"
    assert [line.partition(":")[0] for line in AXES_LEGEND] == list(AXES_HEADER[1:])


def test_cells_show_three_digits():
    cells = row("ss", 1024, 2, 1_000_000)
    assert (cells["error"], cells["efficiency"], cells["bits"]) == ("0.0850 %", "100 %", "535")
    cells = row("mss", 1024, 2, 1_000_000)
    assert (cells["efficiency"], cells["bits"]) == ("89.7 %", "287 (495)")


def test_a_protocol_without_figures_has_dashes():
    assert axes_cells("oue", None) == ["oue", *["-"] * (len(AXES_HEADER) - 1)]
