"""``sunzi poison``: rows, formats and errors."""

import csv
import io
import json

import pytest

import sunzi
from sunzi.analysis.fake_reports import ATTACKS
from sunzi.analysis.health import DEFAULT_SIGNIFICANCE
from sunzi.analysis.poisoning import DEFAULT_RUNS
from sunzi.cli.main import build_parser, main


@pytest.fixture
def plan_file(tmp_path):
    sunzi.make_plan("mss-compact", [f"page {index}" for index in range(40)], 1).save(tmp_path / "plan.json")
    return str(tmp_path / "plan.json")


QUICK = ("--users", "2e3", "--runs", "2")


@pytest.mark.slow
def test_json_has_everything(plan_file, capsys):
    assert main(["poison", plan_file, "--share", "0.01,0.05", "--targets", "2", *QUICK, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["protocol"], found["domain_size"], found["epsilon"]) == ("mss-compact", 40, "1")
    assert found["target_labels"] == ["page 10", "page 30"]
    assert [row["attack"] for row in found["attacks"]] == ["none", *(name for name in ATTACKS for _ in range(2))]
    greedy = next(row for row in found["attacks"] if row["attack"] == "maximal-gain" and row["share"] == 0.05)
    assert 0 < greedy["push"] <= greedy["bound"] + 10 * greedy["push_error"]
    assert (greedy["targets"], greedy["users"], greedy["runs"], greedy["detected"]) == (2, 2000, 2, 1.0)
    assert greedy["health"]["alarm"] is True
    assert greedy["test_p_value"] == min(
        test["p_value"] for test in greedy["health"]["tests"] if test["p_value"] is not None
    )


def test_a_pipe_gets_csv_with_the_same_rows(plan_file, capsys):
    words = ["poison", plan_file, "--share", "0.05", "--attacks", "input, balanced", "--seed", "3", *QUICK]
    assert main(words) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["attacks"]
    assert [row["attack"] for row in rows] == ["none", "input", "balanced"]
    assert [float(row["push"]) for row in rows] == [row["push"] for row in found]


def test_a_terminal_gets_a_table(plan_file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["poison", plan_file, "--share", "0.05", *QUICK, "--format", "table"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "attack",
        "fake",
        "targets",
        "bound",
        "push",
        "detected",
        "p-value",
        "strongest",
        "test",
    ]
    assert [line.split()[0] for line in lines[1:-1]] == ["none", *ATTACKS]
    assert " ± " in lines[2]
    assert "5 %" in lines[2]
    assert "2 collections of 2,000 clients" in lines[-1]


def test_false_alarms_alone(plan_file, capsys):
    assert main(["poison", plan_file, "--attacks", "none", *QUICK, "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_defaults_are_the_librarys():
    parsed = build_parser("poison").parse_args(["poison", "plan.json"])
    assert (parsed.significance, int(parsed.runs)) == (DEFAULT_SIGNIFICANCE, DEFAULT_RUNS)


def test_the_help_names_every_attack(capsys):
    with pytest.raises(SystemExit):
        main(["poison", "--help"])
    text = capsys.readouterr().out
    for attack in ATTACKS:
        assert attack in " ".join(text.split()).replace("- ", "-")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--attacks", "bribery"], "--attacks must be all, none, or names among maximal-gain"),
        (["--share", "2"], "share of 2 of 2,000 users is 4000 fake clients"),
        (["--share", "x"], "--share must be a number"),
        (["--share", "1e-9"], "is 0 fake clients"),
        (["--targets", "41"], "targets must be between 1 and 40 items, got 41"),
        (["--runs", "1"], "runs must be a whole number between 2 and 100000000"),
        (["--population", "flat"], "population must be uniform"),
        (["--significance", "0"], "significance must lie between 0 and 1"),
    ],
)
def test_complaints(plan_file, complaint, words, message):
    assert main(["poison", plan_file, *QUICK, *words]) == 2
    assert message in complaint()


def test_a_missing_plan_is_code_1(tmp_path, complaint):
    assert main(["poison", str(tmp_path / "gone.json")]) == 1
    assert "gone.json" in complaint()
