"""``sunzi plan`` of numbers and records."""

import json

import pytest

import sunzi
from sunzi.cli.main import main

SCHEMA = {
    "attributes": {
        "version": ["1", "2"],
        "crashed": {"labels": ["no", "yes", "unknown"], "other": "unknown"},
        "load": {"low": 0, "high": 1024, "bins": 4, "clamp": True, "unit": "ms"},
    },
    "wanted": [["version"], ["version", "crashed"], ["load"]],
}


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def test_plans_are_those_of_the_library(tmp_path, schema, capsys):
    path = tmp_path / "plan.json"
    for words, plan in (
        (
            ["--ordered", "0:5120", "--clamp", "--unit", "ms"],
            sunzi.make_ordered(0, 5120, 256, 1, clamp=True, unit="ms"),
        ),
        (["--ordered", "0:1", "--bins", "8"], sunzi.make_ordered(0, 1, 8, 1)),
        (["--number=-5:5"], sunzi.make_number(-5, 5, 1)),
    ):
        assert main(["plan", *words, "--epsilon", "1", "-o", str(path), "--force"]) == 0
        assert sunzi.load_plan(path) == plan
    assert main(["plan", "--tables", schema, "--epsilon", "2", "-o", str(path), "--force"]) == 0
    assert [attribute.size for attribute in sunzi.load_plan(path).domain.attributes.values()] == [2, 3, 4]
    assert capsys.readouterr().out.startswith("question,standard_error,from_one_histogram\n")


def test_dates_are_ranges(tmp_path, capsys):
    path = tmp_path / "plan.json"
    words = ["--ordered", "2026-01-01:2026-03-06", "--bins", "64", "--epsilon", "1", "-o", str(path)]
    assert main(["plan", *words]) == 0
    assert sunzi.load_plan(path).domain.shown(0) == "2026-01-01 to 2026-01-02"
    assert "a range, on average" in capsys.readouterr().out


def test_json_has_every_error(schema, capsys):
    assert main(["plan", "--tables", schema, "--epsilon", "2", "--users", "1e5", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["protocol"], found["users"]) == ("tables", 100_000)
    assert "version × crashed" in [row["question"] for row in found["errors"]]
    assert all(0 < row["standard_error"] < row["from_one_histogram"] for row in found["errors"])


def test_on_a_terminal_it_says_what_is_asked(shown):
    text = shown("plan", "--ordered", "0:5120", "--epsilon", "1", "--users", "1e5")
    assert text.startswith("0 to 5120 in 256 bins, 100,000 users, epsilon 1")
    assert "± 1.67 %" in text
    assert "and spends the whole epsilon on one question" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ordered", "0:5120"], "give --epsilon"),
        (["--ordered", "0", "--epsilon", "1"], "two numbers or dates such as 0:5000"),
        (["--ordered", "5:1", "--epsilon", "1"], "low must be below high"),
        (["--ordered", "0:1", "--bins", "100", "--epsilon", "1"], "use 64 or 128"),
        (["--number", "0:1", "--bins", "8", "--epsilon", "1"], "--bins needs --ordered"),
        (["--ordered", "0:1", "--epsilon", "1", "--protocol", "grr"], "--protocol is for plans of single values"),
        (["--ordered", "0:1", "--epsilon", "1", "--histogram", "skewed"], "--histogram is for plans of single values"),
        (["--ordered", "0:1", "--epsilon", "1", "-o", "x.html"], "there is no comparison page"),
        (["--size", "8", "--epsilon", "1", "--users", "9", "--clamp"], "--clamp needs --ordered or --number"),
        (["--size", "8", "--epsilon", "1", "--bins", "4"], "--bins needs --ordered\n"),
    ],
)
def test_wrong_options_are_refused(words, message, capsys):
    assert main(["plan", *words]) != 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"attributes": {}}', '{"attributes": {"a": 3}, "wanted": []}', '{"attributes": [], "wanted": []}'],
)
def test_wrong_schemas_are_refused(tmp_path, text, capsys):
    path = tmp_path / "schema.json"
    path.write_text(text)
    assert main(["plan", "--tables", str(path), "--epsilon", "1"]) != 0
    assert str(path) in capsys.readouterr().err
