"""``sunzi compare``: tables, files and pictures of sweeps."""

import csv
import io
import json
import re
import subprocess
import sys

import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.planning import evaluate

SMALL = ("compare", "--size", "20", "--users", "300", "--protocols", "grr,mss")

WITHOUT = """
import sys
from sunzi.cli.main import main

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.exit(main())
"""


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_in_a_pipe_it_prints_csv(capsys):
    assert main([*SMALL, "--epsilon", "1:3:1"]) == 0
    found = rows(capsys.readouterr().out)
    assert [(row["protocol"], row["epsilon"]) for row in found] == [
        (name, epsilon) for name in ("grr", "mss") for epsilon in ("1.0", "2.0", "3.0")
    ]
    for row in found:
        plan = sunzi.make_plan(row["protocol"], 20, float(row["epsilon"]))
        assert float(row["standard_error"]) == evaluate(plan, 300).standard_error


def test_omitted_settings_have_defaults(capsys):
    assert main(["compare", "--protocols", "grr"]) == 0
    found = rows(capsys.readouterr().out)
    assert [float(row["epsilon"]) for row in found] == [index / 2 for index in range(1, 11)]
    assert {(row["domain_size"], row["users"]) for row in found} == {("1024", "10000")}
    assert main(["compare", "--protocols", "grr", "--vary", "users"]) == 0
    assert [row["users"] for row in rows(capsys.readouterr().out)] == ["1000", "10000", "100000", "1000000"]
    assert main(["compare", "--protocols", "grr", "--vary", "size", "--epsilon", "2"]) == 0
    sizes = [row["domain_size"] for row in rows(capsys.readouterr().out)]
    assert sizes == ["64", "256", "1024", "4096", "16384", "65536"]
    assert main(["compare", "--protocols", "grr", "--size", "9"]) == 0
    assert len(rows(capsys.readouterr().out)) == 1


def test_simulations_repeat(capsys):
    texts = []
    for seed in ("7", "7", "8"):
        assert main([*SMALL, "--simulate", "3", "--seed", seed, "--population", "zipf:1"]) == 0
        texts.append([(row["mse"], row["mse_error"]) for row in rows(capsys.readouterr().out)])
    assert texts[0] == texts[1] != texts[2]


@pytest.fixture
def lines(shown):
    """Run a command line on a terminal and return its lines without colours."""
    return lambda *words: re.sub(r"\x1b\[\d*m", "", shown(*words)).splitlines()


def test_on_a_terminal_it_prints_a_table_by_setting(lines):
    header, *rest = lines(*SMALL, "--epsilon", "1,2")
    assert header.split()[:3] == ["epsilon", "protocol", "error"]
    assert [line.split()[:2] for line in rest] == [["1", "grr"], ["1", "mss"], ["2", "grr"], ["2", "mss"]]


def test_the_table_shows_what_was_measured_and_what_was_refused(lines):
    words = ["compare", "--vary", "size", "--size", f"20,{(1 << 24) + 1}", "--protocols", "oue", "--users", "100"]
    header, first, second, note = lines(*words, "--simulate", "2")
    assert header.split()[-2:] == ["mse", "decode"]
    assert re.search(r"± \S+ +\S+ ms$", first)
    assert second.split() == ["16,777,217", "oue"] + ["-"] * 12
    assert note.startswith(
        "not oue on 16,777,217 values at epsilon 1: oue sends one bit per value and supports at most 2^24"
    )


@pytest.mark.slow
def test_files_of_every_kind_in_one_go(tmp_path, capsys):
    paths = {suffix: tmp_path / f"out.{suffix}" for suffix in ("csv", "json", "parquet", "png", "svg", "html")}
    outputs = [word for path in paths.values() for word in ("-o", str(path))]
    assert main([*SMALL, "--epsilon", "1,2", *outputs]) == 0
    assert capsys.readouterr().out == ""
    table = json.loads(paths["json"].read_text())
    assert len(table) == 4
    assert [float(row["bits"]) for row in rows(paths["csv"].read_text())] == [row["bits"] for row in table]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(paths["parquet"]).to_pylist() == table
    assert paths["png"].read_bytes().startswith(b"\x89PNG\r\n")
    assert b"<svg" in paths["svg"].read_bytes()
    assert b"<svg" in paths["html"].read_bytes()


@pytest.mark.parametrize(
    ("words", "complaint_words"),
    [
        (("--epsilon", "5:1:1"), "--epsilon must increase"),
        (("--epsilon", "0"), "epsilon must be positive, got 0"),
        (("--size", "1"), "a domain needs between 2 and 2^30 values, got 1"),
        (("--users", "0.5"), "--users must be whole numbers, got 0.5"),
        (("--protocols", "grr,telepathy"), "got 'telepathy'"),
        (("--simulate", "1"), "at least 2 trials"),
        (("--simulate", "2", "--seed=-1"), "seed must not be negative, got -1"),
        (("--simulate", "2", "--population", "gauss"), "population must be uniform, spike, zipf"),
        (("-o", "out.xls"), "must end in one of .csv, .json, .parquet, .png, .svg, .pdf, .html; got 'out.xls'"),
        (("-o", "-"), "got '-'"),
        (("-o", "out.png", "--epsilon", "1,2", "--size", "5,6"), "got several values of epsilon and size"),
    ],
)
def test_wrong_arguments_are_one_line_and_code_2(words, complaint_words, complaint):
    assert main(["compare", *words]) == 2
    assert complaint_words in complaint()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "suffix", "extra"), [("matplotlib", "png", "plot"), ("pyarrow", "parquet", "frames")]
)
def test_a_missing_extra_is_named(library, suffix, extra, tmp_path):
    path = tmp_path / f"out.{suffix}"
    code = WITHOUT.format(name=library)
    run = subprocess.run(
        [sys.executable, "-c", code, *SMALL, "-o", str(path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 2
    assert f"pip install 'sunzi[{extra}]'" in run.stderr
    assert not path.exists()


def test_a_missing_directory_is_exit_code_1(tmp_path, complaint):
    assert main([*SMALL, "-o", str(tmp_path / "none" / "out.csv")]) == 1
    assert "none" in complaint()


def test_errors_of_a_skewed_histogram_on_request(lines):
    words = ["compare", "--epsilon", "3", "--size", "30", "--protocols", "mss,oue", "--users", "100"]
    flat, skewed = (lines(*words, "--histogram", name) for name in ("flat", "skewed"))
    assert flat[0].split()[:5] == ["epsilon", "protocol", "error", "efficiency", "rare"]
    assert flat[1] != skewed[1]
    assert flat[2] == skewed[2]


def test_central_epsilon_with_its_conditions(shown, capsys):
    words = ("compare", "--size", "1024", "--epsilon", "2", "--users", "1e5", "--protocols", "grr")
    text = shown(*words, "--delta", "1e-8")
    assert re.search("efficiency +central", text)
    assert "central: proven epsilon of a batch of all reports (and the epsilon that an attack reaches), with" in text
    assert main([*words, "--delta", ".01"]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("delta = 0.01 is not below 1/100,000") == 1
    assert (
        "central_epsilon,central_attack,delta,minimum_reports,honest_share,honest_reports,reader,adjacency"
        in printed.out
    )
