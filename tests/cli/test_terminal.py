"""What only a terminal sees: tables, colour and progress."""

import io
import sys

import pytest

import sunzi
from sunzi.cli import terminal, words
from sunzi.cli.words import decimals_for, epsilon_in_words, guess_in_words, percent, size_in_words


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def __init__(self, encoding="utf-8", is_terminal=True):
        super().__init__(io.BytesIO(), encoding=encoding, newline="")
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal

    def text(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def colourful(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_colour_only_where_it_is_welcome(colourful, monkeypatch):
    assert terminal.styled("x", "red", Screen()) == "\x1b[31mx\x1b[0m"
    assert terminal.styled("x", "red", Screen(is_terminal=False)) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.styled("x", "red", Screen()) == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert terminal.styled("x", "red", Screen()) == "x"


def test_a_table_aligns_wide_characters():
    lines = terminal.table(["value", "n"], [["日本", "1"], ["e\u0301a", "12"]])
    assert [terminal.display_width(line) for line in lines] == [9, 9, 9]


def test_long_and_unprintable_texts():
    assert terminal.shortened("abcdef", 4) == "abc…"
    assert terminal.display_width(terminal.shortened("日本語日本語", 5)) <= 5
    assert terminal.printable("a\x1b[2Jb\u202e") == r"a\x1b[2Jb\u202e"


def test_substitutes_for_what_an_encoding_lacks():
    screen = Screen("ascii")
    terminal.say("naïve", screen)
    assert screen.text() == "na?ve\n"


def progressed(monkeypatch, *, is_terminal):
    screen = Screen(is_terminal=is_terminal)
    clock = iter(range(100))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: float(next(clock)))
    with terminal.Progress("rows") as progress:
        progress.update(1_000, 0.5)
        progress.update(4_000)
    return screen.text()


def test_progress_shows_a_rate_and_wipes_itself(monkeypatch):
    text = progressed(monkeypatch, is_terminal=True)
    assert " 50%  [##########..........]  1,000 rows, 1,000 rows/s" in text
    assert "4,000 rows, 2,000 rows/s" in text
    last = text.rsplit("\r", 2)
    assert last[-1] == ""
    assert last[-2].strip() == ""


def test_no_progress_in_a_pipe(monkeypatch):
    assert progressed(monkeypatch, is_terminal=False) == ""


def test_an_estimate_on_a_terminal_is_a_table(counted, monkeypatch, colourful):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert counted.run("estimate", "plan.json", "tally.bin", "--top", "5", "--postprocess", "simplex") == 0
    text = screen.text()
    assert "4,000 reports by ss-compact on 5 values" in text
    assert "20.1 times as likely" in text
    lines = text.splitlines()
    assert lines[3].startswith("\x1b[1mvalue")
    for word in ("estimate", "95 % interval", "users", "simplex"):
        assert word in lines[3]
    assert lines[4].startswith("Chrome ")
    assert " to " in lines[4]
    assert any(line.startswith("\x1b[2mEdge") for line in lines), "nobody has it, so it is pale"
    assert "no interval" in lines[-1]


@pytest.mark.parametrize(
    "command",
    [
        ("privatize", "plan.json", "data.csv", "--column", "browser"),
        ("tally", "plan.json", "reports.bin"),
        ("merge", "tally.bin", "-o", "-"),
    ],
    ids=lambda command: command[0],
)
def test_bytes_are_not_written_to_a_terminal(counted, monkeypatch, capsys, command):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    assert counted.run(*command) == 2
    assert screen.text() == ""
    assert "give -o FILE" in capsys.readouterr().err


def test_words():
    assert words.counted(1, "report") == "1 report"
    assert words.counted(2_000, "report") == "2,000 reports"
    assert size_in_words(357) == "357 bytes"
    assert size_in_words(75_104) == "75,104 bytes (75.1 kB)"
    assert size_in_words(3 * 10**12) == "3,000,000,000,000 bytes (3.0 TB)"
    assert [percent(share) for share in (0, 0.3, 0.00123, -0.002, 1)] == [
        "0.00 %",
        "30 %",
        "0.12 %",
        "-0.20 %",
        "100 %",
    ]
    assert decimals_for([0.0012, 0.0015]) == 2
    assert decimals_for([]) == 2
    assert "2.72 times" in epsilon_in_words(sunzi.make_plan("grr", 3, 1).epsilon)
    plan = sunzi.make_plan("grr", 12, 1)
    assert "19.8 % of the time, compared with 8.33 % without it" in guess_in_words(plan.attackability, 12)
    assert "over 99.9 % of the time" in guess_in_words(1 - 1e-9, 12)
