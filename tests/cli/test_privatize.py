"""``sunzi privatize``: one report per row, in every format and protocol; a failure leaves no file."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sunzi
from sunzi.batch_client import BatchClient
from sunzi.cli import privatize
from sunzi.cli.main import main

BROWSER = ("--column", "browser")


def estimate_is_close(plan, path, truth):
    """Within seven standard errors of the truth for every value."""
    estimate = plan.estimate(plan.tally(Path(path).read_bytes()))
    assert np.all(np.abs(estimate.frequencies - truth) <= 7 * estimate.standard_errors())


def test_reports_give_the_truth_back(collection):
    assert collection.run("privatize", "plan.json", "data.csv", *BROWSER, "-o", "reports.bin") == 0
    assert collection.plan.tally((collection.directory / "reports.bin").read_bytes()).reports == 4_000
    # Lynx and missing values count as other.
    estimate_is_close(collection.plan, collection.path("reports.bin"), np.array([0.5, 0.3, 0.15, 0, 0.05]))


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_every_protocol_with_integers(tmp_path, name, monkeypatch):
    monkeypatch.setattr(privatize, "reports_at_once", lambda plan: 700)  # several batches
    plan = sunzi.make_plan(name, 20, 2)
    plan.save(tmp_path / "plan.json")
    values = np.minimum(np.arange(3_000) % 20, 3)
    parquet.write_table(pa.table({"value": values}), tmp_path / "values.parquet")
    files = [str(tmp_path / file) for file in ("plan.json", "values.parquet", "reports.bin")]
    assert main(["privatize", *files[:2], "-o", files[2]]) == 0
    estimate_is_close(plan, files[2], np.bincount(values, minlength=20) / 3_000)


def test_batches_stay_small_for_wide_reports():
    assert privatize.reports_at_once(sunzi.make_plan("grr", 10, 1)) == 1 << 17
    wide = privatize.reports_at_once(sunzi.make_plan("oue", 20_000, 1))
    assert 1 <= wide * 20_000 * 8 <= 1 << 25


def test_reports_differ_from_run_to_run(collection):
    for name in ("one.bin", "two.bin"):
        assert collection.run("privatize", "plan.json", "data.csv", *BROWSER, "-o", name) == 0
    one, two = ((collection.directory / name).read_bytes() for name in ("one.bin", "two.bin"))
    assert len(one) == len(two)
    assert one != two


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_a_table_without_rows_makes_an_empty_batch(tmp_path, name):
    plan = sunzi.make_plan(name, 20, 2)
    plan.save(tmp_path / "plan.json")
    (tmp_path / "none.csv").write_text("value\n")
    words = ["privatize", str(tmp_path / "plan.json"), str(tmp_path / "none.csv"), "-o", str(tmp_path / "out")]
    assert main(words) == 0
    assert plan.tally((tmp_path / "out").read_bytes()).reports == 0


def test_labels_in_a_file_of_their_own(collection, complaint):
    (collection.directory / "labels.txt").write_text("a\nb\n")
    sunzi.make_plan("grr", sunzi.Domain.from_file(collection.path("labels.txt")), 1).save(collection.path("apart.json"))
    (collection.directory / "ab.csv").write_text("x\na\nb\na\n")
    assert collection.run("privatize", "apart.json", "ab.csv", "-o", "out.bin") == 2
    assert "--labels" in complaint()
    assert collection.run("privatize", "apart.json", "ab.csv", "--labels", "labels.txt", "-o", "out.bin") == 0


def test_skipped_rows_are_counted_aloud(collection, capsys):
    assert collection.run("privatize", "plan.json", "data.csv", *BROWSER, "--skip-missing", "-o", "out.bin") == 0
    assert "80 of 4,000 rows had no value and sent no report" in capsys.readouterr().err
    assert collection.plan.tally((collection.directory / "out.bin").read_bytes()).reports == 3_920


def test_unknown_values_are_counted_aloud(collection, capsys):
    assert collection.run("privatize", "plan.json", "data.csv", *BROWSER, "-o", "out.bin") == 0
    note = "of 4,000 rows, 120 unknown and 80 missing are reported as 'other'; unknown are 'Lynx' (120)"
    assert f"sunzi: note: {note}\n" in capsys.readouterr().err


def test_a_column_of_unknown_values_is_refused(collection, complaint, capsys):
    (collection.directory / "lower.csv").write_text("browser\n" + "chrome\n" * 60 + "Firefox \n" * 20 + "Safari\n" * 20)
    assert collection.run("privatize", "plan.json", "lower.csv", "-o", "out.bin") == 2
    said = complaint()
    assert "lower.csv: 80 % of the values are not in the domain, more than 50 %" in said
    assert "'chrome' (60), 'Firefox ' (20); 'chrome' differs from the label 'Chrome' only by case: --fold case" in said
    assert "out.bin" not in collection.names()
    assert collection.run("privatize", "plan.json", "lower.csv", "--max-unknown", "0.8", "-o", "out.bin") == 0
    capsys.readouterr()
    assert collection.run("privatize", "plan.json", "lower.csv", "--fold", "case,space", "-o", "folded.bin") == 0
    assert "sunzi: note:" not in capsys.readouterr().err
    estimate_is_close(collection.plan, collection.path("folded.bin"), np.array([0.6, 0.2, 0.2, 0, 0]))
    for words, wrong in ((["--fold", "accents"], "case and space"), (["--max-unknown", "2"], "between 0 and 1")):
        assert collection.run("privatize", "plan.json", "lower.csv", *words, "-o", "wrong.bin") == 2
        assert wrong in complaint()


FAILURES = {
    "column": (
        ["plan.json", "data.csv", "--column", "colour"],
        "no column named 'colour'; the columns are 'id', 'browser'",
    ),
    "no column": (["plan.json", "data.csv"], "name one of them: 'id', 'browser'"),
    "label": (["strict.json", "data.csv", *BROWSER], "data.csv: row 3801: label 'Lynx' is not in the domain"),
    "missing": (["lynx.json", "data.csv", *BROWSER], "data.csv: row 3921 has no value"),
    "epsilon": (["plan.json", "data.csv", *BROWSER, "--max-epsilon", "1/2"], "accepts at most 1/2"),
    "suffix": (["plan.json", "data.xlsx", *BROWSER], "must end in one of .csv"),
    "plan": (["data.csv", "gone.csv"], "data.csv: not JSON"),
    "order": (["data.csv", "plan.json"], "the plan comes first, and "),
    "overwriting": (["plan.json", "data.csv", *BROWSER, "-o", "data.csv"], "an input and must not be overwritten"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_name_the_value_and_leave_nothing(collection, complaint, case):
    words, expected = FAILURES[case]
    for name, labels in {
        "strict": ["Chrome", "Firefox", "Safari"],
        "lynx": ["Chrome", "Firefox", "Safari", "Lynx"],
    }.items():
        sunzi.make_plan("grr", labels, 1).save(collection.path(f"{name}.json"))
    (collection.directory / "out.bin").write_bytes(b"older")
    before = {name: (collection.directory / name).read_bytes() for name in collection.names()}
    assert collection.run("privatize", "--force", "-o", "out.bin", *words) == 2
    assert expected in complaint()
    assert {name: (collection.directory / name).read_bytes() for name in collection.names()} == before


@pytest.mark.parametrize(("output", "words"), [("", "is a directory"), ("no/out.bin", "there is no directory")])
def test_outputs_that_cannot_be(collection, complaint, output, words):
    target = str(collection.directory / output)
    files = [collection.path("plan.json"), collection.path("data.csv")]
    assert main(["privatize", *files, *BROWSER, "-o", target]) == 1
    assert words in complaint()
    assert collection.names() == ["data.csv", "plan.json"]


def test_a_missing_table(collection, complaint):
    assert collection.run("privatize", "plan.json", "gone.csv", *BROWSER, "-o", "out.bin") == 1
    assert f"{collection.path('gone.csv')}: No such file" in complaint()
    assert "out.bin" not in collection.names()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="file size limits are POSIX")
def test_a_full_disk(collection):
    """A limit on file size simulates a full disk: the system refuses the write."""
    code = (
        "import resource, sys\nfrom sunzi.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\nsys.exit(main(sys.argv[1:]))"
    )
    (collection.directory / "out.bin").write_bytes(b"older")
    words = ["privatize", "plan.json", "data.csv", *BROWSER, "-o", "out.bin", "--force"]
    environment = os.environ | {"PYTHONPATH": str(Path(sunzi.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=collection.directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (1, "sunzi: error: out.bin: File too large\n")
    assert (collection.directory / "out.bin").read_bytes() == b"older"
    assert collection.names() == ["data.csv", "out.bin", "plan.json"]


def test_an_interruption_leaves_nothing(collection, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BatchClient, "report_indices", interrupt)
    assert collection.run("privatize", "plan.json", "data.csv", *BROWSER, "-o", "out.bin") == 130
    assert collection.names() == ["data.csv", "plan.json"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("data.csv.gz", gzip.compress(b"id;browser\n" + b"1;Chrome\n2;Edge\n" * 5)),
        ("data.tsv", b"id\tbrowser\n" + b"1\tChrome\n2\tEdge\n" * 5),
        ("data.jsonl", b'{"id": 1, "browser": "Chrome"}\n{"browser": "Edge"}\n' * 5),
    ],
    ids=["gzip", "tab", "json"],
)
def test_tables_as_people_have_them(collection, name, data):
    (collection.directory / name).write_bytes(data)
    assert collection.run("privatize", "plan.json", name, "--column", "browser", "-o", "out.bin") == 0
    with open(collection.path("out.bin"), "rb") as stream:
        assert collection.plan.tally(stream).reports == 10


def test_an_unclear_delimiter_names_its_flag(collection, complaint):
    (collection.directory / "data.csv").write_text("id;browser,version\n1;Chrome\n")
    assert collection.run("privatize", "plan.json", "data.csv", "--column", "colour", "-o", "out.bin") == 2
    assert "say so with --delimiter" in complaint()
    words = ("privatize", "plan.json", "data.csv", "--column", "browser,version", "--delimiter", ";", "-o", "out.bin")
    assert collection.run(*words) == 0
