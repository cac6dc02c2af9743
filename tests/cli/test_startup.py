"""What the command line costs before it does anything, and that the page about it is up to date."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from sunzi.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numpy", "scipy", "matplotlib", "numba", "pyarrow", "sunzi.plan", "sunzi.tables")


def seconds(statement: str) -> float:
    code = f"from time import process_time as clock\nstart = clock()\n{statement}\nprint('\\n', clock() - start)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(run.stdout.split()[-1])


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
    commands = {name for name in COMMANDS if f"sunzi.cli.{name}" in loaded}
    # estimate reads its tally as merge does
    assert commands - {"merge"} == {arguments[0]} & set(COMMANDS) - {"merge"}


def test_help_costs_a_fraction_of_numpy():
    ask = "from sunzi.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    help_, numpy = (min(seconds(code) for _ in range(4)) for code in (ask, "import numpy"))
    assert help_ < 0.6 * numpy


def test_every_command_is_listed_with_its_summary(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        build_parser().parse_args(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in printed


def test_a_command_that_carries_its_own_summary_says_the_same():
    from sunzi.cli import demo

    assert COMMANDS["demo"] == demo._SUMMARY


def test_the_page_about_the_command_line_is_up_to_date():
    assert runpy.run_path(str(ROOT / "scripts" / "make-cli-docs"))["main"](["--check"]) == 0
