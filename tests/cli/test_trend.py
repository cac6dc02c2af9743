"""``sunzi trend``: over a store, a collector and tally files, in every format, and what is refused."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from epochs import filled_epoch, shares

import sunzi
from sunzi.cli.main import main
from sunzi.collector import Collector, Settings, open_store, serve

PLANS = [sunzi.make_plan(name, ["apple", "pear", "plum"], 3) for name in ("grr", "oue")]
LARGER = sunzi.make_plan("grr", ["apple", "pear", "plum", "fig"], 3)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Eight epochs of fruit; the plan changes in the fourth, the users in the sixth. The ninth has no reports."""
    monkeypatch.chdir(tmp_path)
    opened = open_store("collector.db")
    collector = Collector(opened)
    for number in range(1, 9):
        counts = (300, 200, 100) if number < 6 else (100, 200, 300)
        filled_epoch(collector, "fruit", PLANS[number >= 4], shares(*counts), number)
    collector.open("fruit", PLANS[1])
    opened.close()
    return "collector.db"


@pytest.fixture
def tallies(tmp_path, monkeypatch):
    """A plan and three tally files."""
    monkeypatch.chdir(tmp_path)
    PLANS[0].save("plan.json")
    for number in range(1, 4):
        PLANS[0].simulate(["apple"] * 300 + ["plum"] * 100, seed=number).save(f"{number}.tally")
    return ["plan.json", *(f"{number}.tally" for number in range(1, 4))]


def test_a_table_on_a_terminal(store, shown):
    text = re.sub("\x1b\\[[0-9;]*m", "", shown("trend", "--from", store))
    lines = text.splitlines()
    assert "8 epochs" in text
    assert "4,800 reports" in text
    rows = {line.split()[0]: line.split()[-1] for line in lines if line.strip().startswith(("apple", "pear", "plum"))}
    assert rows == {"apple": "yes", "plum": "yes", "pear": "no"}
    assert "2 alarms, with one false alarm in 300 values times epochs:" in text
    assert "apple down from 5" in text


def test_files_of_every_format(store, capsys):
    names = ["trend.csv", "trend.json", "trend.parquet", "trend.png", "trend.html"]
    assert main(["trend", "--from", store, *(word for name in names for word in ("-o", name))]) == 0
    captured = capsys.readouterr().err
    assert "note: epoch 9 is skipped: it has 0 reports" in captured
    rows = list(csv.DictReader(io.StringIO(Path("trend.csv").read_text())))
    assert len(rows) == 24
    assert list(rows[0]) == ["label", "moment", "reports", "frequency", "standard_error", "low", "high"]
    document = json.loads(Path("trend.json").read_text())
    assert len(document["epochs"]) == 8
    assert {value["label"] for value in document["values"]} == {"apple", "pear", "plum"}
    assert {(alarm["label"], alarm["since"]) for alarm in document["alarms"]} == {("apple", 5), ("plum", 5)}
    assert Path("trend.png").read_bytes().startswith(b"\x89PNG")
    page = Path("trend.html").read_text()
    assert "<h1>2 of 3 values changed</h1>" in page
    assert "Collection fruit · 8 epochs" in page
    assert page.count('class="ring"') == 2


def test_a_collector_leaves_out_small_epochs(store, capsys):
    with serve({"fruit": PLANS[1]}, store=store, settings=Settings(port=0)) as collector:
        filled_epoch(collector.collector, "fruit", PLANS[1], shares(20), 10)
        words = ["trend", "--from", collector.url, "--epoch", "2:", "--value", "plum", "--format", "csv"]
        assert main(words) == 0
        captured = capsys.readouterr()
        assert "epoch 9 is skipped: it has 20 reports" in captured.err
        assert len(captured.out.splitlines()) == 1 + 7


def test_open_epochs_raise_no_alarm(store, capsys):
    def alarms():
        assert main(["trend", "--from", store, "--format", "json", "--one-in", "1000"]) == 0
        return {alarm["moment"] for alarm in json.loads(capsys.readouterr().out)["alarms"]}

    before = alarms()
    opened = open_store(store)
    collector = Collector(opened)
    filled_epoch(collector, "fruit", PLANS[1], shares(1000, 0, 0), 10, close=False)
    assert alarms() == before
    collector.close("fruit", 9)
    opened.close()
    assert alarms() == before | {8}


def test_tally_files(tallies, capsys):
    dates = "2026-01-05,2026-01-12,2026-01-19"
    assert main(["trend", *tallies, "--dates", dates, "--top", "1", "--sort", "frequent", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["label"], row["moment"]) for row in rows] == [("apple", day) for day in dates.split(",")]
    assert main(["trend", *tallies, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "epoch"


def test_groups_make_different_domains_comparable(store, complaint, capsys):
    opened = open_store(store)
    filled_epoch(Collector(opened), "fruit", LARGER, shares(100, 200, 200, 100), 10)
    opened.close()
    assert main(["trend", "--from", store]) == 2
    text = capsys.readouterr().err
    assert "epochs 1 and 10 have different values (3 and 4); choose epochs with the same values by --epoch" in text
    Path("groups.json").write_text(json.dumps({"apples": ["apple"], "others": "*"}))
    assert main(["trend", "--from", store, "--groups", "groups.json", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (len(document["epochs"]), document["domain_size"]) == (9, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan.json", "1.tally"], "at least two tallies, oldest first, or --from"),
        ([], "at least two tallies"),
        (["plan.json", "1.tally", "2.tally", "--dates", "2026-01-05"], "--dates has 1 date for 2 tally files"),
        (["plan.json", "1.tally", "2.tally", "--dates", "Monday,Tuesday"], "--dates must be dates such as 2026-01-05"),
        (["plan.json", "1.tally", "2.tally", "--dates", "2026-01-05,2026-01-04"], "dates must increase"),
        (["plan.json", "1.tally", "1.tally"], "given twice"),
        (["plan.json", "1.tally", "2.tally", "--value", "fig"], "fig"),
        (["plan.json", "1.tally", "2.tally", "--one-in", "5"], "one_in must be a number from 100"),
        (["plan.json", "1.tally", "2.tally", "--top", "0"], "--top must be at least 1"),
        (["plan.json", "1.tally", "2.tally", "--epoch", "1:2"], "--epoch need --from"),
        (["plan.json", "1.tally", "2.tally", "--title", "A"], "--title is the heading of a page"),
        (["--from", "collector.db", "plan.json", "1.tally", "2.tally"], "with --from, omit plan"),
    ],
)
def test_bad_input(tallies, complaint, words, message):
    assert main(["trend", *words, "--format", "json"]) == 2
    assert message in complaint()


def test_an_epoch_is_no_trend(store, complaint, capsys):
    assert main(["trend", "--from", store, "--epoch", "1"]) == 2
    assert "at least two epochs with enough reports, got 1" in complaint()


@pytest.mark.slow
def test_epochs_whose_tally_determines_no_estimate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    opened = open_store("collector.db")
    for number, users in enumerate([500, 1, 500], 1):
        filled_epoch(Collector(opened), "large", sunzi.make_plan("mss", 1000, 2), shares(users), number)
    opened.close()
    assert main(["trend", "--from", "collector.db", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "note: epoch 2 is skipped: only 1 of" in captured.err
    assert len(json.loads(captured.out)["epochs"]) == 2


def test_ordered_values(tmp_path, monkeypatch, capsys):
    """Every bin has its own row, and ``--value`` takes a number of the range."""
    monkeypatch.chdir(tmp_path)
    plan = sunzi.make_ordered(0, 80, 8, 4, unit="ms")
    plan.save("plan.json")
    for number in (1, 2):
        plan.simulate([25, 31.5] * 300, seed=number).save(f"{number}.tally")
    words = ["trend", "plan.json", "1.tally", "2.tally"]
    assert main([*words, "--top", "2", "--sort", "frequent", "-o", "page.html", "-o", "picture.png"]) == 0
    page = Path("page.html").read_text()
    assert all(f">{label} ms<" in page for label in ("20 to 30", "30 to 40"))
    capsys.readouterr()
    assert main([*words, "--value", "31.5"]) == 0
    assert {row["label"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))} == {"30 to 40 ms"}


def test_cells_of_tables_are_told_apart(tmp_path, monkeypatch, capsys):
    """A table of 80 columns has room for their labels, and ``--value`` takes a cell."""
    monkeypatch.chdir(tmp_path)
    versions = {"version": ["1", "2"], "crashed": ["no", "yes", "unknown"]}
    plan = sunzi.make_tables(versions, [("version", "crashed")], 4)
    plan.save("plan.json")
    for number in (1, 2):
        plan.simulate([{"version": str(number), "crashed": "unknown"}] * 900, seed=number).save(f"{number}.tally")
    words = ["trend", "plan.json", "1.tally", "2.tally", "--format", "table"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len({line.split("  ")[0] for line in lines[3:9]}) == 6
    assert main([*words, "--value", '{"version": "2", "crashed": "yes"}']) == 0
    assert "\nversion 2, crashed yes" in capsys.readouterr().out
