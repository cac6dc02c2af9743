"""Comparisons as pictures."""

import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.planning import Population, Trials, compare, compare_records, evaluate, least_error, setting_grid


def drawn(varied, *, trials=None, names=("grr", "oue", "mss"), sizes=(10,), epsilons=(1,), users=(100,)):
    pytest.importorskip("matplotlib")
    from sunzi.planning.plots import draw_comparison

    return draw_comparison(list(compare(setting_grid(sizes, epsilons, users), names, trials)), varied)


def test_a_picture_has_a_panel_for_every_axis():
    figure = drawn("epsilon", epsilons=(1, 2, 3))
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "error",
        "efficiency",
        "report",
        "reading and decoding",
        "attackability",
    ]
    assert [panel.get_yscale() for panel in figure.axes] == ["symlog", "log", "log", "log", "log"]
    for panel in figure.axes:
        assert panel.get_xscale() == "linear"
        assert panel.get_xlabel() == "epsilon"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["grr", "oue", "mss"]
    assert figure.get_suptitle() == "10 values, 100 users"
    error = figure.axes[0].containers[0].lines[0].get_ydata()
    expected = [evaluate(sunzi.make_plan("grr", 10, epsilon), 100).flat_error for epsilon in (1, 2, 3)]
    least = [least_error(10, epsilon, 100) for epsilon in (1, 2, 3)]
    assert error == pytest.approx([100 * (each / best - 1) for each, best in zip(expected, least, strict=True)])


def test_methods_for_few_and_for_many_tables():
    pytest.importorskip("matplotlib")
    from sunzi.planning.plots import draw_record_comparison

    attributes = {name: ["0", "1"] for name in "abcde"}
    wanted = [(name,) for name in attributes]

    def make(epsilon):
        return sunzi.make_tables(attributes, wanted, epsilon)

    rows = list(compare_records(make, [1, 2], [100], wanted))
    few = draw_record_comparison([row for row in rows if row.question in "abc"], "epsilon")
    assert [panel.get_title(loc="left") for panel in few.axes] == ["a", "b", "c"]
    assert few.get_suptitle() == "100 users"
    (panel,) = draw_record_comparison(rows, "epsilon").axes
    assert panel.get_title(loc="left") == "all tables, on average"
    assert panel.containers[0].lines[0].get_ydata() == pytest.approx(
        [make(epsilon).protocol.planned_errors(make(epsilon).domain, 100)[0].variance ** 0.5 for epsilon in (1, 2)]
    )


def test_ticks_are_plain_numbers_and_nothing_warns(recwarn):
    import io

    figure = drawn("epsilon", epsilons=(1, 2, 3))
    figure.savefig(io.BytesIO(), format="svg")
    ticks = [[tick.get_text() for tick in panel.get_yticklabels()] for panel in figure.axes]
    assert "±0 %" in ticks[0]
    assert {"+10 %", "+30 %"} <= set(ticks[0])
    assert all(tick.endswith(" %") for tick in ticks[1] + ticks[4])
    assert "10" in ticks[2]
    assert any(tick.endswith(" k") for tick in ticks[3])
    assert not [tick for panel in ticks for tick in panel if "10^" in tick]
    assert [str(each.message) for each in recwarn] == []


def test_a_picture_of_a_simulation_shows_what_was_measured():
    figure = drawn("users", users=(100, 1000), trials=Trials(3, 2, Population.parse("spike")))
    assert "measured" in figure.axes[0].get_ylabel()
    assert figure.axes[3].get_ylabel() == "time, measured"
    assert figure.axes[0].get_xscale() == "log"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["100", "1,000"]
    assert figure.get_suptitle() == "10 values, epsilon 1, 3 simulated collections of spike values, seed 2"


def test_every_protocol_has_its_own_style_in_every_picture():
    from sunzi.planning import plots

    looks = {
        (plots._COLOURS[style], plots._MARKERS[style], str(plots._DASHES[style]))
        for style in (plots._style(name) for name in sunzi.catalogue())
    }
    assert len(looks) == len(sunzi.catalogue())
    for part in range(3):
        assert len({look[part] for look in looks}) == len(sunzi.catalogue())
    alone, among = drawn("size", names=("mss",), sizes=(10, 20)), drawn("size", sizes=(10, 20))
    colours = [figure.axes[0].containers[-1].lines[0].get_color() for figure in (alone, among)]
    assert colours[0] == colours[1]


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ParameterError, match="nothing to draw"):
        drawn("size", names=("oue",), sizes=((1 << 24) + 1,))


def test_central_epsilon_is_one_more_panel():
    pytest.importorskip("matplotlib")
    from sunzi.planning.plots import draw_comparison

    rows = list(compare(setting_grid([1024], [1, 2], [10_000]), ["grr"], delta=1e-8))
    panel = draw_comparison(rows, "epsilon").axes[-1]
    title = "batch of all users' shuffled reports, all honest,\nno smaller batch is published, delta 1e-08"
    assert panel.get_title(loc="left") == title
    assert panel.get_ylabel().startswith("central epsilon, one value replaced")
    band = panel.collections[-1].get_paths()[0].vertices[:, 1]
    assert {row.axes.batch.attack_epsilon for row in rows} < set(band)
    assert list(panel.containers[0].lines[0].get_ydata()) == [row.axes.batch.epsilon for row in rows]
