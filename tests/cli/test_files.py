"""Outputs that exist, and arguments in the wrong order."""

import argparse
import os

import pytest

from sunzi.cli.main import COMMANDS, build_parser


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["plan", "--size", "4", "--users", "100", "--epsilon", "1"], "new.json"),
        (["privatize", "plan.json", "data.csv", "--column", "browser"], "new.bin"),
        (["tally", "plan.json", "reports.bin"], "new.tally"),
        (["merge", "tally.bin"], "new.tally"),
        (["estimate", "plan.json", "tally.bin"], "new.csv"),
        (["inspect", "plan.json"], "new.json"),
    ],
)
def test_an_output_that_exists_is_kept_without_force(counted, complaint, words, output):
    path = counted.directory / output
    path.write_bytes(b"older")
    assert counted.run(*words, "-o", output) == 2
    assert complaint() == f"sunzi: error: {path} exists; give -o another name, or --force to replace it\n"
    assert path.read_bytes() == b"older"
    assert counted.run(*words, "-o", output, "--force") == 0
    assert path.read_bytes() != b"older"


def test_what_is_no_file_may_be_written_to(counted):
    assert counted.run("merge", "tally.bin", "-o", os.devnull) == 0


def parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


def test_every_command_with_an_output_has_force():
    """All but reproduce, which goes on with a folder."""
    without = {
        parser.prog.removeprefix("sunzi ")
        for parser in parsers(build_parser(*COMMANDS))
        if "--output" in parser._option_string_actions and "--force" not in parser._option_string_actions
    }
    assert without == {"reproduce"}


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["estimate", "tally.bin", "plan.json"], "sunzi estimate {plan.json} {tally.bin}"),
        (["tally", "reports.bin", "plan.json"], "sunzi tally {plan.json} {reports.bin}"),
        (["tally", "reports.bin", "more.bin", "plan.json"], "sunzi tally {plan.json} {more.bin} {reports.bin}"),
        (["privatize", "data.csv", "plan.json"], "sunzi privatize {plan.json} {data.csv}"),
    ],
)
def test_swapped_arguments_are_named_in_the_right_order(counted, complaint, words, right):
    assert counted.run(*words) == 2
    for name in ("plan.json", "tally.bin", "reports.bin", "more.bin", "data.csv"):
        right = right.replace(f"{{{name}}}", counted.path(name))
    said = complaint()
    assert f"the plan comes first, and {counted.path(words[1])} is not a plan, " in said
    assert said.endswith(f"is: {right}\n")
