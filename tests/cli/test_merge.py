"""``sunzi merge``: exact sums of tallies, all or nothing."""

import pytest
from damaged_files import damaged

import sunzi


def test_the_sum_is_the_tally_of_all_reports(counted):
    assert counted.run("privatize", "plan.json", "data.csv", "--column", "browser", "-o", "more.bin") == 0
    assert counted.run("tally", "plan.json", "more.bin", "-o", "more-tally.bin") == 0
    assert counted.run("merge", "tally.bin", "more-tally.bin", "-o", "merged.bin") == 0
    expected = sum(counted.plan.tally((counted.directory / name).read_bytes()) for name in ("reports.bin", "more.bin"))
    assert sunzi.load_tally(counted.path("merged.bin")) == expected
    assert counted.run("merge", "more-tally.bin", "tally.bin", "-o", "turned.bin") == 0
    assert sunzi.load_tally(counted.path("turned.bin")) == expected


def test_a_merge_may_replace_one_of_its_inputs(counted):
    (counted.directory / "today.bin").write_bytes((counted.directory / "tally.bin").read_bytes())
    assert counted.run("merge", "tally.bin", "today.bin", "-o", "tally.bin") == 2
    assert counted.run("merge", "tally.bin", "today.bin", "-o", "tally.bin", "--force") == 0
    assert sunzi.load_tally(counted.path("tally.bin")).reports == 8_000


def test_a_missing_file(counted, complaint):
    assert counted.run("merge", "tally.bin", "gone.bin", "-o", "out.bin") == 1
    assert "gone.bin: No such file" in complaint()


@pytest.mark.parametrize("case", damaged(bytes(100)))
def test_damaged_files_are_named_and_nothing_is_written(counted, complaint, case):
    (counted.directory / "bad.bin").write_bytes(damaged((counted.directory / "tally.bin").read_bytes())[case])
    (counted.directory / "out.bin").write_bytes(b"older")
    before = counted.names()
    assert counted.run("merge", "tally.bin", "bad.bin", "-o", "out.bin", "--force") == 2
    assert counted.path("bad.bin") in complaint()
    assert counted.names() == before
    assert (counted.directory / "out.bin").read_bytes() == b"older"


def test_another_plan_is_refused(counted, complaint):
    sunzi.make_plan("grr", ["a", "b"], 1).empty_tally().save(counted.path("other.bin"))
    assert counted.run("merge", "tally.bin", "other.bin", "-o", "out.bin") == 2
    assert "other.bin: tallies of different plans cannot be added" in complaint()
    assert "out.bin" not in counted.names()


def test_a_file_named_twice_is_not_counted_twice(counted, complaint):
    assert counted.run("merge", "tally.bin", "tally.bin", "-o", "out.bin") == 2
    assert "given twice" in complaint()
