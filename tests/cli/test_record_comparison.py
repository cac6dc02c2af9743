"""``sunzi compare`` of plans of numbers and records."""

import csv
import io
import json

import pytest

from sunzi.cli.main import main

SCHEMA = {
    "attributes": {name: ["0", "1"] for name in "abcde"},
    "wanted": [["a", "b"], ["b", "c"], ["c"], ["d"], ["e"]],
}


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_in_a_pipe_it_prints_csv(capsys):
    assert main(["compare", "--ordered", "0:5120", "--bins", "16", "--epsilon", "1,2", "--users", "1e5"]) == 0
    found = rows(capsys.readouterr().out)
    assert {row["method"] for row in found} == {
        "this plan",
        "one histogram of all",
        "hierarchical Hadamard",
        "HaarHRR",
    }
    assert {(row["epsilon"], row["users"]) for row in found} == {("1.0", "100000"), ("2.0", "100000")}
    assert main(["compare", "--number", "0:1", "--vary", "users", "--epsilon", "4"]) == 0
    found = rows(capsys.readouterr().out)
    assert [row["users"] for row in found if row["method"] == "Laplace"][::2] == ["1000", "10000", "100000", "1000000"]


def test_on_a_terminal_the_best_is_first(shown, schema):
    text = shown("compare", "--ordered", "0:5120", "--epsilon", "2", "--users", "1e5")
    lines = text.splitlines()
    assert lines[0] == "100,000 users, epsilon 2"
    assert "> this plan" in lines[3]
    assert "± 0.742 %" in lines[3]
    assert "Not listed: the square wave with EM." in text
    text = shown("compare", "--tables", schema, "--epsilon", "1,2")
    assert text.splitlines()[0] == "10,000 users"
    assert "a × b" in text
    assert "square wave" not in text


def test_files(tmp_path, schema, capsys):
    pytest.importorskip("matplotlib")
    paths = {suffix: tmp_path / f"out.{suffix}" for suffix in ("csv", "json", "svg", "html")}
    outputs = [word for path in paths.values() for word in ("-o", str(path))]
    assert main(["compare", "--tables", schema, "--epsilon", "1,2", *outputs]) == 0
    table = json.loads(paths["json"].read_text())
    assert len(table) == len(rows(paths["csv"].read_text())) == 2 * (5 + 1) * 4
    assert b"<svg" in paths["svg"].read_bytes()
    assert "This plan and other methods, 10,000 users" in paths["html"].read_text()
    assert (
        main(["compare", "--number", "0:1", "--epsilon", "1,2", "--users", "5,6", "-o", str(paths["html"]), "--force"])
        == 0
    )
    assert "<svg" not in paths["html"].read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ordered", "0:1", "--number", "0:1"], "got --ordered and --number"),
        (["--bins", "8"], "--bins needs --ordered"),
        (["--ordered", "0:1", "--size", "8"], "--size is for protocols of single values; omit it, or --ordered"),
        (["--number", "0:1", "--simulate", "2"], "--simulate is for protocols of single values"),
        (["--number", "0:1", "--histogram", "skewed"], "--histogram is for protocols of single values"),
        (["--number", "0:1", "--vary", "size"], "with --number, vary epsilon or users"),
        (
            ["--number", "0:1", "--epsilon", "1,2", "--users", "5,6", "-o", "x.png"],
            "several values of epsilon and users",
        ),
    ],
)
def test_wrong_options_are_refused(words, message, complaint):
    assert main(["compare", *words]) == 2
    assert message in complaint()
