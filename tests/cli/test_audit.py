"""``sunzi audit``: the verdict as text, as records and as an exit code."""

import csv
import io
import json

import numpy as np
import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.designs.response import BlockResponse

QUICK = ("--trials", "1e4", "--seed", "1")


@pytest.fixture
def leaky(monkeypatch):
    """A client that never lies."""

    def frank(response, words, values, source):
        return response.design.respond(values, np.ones(len(values), dtype=bool), np.zeros_like(words[:, 1:]))

    monkeypatch.setattr(BlockResponse, "_respond", frank)


@pytest.fixture
def leaning(monkeypatch):
    """A client that is private but draws its blocks in a different order."""
    shipped = BlockResponse._respond
    monkeypatch.setattr(BlockResponse, "_respond", lambda self, words, *rest: shipped(self, ~words, *rest))


def test_a_right_client_is_consistent_and_code_0(collection, capsys):
    assert collection.run("audit", "plan.json", *QUICK, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "consistent"
    assert found["trials"] == 10_000
    assert 2.5 < found["lower_bound"] <= 3
    assert {finding["check"] for finding in found["findings"]} >= {"epsilon", "words", "enumeration", "support"}


def test_the_table_ends_with_the_verdict(collection, capsys):
    assert collection.run("audit", "plan.json", "--trials", "500", "--seed", "1", "--format", "table") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ss-compact, 5 values, epsilon 3 (by formula 3)"
    assert lines[-1] == "consistent with epsilon 3"
    assert any(line.startswith("a lower bound within 4% of epsilon needs about ") for line in lines)
    assert any("the audited client was seeded" in line for line in lines)
    assert not any(line.startswith("FAULT") for line in lines)


def test_a_leaky_client_is_a_violation_and_code_3(collection, leaky, capsys):
    assert collection.run("audit", "plan.json", *QUICK, "--format", "table") == 3
    text = capsys.readouterr().out
    assert text.endswith("VIOLATION: the lower bound exceeds epsilon 3\n")
    assert "FAULT  epsilon" in text
    assert collection.run("audit", "plan.json", *QUICK, "--format", "json") == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "violation"


def test_another_use_of_words_is_a_deviation(collection, leaning, capsys):
    assert collection.run("audit", "plan.json", *QUICK) == 3  # CSV in a pipe
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["verdict"] for row in rows} == {"deviation"}
    assert "words" in {row["check"] for row in rows if row["passed"] == "False"}
    assert collection.run("audit", "plan.json", *QUICK, "--format", "table") == 3
    assert "DEVIATION: the client departs from its plan" in capsys.readouterr().out
    # The distribution of reports is correct, so sampling cannot detect it.
    assert collection.run("audit", "plan.json", *QUICK, "--no-exact") == 0


def test_exact_checks_can_be_left_out(collection, capsys):
    assert collection.run("audit", "plan.json", *QUICK, "--no-exact", "--format", "json") == 0
    checks = {finding["check"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert not checks & {"words", "thresholds", "enumeration"}


def test_labels_in_a_file_of_their_own(collection, capsys):
    (collection.directory / "values.txt").write_text("red\ngreen\nblue\n")
    words = ("--domain", "values.txt", "--epsilon", "1", "--users", "1000", "--protocol", "grr")
    assert collection.run("plan", *words, "--separate-labels", "-o", "apart.json") == 0
    assert collection.run("audit", "apart.json", *QUICK) == 2
    assert "give --labels PATH" in capsys.readouterr().err
    assert collection.run("audit", "apart.json", "--labels", "values.txt", *QUICK) == 0


def test_a_pair_is_two_labels(collection, capsys):
    assert collection.run("audit", "plan.json", *QUICK, "--pair", "Edge", "Chrome", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["pair"] == [3, 0]


@pytest.mark.parametrize(
    ("words", "complaint_words"),
    [
        (("--trials", "0"), "trials must be a whole number between 1 and 100000000, got 0"),
        (("--confidence", "2"), "confidence must lie between 0 and 1"),
        (("--pair", "Edge", "Edge"), "two different values"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(collection, words, complaint_words, complaint):
    assert collection.run("audit", "plan.json", "--seed", "1", *words) == 2
    assert complaint_words in complaint()


def test_a_pair_outside_of_a_bare_domain(tmp_path, complaint):
    sunzi.make_plan("grr", 5, 1).save(tmp_path / "plan.json")
    assert main(["audit", str(tmp_path / "plan.json"), "--pair", "1", "5"]) == 2
    assert "--pair: value 5 is not in the domain 0 … 4" in complaint()


def test_pairs_of_numbers_and_of_records(tmp_path, capsys, complaint):
    path, quick = tmp_path / "plan.json", ["--trials", "2000", "--seed", "1", "--no-exact", "--format", "json"]
    sunzi.make_number(0, 100, 4).save(path)
    assert main(["audit", str(path), *quick, "--pair", "0", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["pair"] == [0, (1 << 20) - 1]
    assert main(["audit", str(path), *quick, "--pair", "0", "30"]) == 2
    assert "not rounded by chance: choose two of 0 to" in complaint()
    sunzi.make_tables({"a": ["x", "y"], "b": ["u", "v"]}, [("a", "b")], 2).save(path)
    assert main(["audit", str(path), *quick, "--pair", '{"a": "x", "b": "v"}', '{"a": "y", "b": "u"}']) == 0
    assert json.loads(capsys.readouterr().out)["pair"] == [1, 2]
    assert main(["audit", str(path), *quick, "--pair", "{a}", "y"]) == 2
    assert '--pair: a record must be JSON, such as {"a": "x", "b": "u"}; got \'{a}\'' in complaint()


def test_values_that_cannot_be_a_pair(tmp_path, complaint):
    path = tmp_path / "plan.json"
    sunzi.make_ordered(0, 100, 4, 4).save(path)
    assert main(["audit", str(path), "--pair", "1", "24"]) == 2
    assert "--pair must be two different values; '1' and '24' are the same to this plan" in complaint()
    sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 3), 4, cells=1000).save(path)
    assert main(["audit", str(path), "--pair", "yes", "no"]) == 2
    assert "prefixes defines no channels, so it cannot be analysed" in complaint()


def test_a_pair_of_an_unknown_label_is_an_error_also_with_other(collection, complaint):
    assert collection.run("audit", "plan.json", *QUICK, "--pair", "Edge", "chrome") == 2
    assert "--pair: label 'chrome' is not in the domain; did you mean 'Chrome'?" in complaint()
