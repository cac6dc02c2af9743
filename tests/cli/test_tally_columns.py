"""``sunzi tally`` of Parquet: one tally, or a folder with one tally per group."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.tables import group_folders

pytestmark = pytest.mark.slow


@pytest.fixture
def reports(collection):
    return collection.plan.client(seed=1).reports(["Chrome", "Firefox", "Safari", "Edge", "other"] * 20)


@pytest.fixture
def table(collection, reports):
    """Write a table of reports with these additional columns."""

    def write(name="t.parquet", cells=None, **columns):
        path = collection.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = pa.array(reports if cells is None else cells, pa.binary())
        pq.write_table(pa.table({"report": cells} | columns), path, row_group_size=40)
        return str(path)

    return write


def tally(collection, *words):
    """Run the command with these words unchanged."""
    return main(["tally", collection.path("plan.json"), *words])


def test_a_file_and_a_folder(collection, table, reports, capsys):
    path = table("folder/t.parquet", cells=reports[:60])
    assert tally(collection, path, "--jobs", "1", "-o", collection.path("a.tally")) == 0
    assert sunzi.load_tally(collection.path("a.tally")) == collection.plan.tally(reports[:60])
    table("folder/day=1/u.parquet", cells=reports[60:])
    assert tally(collection, collection.path("folder"), "--jobs", "1", "-o", collection.path("b.tally")) == 0
    assert sunzi.load_tally(collection.path("b.tally")) == collection.plan.tally(reports)
    assert (
        tally(collection, path, collection.path("folder/day=1"), "--jobs", "2", "-o", collection.path("c.tally")) == 0
    )
    assert sunzi.load_tally(collection.path("c.tally")) == collection.plan.tally(reports)
    printed, said = capsys.readouterr()
    assert printed == ""
    assert said.splitlines()[-1] == f"wrote the tally of 100 reports to {collection.path('c.tally')}"
    assert said.count("\n") == 3


def test_another_name_needs_the_engine_named(collection, table, reports):
    os.rename(table(), collection.path("t.data"))
    assert tally(collection, collection.path("t.data"), "-o", collection.path("a.tally")) == 2
    words = ("--engine", "parquet", "--jobs", "1", "-o", collection.path("a.tally"))
    assert tally(collection, collection.path("t.data"), *words) == 0
    assert sunzi.load_tally(collection.path("a.tally")) == collection.plan.tally(reports)


def test_ids_and_other_names(collection, reports, capsys):
    path = collection.path("t.parquet")
    pq.write_table(pa.table({"r": [*reports, *reports], "who": [*range(100), *range(100)]}), path)
    words = ("--column", "r", "--id-column", "who", "--jobs", "1", "-o", collection.path("a.tally"))
    assert tally(collection, path, *words) == 0
    assert sunzi.load_tally(collection.path("a.tally")) == collection.plan.tally(reports)
    assert capsys.readouterr().err.startswith("wrote the tally of ")


def test_an_empty_table_is_an_empty_tally(collection, table):
    assert tally(collection, table(cells=[]), "--jobs", "1", "-o", collection.path("a.tally")) == 0
    assert sunzi.load_tally(collection.path("a.tally")) == collection.plan.empty_tally()
    empty = table(cells=[], g=pa.array([], pa.string()))
    assert tally(collection, empty, "--by", "g", "--jobs", "1", "-o", collection.path("groups")) == 0
    assert os.listdir(collection.path("groups")) == ["groups.csv"]


def groups_of(folder):
    with open(Path(folder, "groups.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_one_tally_for_every_group(collection, table, reports):
    path = table(country=["DE", "FR", None, "DE", "FR"] * 20, day=[1, 2] * 50)
    out = collection.path("groups")
    assert tally(collection, path, "--by", "country", "--by", "day", "--jobs", "1", "-o", out) == 0
    assert sorted(os.listdir(out)) == [
        "country,day=1.tally",
        "country,day=2.tally",
        "country=DE,day=1.tally",
        "country=DE,day=2.tally",
        "country=FR,day=1.tally",
        "country=FR,day=2.tally",
        "groups.csv",
    ]
    rows = groups_of(out)
    assert rows[0] == {"file": "country,day=1.tally", "country": "", "day": "1", "reports": "10"}
    assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)
    tallies = [sunzi.load_tally(Path(out, row["file"])) for row in rows]
    assert [tally.reports for tally in tallies] == [int(row["reports"]) for row in rows]
    assert sum(tallies) == collection.plan.tally(reports)
    german = [
        report for report, place in zip(reports, range(100), strict=True) if place % 5 in (0, 3) and place % 2 == 0
    ]
    assert sunzi.load_tally(Path(out, "country=DE,day=1.tally")) == collection.plan.tally(german)


STRANGE = [
    "../x",
    "a/b",
    "/etc/passwd",
    ".",
    "..",
    "",
    "a,b=c",
    "a b",
    "nul\x00",
    "line\nbreak",
    "ü→漢",
    "%2E",
    "+",
    "~",
    "back\\slash",
    "DE",
    "de",
    "De",
    "long" * 200,
    "long" * 200 + "!",
    "long" * 50,
    "漢" * 100,
    None,
]


def test_no_value_leads_out_of_the_folder(collection, table, reports):
    groups = [*STRANGE, *["x"] * (100 - len(STRANGE))]
    out = Path(collection.path("groups"))
    assert tally(collection, table(g=pa.array(groups)), "--by", "g", "--jobs", "1", "-o", str(out)) == 0
    rows = groups_of(out)
    assert {row["g"] for row in rows} == {value or "" for value in groups}
    assert len({row["file"].lower() for row in rows}) == len(rows) == len(STRANGE) + 1
    assert {path.name for path in out.iterdir()} == {"groups.csv", *(row["file"] for row in rows)}
    for row in rows:
        assert len(row["file"]) < 240
        assert row["file"].isascii()
        assert not {"/", "\\", "\n", "\0"} & set(row["file"])
        mine = [report for report, group in zip(reports, groups, strict=True) if (group or "") == row["g"]]
        if row["g"]:
            assert sunzi.load_tally(out / row["file"]) == collection.plan.tally(mine)
    assert {row["file"] for row in rows if not row["g"]} == {"g.tally", "g=.tally"}
    inside = {path.name for path in collection.directory.iterdir()}
    assert inside == {"plan.json", "data.csv", "t.parquet", "groups"}


def test_strange_names_of_columns(collection, table):
    columns = {"../up": ["a"] * 100, "a.b": pa.array([b"\x00\xff"] * 100), "": [1.5] * 100}
    words = [word for name in columns for word in ("--by", name)]
    assert tally(collection, table(**columns), *words, "--jobs", "1", "-o", collection.path("groups")) == 0
    (row,) = groups_of(collection.path("groups"))
    assert row == {"file": "..%2Fup=a,a.b=00ff,=1.5.tally", "../up": "a", "a.b": "00ff", "": "1.5", "reports": "100"}


def test_bad_reports_are_reported(collection, table, reports, capsys):
    path = table(cells=[*reports, None, b"too long"])
    assert tally(collection, path, "--jobs", "1", "-o", collection.path("a.tally")) == 0
    assert sunzi.load_tally(collection.path("a.tally")) == collection.plan.tally(reports)
    reasons = "1 missing, 1 wrong length (such as 746f6f206c6f6e67)"
    message = f"2 cells hold no report of this plan, left out of the tally: {reasons}"
    warning, written = capsys.readouterr().err.splitlines()
    assert warning == f"sunzi: warning: {message}"
    assert written.startswith("wrote the tally of ")


@pytest.mark.parametrize("by", [(), ("--by", "g")])
def test_bad_reports_may_fail_and_nothing_is_written(collection, table, reports, complaint, by):
    path = table(cells=[*reports, None], g=[1] * 101)
    before = collection.names()
    words = (*by, "--bad-reports", "fail", "--jobs", "1", "-o", collection.path("out"))
    assert tally(collection, path, *words) == 2
    assert "1 cell holds no report of this plan: 1 missing" in complaint()
    assert collection.names() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("reports.bin", "--column", "r"),
            "--column cannot be used with --engine files; use it with --engine parquet",
        ),
        (("reports.bin", "--id-column", "r"), "--id-column cannot be used with --engine files"),
        (("reports.bin", "--by", "r"), "--by cannot be used with --engine files"),
        (("reports.bin", "--bad-reports", "fail"), "--bad-reports cannot be used with --engine files"),
        (("reports.bin", "--jobs", "2"), "--jobs cannot be used with --engine files; use it with --engine parquet"),
        (
            ("t.parquet", "--master", "local"),
            "--master cannot be used with --engine parquet; use it with --engine spark",
        ),
        (("t.parquet", "--engine", "spark", "--jobs", "1"), "--jobs cannot be used with --engine spark"),
        (("t.parquet", "--engine", "files", "--by", "g"), "--by cannot be used with --engine files"),
        (("t.parquet", "--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("t.parquet", "reports.bin"), "t.parquet is a table and others are not; count them separately, then merge"),
        (("reports.bin", "."), ". is a table and others are not"),
        (("-", "t.parquet"), "t.parquet is a table and others are not"),
        (("t.parquet", "--by", "nothing", "-o", "out"), "there is no column 'nothing'; the columns are 'report', 'g'"),
        (("t.parquet", "--column", "nothing"), "there is no column 'nothing'"),
        (("t.parquet", "--by", "g"), "--by makes several tallies; give -o FOLDER"),
        (("t.parquet", "--by", "g", "-o", "-"), "--by makes several tallies; give -o FOLDER"),
        (("t.parquet", "--by", "g", "-o", "there"), "there exists; give -o the name of a new folder"),
        (("t.parquet", "--by", "g", "-o", "file"), "file exists; give -o the name of a new folder"),
        (("t.parquet", "t.parquet"), "is given twice"),
        (("gone.parquet",), "there is no file or folder 'gone.parquet'"),
        (("broken.parquet",), "the table cannot be read: "),
        (("there",), "there is no Parquet file in 'there'"),
    ],
)
def test_impossible_arguments_are_refused(collection, table, complaint, monkeypatch, words, message):
    table(g=[1] * 100)
    monkeypatch.chdir(collection.directory)
    Path("there").mkdir()
    Path("file").touch()
    Path("reports.bin").write_bytes(collection.plan.client(seed=1).report_batch(["Chrome"]))
    Path("broken.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    before = collection.names()
    words = words if "-o" in words or "--by" in words else (*words, "-o", "out")
    assert main(["tally", "plan.json", *words]) == 2
    assert message in complaint()
    assert collection.names() == before


def test_a_bad_output_is_refused_before_the_work(collection, table, monkeypatch):
    """Hours of counting must not end in an error about -o."""
    monkeypatch.setattr("sunzi.tables.sift", lambda *_, **__: pytest.fail("the reports were counted before the check"))
    for out in (collection.path("gone/a.tally"), str(collection.directory)):
        assert tally(collection, table(), "-o", out) == 1
    assert tally(collection, table(g=[1] * 100), "--by", "g", "-o", str(collection.directory)) == 2


def test_leftovers_of_a_crash_are_harmless(collection, table, reports, capsys):
    """A process killed while writing leaves a hidden folder that cannot be mistaken for a result."""
    path, out = table(g=[1] * 100), collection.path("groups")
    code = (
        "import os, sys\n"
        "from sunzi.cli.main import main\n"
        "from sunzi.tables import group_folders\n"
        "group_folders.write_atomically = lambda *_: os._exit(9)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["tally", collection.path("plan.json"), path, "--by", "g", "--jobs", "1", "-o", out]
    assert subprocess.run([sys.executable, "-c", code, *words], check=False).returncode == 9
    (left,) = set(collection.names()) - {"plan.json", "data.csv", "t.parquet"}
    assert left.startswith(".groups.")
    assert left.endswith(".unfinished")
    os.mkdir(collection.path("groups.unfinished"))
    assert main(words) == 0
    assert sunzi.load_tally(Path(out, "g=1.tally")) == collection.plan.tally(reports)
    assert {left, "groups", "groups.unfinished"} < set(collection.names())
    assert capsys.readouterr().err == f"wrote 1 tally of 100 reports to {out}\n"


def test_a_failure_while_writing_leaves_nothing(collection, table, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device", "groups.csv")

    path = table(g=[1] * 100)
    before = collection.names()
    monkeypatch.setattr(group_folders, "write_atomically", refuse)
    assert tally(collection, path, "--by", "g", "--jobs", "1", "-o", collection.path("groups")) == 1
    assert collection.names() == before


def test_the_new_folder_is_as_open_as_any(collection, table):
    assert tally(collection, table(g=[1] * 100), "--by", "g", "--jobs", "1", "-o", collection.path("a/b/groups")) == 0
    os.mkdir(collection.path("usual"))
    assert os.stat(collection.path("a/b/groups")).st_mode == os.stat(collection.path("usual")).st_mode


def test_standard_output(collection, table, reports):
    command = [sys.executable, "-m", "sunzi", "tally", collection.path("plan.json"), table(), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == collection.plan.tally(reports).to_bytes()
    assert done.stderr == b""


@pytest.mark.parametrize(("words", "extra"), [((), "frames"), (("--engine", "spark"), "spark")])
def test_without_its_extra_it_says_which(collection, table, words, extra):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('pyarrow', 'pyspark'): raise ModuleNotFoundError('no', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from sunzi.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = ["tally", collection.path("plan.json"), table(), *words, "-o", collection.path("out")]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"pip install 'sunzi[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "out" not in collection.names()
