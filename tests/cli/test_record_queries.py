"""Ranges, quantiles, means and tables from the command line: a table becomes reports, and these answers."""

import csv
import datetime
import io
import json
import re

import numpy as np
import pytest

import sunzi
from sunzi.cli.main import main

ATTRIBUTES = {"version": ["1", "2"], "crashed": sunzi.Domain(["no", "yes", "unknown"], other="unknown")}
PLANS = {
    "ordered": sunzi.make_ordered(0, 1024, 64, 4, clamp=True),
    "number": sunzi.make_number(0, 1024, 4, clamp=True),
    "tables": sunzi.make_tables(ATTRIBUTES, [("version", "crashed")], 4),
}
ROWS = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Plans and tallies of one table of records."""
    path = tmp_path_factory.mktemp("records")
    generator = np.random.default_rng(1)
    with (path / "table.csv").open("w") as file:
        file.write("load,version,crashed\n")
        for load in generator.gamma(3, 120, ROWS):
            crashed = generator.choice(["no", "no", "no", "yes", ""])
            file.write(f"{load:.3f},{generator.integers(1, 3)},{crashed}\n")
    for name, plan in PLANS.items():
        plan.save(path / f"{name}.json")
        column = [] if name == "tables" else ["--column", "load"]
        reports, tally = str(path / f"{name}.reports"), str(path / f"{name}.tally")
        assert main(["privatize", str(path / f"{name}.json"), str(path / "table.csv"), *column, "-o", reports]) == 0
        assert main(["tally", str(path / f"{name}.json"), reports, "-o", tally]) == 0
    return path


@pytest.fixture
def ask(folder, capsys):
    """Estimate from one plan's tally, and return the exit code, the output and the messages."""

    def run(name, *words):
        code = main(["estimate", str(folder / f"{name}.json"), str(folder / f"{name}.tally"), *words])
        return code, *capsys.readouterr()

    return run


def rows(text):
    return {row["question"]: row for row in csv.DictReader(io.StringIO(text))}


def test_ranges_quantiles_and_means(ask, folder):
    code, out, _ = ask("ordered", "--range", "0:256", "--range", "256:1024", "--quantile", "0.5,0.95", "--mean")
    found = rows(out)
    assert code == 0
    assert list(found) == ["0 to 256", "256 to 1024", "quantile 0.5", "quantile 0.95", "mean"]
    plan = PLANS["ordered"]
    estimate = plan.estimate(sunzi.load_tally(folder / "ordered.tally"))
    assert float(found["0 to 256"]["value"]) == pytest.approx(estimate.range(0, 256).value)
    assert float(found["quantile 0.5"]["low"]) == estimate.quantile(0.5).low
    assert float(found["mean"]["value"]) == pytest.approx(estimate.mean().value)


def test_the_mean_of_a_number(ask):
    code, out, _ = ask("number", "--mean")
    assert code == 0
    assert float(rows(out)["mean"]["low"]) < 360 < float(rows(out)["mean"]["high"]) + 40


def test_tables_and_shares(ask):
    code, out, _ = ask("tables", "--table", "version,crashed")
    assert code == 0
    labels = [row["label"] for row in csv.DictReader(io.StringIO(out))]
    assert labels[0] == "version 1, crashed no"
    assert len(labels) == 6
    code, out, _ = ask("tables", "--share", "crashed=yes", "--given", "version=2", "--independence", "--format", "json")
    found = json.loads(out)["answers"]
    assert [row["question"].split()[0] for row in found] == ["crashed=yes", "χ²", "p-value"]
    assert found[0]["low"] < 0.2 < found[0]["high"] + 0.1
    assert 0 <= found[2]["value"] <= 1


def test_on_a_terminal_shares_are_percentages(shown, folder):
    words = [str(folder / "ordered.json"), str(folder / "ordered.tally"), "--range", "0:256", "--quantile", "0.5"]
    text = shown("estimate", *words)
    assert "4,000 reports" in text
    assert " % to " in text


def test_tables_of_every_group(folder, tmp_path, capsys):
    records = [{"version": "1", "crashed": "no"}, {"version": "2", "crashed": "yes"}] * 500
    tallies = {(release,): PLANS["tables"].simulate(records, seed=release) for release in (1, 2)}
    sunzi.tables.save_groups(tmp_path, ["release"], tallies)
    assert main(["estimate", str(folder / "tables.json"), str(tmp_path), "--table", "crashed"]) == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["label"] for row in found] == ["crashed no", "crashed yes", "crashed unknown"] * 2


def test_without_a_question_a_terminal_shows_wide_bins_or_the_mean(shown, folder):
    text = shown("estimate", str(folder / "ordered.json"), str(folder / "ordered.tally"))
    assert text.index("0 to 64 ") < text.index("64 to 128 ") < text.index("960 to 1024 ")
    assert "mean" in shown("estimate", str(folder / "number.json"), str(folder / "number.tally"))


def test_sums_of_cells_are_named_as_cells(ask):
    cells = [{"version": "1", "crashed": "no"}, {"version": "2", "crashed": "no"}]
    code, out, _ = ask("tables", "--sum", json.dumps(cells))
    (row,) = csv.DictReader(io.StringIO(out))
    assert (code, row["label"]) == (0, "version 1, crashed no + version 2, crashed no")


def test_a_smoothed_column_is_beside_the_estimates(ask):
    code, out, _ = ask("ordered", "--postprocess", "smooth")
    shares = [float(row["frequency_smooth"]) for row in csv.DictReader(io.StringIO(out))]
    assert code == 0
    assert min(shares) >= 0
    assert sum(shares) == pytest.approx(1)
    code, _, said = ask("number", "--postprocess", "smooth", "-o", "x.html")
    assert code != 0
    assert "smooth" in said


def test_an_unbounded_share_is_explained(shown, tmp_path):
    plan = sunzi.make_tables({"a": ["0", "1"], "b": ["0", "1"]}, [("a", "b")], 1)
    plan.save(tmp_path / "plan.json")
    plan.simulate({"a": ["0"] * 300, "b": ["1"] * 300}, seed=1).save(tmp_path / "tally")
    words = [str(tmp_path / "plan.json"), str(tmp_path / "tally"), "--share", "b=1", "--given", "a=1"]
    assert "The interval is unbounded" in " ".join(shown("estimate", *words).split())


def test_dates_are_dates_and_ranges_within_bins_are_explained(shown, tmp_path):
    first = datetime.date(2026, 1, 1)
    plan = sunzi.make_ordered(first, datetime.date(2026, 3, 6), 32, 3)
    plan.save(tmp_path / "plan.json")
    plan.simulate([first + datetime.timedelta(days=number % 60) for number in range(600)], seed=1).save(
        tmp_path / "tally"
    )
    words = [str(tmp_path / "plan.json"), str(tmp_path / "tally"), "--range", "2026-01-02:2026-01-05", "--quantile=0.5"]
    text = " ".join(shown("estimate", *words).split())
    assert re.search(r"quantile 0.5 2026-0\d-\d\d 2026-01-\d\d to 2026-0\d-\d\d", text)
    assert (
        "2026-01-02 to 2026-01-05 does not consist of whole bins; the answer is about 2026-01-01 to 2026-01-05" in text
    )


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("number", ["--range", "0:256"], "a range needs an ordered plan"),
        ("ordered", ["--range=-1:300"], "-1.0 is outside"),
        ("ordered", ["--range", "-1:300"], "-1.0 is outside"),
        ("ordered", ["--range", "low:300"], "the end of a range must be a number, got 'low'"),
        ("ordered", ["--table", "version"], "only plans of tables have tables"),
        ("ordered", ["--mean", "--sum", "1,100"], "--sum and other questions"),
        ("tables", ["--sum", "version 1"], """such as '[{"version": "1", "crashed": "no"}]'"""),
        ("tables", ["--sum", '[{"version": "1"}]'], "attribute 'crashed': a value is missing"),
        ("tables", ["--sum", '[{"version": "1", "crashed": "maybe"}]'], "'maybe' is not in the domain"),
        ("tables", ["--postprocess", "smooth"], "or for ordered plans smooth"),
        ("ordered", ["--postprocess", "constrained"], 'use "clip", "simplex" or "significant"'),
        ("number", ["--postprocess", "clip"], "--postprocess is for histograms"),
        ("number", ["--top", "3"], "--top is for histograms, and the result of this plan is a mean"),
        ("number", ["--publish-delta", "1e-8", "--honest", "1"], "--publish-delta is for histograms"),
        ("ordered", ["--range", "300"], "LOW:HIGH"),
        ("ordered", ["--quantile", "2"], "between 0 and 1"),
        ("ordered", ["--quantile", ""], "--quantile must be a number"),
        ("tables", ["--given", ""], "expected texts with commas between them, got none"),
        ("ordered", ["--mean", "--top", "3"], "--top is for histograms"),
        ("ordered", ["--share", "a=b"], "--share needs --given"),
        ("ordered", ["--independence"], "independence needs a plan of tables"),
        ("tables", ["--table", "country"], "no attribute 'country'"),
        ("tables", ["--share", "crashed", "--given", "version=1"], "ATTRIBUTE=VALUE"),
        ("tables", ["--share", "crashed=yes", "--given", "version=1,version=2"], "names the attribute 'version' twice"),
        ("tables", ["--mean"], "or one of a number (sunzi plan --number"),
        ("tables", ["--share", "crashed=maybe", "--given", "version=1"], "'maybe' is not in the domain"),
    ],
)
def test_wrong_questions_are_refused(ask, name, words, message):
    code, _, said = ask(name, *words)
    assert code != 0
    assert message in said


def test_clamped_numbers_and_missing_attributes_are_counted(folder, capsys, tmp_path):
    words = [str(folder / "ordered.json"), str(folder / "table.csv"), "--column", "load", "-o", str(tmp_path / "r")]
    main(["privatize", *words])
    assert "outside the range are reported as its nearest end" in capsys.readouterr().err
    main(["privatize", str(folder / "tables.json"), str(folder / "table.csv"), "-o", str(tmp_path / "s")])
    assert "crashed: of 4,000 rows, 0 unknown and" in capsys.readouterr().err


def test_files_of_a_number_hold_its_mean_and_pages_its_points(ask, tmp_path):
    assert ask("number", "-o", str(tmp_path / "mean.csv"))[0] == 0
    printed = ask("number", "--format", "csv")[1]
    assert (tmp_path / "mean.csv").read_text() == printed
    assert list(rows(printed)) == ["mean"]
    assert ask("number", "-o", str(tmp_path / "mean.html"), "--publish-delta", "1e-8", "--honest", "1")[0] == 0
    assert "times as likely" in (tmp_path / "mean.html").read_text()


def test_labels_send_nothing_to_the_terminal(shown, tmp_path):
    plan = sunzi.make_tables({"a": ["\x1b[2J", "x"], "b": ["\u202eu", "v"]}, [("a", "b")], 4)
    plan.save(tmp_path / "plan.json")
    plan.simulate([{"a": "x", "b": "v"}] * 500, seed=1).save(tmp_path / "tally")
    text = shown("estimate", str(tmp_path / "plan.json"), str(tmp_path / "tally"), "--given", "b")
    assert "a=\\x1b[2J among b=\\u202eu" in text
    assert "\u202e" not in text


def test_json_lines_hold_any_numbers(folder, tmp_path, capsys):
    (tmp_path / "loads.jsonl").write_text('{"load": 99.5}\n{"load": 7}\n{"load": "1e2"}\n{"load": 1e400}\n')
    words = [str(tmp_path / "loads.jsonl"), "-o", str(tmp_path / "r")]
    assert main(["privatize", str(folder / "number.json"), *words]) == 0
    assert capsys.readouterr().err.startswith("sunzi: note: 1 of 4 rows outside the range")
    (tmp_path / "loads.jsonl").write_text('{"load": NaN}\n')
    assert main(["privatize", str(folder / "ordered.json"), *words, "--force"]) == 2
    assert "line 1: 'load' must be text or a number, got NaN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--column", "load"], "leave --column out"),
        (["--by", "crashed", "-o", "out.parquet"], "an attribute to protect, so it cannot be public"),
    ],
)
def test_records_name_their_columns_themselves(folder, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["privatize", str(folder / "tables.json"), str(folder / "table.csv"), *words]) != 0
    assert message in capsys.readouterr().err


def test_columns_of_durations_are_refused(folder, tmp_path, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"load": pyarrow.array([3, 4], pyarrow.duration("ns"))}), tmp_path / "t.parquet")
    words = ["privatize", str(folder / "ordered.json"), str(tmp_path / "t.parquet"), "-o", str(tmp_path / "reports")]
    assert main(words) != 0
    assert "'load' holds duration[ns]; cast it to numbers in the plan's unit" in capsys.readouterr().err


def test_records_and_numbers_come_from_parquet_too(folder, tmp_path, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"load": [1.5, 2000.0], "version": ["1", "2"], "crashed": ["no", None], "country": ["DE", "FR"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    for name, extra in (("ordered", ["--column", "load"]), ("tables", [])):
        words = [str(folder / f"{name}.json"), str(tmp_path / "t.parquet"), *extra, "--by", "country"]
        assert main(["privatize", *words, "-o", str(tmp_path / f"{name}.parquet")]) == 0
        written = parquet.read_table(tmp_path / f"{name}.parquet")
        assert written.column_names == ["country", "report"]
        assert PLANS[name].tally(written["report"].to_pylist()).reports == 2
    capsys.readouterr()
