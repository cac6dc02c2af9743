"""Arguments: usage of the command itself, the nearest name, numbers of any spelling, and help in 80 columns."""

import argparse

import pytest

from sunzi.cli.main import COMMANDS, build_parser, main
from sunzi.cli.parser import nearest


def refused(capsys, *words: str) -> tuple[str, str]:
    """The usage and the error line of a command line that cannot be understood."""
    with pytest.raises(SystemExit, match=r"^2$"):
        main(words)
    printed, said = capsys.readouterr()
    assert printed == ""
    usage, _, error = said.rstrip("\n").rpartition("\n")
    assert error.startswith("sunzi: error: ")
    return usage, error


@pytest.mark.parametrize(
    ("words", "usage", "complaint"),
    [
        (["plam"], "sunzi [-h]", "there is no command 'plam'; did you mean plan?"),
        (["zzz"], "sunzi [-h]", "there is no command 'zzz'; see sunzi --help"),
        (["plan", "--epsilonn=3"], "sunzi plan [-h]", "there is no option --epsilonn; did you mean --epsilon?"),
        (["poison", "p", "--user", "5"], "sunzi poison [-h]", "there is no option --user; did you mean --users?"),
        (["store", "shov"], "sunzi store [-h]", "there is no action 'shov'; did you mean show?"),
        (["store", "show", "a", "b"], "sunzi store show [-h]", "'b' is one argument too many"),
        (["plan", "--size", "9", "--objective", "eror"], "sunzi plan", "argument --objective: 'eror' is none of"),
    ],
)
def test_a_mistake_shows_the_commands_own_usage_and_the_nearest_name(words, usage, complaint, capsys):
    shown, error = refused(capsys, *words)
    assert shown.startswith(f"usage: {usage}")
    assert complaint in error


def test_no_name_is_near_enough():
    assert nearest("--x", ["--epsilon"]) == ""


@pytest.mark.parametrize("text", ["1e400", "1e999999999", "9" * 400, "-1e400"])
@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--epsilon=1", "--users=5", "--size"],
        ["plan", "--size=9", "--epsilon=1", "--users"],
        ["plan", "--size=9", "--users=5", "--epsilon"],
        ["plan", "--size=9", "--users=5", "--epsilon=1", "--max-bits"],
        ["plan", "--size=9", "--users=5", "--target-error"],
        ["compare", "--size"],
        ["demo", "--users"],
        ["demo", "--port"],
        ["simulate", "--send=x", "--users"],
    ],
    ids=" ".join,
)
def test_huge_numbers_are_refused_in_a_few_words(words, text, capsys):
    try:
        code = main([*words[:-1], f"{words[-1]}={text}"])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("sunzi: error: ")
    assert "0" * 70 not in error
    assert len(error) < 350


def test_whole_numbers_may_be_written_with_an_exponent():
    parser = build_parser("simulate", "estimate")
    assert parser.parse_args(["simulate", "--send", "x", "--users", "2e3"]).users == 2000
    assert parser.parse_args(["estimate", "a", "b", "--confidence", "9/10"]).confidence == 0.9


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["estimate", "plan.json", "a.tally", "--top", "ten"],
            "--top must be a number such as 2, 0.5, 1/3 or 1e6, got 'ten'",
        ),
        (["serve", "--port", "1.5"], "--port must be a whole number, got '1.5'"),
        (
            ["plan", "--size", "9", "--max-bits", "few"],
            "--max-bits must be a number such as 2, 0.5, 1/3 or 1e6, got 'few'",
        ),
    ],
)
def test_a_malformed_number_is_one_line_that_names_the_option(words, complaint, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"sunzi: error: {complaint}\n"


def test_negative_numbers_follow_their_option():
    parser = build_parser("estimate", "plan")
    words = ["estimate", "a", "-", "--range", "-5:5", "--range=-4:4", "--quantile", ".5", "--mean"]
    parsed = parser.parse_args(words)
    assert (parsed.ranges, parsed.tally, parsed.mean) == (["-5:5", "-4:4"], "-", True)
    assert parser.parse_args(["plan", "--ordered", "-.5:0", "--clamp"]).ordered == "-.5:0"


def parsers(parser: argparse.ArgumentParser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


def test_help_fits_into_80_columns_and_breaks_no_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = list(parsers(build_parser(*COMMANDS)))
    assert len(found) > 20
    for parser in found:
        text = parser.format_help()
        assert max(map(len, text.splitlines())) <= 80, parser.prog
        words = {word for action in parser._actions for word in (action.help or "").split() if "%" not in word}
        assert words | set((parser.description or "").split()) <= set(text.split()), parser.prog


def test_names_and_summaries_of_commands_share_their_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = build_parser().format_help().splitlines()
    assert all(any(line.split()[:1] == [name] and len(line.split()) > 2 for line in lines) for name in COMMANDS)
