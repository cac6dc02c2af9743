"""The table of protocols."""

import sunzi
from sunzi.batch import rounded
from sunzi.planning import evaluate
from sunzi.planning.axes_table import AxesTable

TABLE = AxesTable.of([])


def row(name, size, epsilon, users):
    axes = evaluate(sunzi.make_plan(name, size, epsilon), users)
    return dict(zip(TABLE.header, TABLE.cells(name, axes), strict=True))


def test_every_column_has_a_cell_and_a_meaning():
    cells = row("grr", 500, 1, 10)
    assert cells["protocol"] == "grr"
    assert cells["detects"] == "none"
    assert [line.partition(":")[0] for line in TABLE.legend] == TABLE.header[1:]


def test_cells_show_three_digits():
    cells = row("ss", 1024, 2, 1_000_000)
    assert (cells["error"], cells["efficiency"], cells["bits"]) == ("0.0850 %", "100 %", "535")
    cells = row("mss", 1024, 2, 1_000_000)
    assert (cells["efficiency"], cells["bits"]) == ("89.7 %", "287 (495)")


def test_a_protocol_without_figures_has_dashes():
    assert TABLE.cells("oue", None) == ["oue", *["-"] * len(TABLE.columns)]


def test_what_a_batch_reveals_comes_with_its_conditions():
    axes = evaluate(sunzi.make_plan("grr", 1024, 2), 1_000_000, delta=1e-8)
    table = AxesTable.of([None, axes])
    assert table.header[2:4] == ["efficiency", "central"]
    bound, attack = rounded(axes.batch.epsilon, 3, up=True), rounded(axes.batch.attack_epsilon, 3, up=False)
    assert table.cells("grr", axes)[3] == f"{bound} ({attack})"
    assert table.cells("oue", evaluate(sunzi.make_plan("oue", 16, 2), 100))[3] == "-"
    assert table.legend[2] == (
        "central: proven epsilon of a batch of all reports (and the epsilon that an attack reaches), with delta = "
        "1e-08, if all clients follow the plan, one person's value is replaced and no smaller batch is published, for "
        "a reader who sees all reports of the batch in random order, without ids, times or addresses."
    )
