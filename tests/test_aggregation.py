"""Counts of a secure aggregation: the same tallies as direct counting, and the task that makes them."""

from hashlib import sha256

import numpy as np
import pytest
from prio3 import Circuit, Prio3, encode_vector

import sunzi
from sunzi import aggregation_task, make_plan, tally_from_counts
from sunzi.aggregation import _best_chunk_length, _leader_share_bytes

KEY, NONCE = bytes(range(32)), bytes(range(16))
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
        ("ss-compact", [1] * 12, 3, "counts of points do not determine which messages were sent: .* plan with ss,"),
        ("mss-compact", [1] * 23, 3, "plan with mss, whose tally counts points"),
        ("grr", [-1, 7, 0, 0, 0, 0, 0], 6, r"between 0 and 2\^63 - 1, got -1 at index 0"),
        ("grr", [0, 1 << 63, 0, 0, 0, 0, 0], 6, r"got 9223372036854775808 at index 1"),
        ("grr", [6.0, 0, 0, 0, 0, 0, 0], 6, "a count must be a whole number, got 6.0 at index 0"),
        ("grr", [0, True, 0, 0, 0, 0, 0], 1, "a count must be a whole number, got True at index 1"),
        ("grr", [0, "1", 0, 0, 0, 0, 0], 1, "a count must be a whole number, got '1' at index 1"),
        ("grr", "1000000", 1, "counts must be a list of whole numbers, got '1000000'"),
        ("grr", {0: 1}, 1, "counts must be a list of whole numbers"),
        ("grr", [5, 0, 0, 0, 0, 0, 0], 6, "the counts are those of 5 reports, not of 6"),
        ("ss", [3, 1, *[0] * 10], 1, "must add up to a multiple of 3, got 4"),
        ("ss", [3, *[0] * 11], 1, "a count of 3 exceeds the 1 report"),
        ("oue", [3, *[0] * 8], 2, "a count of 3 exceeds the 2 reports"),
        ("mss", [1, *[0] * 22], 2, "the counts are those of 1 report, not of 2"),
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


@pytest.mark.parametrize(("least", "honest", "expected"), [(7, 0.7, 10), (100, 0.9, 112), (100, 1, 100)])
def test_batches_grow_by_the_share_of_clients_that_are_not_honest(least, honest, expected):
    assert aggregation_task(PLANS["grr"], least, honest).min_batch_size == expected


@pytest.mark.parametrize("entries", [1, 2, 3, 7, 100, 107, 1024, 1033])
def test_no_chunk_length_makes_shorter_reports(entries):
    shortest = min(_leader_share_bytes(entries, chunk) for chunk in range(1, entries + 1))
    assert _leader_share_bytes(entries, _best_chunk_length(entries)) == shortest


@pytest.mark.parametrize(("size", "kibibytes"), [(100, 2.6), (1024, 18), (22_000, 354)])
def test_the_size_of_a_report(size, kibibytes):
    assert aggregation_task(make_plan("grr", size, 1), 1).report_bytes / 1024 == pytest.approx(kibibytes, rel=0.02)


VECTORS = {
    "Prio3Histogram_0": (
        Circuit(4, 2),
        2,
        [0, 0, 1, 0],
        272,
        "996d6409e6ea3df0802fde9be2c94155ec60c15a1b0e88f2601b46c078046fc6",
        "ec6a7e39ea145d9111bfaf7a9e6695a4b01e0df965120f0840ceca0aaf112f78",
        "829dd92bb17daf2d2961fb0626c96ef432274b1d249cebb26c65339c9d879ca3",
        "915cca74703d352a8e12e7441aa3896efbd633bf8eacd9a101ab922f6481404b",
    ),
    "Prio3Histogram_1": (
        Circuit(11, 3),
        3,
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        544,
        "f277122bfec4b22baf17079cd4b1478d624973015d541cde95c258f85061c633",
        "8d05b357e1186661415afaf99eacf221060777561c9e943eac26ae1049788701",
        "b9a075dd2c4eeb7de62ea6c346c1fea751e3554837798e19f7ad6c0759db5e72",
        "8794e3c89b479fd38914037c778563366e9c90f61a47f52e02e51003048af9e1",
    ),
    "Prio3MultihotCountVec_0": (
        Circuit(4, 2, 2),
        2,
        [0, 1, 1, 0],
        304,
        "8288306b69aec3b077973342634e372ffdcf1183e12ca0fe4be001528260419e",
        "c16fded745d6179e25c61456ee8fc7ebe4de36f231d9ff49ff6cfe39bcda11c7",
        "e71df4c9b977ff7733994db45440ef7c178374d6505a289fc6052b0da7748825",
        "407dd84e19e24c5dd58e2a735bade1c3feaa768f055f553e0767e8f8066ddc8b",
    ),
}
"""Test vectors of draft-irtf-cfrg-vdaf: the measurement, the bytes of the leader's share, the SHA-256 of the leader's
share, of the public share and of all verifier shares, and the verifier message.
"""


@pytest.mark.parametrize("name", VECTORS)
def test_prio3_has_the_values_of_the_draft(name):
    circuit, aggregators, measurement, size, leader, public, verifiers, message = VECTORS[name]
    prio3 = Prio3(circuit, b"some application", aggregators)
    parts, shares = prio3.shard(measurement, NONCE, bytes(range(64 * aggregators)))
    made = [prio3.verify_share(KEY, number, NONCE, parts, share) for number, share in enumerate(shares)]
    encoded = b"".join(encode_vector(verifier) + part for _, verifier, part in made)
    assert [sha256(data).hexdigest() for data in (shares[0], b"".join(parts), encoded)] == [leader, public, verifiers]
    assert prio3.joint_seed(parts).hex() == message
    assert prio3.unshard([prio3.verify(KEY, NONCE, parts, shares)]) == measurement
    assert len(shares[0]) == _leader_share_bytes(circuit.entries, circuit.chunk_length) == size


def test_the_size_of_the_largest_vector_of_the_draft():
    """Prio3Histogram_2: 100 counters, chunks of 10."""
    assert _leader_share_bytes(100, 10) == 2448


@pytest.mark.parametrize("name", PLANS)
def test_reports_that_no_server_sees_make_the_tally_of_all(name):
    plan, generator = PLANS[name], np.random.default_rng(2)
    task, reports = aggregation_task(plan, 1), reports_of(plan, 3)
    prio3 = Prio3(Circuit(task.length, task.chunk_length, task.max_weight), b"a task")
    outputs = []
    for report in reports:
        parts, shares = prio3.shard(plan.tally(report).counts.tolist(), NONCE, generator.bytes(128))
        assert len(shares[0]) == task.leader_share_bytes
        outputs.append(prio3.verify(KEY, NONCE, parts, shares))
    counts = prio3.unshard(outputs)
    assert tally_from_counts(plan, counts, len(reports)).to_bytes() == plan.tally(reports).to_bytes()


@pytest.mark.parametrize(
    ("circuit", "measurement"),
    [
        (Circuit(4, 2), [0, 1, 1, 0]),
        (Circuit(4, 2), [0, 2, 0, 0]),
        (Circuit(4, 2, 2), [1, 1, 1, 0]),
        (Circuit(4, 2, 2), [2, 0, 0, 0]),
    ],
)
def test_servers_refuse_measurements_that_are_no_tallies_of_a_report(circuit, measurement):
    prio3 = Prio3(circuit, b"a task")
    parts, shares = prio3.shard(measurement, NONCE, bytes(range(128)))
    with pytest.raises(ValueError, match="the proof is wrong"):
        prio3.verify(KEY, NONCE, parts, shares)
