"""``sunzi plan --open``."""

import json

import pytest

import sunzi
from sunzi.cli.main import main


def test_plans_are_those_of_the_library(tmp_path, capsys):
    path, tokens = tmp_path / "plan.json", tmp_path / "tokens.txt"
    tokens.write_text("www.\n.org\na\n")
    for alphabet, domain, options in (
        ("letters", sunzi.OpenDomain("letters", 3), {}),
        ("bytes", sunzi.OpenDomain("bytes", 3), {"list_only": True}),
        (str(tokens), sunzi.OpenDomain(["www.", ".org", "a"], 3), {}),
    ):
        words = ["--open", alphabet, "--longest", "3", "--epsilon", "4", *(["--list-only"] if options else [])]
        assert main(["plan", *words, "-o", str(path), "--force"]) == 0
        assert sunzi.load_plan(path) == sunzi.make_plan("prefixes", domain, 4, **options)
    assert capsys.readouterr().out.startswith("tokens,found_50,found_80,found_95\n3,")


def test_texts_are_bytes_unless_something_else_is_said(tmp_path):
    path = str(tmp_path / "plan.json")
    assert main(["plan", "--open", "--epsilon", "2", "--users", "1e6", "--length", "16", "-o", path]) == 0
    assert sunzi.load_plan(path) == sunzi.make_plan("prefixes", sunzi.OpenDomain("bytes", 16), 2)


def test_what_was_done_to_texts_stands_in_the_plan(tmp_path, shown):
    path = str(tmp_path / "plan.json")
    words = ["--open", "letters", "--longest", "3", "--epsilon", "2", "--note", "lower case, NFC", "-o", path]
    assert shown("plan", *words).startswith("texts (lower case, NFC) of up to 3")
    assert sunzi.load_plan(path).domain.note == "lower case, NFC"


def test_json_has_every_threshold(capsys):
    words = ["--open", "letters", "--longest", "12", "--epsilon", "2", "--users", "1e6", "--format", "json"]
    assert main(["plan", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["protocol"], found["users"], found["report_bits"]) == ("prefixes", 1_000_000, 23)
    assert [row["tokens"] for row in found["thresholds"]] == [3, 6, 9, 12, None]
    assert all(0.003 < row["found_50"] < row["found_80"] < row["found_95"] < 0.02 for row in found["thresholds"])
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 12), 2)
    rare = [row.frequency for row in plan.thresholds(1_000_000, recall=0.95)]
    assert [row["found_95"] for row in found["thresholds"]] == rare


def test_a_wrong_number_of_users_writes_no_plan(tmp_path, complaint):
    path = tmp_path / "plan.json"
    words = ["--open", "letters", "--longest", "3", "--epsilon", "2", "--users", "0", "-o", str(path)]
    assert main(["plan", *words]) == 2
    assert "--users must be at least 1, got 0" in complaint()
    assert not path.exists()


def test_on_a_terminal_it_says_what_will_be_found(shown):
    text = shown("plan", "--open", "letters", "--longest", "6", "--epsilon", "4", "--users", "1e6")
    assert text.startswith("texts of up to 6 out of 27 tokens")
    assert "of up to 3 tokens" in text
    assert "from a list of candidates" in text
    assert "found with this probability" in text
    assert "never" in shown("plan", "--open", "--length", "64", "--epsilon", "1", "--users", "1000")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--open", "letters", "--epsilon", "2"], "--open needs --longest"),
        (["--open", "letters", "--longest", "3"], "give --epsilon"),
        (["--open", "letters", "--longest", "0", "--epsilon", "2"], "longest"),
        (["--open", "letters", "--size", "3"], "exactly one of"),
        (["--size", "3", "--epsilon", "2", "--users", "9", "--longest", "3"], "--longest needs --open"),
        (["--size", "3", "--epsilon", "2", "--users", "9", "--note", "NFC"], "--note needs --open"),
        (["--open", "--length", "3", "--epsilon", "2", "--note", "a\x1b[2J"], "a note must be printable text"),
        (["--open", "letters", "--longest", "3", "--epsilon", "2", "--protocol", "grr"], "--protocol is for plans"),
        (["--open", "letters", "--longest", "3", "--epsilon", "2", "-o", "x.html"], "there is no comparison page"),
    ],
)
def test_mistakes_are_explained(words, message, capsys):
    assert main(["plan", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_damaged_file_of_tokens_is_named(tmp_path, capsys):
    (tmp_path / "tokens.txt").write_bytes(b"\xff\n")
    assert main(["plan", "--open", str(tmp_path / "tokens.txt"), "--longest", "3", "--epsilon", "2"]) == 2
    assert "not UTF-8" in capsys.readouterr().err
