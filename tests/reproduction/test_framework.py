"""The runner, the table and the report, with an experiment that costs nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.claims import Claim
from reproduction.experiment import Cell, Evidence, Experiment, finding, finding_of
from reproduction.figures import head, house_style, name_of, name_of_population, panels, save_pictures
from reproduction.report import write_report
from reproduction.table import Table, summary

from reproduction import catalogue, runner
from sunzi import __version__
from sunzi.client.errors import ParameterError

ROOT = Path(__file__).resolve().parents[2]


FAIR = Claim("dice | are <fair>", "nowhere", "six sides")


class Dice(Experiment):
    """Throws dice instead of doing real work."""

    name = "dice"
    title = "Dice & <others>"
    reproduces = "no figure"

    def __init__(self):
        self.measured = []

    def cells(self, scale):
        return [Cell.of(1.0, sides=sides, marks=(1, 2)) for sides in (2, 4, 6)]

    def measure(self, cell, seed):
        self.measured.append(cell["sides"])
        throws = [np.random.default_rng(words).integers(cell["sides"]) for words in cell.seeds(seed, 20)]
        return [summary(throws, quantiles=(0.5,))]

    def draw(self, table):
        figure, axes = panels(1, 1)
        axes[0, 0].plot(table.column("sides"), table.column("mean"))
        head(axes[0, 0], "dice", "sides", "mean")
        return figure

    def evidence(self, table):
        return [Evidence(FAIR, "because of `chance`", f"{len(table)} dice", "in part", "twelve sides", "against")]


@pytest.fixture
def dice(monkeypatch):
    experiment = Dice()
    monkeypatch.setattr(catalogue, "NAMES", ("dice",))
    monkeypatch.setattr(catalogue, "find", lambda name: experiment)
    return experiment


def run(dice, root, **options):
    runner.run([dice], "tiny", root, jobs=1, **options)
    return (root / "results" / "dice.csv").read_bytes()


def test_a_second_run_measures_nothing_and_gives_the_same_files(dice, tmp_path):
    first = run(dice, tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    assert dice.measured == [2, 4, 6]
    assert run(dice, tmp_path) == first
    assert dice.measured == [2, 4, 6]
    assert {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before


def test_only_cells_that_are_missing_or_damaged_are_measured_again(dice, tmp_path):
    first = run(dice, tmp_path)
    files = sorted((tmp_path / "work").glob("*.json"))
    assert len(files) == 3
    files[0].unlink()
    files[1].write_bytes(b'{"rows": [')
    dice.measured.clear()
    assert run(dice, tmp_path) == first
    assert len(dice.measured) == 2


def test_the_seed_and_the_version_decide_the_results(dice, tmp_path, monkeypatch):
    first = run(dice, tmp_path / "a")
    assert run(dice, tmp_path / "b") == first
    assert run(dice, tmp_path / "c", seed=2) != first
    dice.measured.clear()
    monkeypatch.setattr(Dice, "version", 2)
    run(dice, tmp_path / "a")
    assert dice.measured == [2, 4, 6]


def test_experiments_of_one_measurement_share_their_cells(dice, tmp_path, monkeypatch):
    class Again(Dice):
        name = "again"

    monkeypatch.setattr(Dice, "measurement", "throws")
    again = Again()
    monkeypatch.setattr(catalogue, "find", lambda name: {"dice": dice, "again": again}[name])
    runner.measure([dice, again], "tiny", tmp_path, seed=1, jobs=1)
    assert len(dice.measured) + len(again.measured) == 3
    rows = runner.collect(again, "tiny", tmp_path, 1).rows
    assert rows == runner.collect(dice, "tiny", tmp_path, 1).rows


def test_progress_ends_at_one(dice, tmp_path):
    shares = []
    run(dice, tmp_path, progress=shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])


def test_seeds_differ_between_trials_cells_and_runs():
    one, other = Cell.of(k=1), Cell.of(k=2)
    seeds = [tuple(words) for words in (*one.seeds(1, 50), *other.seeds(1, 50), *one.seeds(2, 50))]
    assert len(set(seeds)) == 150
    assert one.seeds(1, 3) == one.seeds(1, 50)[:3]


def test_a_cell_is_identified_by_its_parameters_not_their_order_or_cost():
    assert Cell.of(1.0, a=1, b="x") == Cell.of(9.0, b="x", a=1)
    assert hash(Cell.of(1.0, a=1)) == hash(Cell.of(2.0, a=1))
    assert Cell.of(a=1).key("m", 1, 1) != Cell.of(a=2).key("m", 1, 1)


def test_a_table_survives_its_file(tmp_path):
    rows = [
        {"k": 3, "name": "a", "mean": 0.1 + 0.2, "version": "0.1.0"},
        {"k": 1, "name": "b", "mean": None, "moduli": "3;5"},
    ]
    table = Table(rows)
    table.save(tmp_path / "t.csv")
    read = Table.load(tmp_path / "t.csv")
    assert [row["mean"] for row in read] == [0.1 + 0.2, None]
    assert read.distinct("k") == [1, 3]
    assert read.where(name=("a", "c")).rows[0]["version"] == "0.1.0"
    assert read.number("k", name="b") == 1
    assert np.isnan(read.column("mean")[1])
    with pytest.raises(ParameterError, match="0 rows"):
        read.number("k", name="z")


def test_summary():
    row = summary([1.0, 2.0, 3.0, 6.0], quantiles=(0.0, 0.5))
    assert (row["trials"], row["mean"], row["q0"], row["q0.5"]) == (4, 3.0, 1.0, 2.5)
    assert row["standard_error"] == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    assert summary([1.0])["standard_error"] is None


def test_findings():
    assert [finding(1.0), finding(0.4), finding(0.0)] == ["for", "in part", "against"]
    assert [finding_of(True, True), finding_of(True, False), finding_of(False, False)] == ["for", "in part", "against"]


@pytest.mark.parametrize(
    ("findings", "verdict", "of_a_theorem"),
    [
        (["for"], "holds", "holds"),
        (["for", "for"], "holds", "holds"),
        (["for", "in part"], "in part", "in part"),
        (["for", "against"], "in part", "does not hold"),
        (["against", "in part"], "in part", "does not hold"),
        (["against", "against"], "does not hold", "does not hold"),
    ],
)
def test_all_evidence_makes_one_verdict(findings, verdict, of_a_theorem):
    assert Claim("words", "where", "setting").verdict(findings) == verdict
    assert Claim("words", "where", "setting", theorem=True).verdict(findings) == of_a_theorem


def test_a_claim_that_nothing_judges_has_no_verdict():
    assert FAIR.verdict([]) == "–"


def test_a_claim_of_two_experiments_is_counted_once(dice, tmp_path, monkeypatch):
    class Again(Dice):
        name = "again"

        def evidence(self, table):
            return [Evidence(FAIR, "luck", "none of them", "for")]

    again = Again()
    monkeypatch.setattr(catalogue, "NAMES", ("dice", "again"))
    monkeypatch.setattr(catalogue, "find", lambda name: {"dice": dice, "again": again}[name])
    runner.run([dice, again], "tiny", tmp_path, jobs=1)
    text, page = (tmp_path / "REPORT.md").read_text(), (tmp_path / "report.html").read_text()
    assert "1 claims; in the paper's own setting 1 hold in part." in " ".join(text.split())
    assert (
        "[dice](#dice) (in part): 3 dice<br>[again](#again) (for): none of them<br>beyond it, [dice](#dice): twelve"
        in text
    )
    assert text.count("**◐ in part, beyond it ✘ does not hold**: “dice | are <fair>”") == 2
    assert "measured there (for): none of them" in text
    assert "see also [dice](#dice)" in text
    assert 'see also <a href="#dice">dice</a>' in page


def test_cells_of_another_version_are_measured_again(dice, tmp_path, monkeypatch):
    run(dice, tmp_path)
    dice.measured.clear()
    monkeypatch.setattr(runner, "__version__", "9.9")
    assert b",9.9," in run(dice, tmp_path)
    assert dice.measured == [2, 4, 6]


def test_the_report_names_all_versions_in_the_data(dice, tmp_path):
    run(dice, tmp_path)
    path = tmp_path / "results" / "dice.csv"
    table = Table.load(path)
    table.rows[-1]["sunzi"] = "9.9"
    table.save(path)
    write_report([dice], tmp_path)
    assert f"sunzi {__version__}, 9.9" in (tmp_path / "REPORT.md").read_text()


def test_pictures_are_the_same_bytes_each_time(tmp_path):
    for name in ("a", "b"):
        with house_style():
            save_pictures(Dice().draw(Table([{"sides": 2, "mean": 0.5}])), tmp_path / name)
    for suffix in (".svg", ".pdf"):
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_pictures_are_vectors_with_text_as_text(tmp_path):
    with house_style():
        figure, axes = panels(1, 1)
        axes[0, 0].plot([1.0, 2.0], [1.000, 1.001])
        head(axes[0, 0], "dice 1.23456", "sides", "mean")
        save_pictures(figure, tmp_path / "a")
    picture, document = (tmp_path / "a.svg").read_text(), (tmp_path / "a.pdf").read_bytes()
    assert ">dice 1.23456</text>" in picture
    assert b"/Type3" not in document
    assert b"/CIDFontType2" in document


def test_names_for_print():
    assert [name_of(name) for name in ("grr", "mss-compact", "mss, planned weights")] == [
        "GRR",
        "MSS-compact",
        "MSS, planned weights",
    ]
    assert [name_of_population(name) for name in ("zipf:3", "zipf:1.1", "spike")] == ["Zipf(3)", "Zipf(1.1)", "Spike"]


def test_the_papers_setting_comes_before_ours(dice, tmp_path):
    run(dice, tmp_path)
    for name in ("REPORT.md", "report.html"):
        text = (tmp_path / name).read_text()
        places = [text.rindex(words) for words in ("six sides", "3 dice", "twelve sides", "because of")]
        assert places == sorted(places)


def test_the_report_is_complete_and_self_contained(dice, tmp_path):
    run(dice, tmp_path)
    text, page = (tmp_path / "REPORT.md").read_text(), (tmp_path / "report.html").read_text()
    for words in ("◐ in part", "nowhere", "3 dice", "because of"):
        assert words in text
        assert words in page
    assert "dice \\| are <fair>" in text
    assert "dice | are &lt;fair&gt;" in page
    assert "<code>chance</code>" in page
    assert "data:image/svg+xml;base64," in page
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "prefers-color-scheme: dark" in page


def test_a_report_without_results_is_empty_of_claims(dice, tmp_path):
    write_report([dice], tmp_path)
    assert "0 claims" in (tmp_path / "REPORT.md").read_text()


HELD_UP = """
import sys, time
from pathlib import Path
sys.path[:0] = [{root!r}, {tests!r}]
import test_framework as framework
from reproduction import catalogue, runner

class HeldUp(framework.Dice):
    def cells(self, scale):
        return [framework.Cell.of(1.0, sides=sides) for sides in range(2, 42)]
    def measure(self, cell, seed):
        while cell["sides"] > 20 and not Path(__file__).with_name("on").exists():
            time.sleep(0.02)
        return super().measure(cell, seed)

held_up = HeldUp()
catalogue.NAMES, catalogue.find = ("dice",), lambda name: held_up
if __name__ == "__main__":
    runner.run([held_up], "tiny", Path(sys.argv[1]), jobs=int(sys.argv[2]))
    print(len(held_up.measured))
"""


def test_a_killed_run_is_taken_up_where_it_ended(tmp_path):
    script = tmp_path / "held_up.py"
    script.write_text(HELD_UP.format(root=str(ROOT), tests=str(Path(__file__).parent)))

    def start(name, jobs=1):
        command = [sys.executable, str(script), str(tmp_path / name), str(jobs)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    killed = start("killed")
    work = tmp_path / "killed" / "work"
    deadline = time.monotonic() + 300
    while len(list(work.glob("*.json"))) < 5:  # it stops half-way, at the cell with 21 sides
        assert killed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    done = len(list(work.glob("*.json")))
    assert 5 <= done < 40
    (tmp_path / "on").touch()
    resumed, whole = start("killed"), start("whole", jobs=2)
    assert int(resumed.communicate(timeout=300)[0]) == 40 - done
    whole.communicate(timeout=300)
    assert whole.returncode == resumed.returncode == 0
    for name in ("results/dice.csv", "results/dice.svg", "REPORT.md"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
