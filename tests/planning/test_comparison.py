"""Comparisons: by formula, by simulation and as files."""

import csv
import io
import json
from fractions import Fraction
from statistics import NormalDist

import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.planning import Population, Setting, Trials, compare, evaluate, setting_grid
from sunzi.planning.comparison import AXES_COLUMNS, simulate
from sunzi.tables.writers import records_as

SURE = NormalDist().inv_cdf(1 - 0.5e-6)


def test_settings_are_all_combinations():
    points = setting_grid([10, 20], ["1/2", 1], [100])
    assert points == [Setting(size, Fraction(e), 100) for size in (10, 20) for e in ("1/2", "1")]
    with pytest.raises(DomainError):
        setting_grid([1], [1], [1])
    with pytest.raises(ParameterError, match="users"):
        setting_grid([2], [1], [0])
    with pytest.raises(ParameterError, match="epsilon"):
        setting_grid([2], [0], [1])


def test_a_comparison_by_formula_is_the_axes():
    seen = []
    records = list(compare(setting_grid([20], [1, 2], [100, 300]), ["grr", "mss"], progress=seen.append))
    assert len(records) == 8
    assert seen == [step / 8 for step in range(1, 9)]
    for record in records:
        setting = record.setting
        plan = sunzi.make_plan(record.protocol, setting.domain_size, setting.epsilon)
        assert record.axes == evaluate(plan, setting.users)
        row = record.columns()
        assert row["standard_error"] == record.axes.standard_error
        assert "mse" not in row
        assert set(AXES_COLUMNS) < set(row)


def test_refused_settings_are_reported_and_do_not_stop_a_comparison():
    refused, found = compare(setting_grid([(1 << 24) + 1, 10], [1], [100]), ["oue"], Trials(2))
    assert "at most 2^24" in refused.note
    assert refused.columns()["bits"] is None
    assert refused.columns()["mse"] is None
    assert found.note == ""
    assert list(refused.columns()) == list(found.columns())
    with pytest.raises(ParameterError, match="'telepathy'"):
        list(compare(setting_grid([10], [1], [100]), ["telepathy"]))


@pytest.mark.slow
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


@pytest.mark.slow
def test_numbers_do_not_depend_on_the_rest_of_the_comparison():
    def measured(sizes, names, seed=4):
        records = compare(setting_grid(sizes, [1], [200]), names, Trials(3, seed))
        return {(r.protocol, r.setting.domain_size): (r.simulated.mse, r.simulated.mse_error) for r in records}

    wide = measured([15, 20, 30], ["grr", "mss-compact", "oue"])
    narrow = measured([20], ["mss-compact"])
    assert narrow["mss-compact", 20] == wide["mss-compact", 20]
    assert measured([20], ["mss-compact"], seed=5) != narrow
    assert len(set(wide.values())) == len(wide)


def test_trials_are_checked():
    with pytest.raises(ParameterError, match="at least 2 trials to measure their spread, got 1"):
        Trials(1)
    with pytest.raises(ParameterError, match="seed must not be negative, got -1"):
        Trials(2, -1)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records():
    found = [*compare(setting_grid([10], [1], [50]), ["grr", "oue"], Trials(2))]
    found += compare(setting_grid([(1 << 24) + 1], [1], [50]), ["oue"], Trials(2))
    return [record.columns() for record in found]


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


def test_central_epsilon_falls_with_the_users():
    rows = [row.columns() for row in compare(setting_grid([1024], [2], [10**4, 10**5]), ["grr"], delta=1e-8)]
    assert rows[0]["central_epsilon"] > rows[1]["central_epsilon"] > rows[1]["central_attack"] > 0
    with pytest.raises(ParameterError, match="delta must lie between"):
        list(compare(setting_grid([9], [1], [10]), ["grr"], delta=2))
