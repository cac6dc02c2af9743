"""``sunzi demo`` from end to end."""

import re
import subprocess
import sys

import pytest
from screen import Screen

from sunzi.cli import demo
from sunzi.cli.main import main

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


def small_demo(tmp_path, *arguments: str) -> int:
    return main([*SMALL, "--output", str(tmp_path / "picture.png"), *arguments])


def test_demo_prints_a_table_and_draws_a_picture(tmp_path, capsys):
    assert small_demo(tmp_path) == 0
    printed, complaints = capsys.readouterr()
    assert complaints == ""
    assert "2,000 simulated users" in printed
    assert "epsilon = 3" in printed
    assert "20.1 times as likely" in printed
    row = r"^(\w+) +(-?[\d.]+) % +(-?[\d.]+) % to (-?[\d.]+) % +([\d.]+) % +(yes|no)$"
    rows = re.findall(row, printed, re.MULTILINE)
    assert len(rows) == 10
    for word, estimate, low, high, truth, covered in rows:
        assert word in demo.demo_labels(50)
        assert float(low) <= float(estimate) <= float(high)
        # Printed with two decimals, a value at the very edge may be on either side.
        assert (float(low) - 0.01 <= float(truth) <= float(high) + 0.01) or covered == "no"
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_the_table_agrees_with_the_truth(tmp_path, capsys):
    """20,000 users at ε = 8: the most frequent word is clear, and its interval contains its true frequency."""
    assert small_demo(tmp_path, "--users", "20000", "--epsilon", "8") == 0
    first = re.search(r"^the +([\d.]+) %", capsys.readouterr().out, re.MULTILINE)
    truth, _ = demo.simulate_population(demo.demo_labels(50), 20_000, seed=1)
    assert abs(float(first[1]) / 100 - truth[0]) < 0.01  # more than ten standard errors


@pytest.mark.slow
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


def test_progress_lines_only_on_a_terminal(monkeypatch):
    for is_terminal, expected in ((True, "plan ...\r\x1b[K"), (False, "")):
        screen = Screen(is_terminal=is_terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        with demo._Clock().step("plan"):
            pass
        assert screen.text() == expected


def test_the_demo_runs_over_http_and_stops(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--users", "2000", "--size", "30", "--serve", "--once"]) == 0
    assert "It counted 2,000 reports, each exactly once" in capsys.readouterr().out


def test_a_picture_of_ones_own_is_not_replaced(tmp_path, capsys):
    path = tmp_path / "mine.png"
    path.write_bytes(b"mine")
    assert main([*SMALL, "-o", str(path)]) == 2
    assert "mine.png exists; give -o another name, or --force to replace it" in capsys.readouterr().err
    assert path.read_bytes() == b"mine"
    assert main([*SMALL, "-o", str(tmp_path / "mine.txt")]) == 2
    assert "must end in one of .png" in capsys.readouterr().err
