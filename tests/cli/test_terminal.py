"""Output on a terminal: tables, colour and progress."""

import sys
import warnings

import pytest
from screen import Screen

from sunzi.cli import terminal
from sunzi.formatting import display_width


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
    assert [display_width(line) for line in lines] == [9, 9, 9]


def printed(monkeypatch, columns, header, rows, **options):
    screen = Screen(is_terminal=False)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal.print_table(header, rows, **options)
    return screen.text().splitlines()


def test_a_wide_table_shortens_its_labels_then_its_gaps_then_is_split(monkeypatch):
    header, rows = ["value", "one", "two", "three"], [["a" * 30 + "b" * 30, "1" * 10, "2" * 10, "3" * 10]]
    lines = printed(monkeypatch, 60, header, rows)
    assert [len(line) for line in lines] == [60, 60]
    assert lines[1].startswith("aaaaaaaaaaaa…bbbbbbbbbbb  1111111111  2222222222")
    (_, line) = printed(monkeypatch, 50, header, rows)
    assert line == "aaaaaaaa…bbbbbbb 1111111111 2222222222 3333333333"
    split = printed(monkeypatch, 45, header, rows)
    assert split[1].split() == ["aaaaaaaa…bbbbbbb", "1" * 10, "2" * 10]
    assert split[2] == ""
    assert split[3].split() == ["value", "three"]
    assert split[4].split() == ["aaaaaaaa…bbbbbbb", "3" * 10]


def test_paragraphs_break_between_words_and_not_before_a_percent_sign(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    terminal.say_wrapped("a-hyphenated-word-that-is-long stays whole, as do 12 % and 5 %", hanging=2)
    assert capsys.readouterr().out.splitlines() == [
        "a-hyphenated-word-that-is-long",
        "  stays whole, as do",
        "  12 % and 5 %",
    ]


def test_substitutes_for_what_an_encoding_lacks():
    screen = Screen("ascii")
    terminal.say("naïve", screen)
    assert screen.text() == "na?ve\n"


def progressed(monkeypatch, *, is_terminal):
    screen = Screen(is_terminal=is_terminal)
    clock = iter(range(100))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: float(next(clock)))
    with terminal.ProgressBar("rows") as progress:
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


def test_a_fraction_shows_the_time_left_and_is_erased(monkeypatch):
    stream, clock = Screen(), iter([0.0, 0.2, 10.0, 10.01, 20.0])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with terminal.ProgressBar() as bar:
        for share in (0.05, 0.25, 0.3, 0.5):
            bar.show(share)
        assert stream.text().split("\r")[1:] == [
            " 25%  [#####...............]  about 30 s left",
            " 50%  [##########..........]  about 20 s left",
        ]
    assert stream.text().split("\r")[-2].strip() == ""


def test_no_fraction_in_a_pipe(capsys):
    with terminal.ProgressBar() as bar:
        bar._start -= 100
        bar.show(0.5)
    assert capsys.readouterr().err == ""


def test_an_estimate_on_a_terminal_is_a_table(counted, monkeypatch, colourful):
    values = ["Chrome"] * 2000 + ["Firefox"] * 1200 + ["Safari"] * 600 + ["other"] * 200
    counted.plan.simulate(values, seed=1).save(counted.directory / "tally.bin")
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "250")
    assert counted.run("estimate", "plan.json", "tally.bin", "--top", "5", "--postprocess", "simplex") == 0
    text = screen.text()
    assert "4,000 reports, ss-compact, 5 values" in text
    assert "20.1 times as likely" in text
    lines = text.splitlines()
    assert lines[3].startswith("\x1b[1mvalue")
    for word in ("estimate", "95 % interval", "users", "simplex"):
        assert word in lines[3]
    assert lines[4].startswith("Chrome ")
    assert " to " in lines[4]
    assert any(line.startswith("\x1b[2mEdge") for line in lines), "no user has it, so it is dimmed"
    assert "no confidence interval" in lines[-1]


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


def test_warnings_become_notes(capsys):
    with terminal.printed_warnings():
        warnings.warn("too large", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "sunzi: note: too large\n"
