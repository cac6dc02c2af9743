"""``sunzi tally``: exact sums, all or nothing."""

import pytest
from damaged_files import damaged

import sunzi


def test_several_files_are_one_tally(counted):
    assert counted.run("privatize", "plan.json", "data.csv", "--column", "browser", "-o", "more.bin") == 0
    assert counted.run("tally", "plan.json", "reports.bin", "more.bin", "-o", "both.bin") == 0
    expected = sum(counted.plan.tally((counted.directory / name).read_bytes()) for name in ("reports.bin", "more.bin"))
    assert sunzi.load_tally(counted.path("both.bin")) == expected


@pytest.mark.parametrize("case", damaged(bytes(100)))
def test_damaged_files_are_named_and_nothing_is_written(counted, complaint, case):
    (counted.directory / "bad.bin").write_bytes(damaged((counted.directory / "reports.bin").read_bytes())[case])
    (counted.directory / "out.bin").write_bytes(b"older")
    before = counted.names()
    assert counted.run("tally", "plan.json", "reports.bin", "bad.bin", "-o", "out.bin", "--force") == 2
    assert counted.path("bad.bin") in complaint()
    assert counted.names() == before
    assert (counted.directory / "out.bin").read_bytes() == b"older"


def test_another_plan_is_refused(counted, complaint):
    other = sunzi.make_plan("grr", ["a", "b"], 1)
    other.save(counted.path("other.json"))
    assert counted.run("tally", "other.json", "reports.bin", "-o", "out.bin") == 2
    assert "belong to the plan" in complaint()
    assert "out.bin" not in counted.names()


def test_a_file_named_twice_is_not_counted_twice(counted, complaint):
    assert counted.run("tally", "plan.json", "reports.bin", "reports.bin", "-o", "out.bin") == 2
    assert "given twice" in complaint()


def test_reports_are_not_overwritten_by_their_tally(counted, complaint):
    assert counted.run("tally", "plan.json", "reports.bin", "-o", "reports.bin") == 2
    assert "must not be overwritten" in complaint()
    assert counted.run("tally", "plan.json", "reports.bin", "-o", "again.bin") == 0


@pytest.mark.parametrize("form", ["json", "csv", "lines", "nested"])
def test_counts_of_a_secure_aggregation_are_the_same_tally(counted, form):
    tally = sunzi.load_tally(counted.path("tally.bin"))
    counts = tally.counts.tolist()
    texts = {
        "json": str(counts),
        "csv": ",".join(map(str, counts)),
        "lines": "\n".join(map(str, counts)) + "\n",
        "nested": str([counts]),
    }
    (counted.directory / "counts.txt").write_text(texts[form])
    assert counted.run("tally", "plan.json", "counts.txt", "--counts-of", "4e3", "-o", "again.bin") == 0
    assert (counted.directory / "again.bin").read_bytes() == (counted.directory / "tally.bin").read_bytes()


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("[1, 2", ["--counts-of", "3"], "counts.txt: expected a JSON list, or whole numbers separated by commas"),
        ("[" * 100_000, ["--counts-of", "3"], "counts.txt: expected a JSON list"),
        ("1,x", ["--counts-of", "3"], "counts.txt: expected a JSON list"),
        ("[1, 2]", ["--counts-of", "3"], "counts.txt: a tally of ss-compact counts messages"),
        ("[1, 2]", ["--counts-of", "x"], "--counts-of must be a number"),
        ("[1, 2]", ["reports.bin", "--counts-of", "3"], "--counts-of takes one file of counts"),
        ("[1, 2]", ["--jobs", "2", "--counts-of", "3"], "--jobs cannot be used with --counts-of"),
    ],
    ids=["cut", "nested", "text", "length", "number", "reports", "jobs"],
)
def test_bad_counts_are_refused(counted, complaint, text, words, message):
    (counted.directory / "counts.txt").write_text(text)
    assert counted.run("tally", "plan.json", "counts.txt", *words, "-o", "out.bin") == 2
    assert message in complaint()
    assert "out.bin" not in counted.names()
