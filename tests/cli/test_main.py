"""``sunzi``: version, help, exit codes and errors."""

import os
import re
import subprocess
import sys

import pytest
from screen import Screen

from sunzi import __version__
from sunzi.cli import demo
from sunzi.cli.main import main
from sunzi.client.errors import SunziError

SMALL = ("demo", "--users", "2000", "--size", "50", "--protocol", "grr", "--epsilon", "3")


def run_sunzi(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sunzi", *arguments], capture_output=True, text=True, check=False, **options
    )


def small_demo(tmp_path, *arguments: str) -> int:
    return main([*SMALL, "--output", str(tmp_path / "picture.png"), *arguments])


def test_version_is_the_package_version():
    run = run_sunzi("--version")
    assert (run.returncode, run.stdout.strip()) == (0, f"sunzi {__version__}")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["demo", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments):
    code = (
        "import sys\nfrom sunzi.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit as stop: assert stop.code == 0\n"
        "print('HEAVY', [name for name in ('numpy', 'scipy', 'matplotlib', 'numba') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "HEAVY []"


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    assert re.search(r"^ +demo +\w", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize("words", [[], ["store"]])
def test_without_a_command_it_prints_help(words, capsys):
    assert main(words) == 0
    printed, said = capsys.readouterr()
    assert printed.startswith(f"usage: {' '.join(['sunzi', *words])} [-h]")
    assert ("show" if words else "privatize") in printed
    assert said == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--epsilon", "-1"), "epsilon must be positive, got -1"),
        (("--epsilon", "much"), "got 'much'"),
        (("--size", "1"), "--size must be between 2 and"),
        (("--users", "0"), "--users must be at least 1, got 0"),
        (("--seed", "-3"), "--seed must not be negative, got -3"),
        (("--protocol", "telepathy"), "telepathy"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(arguments, words, tmp_path, capsys):
    assert small_demo(tmp_path, *(f"{arguments[0]}={value}" for value in arguments[1:])) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("sunzi: error: ")
    assert words in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "complaint"),
    [
        (SunziError("two\nlines"), 2, "sunzi: error: two lines\n"),
        (OSError("the disk is full"), 1, "sunzi: error: the disk is full\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_exit_codes(error, code, complaint, monkeypatch, tmp_path, capsys):
    def fail(size):
        raise error

    monkeypatch.setattr(demo, "demo_labels", fail)
    assert small_demo(tmp_path) == code
    assert capsys.readouterr().err == complaint


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as nobody_reads:
        run = subprocess.run(
            [sys.executable, "-m", "sunzi", *SMALL, "--output", str(tmp_path / "picture.png")],
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (run.returncode, run.stderr) == (141, b"")


def test_an_error_is_wrapped_on_a_terminal_only(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    for is_terminal, lines in ((True, 2), (False, 1)):
        screen = Screen(is_terminal=is_terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        assert main(["attack", "plan.json", "--reports", "0"]) == 2
        text = screen.text()
        assert " ".join(text.split()) == "sunzi: error: --reports must be between 1 and 10,000, got '0'"
        assert len(text.splitlines()) == lines
