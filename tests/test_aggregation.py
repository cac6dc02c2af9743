"""Counts of a secure aggregation: the same tallies as direct counting, and the task that makes them."""

import numpy as np
import pytest

import sunzi
from sunzi import aggregation_task, make_plan, tally_from_counts
from sunzi.aggregation import _best_chunk_length, _leader_share_bytes

PLANS = {
    "grr": make_plan("grr", 7, 1),
    "ss": make_plan("ss", 12, 1),
    "ss-compact": make_plan("ss-compact", 12, 1),
    "pgr": make_plan("pgr", 12, 1),
    "rappor": make_plan("rappor", 9, 2),
    "oue": make_plan("oue", 9, 2),
    "mss": make_plan("mss", 20, 1, moduli=[5, 7, 11]),
    "mss-compact": make_plan("mss-compact", 20, 1, moduli=[5, 7, 11]),
    "ordered": sunzi.make_ordered(0, 16, 16, 2),
    "number": sunzi.make_number(0, 10, 2),
    "tables": sunzi.make_tables({"sex": ["f", "m"], "age": ["young", "old"]}, [("sex", "age")], 2),
}


def reports_of(plan, number=40):
    """Real reports of values drawn evenly."""
    values = np.random.default_rng(1).integers(plan.domain.size, size=number)
    return plan.client(seed=1).reports_of_indices(values)


@pytest.mark.parametrize("name", PLANS)
def test_summed_tallies_of_single_reports_make_the_tally_of_all(name):
    plan = PLANS[name]
    reports = reports_of(plan)
    sums = sum(plan.tally(report).counts for report in reports)
    direct = plan.tally(reports)
    assert tally_from_counts(plan, sums, len(reports)).to_bytes() == direct.to_bytes()
    stops = np.cumsum([size for size, _ in direct.layout.blocks])[:-1]
    blocks = [block.tolist() for block in np.split(sums, stops)]
    assert tally_from_counts(plan, blocks, len(reports)) == direct
    assert tally_from_counts(plan, [0] * sums.size, 0) == plan.empty_tally()


def test_large_sparse_counts_are_the_same_bytes():
    plan = make_plan("ss-compact", 2000, 2)
    direct = plan.simulate([3] * 500, seed=1)
    assert direct.counters.is_sparse
    assert tally_from_counts(plan, direct.counts.tolist(), 500).to_bytes() == direct.to_bytes()


@pytest.mark.parametrize(
    ("name", "counts", "reports", "message"),
    [
        ("grr", [1] * 6, 6, "a tally of grr counts messages: this plan has 7 counters, got 6"),
        ("oue", [1] * 10, 6, "a tally of oue counts bits: this plan has 9 counters, got 10"),
        ("ss", [1] * 66, 6, "a tally of ss counts points: this plan has 12 counters, got 66"),
        ("ss-compact", [1] * 12, 3, "counts of points do not tell which messages were sent: .* plan with ss,"),
        ("mss-compact", [1] * 23, 3, "plan with mss, whose tally counts points"),
        ("grr", [-1, 7, 0, 0, 0, 0, 0], 6, r"between 0 and 2\^63 - 1, got -1 at index 0"),
        ("grr", [0, 1 << 63, 0, 0, 0, 0, 0], 6, r"got 9223372036854775808 at index 1"),
        ("grr", [6.0, 0, 0, 0, 0, 0, 0], 6, "a count must be a whole number, got 6.0 at index 0"),
        ("grr", [0, True, 0, 0, 0, 0, 0], 1, "a count must be a whole number, got True at index 1"),
        ("grr", [0, "1", 0, 0, 0, 0, 0], 1, "a count must be a whole number, got '1' at index 1"),
        ("grr", "1000000", 1, "counts must be a list of whole numbers, got '1000000'"),
        ("grr", {0: 1}, 1, "counts must be a list of whole numbers"),
        ("grr", [5, 0, 0, 0, 0, 0, 0], 6, "the counts stand for 5 reports, not for 6"),
        ("ss", [3, 1, *[0] * 10], 1, "must add up to a multiple of 3, got 4"),
        ("ss", [3, *[0] * 11], 1, "a count of 3 exceeds the 1 report"),
        ("oue", [3, *[0] * 8], 2, "a count of 3 exceeds the 2 reports"),
        ("mss", [1, *[0] * 22], 2, "the counts stand for 1 report, not for 2"),
        ("mss", [[1, 0, 0, 0, 0], [0] * 7], 1, r"must have the lengths \[5, 7, 11\], one list per modulus or view"),
        ("mss", [[1, 0, 0, 0, 0], [0] * 7, 5], 1, r"got \[5, 7, None\]"),
    ],
)
def test_counts_that_no_reports_have_are_refused(name, counts, reports, message):
    with pytest.raises(sunzi.TallyError, match=message):
        tally_from_counts(PLANS[name], counts, reports)


@pytest.mark.parametrize("reports", [-1, 2.0, True, "7", None, 1 << 63])
def test_the_number_of_reports_is_a_whole_number(reports):
    with pytest.raises(sunzi.ParameterError, match="reports must be a whole number between 0 and"):
        tally_from_counts(PLANS["grr"], [0] * 7, reports)


def test_a_short_block_spoils_the_sum_and_is_noticed():
    """MultihotCountVec admits fewer than w points, which no client of the plan sends."""
    plan = PLANS["ss"]
    sums = plan.tally(reports_of(plan, 10)).counts.copy()
    sums[np.argmax(sums)] -= 1
    with pytest.raises(sunzi.TallyError, match="multiple of 3"):
        tally_from_counts(plan, sums, 10)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (make_plan("grr", 1024, 4), ("Prio3Histogram", "messages", 1024, None, 34)),
        (make_plan("ss", 1024, 1), ("Prio3MultihotCountVec", "points", 1024, 275, 34)),
        (make_plan("oue", 100, 1), ("Prio3MultihotCountVec", "bits", 100, 100, 8)),
        (PLANS["mss"], ("Prio3MultihotCountVec", "points", 23, 3, 4)),
        (PLANS["mss-compact"], ("Prio3Histogram", "messages", 81, None, 12)),
    ],
    ids=["grr", "ss", "oue", "mss", "mss-compact"],
)
def test_the_task_of_a_plan(plan, expected):
    task = aggregation_task(plan, 1000)
    assert (task.vdaf, task.counts, task.length, task.max_weight, task.chunk_length) == expected
    assert task.min_batch_size == 1000


@pytest.mark.parametrize("entries", [1, 2, 3, 7, 100, 107, 1024, 1033])
def test_no_chunk_length_makes_shorter_reports(entries):
    shortest = min(_leader_share_bytes(entries, chunk) for chunk in range(1, entries + 1))
    assert _leader_share_bytes(entries, _best_chunk_length(entries)) == shortest


@pytest.mark.parametrize(("size", "kibibytes"), [(100, 2.6), (1024, 18), (22_000, 354)])
def test_the_size_of_a_report(size, kibibytes):
    assert aggregation_task(make_plan("grr", size, 1), 1).report_bytes / 1024 == pytest.approx(kibibytes, rel=0.02)
