"""Sweeps: by formula, by simulation, as files and as pictures."""

import csv
import io
import json
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

import sunzi
from sunzi.errors import DomainError, ParameterError
from sunzi.planning.axes import axes
from sunzi.planning.populations import UNIFORM, Population
from sunzi.planning.sweep import AXES_COLUMNS, Setting, Trials, settings, simulate, sweep
from sunzi.tables.writers import records_as

SURE = NormalDist().inv_cdf(1 - 0.5e-6)


# --- populations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["uniform", "spike", "zipf:1", "zipf:2.5", "zipf:0"])
def test_populations_are_drawn_as_their_chances_say(text):
    population = Population.parse(text)
    assert str(population) == text
    chances = population.chances(30)
    assert chances.sum() == pytest.approx(1)
    drawn = np.bincount(population.draw(30, 50_000, 3), minlength=30)
    spread = np.sqrt(50_000 * chances * (1 - chances))
    assert np.all(np.abs(drawn - 50_000 * chances) <= NormalDist().inv_cdf(1 - 0.5e-6 / 30) * spread + 1)


def test_zipf_falls_by_its_power():
    chances = Population.parse("zipf:2").chances(10)
    assert chances[0] / chances[3] == pytest.approx(16)
    assert Population.parse("zipf") == Population.parse("zipf:1")


def test_draws_repeat_with_their_seed():
    first, again, other = (UNIFORM.draw(100, 50, seed).tolist() for seed in (1, 1, [1, 2]))
    assert first == again != other


@pytest.mark.parametrize("text", ["gauss", "spike:2", "zipf:", "zipf:x", "zipf:-1", "zipf:nan", ""])
def test_unknown_populations_are_refused(text):
    with pytest.raises(ParameterError, match=r"population must be|exponent must be"):
        Population.parse(text)


# --- sweeps -----------------------------------------------------------------------------------------------------------


def test_settings_are_all_combinations():
    points = settings([10, 20], ["1/2", 1], [100])
    assert points == [Setting(size, Fraction(e), 100) for size in (10, 20) for e in ("1/2", "1")]
    with pytest.raises(DomainError):
        settings([1], [1], [1])
    with pytest.raises(ParameterError, match="users"):
        settings([2], [1], [0])
    with pytest.raises(ParameterError, match="epsilon"):
        settings([2], [0], [1])


def test_a_sweep_by_formula_is_the_axes():
    seen = []
    records = list(sweep(settings([20], [1, 2], [100, 300]), ["grr", "mss"], progress=seen.append))
    assert len(records) == 8
    assert seen == [step / 8 for step in range(1, 9)]
    for record in records:
        setting = record.setting
        plan = sunzi.make_plan(record.protocol, setting.domain_size, setting.epsilon)
        assert record.axes == axes(plan, setting.users)
        row = record.row()
        assert row["standard_error"] == record.axes.standard_error
        assert "mse" not in row
        assert set(AXES_COLUMNS) < set(row)


def test_refused_settings_are_told_and_do_not_stop_a_sweep():
    refused, found = sweep(settings([(1 << 24) + 1, 10], [1], [100]), ["oue"], Trials(2))
    assert "stops at 2^24" in refused.note
    assert refused.row()["bits"] is None
    assert refused.row()["mse"] is None
    assert found.note == ""
    assert list(refused.row()) == list(found.row())
    with pytest.raises(ParameterError, match="'telepathy'"):
        list(sweep(settings([10], [1], [100]), ["telepathy"]))


@pytest.mark.parametrize("population", ["uniform", "spike", "zipf:1"])
@pytest.mark.parametrize("name", ["grr", "ss-compact", "pgr", "oue", "mss", "mss-compact"])
def test_simulated_errors_agree_with_the_formula(name, population):
    plan = sunzi.make_plan(name, 60, 3)
    found = simulate(plan, 1000, Trials(60, 5, Population.parse(population)))
    assert 0 < found.mse_error < 0.1 * found.mse
    # The formula is exact for support protocols, and within a few per cent for cyclotomic blocks.
    assert abs(found.mse - found.expected_mse) < SURE * found.mse_error + 0.03 * found.mse
    assert found.report_seconds > 0
    assert found.decode_seconds > 0


def test_numbers_repeat_whatever_else_is_swept():
    def measured(sizes, names, seed=4):
        records = sweep(settings(sizes, [1], [200]), names, Trials(3, seed))
        return {(r.protocol, r.setting.domain_size): (r.simulated.mse, r.simulated.mse_error) for r in records}

    wide = measured([15, 20, 30], ["grr", "mss-compact", "oue"])
    narrow = measured([20], ["mss-compact"])
    assert narrow["mss-compact", 20] == wide["mss-compact", 20]
    assert measured([20], ["mss-compact"], seed=5) != narrow
    assert len(set(wide.values())) == len(wide)


def test_trials_are_checked():
    with pytest.raises(ParameterError, match="at least 2 trials, for their spread, got 1"):
        Trials(1)
    with pytest.raises(ParameterError, match="seed must not be negative, got -1"):
        Trials(2, -1)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records():
    found = [*sweep(settings([10], [1], [50]), ["grr", "oue"], Trials(2))]
    found += sweep(settings([(1 << 24) + 1], [1], [50]), ["oue"], Trials(2))
    return [record.row() for record in found]


def test_records_as_csv(records):
    rows = list(csv.DictReader(io.StringIO(records_as("csv", records).decode())))
    assert [row["protocol"] for row in rows] == ["grr", "oue", "oue"]
    assert float(rows[0]["mse"]) == records[0]["mse"]
    assert rows[2]["bits"] == ""
    assert "2^24" in rows[2]["note"]


def test_records_as_json(records):
    assert json.loads(records_as("json", records)) == records
    assert json.loads(records_as("json", [])) == []


def test_records_as_parquet(records):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(records_as("parquet", records))).to_pylist() == records


def test_unknown_formats_are_refused(records):
    with pytest.raises(ParameterError, match="format must be one of csv, json, parquet; got 'xls'"):
        records_as("xls", records)


# --- pictures ---------------------------------------------------------------------------------------------------------


def drawn(varied, *, trials=None, names=("grr", "oue", "mss"), sizes=(10,), epsilons=(1,), users=(100,)):
    pytest.importorskip("matplotlib")
    from sunzi.planning.pictures import draw_sweep

    return draw_sweep(list(sweep(settings(sizes, epsilons, users), names, trials)), varied)


def test_a_picture_has_four_panels_on_logarithmic_axes():
    figure = drawn("epsilon", epsilons=(1, 2, 3))
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["error", "report", "decoding", "attackability"]
    for panel in figure.axes:
        assert (panel.get_xscale(), panel.get_yscale()) == ("linear", "log")
        assert panel.get_xlabel() == "epsilon"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["grr", "oue", "mss"]
    assert figure.get_suptitle() == "10 values, 100 users"
    error = figure.axes[0].containers[0].lines[0].get_ydata()
    expected = [axes(sunzi.make_plan("grr", 10, epsilon), 100).standard_error for epsilon in (1, 2, 3)]
    assert error == pytest.approx(expected)


def test_a_picture_of_a_simulation_shows_what_was_measured():
    figure = drawn("users", users=(100, 1000), trials=Trials(3, 2, Population.parse("spike")))
    assert "measured" in figure.axes[0].get_ylabel()
    assert figure.axes[2].get_ylabel() == "seconds, measured"
    assert figure.axes[0].get_xscale() == "log"
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["100", "1,000"]
    assert figure.get_suptitle() == "10 values, epsilon 1, 3 simulated collections of spike values, seed 2"


def test_every_protocol_has_a_look_of_its_own_in_every_picture():
    from sunzi.planning import pictures

    looks = {
        (pictures._COLOURS[style], pictures._MARKERS[style], str(pictures._DASHES[style]))
        for style in (pictures._style(name) for name in sunzi.catalogue())
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
