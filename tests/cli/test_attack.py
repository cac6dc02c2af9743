"""``sunzi attack``: tables, records and the picture."""

import csv
import io
import json
import re
import subprocess
import sys

import pytest

from sunzi.cli.main import main

QUICK = ("--trials", "2000", "--seed", "1")

WITHOUT_MATPLOTLIB = """
import sys
from sunzi.cli.main import main

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
sys.exit(main())
"""


def test_json_has_everything(collection, capsys):
    assert collection.run("attack", "plan.json", *QUICK, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["formula"] == collection.plan.attackability
    assert found["success"]["trials"] == 2000
    assert found["success"]["low"] < found["formula"] < found["success"]["high"]
    assert found["repeated"] == found["memoised"] == []


def test_in_a_pipe_it_prints_csv_with_a_row_for_every_measured_success(collection, capsys):
    assert collection.run("attack", "plan.json", *QUICK, "--reports", "1:3:1") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["client"], row["reports"]) for row in rows] == [
        ("fresh", "1"),
        *(("fresh", str(number)) for number in (1, 2, 3)),
        *(("memoised", str(number)) for number in (1, 2, 3)),
    ]
    assert len({row["successes"] for row in rows if row["client"] == "memoised"}) == 1


def test_the_table_says_what_was_seen_and_how_often_it_was_right(collection, capsys):
    assert collection.run("attack", "plan.json", *QUICK, "--reports", "1,4", "--format", "table") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ss-compact, 5 values, epsilon 3, prior uniform; the attacker guesses the value"
    assert re.match(r"no report +20.00 %$", lines[3])
    assert re.match(rf"1 report +by formula +{100 * collection.plan.attackability:.2f} %$", lines[4])
    assert re.match(r"1 report +simulated +\d+\.\d\d % +\d+\.\d\d % to \d+\.\d\d % +2,000$", lines[5])
    assert [line.split("  ")[0] for line in lines[6:]] == ["1 report", "4 reports", "1 report", "4 reports"]


def test_a_prior_by_name_and_by_file(collection, capsys):
    path = collection.directory / "prior.csv"
    path.write_text("Chrome,7\nEdge,1\n")
    for prior, baseline in (("spike", 1.0), ("prior.csv", 0.875)):
        assert collection.run("attack", "plan.json", *QUICK, "--prior", prior, "--format", "json") == 0
        assert json.loads(capsys.readouterr().out)["baseline"] == baseline


def test_disagreement_is_reported(collection, capsys):
    """A narrow interval that hardly ever covers the formula."""
    assert collection.run("attack", "plan.json", *QUICK, "--confidence=0.000001", "--format", "table") == 0
    assert "The formula is outside the confidence interval" in capsys.readouterr().out


def test_the_picture(collection, capsys):
    assert collection.run("attack", "plan.json", *QUICK, "-o", "growth.svg", "-o", "growth.json") == 0
    assert b"<svg" in (collection.directory / "growth.svg").read_bytes()
    found = json.loads((collection.directory / "growth.json").read_text())
    assert [growth["reports"] for growth in found["repeated"]] == [1, 2, 5, 10, 20, 50]
    printed, said = capsys.readouterr()
    assert printed == ""
    assert said == (
        f"wrote the picture to {collection.path('growth.svg')}\nwrote the result to {collection.path('growth.json')}\n"
    )
    assert collection.run("attack", "plan.json", *QUICK, "-o", "growth.png", "--reports", "1,2") == 0
    assert (collection.directory / "growth.png").read_bytes().startswith(b"\x89PNG\r\n")


@pytest.mark.slow
def test_a_missing_extra_is_named(collection):
    words = ["attack", collection.path("plan.json"), "-o", collection.path("growth.png")]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_MATPLOTLIB, *words], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert "pip install 'sunzi[plot]'" in run.stderr


@pytest.mark.parametrize(
    ("words", "complaint_words"),
    [
        (("--trials", "0"), "trials must be a whole number between 1 and 100000000, got 0"),
        (("--trials", "1.5"), "--trials must be a whole number"),
        (("--reports", "0"), "--reports must be between 1 and 10,000"),
        (("--confidence", "1"), "confidence must lie between 0 and 1"),
        (("--prior", "gauss"), "there is no file 'gauss'"),
        (("--prior", "zipf:x"), "zipf's exponent"),
        (("-o", "growth.xls"), "must end in one of .csv, .json, .parquet, .png, .svg, .pdf"),
        (("-o", "growth.csv", "--format", "json"), "--format is for printing"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(collection, words, complaint_words, complaint):
    assert collection.run("attack", "plan.json", "--seed", "1", *words) == 2
    assert complaint_words in complaint()


def test_a_missing_plan_is_exit_code_1(tmp_path, complaint):
    assert main(["attack", str(tmp_path / "none.json")]) == 1
    assert "none.json" in complaint()
