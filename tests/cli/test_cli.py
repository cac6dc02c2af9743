"""The command line: what it costs, what it says, how it fails, and the demo from end to end."""

import io
import os
import re
import subprocess
import sys

import pytest

from sunzi import __version__
from sunzi.cli import demo
from sunzi.cli.main import main
from sunzi.errors import SunziError

SMALL = ("demo", "--users", "2000", "--size", "50", "--protocol", "grr", "--epsilon", "3")

WITHOUT_MATPLOTLIB = """
import sys
from sunzi.cli.main import main

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.exit(main())
"""


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


def test_a_missing_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main([])
    assert "COMMAND" in capsys.readouterr().err


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


def test_a_reader_that_goes_away_is_no_error(tmp_path):
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


def test_demo_prints_a_table_and_draws_a_picture(tmp_path, capsys):
    assert small_demo(tmp_path) == 0
    printed, complaints = capsys.readouterr()
    assert complaints == ""
    assert "2,000 simulated users" in printed
    assert "epsilon = 3" in printed
    assert "20.1 times as likely" in printed
    rows = re.findall(r"^(\w+) +(-?[\d.]+)% +(-?[\d.]+)% to +(-?[\d.]+)% +([\d.]+)%  ([✓✗])$", printed, re.MULTILINE)
    assert len(rows) == 10
    for word, estimate, low, high, truth, mark in rows:
        assert word in demo.demo_labels(50)
        assert float(low) <= float(estimate) <= float(high)
        # Printed to two decimals, a value at the very edge may fall on either side.
        assert (float(low) - 0.01 <= float(truth) <= float(high) + 0.01) or mark == "✗"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_table_agrees_with_the_truth(tmp_path, capsys):
    """20,000 users at ε = 8: the commonest word is plain, and its interval lies around its true frequency."""
    assert small_demo(tmp_path, "--users", "20000", "--epsilon", "8") == 0
    first = re.search(r"^the +([\d.]+)%", capsys.readouterr().out, re.MULTILINE)
    truth, _ = demo.simulate_population(demo.demo_labels(50), 20_000, seed=1)
    assert abs(float(first[1]) / 100 - truth[0]) < 0.01  # more than ten standard errors


def test_demo_without_matplotlib_names_the_extra_and_goes_on(tmp_path):
    picture = tmp_path / "picture.png"
    arguments = [*SMALL, "--output", str(picture)]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB, *arguments], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert "No picture: " in run.stdout
    assert "pip install 'sunzi[plot]'" in run.stdout
    assert not picture.exists()


def test_a_picture_that_cannot_be_written_is_code_1(tmp_path, capsys):
    assert small_demo(tmp_path, "--output", str(tmp_path / "missing" / "picture.png")) == 1
    assert capsys.readouterr().err.startswith("sunzi: error: ")


def test_the_seed_fixes_the_population_only():
    labels = demo.demo_labels(30)
    first, again, other = (demo.simulate_population(labels, 500, seed)[1] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    truth, values = demo.simulate_population(labels, 500, 1)
    assert [values.count(label) / 500 for label in labels] == truth.tolist()


def test_labels_are_distinct_words_then_phrases():
    labels = demo.demo_labels(1_000)
    assert len(set(labels)) == 1_000
    assert labels[0] == "the"
    assert sum(" " not in label for label in labels) == 100
    assert demo.demo_labels(10_101)[-1].count(" ") == 2


class Terminal(io.StringIO):
    """A stream that says it is a terminal with a given encoding."""

    def __init__(self, encoding: str = "utf-8", terminal: bool = True) -> None:
        super().__init__()
        self.name_of_encoding, self.terminal = encoding, terminal

    @property
    def encoding(self) -> str:
        return self.name_of_encoding

    def isatty(self) -> bool:
        return self.terminal


def test_colour_only_where_it_is_welcome(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert demo._marks(Terminal()) == ("\x1b[32m✓\x1b[0m", "\x1b[31m✗\x1b[0m")
    assert demo._marks(Terminal(terminal=False)) == ("✓", "✗")
    assert demo._marks(Terminal(encoding="ascii")) == ("yes", "no")
    monkeypatch.setenv("NO_COLOR", "1")
    assert demo._marks(Terminal()) == ("✓", "✗")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert demo._marks(Terminal()) == ("✓", "✗")


def test_progress_lines_only_on_a_terminal(monkeypatch):
    for terminal, expected in ((True, "plan ...\r\x1b[K"), (False, "")):
        stream = Terminal(terminal=terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        with demo._Clock().step("plan"):
            pass
        assert stream.getvalue() == expected
