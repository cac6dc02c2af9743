"""The start-up cost of the command line, and that the page about it is up to date."""

import argparse
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from sunzi.cli.main import COMMANDS, build_parser, main

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "scipy", "matplotlib", "numba", "pyarrow", "sunzi.plan", "sunzi.tables")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=" ".join
)
def test_help_imports_nothing_heavy_and_no_other_command(arguments):
    code = (
        "import sys\nfrom sunzi.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as stop: assert stop.code == 0\n"
        f"print('LOADED', *[name for name in sys.modules if name in {HEAVY!r} or name.startswith('sunzi.cli.')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split()[1:])
    assert not loaded & set(HEAVY)
    assert {name for name in COMMANDS if f"sunzi.cli.{name}" in loaded} == {arguments[0]} & set(COMMANDS)


def test_every_command_is_listed_with_its_summary(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        build_parser().parse_args(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in printed


def parsers(parser):
    """The parser and the parsers of its actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_complete_help(command, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main([command, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: sunzi {command}")
    found = next(action for action in build_parser(command)._actions if action.choices).choices[command]
    for parser in parsers(found):
        assert parser.description
        assert all(action.help for action in parser._actions)


def test_the_page_about_the_command_line_is_up_to_date():
    assert runpy.run_path(str(ROOT / "scripts" / "make-cli-docs"))["main"](["--check"]) == 0
