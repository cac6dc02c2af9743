"""``sunzi tally`` and ``sunzi merge``: exact sums, all or nothing."""

import pytest

import sunzi


def test_several_files_are_one_tally(counted):
    assert counted.run("privatize", "plan.json", "data.csv", "--column", "browser", "-o", "more.bin") == 0
    assert counted.run("tally", "plan.json", "reports.bin", "more.bin", "-o", "both.bin") == 0
    expected = sum(counted.plan.tally((counted.directory / name).read_bytes()) for name in ("reports.bin", "more.bin"))
    assert sunzi.load_tally(counted.path("both.bin")) == expected
    assert counted.run("tally", "plan.json", "more.bin", "-o", "more-tally.bin") == 0
    assert counted.run("merge", "tally.bin", "more-tally.bin", "-o", "merged.bin") == 0
    assert sunzi.load_tally(counted.path("merged.bin")) == expected


def test_a_merge_may_replace_one_of_its_inputs(counted):
    (counted.directory / "today.bin").write_bytes((counted.directory / "tally.bin").read_bytes())
    assert counted.run("merge", "tally.bin", "today.bin", "-o", "tally.bin") == 0
    assert sunzi.load_tally(counted.path("tally.bin")).reports == 8_000


def damaged(data: bytes) -> dict[str, bytes]:
    return {
        "cut": data[: len(data) // 2],
        "cut at the end": data[:-1],
        "altered": data[:60] + bytes([data[60] ^ 1]) + data[61:],
        "longer": data + b"x",
        "empty": b"",
        "other": b"id,browser\n1,Chrome\n" * 10,
    }


@pytest.mark.parametrize("case", damaged(bytes(100)))
@pytest.mark.parametrize("command", [("tally", "plan.json"), ("merge",)], ids=lambda words: words[0])
def test_damaged_files_are_named_and_nothing_is_written(counted, complaint, command, case):
    source = "reports.bin" if command[0] == "tally" else "tally.bin"
    (counted.directory / "bad.bin").write_bytes(damaged((counted.directory / source).read_bytes())[case])
    (counted.directory / "out.bin").write_bytes(b"older")
    before = counted.names()
    assert counted.run(*command, source, "bad.bin", "-o", "out.bin") == 2
    assert counted.path("bad.bin") in complaint()
    assert counted.names() == before
    assert (counted.directory / "out.bin").read_bytes() == b"older"


def test_another_plan_is_refused(counted, complaint):
    other = sunzi.make_plan("grr", ["a", "b"], 1)
    other.save(counted.path("other.json"))
    assert counted.run("tally", "other.json", "reports.bin", "-o", "out.bin") == 2
    assert "belong to the plan" in complaint()
    other.empty_tally().save(counted.path("other.bin"))
    assert counted.run("merge", "tally.bin", "other.bin", "-o", "out.bin") == 2
    assert "other.bin: tallies of different plans cannot be added" in complaint()
    assert "out.bin" not in counted.names()


@pytest.mark.parametrize(
    "words", [("tally", "plan.json", "reports.bin", "reports.bin"), ("merge", "tally.bin", "tally.bin")]
)
def test_a_file_named_twice_is_not_counted_twice(counted, complaint, words):
    assert counted.run(*words, "-o", "out.bin") == 2
    assert "given twice" in complaint()


def test_reports_are_not_overwritten_by_their_tally(counted, complaint):
    assert counted.run("tally", "plan.json", "reports.bin", "-o", "reports.bin") == 2
    assert "must not be overwritten" in complaint()
    assert counted.run("tally", "plan.json", "reports.bin", "-o", "again.bin") == 0


def test_a_missing_file(counted, complaint):
    assert counted.run("merge", "tally.bin", "gone.bin", "-o", "out.bin") == 1
    assert "gone.bin: No such file" in complaint()
