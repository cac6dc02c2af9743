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
    assert "A report takes 1 bit and" in shown("plan", "--number", "0:1", "--epsilon", "1")


def test_long_descriptions_are_wrapped(capsys):
    words = ["--clamp", "--unit", "seconds", "--epsilon", "1", "--users", "123456789", "--format", "table"]
    assert main(["plan", "--number", "0:86400", *words]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ordered", "0:5120"], "give --epsilon"),
        (["--ordered", "0", "--epsilon", "1"], "two numbers or dates such as 0:5000"),
        (["--ordered", "5:1", "--epsilon", "1"], "low must be below high, got 5.0 and 1.0"),
        (
            ["--ordered", "2026-02-02:2026-01-01", "--epsilon", "1"],
            "low must be below high, got 2026-02-02 and 2026-01-01",
        ),
        (["--ordered", "0:1", "--epsilon", "1", "--users", "0"], "--users must be at least 1, got 0"),
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


A = '"a": ["x", "y"]'


def attribute(text):
    return f'{{"attributes": {{"a": {text}}}, "wanted": [["a"]]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON: Expecting value"),
        ("[]", "a schema is a JSON object with 'attributes' and 'wanted', got []"),
        ("[" * 100_000, "is not JSON"),
        ('{"attributes": {}}', "'wanted' is missing"),
        ('{"attributes": [], "wanted": []}', "'attributes' is an object of names and their values, got []"),
        (f'{{"attributes": {{{A}}}, "wanted": [["a"]], "want": 1}}', '"want" is not known'),
        (
            f'{{"attributes": {{{A}}}, "wanted": null}}',
            "'wanted' is a list of tables, each a list of attributes, got null",
        ),
        (f'{{"attributes": {{{A}}}, "wanted": {{"a": 1}}}}', """got {"a": 1}"""),
        (
            f'{{"attributes": {{{A}}}, "wanted": ["ab"]}}',
            """a wanted table is a list of attributes such as ["version"]""",
        ),
        (f'{{"attributes": {{{A}, {A}}}, "wanted": [["a"]]}}', '"a" occurs twice in one object; rename or remove one'),
        (
            attribute("5"),
            "attribute 'a': give a list of labels, an object with 'labels' and 'other', or one with 'low'",
        ),
        (attribute('["x"]'), "attribute 'a': a domain needs between 2 and 2^30 values, got 1"),
        (attribute('{"labels": ["x", "y"], "missing": "y"}'), "optionally 'other'; \"missing\" is not known"),
        (attribute('{"labels": "xy"}'), """attribute 'a': 'labels' is a list of texts, got "xy\""""),
        (attribute('{"low": 0, "high": 8, "bins": 4, "clmap": true}'), '"clmap" is not known'),
        (attribute('{"low": 0, "high": 8, "bins": 4, "clamp": "no"}'), "clamp must be true or false, got 'no'"),
        (attribute('{"low": 0, "high": 8, "bins": 4, "other": "none"}'), "a range has no 'other', got \"none\""),
        (attribute('{"low": 0, "high": 8}'), "attribute 'a': a range has 'low', 'high', 'bins'"),
        (attribute('{"low": [], "high": 8, "bins": 4}'), "low and high must be two numbers or dates"),
    ],
)
def test_wrong_schemas_are_refused(tmp_path, text, message, capsys):
    path = tmp_path / "schema.json"
    path.write_text(text)
    for command in ("plan", "compare"):
        assert main([command, "--tables", str(path), "--epsilon", "1"]) != 0
        found = capsys.readouterr().err
        assert found.startswith(f"sunzi: error: {path}")
        assert message in found
