"""Groups on the command line: ``privatize --by``, ``tally --by`` and ``estimate`` of the folder."""

import csv
import io
import json
import re
import shutil
from contextlib import closing

import pyarrow.parquet as pq
import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.collector import Collector, open_store, serve
from sunzi.collector.collector import LiveEpoch

SIZES = {"DE": 400, "FR": 250, "LU": 40, "MT": 30}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plan, a table, and a folder of tallies by country and release."""
    path = tmp_path_factory.mktemp("groups")
    plan = sunzi.make_plan("ss-compact", ["a", "b", "c", "d"], 3)
    plan.save(path / "groups-plan.json")
    tallies = {
        (name, release): plan.simulate(["a"] * (size // 2), seed=size)
        for name, size in SIZES.items()
        for release in (1, 2)
    }
    (path / "tallies").mkdir()
    sunzi.tables.save_groups(path / "tallies", ["country", "release"], tallies)
    return path


@pytest.fixture
def estimate(folder, collection):
    def run(*words: str) -> int:
        return collection.run("estimate", str(folder / "groups-plan.json"), str(folder / "tallies"), *words)

    return run


def test_from_a_table_to_one_estimate_per_group(collection, capsys):
    rows = [("DE", "a\n"), ("FR", "Chrome"), ("DE", "Firefox")] * 100
    (collection.directory / "by.csv").write_text(
        "country,browser\n" + "".join(f"{country},{value.strip()}\n" for country, value in rows)
    )
    assert collection.run("privatize", "plan.json", "by.csv", "--by", "country", "-o", "reports.parquet") == 0
    assert "public, not protected: 'country'" in capsys.readouterr().err
    assert pq.read_table(collection.path("reports.parquet")).column("country").to_pylist() == [row[0] for row in rows]
    tallies = collection.path("tallies")
    words = ("--by", "country", "--jobs", "1", "-o")
    assert collection.run("tally", "plan.json", "reports.parquet", *words, tallies) == 0
    capsys.readouterr()
    assert collection.run("estimate", "plan.json", tallies, "--min-reports", "50", "--format", "csv") == 0
    records = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["group"], row["reports"]) for row in records} == {("country=DE", "200"), ("country=FR", "100")}
    assert len(records) == 2 * collection.plan.domain.size
    chrome = {row["group"]: float(row["frequency"]) for row in records if row["label"] == "Chrome"}
    assert chrome["country=FR"] > 0.6
    assert chrome["country=DE"] < 0.4


def test_small_groups_are_announced(estimate, capsys):
    assert estimate("--by", "country", "--format", "json") == 0
    out, err = capsys.readouterr()
    assert err == "sunzi: note: 2 groups with fewer than 100 reports are held back\n"
    document = json.loads(out)
    assert (document["groups_held_back"], document["minimum_reports"]) == (2, 100)
    assert {row["group"] for row in document["histogram"]} == {"country=DE", "country=FR"}
    assert estimate("--by", "country", "--min-reports", "60", "--format", "csv") == 0
    out, err = capsys.readouterr()
    assert "2 groups with fewer than 60 reports are merged into 'other'" in err
    assert "\nother,70," in out


def test_a_table_on_the_terminal(shown, folder, estimate):
    words = ("estimate", str(folder / "groups-plan.json"), str(folder / "tallies"), "--small", "hold", "--top", "2")
    text = shown(*words)
    assert text.count("country=") == 4
    assert "2 of 4 values, those with the most users in all groups together." in text


def test_questions_are_answered_per_group(estimate, collection, capsys):
    assert estimate("--by", "country", "--sum", "a,b", "--sum", "c", "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["group"], row["label"]) for row in rows] == [
        *(("country=DE", "a + b"), ("country=DE", "c")),
        *(("country=FR", "a + b"), ("country=FR", "c")),
    ]
    (collection.directory / "parts.json").write_text('{"first": ["a"], "rest": "*"}')
    assert estimate("--by", "country", "--groups", "parts.json", "--format", "json") == 0
    assert {row["label"] for row in json.loads(capsys.readouterr().out)["histogram"]} == {"first", "rest"}


def test_means_per_group(collection, capsys, tmp_path):
    plan = sunzi.make_number(0, 100, 4)
    plan.save(tmp_path / "number.json")
    (tmp_path / "means").mkdir()
    tallies = {(str(mean),): plan.tally(plan.client(seed=1).report_batch([float(mean)] * 500)) for mean in (20, 80)}
    sunzi.tables.save_groups(tmp_path / "means", ["arm"], tallies)
    assert collection.run("estimate", "number.json", str(tmp_path / "means"), "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["group"]: round(float(row["value"]), -1) for row in rows} == {"arm=20": 20, "arm=80": 80}
    assert collection.run("estimate", "number.json", str(tmp_path / "means"), "--top", "2") == 2
    assert "--top is for histograms, and the result of this plan is a mean" in capsys.readouterr().err


def test_ranges_per_group_are_bins_in_their_order(shown, tmp_path):
    plan = sunzi.make_ordered(0, 64, 64, 4)
    plan.save(tmp_path / "plan.json")
    (tmp_path / "groups").mkdir()
    tallies = {(name,): plan.simulate([value] * 500, seed=1) for name, value in (("a", 50), ("b", 10))}
    sunzi.tables.save_groups(tmp_path / "groups", ["arm"], tallies)
    words = ["estimate", str(tmp_path / "plan.json"), str(tmp_path / "groups")]
    text = shown(*words)
    assert re.findall("([0-9]+) to [0-9]+  ", text) == [str(low) for low in range(0, 64, 8)] * 2
    assert "8 of 8 bins, in their order." in text
    assert main([*words, "-o", str(tmp_path / "page.html"), "-o", str(tmp_path / "bars.png"), "--top", "8"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "All 8 bins" in page
    assert page.index(">0 to 8<") < page.index(">8 to 16<") < page.index(">56 to 64<")


def test_every_output(estimate, collection, capsys):
    names = ["out.csv", "out.json", "out.parquet", "out.png", "out.html"]
    assert estimate("--title", "By country", *(word for name in names for word in ("-o", name))) == 0
    assert pq.read_table(collection.path("out.parquet")).num_rows == 4 * 4
    assert "<h1>By country</h1>" in (collection.directory / "out.html").read_text()
    assert (collection.directory / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "city"), "the groups have no column 'city'; they have 'country', 'release'"),
        (("--min-reports", "0"), "min_reports must be a whole number of at least 1"),
        (("--min-reports", "999"), "no group has 999 reports, the minimum; the largest of 8 has 200"),
        (("--postprocess", "clip"), "--postprocess is for one histogram"),
        (("-o", "out.txt"), "must end in one of"),
    ],
)
def test_bad_requests_are_refused(estimate, complaint, words, message):
    assert estimate(*words) == 2
    assert message in complaint()


@pytest.mark.parametrize("words", [("--by", "country"), ("--min-reports", "5"), ("--small", "hold")])
def test_options_about_groups_need_a_folder(collection, complaint, words):
    collection.plan.empty_tally().save(collection.path("one.tally"))
    assert collection.run("estimate", "plan.json", "one.tally", *words) == 2
    assert "give a folder of 'sunzi tally --by', or --from and --by" in complaint()


def test_a_folder_of_another_plan_is_refused(folder, collection, complaint):
    assert collection.run("estimate", "plan.json", str(folder / "tallies")) == 2
    assert "tallies: this tally belongs to the plan" in complaint()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "id", "-o", "out.bin"), "needs a table; give -o FILE.parquet"),
        (("--by", "id"), "needs a table; give -o FILE.parquet"),
        (("--by", "id,id", "-o", "out.parquet"), "'id' is named twice"),
        (("--by", "browser", "-o", "out.parquet"), "holds the values to protect"),
        (("--by", "report", "-o", "out.parquet"), "reserved"),
        (("--by", "city", "-o", "out.parquet"), "there is no column named 'city'"),
    ],
)
def test_bad_public_columns_are_refused(collection, complaint, words, message):
    assert collection.run("privatize", "plan.json", "data.csv", "--column", "browser", *words) == 2
    assert message in complaint()
    assert not [name for name in collection.names() if "out" in name]


def test_rows_without_a_value_leave_no_row(collection):
    (collection.directory / "gaps.jsonl").write_text('{"v": "Chrome", "n": 1}\n{"v": null, "n": 2}\n{"v": "Edge"}\n')
    words = ("--column", "v", "--by", "n", "--skip-missing", "-o", "out.parquet")
    assert collection.run("privatize", "plan.json", "gaps.jsonl", *words) == 0
    assert pq.read_table(collection.path("out.parquet")).column("n").to_pylist() == ["1", None]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with two epochs, in which France has few reports."""
    path = tmp_path_factory.mktemp("store") / "collector.db"
    plan = sunzi.make_plan("grr", ["a", "b"], 3, groups={"country": ["DE", "FR", "IT"], "release": ["1"]})
    with closing(open_store(path)) as opened:
        collector = Collector(opened)
        for number in (1, 2):
            live = LiveEpoch(opened.open_epoch("default", plan.canonical, 2), plan)
            for country, count in (("DE", 300), ("FR", 30)):
                batch = plan.client(seed=number).report_batch(["a"] * count)
                groups = {"country": country, "release": "1"} if country == "DE" else {"country": country}
                identity = bytes([number]) * 15 + country[:1].encode()
                opened.commit([collector.deposit(live, identity, batch, groups=groups)])
    return str(path)


def test_one_group_of_a_store(collection, store, capsys):
    assert collection.run("estimate", "--from", store, "--group", "country=DE", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["reports"] == 300
    words = ("--group", "country=DE", "--epoch", "all", "--format", "json")
    assert collection.run("estimate", "--from", store, *words) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == 600


def test_all_groups_of_a_store(collection, store, capsys):
    words = ("estimate", "--from", store, "--by", "country", "--epoch", "all", "--format", "csv")
    assert collection.run(*words, "--min-reports", "50") == 0
    out, err = capsys.readouterr()
    assert {tuple(row.split(",")[:2]) for row in out.splitlines()[1:]} == {("country=DE", "600"), ("country=FR", "60")}
    assert err == "sunzi: note: the interval assumes different users or fresh noise in each epoch\n"
    assert collection.run(*words) == 0
    assert "1 group with fewer than 100 reports is held back" in capsys.readouterr().err


def test_groups_of_a_collector(collection, store, capsys, tmp_path):
    copied = tmp_path / "copy.db"
    shutil.copy(store, copied)
    with serve({}, store=copied) as service:
        assert collection.run("estimate", "--from", service.url, "--by", "country", "--format", "csv") == 0
        out, err = capsys.readouterr()
        assert {row.partition(",")[0] for row in out.splitlines()[1:]} == {"country=DE"}
        assert "2 groups of country have fewer reports than the collector publishes, or none" in err
        assert collection.run("estimate", "--from", service.url, "--group", "country=FR") == 2
        assert "70 more reports of country=FR are needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--group", "country=ES"), "the group country has no value 'ES'"),
        (("--group", "city=Bonn"), "this plan has no group 'city'"),
        (("--group", "country"), "a group must be ATTRIBUTE=VALUE"),
        (("--group", "country=DE", "--by", "country"), "leave out --by"),
        (("--by", "country,release"), "by one attribute at a time"),
        (("--by", "city"), "has no group of the attribute city"),
    ],
)
def test_bad_groups_of_a_store_are_refused(collection, store, complaint, words, message):
    assert collection.run("estimate", "--from", store, *words) == 2
    assert message in complaint()


def test_a_group_needs_a_source(counted, complaint):
    assert counted.run("estimate", "plan.json", "tally.bin", "--group", "country=DE") == 2
    assert "give --from" in complaint()


def test_a_store_shows_and_merges_groups(collection, store, capsys):
    assert collection.run("store", "show", store, "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["epochs"][0]["groups"] == {"country=DE": 300, "country=FR": 30, "release=1": 300}
    assert collection.run("store", "close", store, "--epoch", "1") == 0
    assert collection.run("store", "merge", store, "--epoch", "1", "--group", "country=FR", "-o", "fr.tally") == 0
    assert sunzi.load_tally(collection.path("fr.tally")).reports == 30
