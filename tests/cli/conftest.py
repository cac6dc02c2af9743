"""A small collection for tests of the commands."""

import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from screen import Screen

import sunzi
from sunzi.cli.main import main

LABELS = ["Chrome", "Firefox", "Safari", "Edge", "other"]
SHARES = {"Chrome": 500, "Firefox": 300, "Safari": 150, "Lynx": 30, "": 20}


@dataclass(frozen=True)
class Collection:
    """Files in a directory, and the plan that made them."""

    directory: Path
    plan: sunzi.Plan

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def run(self, *words: str) -> int:
        """Run a command in this process; words that look like file names are files of the directory."""
        return main([self.path(word) if re.search(r"\.[a-z]", word) else word for word in words])

    def names(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())


def write_csv(path: Path, values: list[str]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "browser"])
        writer.writerows(enumerate(values))


@pytest.fixture
def collection(tmp_path) -> Collection:
    plan = sunzi.make_plan("ss-compact", LABELS, 3, other="other")
    plan.save(tmp_path / "plan.json")
    write_csv(tmp_path / "data.csv", [label for label, count in SHARES.items() for _ in range(count * 4)])
    return Collection(tmp_path, plan)


@pytest.fixture
def counted(collection) -> Collection:
    """The same, with reports, their tally, and a later tally."""
    assert collection.run("privatize", "plan.json", "data.csv", "--column", "browser", "-o", "reports.bin") == 0
    assert collection.run("tally", "plan.json", "reports.bin", "-o", "tally.bin") == 0
    collection.plan.simulate(["Chrome"] * 1000 + ["Edge"] * 500, seed=1).save(collection.directory / "later.bin")
    return collection


@pytest.fixture
def complaint(capsys):
    """The one line that a failed command wrote to standard error."""

    def read() -> str:
        text = capsys.readouterr().err
        assert text.startswith("sunzi: error: ")
        assert text.count("\n") == 1
        return text

    return read


@pytest.fixture
def shown(monkeypatch):
    """Run a successful command line on a terminal with colours and return its output."""

    def run(*words: str, columns: str = "250") -> str:
        stream = Screen()
        with monkeypatch.context() as patch:
            patch.setenv("TERM", "xterm")
            patch.setenv("COLUMNS", columns)
            patch.delenv("NO_COLOR", raising=False)
            patch.setattr(sys, "stdout", stream)
            assert main(words) == 0
        return stream.text()

    return run
