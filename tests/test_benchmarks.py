"""The benchmark harness, at sizes too small for the figures to mean anything. No test asserts a time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import (
    capacity,
    markdown,
    measure,
    modular,
    record_errors,
    record_references,
    results,
    run,
    servers,
    settings,
)
from benchmarks.catalogue import BENCHMARKS
from benchmarks.growth import fitted_law
from benchmarks.results import Result

from sunzi.numerics.toeplitz import adjoint
from sunzi.plan import make_plan

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
TINY = 0.02


def bench(*arguments, **environment):
    """Run the harness as scripts/bench does."""
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *map(str, arguments)]
    inherited = {name: value for name, value in os.environ.items() if name != "SUNZI_PEERS_PYTHON"}
    return subprocess.run(command, capture_output=True, text=True, env={**inherited, **environment}, check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "results.json"
    done = bench("import", "decode-compact", "--scale", TINY, "--json", path)
    assert done.returncode == 0, done.stderr
    return done, json.loads(path.read_text())


def test_json_has_the_promised_fields(finished):
    _, entries = finished
    assert len(entries) > 2
    for entry in entries:
        assert set(entry) == {"name", "ratio", "bound", "holds", "details"}
        assert entry["name"].split("/")[0] in {"import", "decode-compact"}
        assert entry["details"]["seconds"] > 0
        assert entry["details"]["measured"]
        assert entry["ratio"] == pytest.approx(entry["ratio"])
        assert entry["ratio"] > 0
        if entry["bound"] is None:
            assert entry["holds"] is None
        elif entry["details"]["sense"] == "at most":
            assert entry["holds"] is (entry["ratio"] <= entry["bound"])
        else:
            assert entry["holds"] is (entry["ratio"] >= entry["bound"])


def test_table_lists_every_result_and_counts_the_bounds(finished):
    done, entries = finished
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["benchmark", "ratio", "bound", "holds", "time", "reference"]
    assert [line.split()[0] for line in lines[2 : 2 + len(entries)]] == [entry["name"] for entry in entries]
    bounded = [entry["holds"] for entry in entries if entry["holds"] is not None]
    assert lines[2 + len(entries)] == f"{sum(bounded)} of {len(bounded)} bounds hold."
    assert done.stderr == "", "progress is shown on terminals only"


def test_results_can_be_printed_again_from_their_file(finished, tmp_path):
    done, entries = finished
    path = tmp_path / "results.json"
    path.write_text(json.dumps(entries))
    again = bench("--from", path)
    assert again.returncode == 0, again.stderr
    assert done.stdout.startswith(again.stdout)


def test_without_the_peers_the_comparison_is_left_out_aloud(tmp_path):
    path = tmp_path / "results.json"
    done = bench("randomise-vs-peer", "--scale", TINY, "--json", path)
    assert done.returncode == 0
    assert "randomise-vs-peer was skipped: set SUNZI_PEERS_PYTHON" in done.stderr
    assert json.loads(path.read_text()) == []


def test_a_failed_benchmark_keeps_its_earlier_results(monkeypatch, capsys):
    def breaks_down(scale):
        yield Result("half", "what", 1.0)
        raise ZeroDivisionError(scale)

    monkeypatch.setitem(run.BENCHMARKS, "half", breaks_down)
    results, ended_well = run.run_one("half", 0.5)
    assert [result.name for result in results] == ["half"]
    assert not ended_well
    assert "ZeroDivisionError: 0.5" in capsys.readouterr().err


def test_results_of_other_benchmarks_are_kept(tmp_path):
    path = tmp_path / "results.json"
    done = bench("randomise-vs-peer", "import", "--scale", TINY, "--json", path, SUNZI_PEERS_PYTHON="/bin/false")
    assert done.returncode == 1
    assert "randomise-vs-peer failed; see above." in done.stdout
    assert "Traceback" in done.stderr
    assert {entry["name"].split("/")[0] for entry in json.loads(path.read_text())} == {"import"}


def test_unknown_name_is_refused_with_the_known_ones():
    done = bench("speed")
    assert done.returncode == 2
    assert "unknown benchmark 'speed'" in done.stderr
    assert "decode-mss" in done.stderr


@pytest.mark.parametrize(
    ("ratio", "bound", "sense", "holds"),
    [
        (2.0, 2.0, "at most", True),
        (2.1, 2.0, "at most", False),
        (2.0, 2.0, "at least", True),
        (1.9, 2.0, "at least", False),
        (2.0, None, "at most", None),
        (None, 2.0, "at most", None),
    ],
)
def test_a_bound_holds_in_its_sense(ratio, bound, sense, holds):
    result = Result("name", "what", 1.0, "reference", 2.0, ratio, bound, sense, {"users": 3})
    assert result.holds is holds
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_check_turns_a_missed_bound_into_a_status(tmp_path):
    path = tmp_path / "results.json"
    results.save([Result("name", "what", 1.0, "reference", 2.0, 3.0, 2.0)], path)
    assert bench("--from", path).returncode == 0
    assert bench("--from", path, "--check").returncode == 1


def test_a_ratio_is_the_median_of_neighbouring_runs():
    times = measure.paired([(1.0, 2.0), (2.0, 4.0), (9.0, 3.0)])
    assert (times.measured, times.reference) == (2.0, 3.0)
    assert (times.slowdown, times.speedup) == (0.5, 2.0)


def test_compare_calls_both_sides_in_turn():
    calls = []
    measure.compare(lambda: calls.append("mine"), lambda: calls.append("theirs"), rounds=2, warm_up=False)
    assert calls == ["mine", "theirs"] * 2


def test_durations_have_three_digits_and_a_unit():
    seconds = [12.34, 0.01234, 1.234e-5, 1.234e-8, None]
    assert [results.duration(each) for each in seconds] == ["12.3 s", "12.3 ms", "12.3 µs", "12.3 ns", ""]


def _growth(axis, point, seconds):
    steps = dict.fromkeys(("randomise", "tally", "decode", "errors"), seconds)
    return Result(f"growth/{axis}/{point}", "", seconds, details={"axis": axis, "point": point, "steps": steps})


def test_markdown_replaces_only_what_is_marked(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(f"# Before\n\n{markdown.BEGIN}\noutdated\n{markdown.END}\nAfter.\n")
    found = [
        Result("tally/x", "tally it", 0.5, "count it", 0.25, 2.0, 4.0),
        Result("whole-way/x", "all of it", 0.125),
        Result("spark/x", "on a page of its own", 1.0, "count it", 0.5, 2.0, 3.0),
        *(_growth("users", point, point / 1e6) for point in (10, 100, 1000)),
    ]
    markdown.write_into(page, found)
    written = page.read_text()
    assert written.startswith("# Before\n\n")
    assert written.endswith("After.\n")
    assert "outdated" not in written
    assert "on a page of its own" not in written
    assert "1 of 1 bounds hold." in written
    assert "| tally it | 500 ms | count it | 250 ms | 2 | ≤ 4 | yes |" in written
    assert "| all of it | 125 ms |" in written
    assert "| grows as | n^1.00 | n^1.00 | n^1.00 | n^1.00 |" in written
    assert "`mss-compact`: 20,000 values, ε = 2, 16 moduli and 100,000 users" in written
    markdown.write_into(page, found)
    assert page.read_text() == written
    markdown.write_into(page, [result for result in found if result.name == "spark/x"])
    assert "on a page of its own" in page.read_text()


@pytest.mark.parametrize(
    ("ratio", "bound", "sense", "near"),
    [
        (3.1, 4.0, "at most", False),
        (3.3, 4.0, "at most", True),
        (4.2, 4.0, "at most", True),
        (5.1, 4.0, "at least", False),
        (4.4, 4.0, "at least", True),
        (3.9, 4.0, "at least", True),
        (3.9, None, "at most", False),
    ],
)
def test_results_near_their_bound_are_named(ratio, bound, sense, near):
    sentence = results.near_bounds([Result("name", "this", 1.0, "reference", 2.0, ratio, bound, sense)])
    assert sentence == f"Within 20 % of their bound: {'this' if near else 'none'}."


def test_markdown_needs_its_marks(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("# Nothing to replace\n")
    with pytest.raises(ValueError, match="must contain"):
        markdown.write_into(page, [])
    assert page.read_text() == "# Nothing to replace\n"


def test_fitted_laws():
    points = np.array([1.0, 2.0, 4.0])
    assert fitted_law("domain_size", points, (3 * points**1.5).tolist()) == "k^1.50"
    assert fitted_law("epsilon", points, (3 * 2.5**points).tolist()) == "2.50^ε"


def test_the_page_is_marked_and_names_every_benchmark():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert page.count(markdown.BEGIN) == page.count(markdown.END) == 1
    prose = page.partition(markdown.BEGIN)[0] + page.partition(markdown.END)[2]
    assert [name for name in BENCHMARKS if f"`{name}`" not in prose] == []


def test_the_general_solver_finds_what_the_decoder_finds():
    plan = make_plan("mss", 500, 2)
    decoder = modular.decoder_of(plan, modular.modelled_tally(plan, 20_000))
    ours = decoder.gram.solve(adjoint(decoder.residue_estimates(), decoder.moduli, decoder.weights, 500))
    assert np.abs(modular.least_squares(decoder) - ours).max() < 1e-4 * np.abs(ours).max()


def test_a_modelled_tally_looks_like_a_drawn_one():
    plan, users = make_plan("mss", 200, 2), 16_000
    tally = modular.modelled_tally(plan, users)
    assert tally.reports == users
    held = np.bincount(settings.values(users, 200), minlength=200) / users
    estimate = plan.estimate(tally)
    distances = (estimate.frequencies - held) / estimate.standard_errors()
    # 200 correlated standard normal distances: a deviation of six standard errors is a bug, not chance.
    assert np.abs(distances).max() < 6
    assert 0.5 < np.sqrt(np.mean(distances**2)) < 1.5


def test_the_incidence_product_counts_what_the_library_counts():
    plan = make_plan("pgr", 156, "1.3863", order=5)
    design = plan.protocol.design
    counters = plan.simulate(settings.values(2000, 156), seed=1).block(0)
    vectors = design.space.vectors(np.arange(156)).astype(np.float32)
    assert np.array_equal(
        servers.incidence_product(vectors, *counters.nonzero()), design.point_counts(counters, design.points)
    )


@pytest.mark.parametrize("name", record_references.HISTOGRAMS)
def test_references_find_the_histogram_if_there_is_hardly_any_noise(name):
    """ε = 12 and 64 bins; the square wave smooths, so it is only near."""
    generator = np.random.default_rng(1)
    histogram = record_errors.shapes()["smooth"].reshape(64, 4).sum(axis=1)
    bins = np.repeat(np.arange(64), generator.multinomial(200_000, histogram))
    found = record_references.HISTOGRAMS[name](bins, 64, 12, generator)
    truth = np.bincount(bins, minlength=64) / bins.size
    assert found.sum() == pytest.approx(1)
    assert record_errors.range_error(found - truth) ** 0.5 < 0.01


@pytest.mark.parametrize("epsilon", [0.5, 2])
@pytest.mark.parametrize("name", record_references.MEANS)
def test_references_of_means_are_unbiased(name, epsilon):
    """Within 6 standard errors."""
    reports = record_references.MEANS[name](np.full(100_000, 0.3), epsilon, np.random.default_rng(1))
    assert abs(reports.mean() - 0.3) < 6 * reports.std() / 100_000**0.5


@pytest.mark.parametrize("name", record_references.TABLES)
def test_references_of_tables_find_them_if_there_is_hardly_any_noise(name):
    columns = record_errors.survey(20_000)[:3]
    found = record_references.TABLES[name](columns, (5, 5, 5), 30, np.random.default_rng(1))
    for (first, second), table in found.items():
        truth = np.bincount(columns[first] * 5 + columns[second], minlength=25).reshape(5, 5) / 20_000
        assert np.abs(table - truth).max() < 0.03


def test_the_error_of_ranges_is_the_mean_over_all():
    errors = np.random.default_rng(1).normal(size=8)
    ranges = [errors[low:high].sum() ** 2 for low in range(8) for high in range(low + 1, 9)]
    prefixes = np.cumsum(errors) ** 2
    assert record_errors.range_error(errors) == pytest.approx((np.mean(ranges) + np.mean(prefixes)) / 2)


def test_values_are_indices_of_the_domain():
    values = settings.values(10_000, 50)
    assert values.min() == 0
    assert 40 <= values.max() < 50


def test_capacity_tables_say_what_a_collector_takes(tmp_path):
    found = capacity.capacity(make_plan("oue", 1000, 2), seconds=0.2)
    assert (found.report_bytes, found.estimating_bytes >= found.counting_bytes) == (125, True)
    assert found.counting_bytes > 1 << 24
    assert min(found.alone, found.in_batches) > 0
    size = capacity.bytes_per_id(str(tmp_path / "store.db"), ids=10_000)
    assert 16 < size < 100
    tables = capacity.section([found], {"SQLite": size}).splitlines()
    assert len({line.count("|") for line in tables if line.startswith("|")}) == 2
    assert any(line.startswith("| `oue` | 1,000 | 125 |") for line in tables)
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    assert page.index(capacity.BEGIN) < page.index("| SQLite |") < page.index(capacity.END)
