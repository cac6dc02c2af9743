"""``--sum`` and ``--groups`` of ``sunzi estimate``: labels with commas, numbers, files, and what is refused."""

import csv
import io
import json

import pytest

import sunzi
from sunzi.cli.main import main

LABELS = ["Chrome", "Edge", "Opera, the browser", "Safari", "*"]
PLAN = sunzi.make_plan("ss-compact", LABELS, 2)
TALLY = PLAN.simulate(["Chrome"] * 900 + ["Edge"] * 300 + ["Safari"] * 600, seed=1)
ESTIMATE = PLAN.estimate(TALLY)
NUMBERS = sunzi.make_plan("grr", 6, 3)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PLAN.save("plan.json")
    TALLY.save("all.tally")
    NUMBERS.save("numbers.json")
    NUMBERS.simulate([0, 1, 2, 3, 4, 5] * 50, seed=1).save("numbers.tally")
    return tmp_path


def rows(capsys, *words):
    assert main(["estimate", *words]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_sums_are_those_of_the_estimate(files, capsys):
    asked = {
        "Chrome,Edge": ["Chrome", "Edge"],
        'Edge, "Opera, the browser"': ["Edge", "Opera, the browser"],
        '["Opera, the browser", "*"]': ["Opera, the browser", "*"],
    }
    words = [word for text in asked for word in ("--sum", text)]
    found = rows(capsys, "plan.json", "all.tally", *words, "--confidence", "0.9", "--target", "population")
    for row, values in zip(found, asked.values(), strict=True):
        answer = ESTIMATE.sum(values, 0.9, target="population")
        assert row["label"] == " + ".join(values)
        stated = [float(row[name]) for name in ("frequency", "low", "high", "standard_error")]
        assert stated == [answer.value, answer.low, answer.high, answer.standard_error]
        assert float(row["count"]) == answer.value * 1800


def test_sums_in_every_format(files, shown):
    table = shown("estimate", "plan.json", "all.tally", "--sum", "Chrome,Edge")
    answer = ESTIMATE.sum(["Chrome", "Edge"])
    assert f"{100 * answer.value:.1f} %" in table
    assert "any of these values" in table
    assert main(["estimate", "plan.json", "all.tally", "--sum", "Chrome,Edge", "-o", "sums.json"]) == 0
    document = json.loads((files / "sums.json").read_text())
    assert (document["reports"], document["sums"][0]["frequency"]) == (1800, answer.value)


def test_numbers_are_listed_or_ranges(files, capsys):
    found = rows(capsys, "numbers.json", "numbers.tally", "--sum", "0,3", "--sum", "0:4:2")
    assert [row["label"] for row in found] == ["0 + 3", "0 + 2 + 4"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("groups.json", '{"Chromium": ["Chrome", "Edge", "Opera, the browser"], "rest": "*"}'),
        ("groups.csv", '\ufeffgroup,label\nChromium,Chrome\nChromium,Edge\nChromium,"Opera, the browser"\n'
                       "rest,Safari\nrest,*\n"),
    ],
)  # fmt: skip
def test_groups_are_an_estimate(files, capsys, name, text):
    (files / name).write_text(text, encoding="utf-8")
    found = rows(capsys, "plan.json", "all.tally", "--groups", name)
    groups = ESTIMATE.regroup({"Chromium": LABELS[:3], "rest": ...})
    assert [row["label"] for row in found] == ["Chromium", "rest"]
    assert [float(row["low"]) for row in found] == [row.low for row in groups]
    assert len(rows(capsys, "plan.json", "all.tally", "--groups", name, "--sum", "rest")) == 1
    assert main(["estimate", "plan.json", "all.tally", "--groups", name, "-o", "page.html"]) == 0
    assert "1,800 reports, 2 values" in (files / "page.html").read_text()


def test_groups_of_numbers(files, capsys):
    (files / "groups.csv").write_text("label,group\n*,rest\n0,low\n1,low\n2,rest\n")
    found = rows(capsys, "numbers.json", "numbers.tally", "--groups", "groups.csv")
    assert [row["label"] for row in found] == ["rest", "low"]


def test_numbers_of_a_range_mean_their_bins(files, capsys, complaint):
    plan = sunzi.make_ordered(0, 40, 4, 4)
    plan.save("ordered.json")
    plan.simulate([5, 12.5, 35] * 300, seed=1).save("ordered.tally")
    (files / "groups.json").write_text('{"low": [5, 12.5], "high": "*"}')
    (total,) = rows(capsys, "ordered.json", "ordered.tally", "--sum", "5,12.5")
    groups = rows(capsys, "ordered.json", "ordered.tally", "--groups", "groups.json")
    assert [row["label"] for row in groups] == ["low", "high"]
    assert float(groups[0]["frequency"]) == pytest.approx(float(total["frequency"]))
    assert float(total["low"]) < 2 / 3 < float(total["high"])
    assert main(["estimate", "ordered.json", "ordered.tally", "--sum", "0:20"]) == 2
    assert "'0:20' is not a number" in complaint()


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["--sum", "Chrom"], "", "did you mean 'Chrome'?"),
        (["--sum", "Edge,Edge"], "", "'Edge' is listed twice"),
        (["--sum", '["Edge"'], "", "--sum must be labels such as"),
        (["--sum", "Edge", "--top", "3"], "", "--top is for histograms"),
        (["--sum", "Edge", "-o", "sum.png"], "", "must end in one of .csv, .json, .parquet"),
        (["--groups", "groups"], "{", "groups is not JSON"),
        (["--groups", "groups"], '{"a": ["Edge"], "a": ["Opera"], "b": "*"}', 'groups: "a" occurs twice in one object'),
        (["--groups", "groups"], '{"a": "Edge"}', "the group 'a' must be a list of values"),
        (["--groups", "groups"], '{"a": ["Edge"]}', "groups: 'Chrome' is in no group"),
        (
            ["--groups", "groups"],
            '{"a": ["Egde"], "b": "*"}',
            "groups: label 'Egde' is not in the domain; did",
        ),
        (["--groups", "groups"], "", "got an empty file"),
        (["--groups", "groups"], "value,kind\n", "got value, kind"),
        (["--groups", "groups"], "label,group\nEdge,\n", "line 2 names no group for 'Edge'"),
    ],
)
def test_bad_queries_are_refused(files, complaint, words, text, message):
    (files / "groups").write_text(text)
    assert main(["estimate", "plan.json", "all.tally", *words]) == 2
    assert message in complaint()


def test_words_are_no_numbers(files, complaint):
    (files / "groups").write_text('{"a": ["Edge"], "b": "*"}')
    assert main(["estimate", "numbers.json", "numbers.tally", "--groups", "groups"]) == 2
    assert "the values of this plan are whole numbers; got 'Edge'" in complaint()
    assert main(["estimate", "numbers.json", "numbers.tally", "--sum", "Edge"]) == 2
    assert "--sum must be a number" in complaint()
