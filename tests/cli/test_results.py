"""The same output rules for every command: table on a terminal, CSV in a pipe, ``--format``, and ``-o``."""

import argparse
import csv
import io
import json

import pytest

import sunzi
from sunzi.cli.main import COMMANDS, build_parser
from sunzi.formatting import display_width

PRINTING = {
    "plan": ("--size", "9", "--epsilon", "1", "--users", "100", "--protocol", "grr"),
    "estimate": ("plan.json", "tally.bin"),
    "discover": ("open.json", "texts.bin"),
    "diff": ("plan.json", "tally.bin", "later.bin"),
    "trend": ("plan.json", "tally.bin", "later.bin"),
    "inspect": ("plan.json", "tally.bin", "reports.bin"),
    "compare": ("--size", "9", "--protocols", "grr,ss", "--epsilon", "1,2"),
    "attack": ("plan.json", "--trials", "50", "--seed", "1"),
    "audit": ("plan.json", "--trials", "500", "--seed", "1", "--no-exact"),
    "aggregation": ("plan.json", "--min-batch", "1000"),
    "batch": ("plan.json", "--users", "10000", "--delta", "1e-8"),
    "poison": ("plan.json", "--users", "200", "--runs", "2", "--attacks", "input", "--share", "0.05"),
}
WRITING = {*PRINTING, "privatize", "tally", "merge", "demo"}


@pytest.fixture
def counted(counted):
    """The collection, and one of texts without a list."""
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 2), 5, cells=1000)
    plan.save(counted.directory / "open.json")
    plan.simulate(["no", "ok"] * 800, seed=1).save(counted.directory / "texts.bin")
    return counted


@pytest.mark.parametrize("command", PRINTING)
def test_a_pipe_gets_csv_and_format_chooses(counted, capsys, command):
    words = (command, *PRINTING[command])
    assert counted.run(*words) == 0
    piped = capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(piped)))
    assert rows
    assert None not in rows[0], "all rows have as many fields as the first line"
    assert counted.run(*words, "--format", "csv") == 0
    assert next(csv.reader(io.StringIO(capsys.readouterr().out))) == list(rows[0])
    assert counted.run(*words, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", PRINTING)
def test_tables_fit_into_80_columns(counted, shown, command):
    words = [counted.path(word) if word.endswith((".json", ".bin")) else word for word in PRINTING[command]]
    text = shown(command, *words, columns="80").replace("\x1b", "\\")
    for style in ("\\[0m", "\\[1m", "\\[2m", "\\[31m", "\\[32m"):
        text = text.replace(style, "")
    lines = [
        line for line in text.splitlines() if counted.path("") not in line and counted.plan.fingerprint not in line
    ]
    assert max(map(display_width, lines)) <= 80


@pytest.mark.parametrize("command", PRINTING)
def test_an_output_file_replaces_printing_and_is_named(counted, capsys, command):
    suffix = ".json" if command == "plan" else ".csv"
    assert counted.run(command, *PRINTING[command], "-o", f"out{suffix}") == 0
    printed, said = capsys.readouterr()
    assert said.startswith("wrote ")
    assert said.endswith(f" to {counted.path('out' + suffix)}\n")
    assert said.count("\n") == 1
    assert (printed == "") == (command != "plan"), "the output of plan is the plan, so the comparison is printed"
    assert (counted.directory / f"out{suffix}").stat().st_size > 20


@pytest.mark.parametrize("command", sorted(PRINTING.keys() - {"plan"}))
def test_format_and_output_exclude_each_other(counted, complaint, command):
    assert counted.run(command, *PRINTING[command], "-o", "out.csv", "--format", "json") == 2
    assert "--format is for printing" in complaint()
    assert not (counted.directory / "out.csv").exists()


def test_every_command_that_prints_has_a_format_and_every_one_that_writes_an_output():
    parser = build_parser(*COMMANDS)
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    options = {name: set(each._option_string_actions) for name, each in commands.items()}
    assert {name for name, known in options.items() if "--format" in known} == {*PRINTING, "reproduce"}
    assert {name for name, known in options.items() if {"-o", "--output"} <= known} == {*WRITING, "reproduce"}


def test_binary_outputs_are_named_too(counted, capsys):
    capsys.readouterr()
    assert counted.run("privatize", "plan.json", "data.csv", "--column", "browser", "-o", "again.bin") == 0
    assert "wrote 4,000 reports of " in capsys.readouterr().err
    assert counted.run("merge", "tally.bin", "-o", "sum.bin") == 0
    assert capsys.readouterr().err == f"wrote the tally of 4,000 reports to {counted.path('sum.bin')}\n"
    assert counted.run("tally", "plan.json", "again.bin", "-o", "again.tally") == 0
    assert capsys.readouterr().err == f"wrote the tally of 4,000 reports to {counted.path('again.tally')}\n"
