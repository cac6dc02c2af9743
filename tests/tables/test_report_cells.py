"""Valid cells are counted bit for bit as by ``plan.tally``, and every other cell is reported."""

import random
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sunzi
from sunzi import wire
from sunzi.client.errors import ReportError
from sunzi.client.reports import is_batch
from sunzi.tables import Refused, Sifted, arrow, report_cells, sift_array
from sunzi.tables.report_cells import REASONS, SAMPLES, judge

SIZE = 60
PROTOCOLS = sunzi.catalogue()


@cache
def plan_of(protocol, size=SIZE):
    return sunzi.make_plan(protocol, size, 1)


@cache
def reports_of(protocol, count=300):
    return plan_of(protocol).client(seed=5).reports([index % SIZE for index in range(count)])


@cache
def strange_cells(protocol):
    """Cells of every kind: reports, batches, and cells that a pipeline damaged."""
    plan, reports = plan_of(protocol), reports_of(protocol)
    other = sunzi.make_plan(protocol, SIZE, 2)
    batch, foreign = plan.client(seed=6).report_batch([1, 2, 3] * 5), other.client(seed=6).report_batch([1, 2, 3])
    damaged = batch[:-6] + bytes([batch[-6] ^ 1]) + batch[-5:]
    generator = random.Random(protocol)
    noise = [generator.randbytes(length) for length in (1, 2, 3, 5, 7, 8, 9, 33, 60) for _ in range(2)]
    full = [b"\xff" * len(report) for report in set(reports[:40])]
    cut = [report[:-1] for report in reports[:3]]
    longer = [report + b"\x00" for report in reports[:3]]
    whole = [batch, batch + batch, plan.client(seed=7).report_batch([])]
    broken = [damaged, batch[:-1], batch[:20], batch[:8], batch[:45], batch + b"x", batch + foreign, foreign]
    return [None, b"", *reports[:8], *noise, *full, *cut, *longer, *whole, *broken]


def accepted(plan, cell):
    """The same in a slow and obvious way."""
    if cell is None:
        return None
    try:
        return plan.tally([cell])
    except ReportError:
        return None


def oracle(plan, cells):
    tallies = [accepted(plan, cell) for cell in cells]
    return sum((tally for tally in tallies if tally is not None), plan.empty_tally()), [t is not None for t in tallies]


def test_the_catalogue_has_both_layouts():
    assert {wire.is_narrow(plan_of(protocol).protocol.report_layout) for protocol in PROTOCOLS} == {True, False}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reports_count_as_they_always_do(protocol):
    plan, reports = plan_of(protocol), reports_of(protocol)
    expected = plan.tally(reports)
    column = pa.array(reports, pa.binary())
    for same in (
        column,
        column.cast(pa.large_binary()),
        column.dictionary_encode(),
        pa.array(reports, pa.binary_view()),
    ):
        found = sift_array(same, plan)
        assert found == Sifted(expected)
        assert found.tally.to_bytes() == expected.to_bytes()
    assert sift_array(column.slice(17, 200), plan).tally == plan.tally(reports[17:217])
    assert not judge(column, plan).any()


@pytest.mark.parametrize(
    "protocol", [name for name in PROTOCOLS if wire.is_narrow(plan_of(name).protocol.report_layout)]
)
def test_fixed_size_cells(protocol):
    plan, reports = plan_of(protocol), reports_of(protocol)
    column = pa.array([None, *reports, None], pa.binary(len(reports[0])))
    assert sift_array(column.slice(1), plan) == Sifted(plan.tally(reports), Refused({"missing": 1}, {"missing": ("",)}))
    wrong = sift_array(pa.array([report + b"\x00" for report in reports], pa.binary(len(reports[0]) + 1)), plan)
    assert wrong.refused.counts == {"wrong length": len(reports)}
    assert wrong.tally == plan.empty_tally()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@settings(max_examples=40)
@given(data=st.data())
def test_any_column_equals_the_slow_way(protocol, data):
    plan, pool = plan_of(protocol), strange_cells(protocol)
    cells = data.draw(st.lists(st.sampled_from(pool), max_size=40))
    start = data.draw(st.integers(0, len(cells)))
    column = pa.array(cells, pa.binary()).slice(start)
    expected, good = oracle(plan, cells[start:])
    found = sift_array(column, plan)
    assert found.tally.to_bytes() == expected.to_bytes()
    assert found.refused.total == good.count(False)
    assert (judge(column, plan) == 0).tolist() == good
    assert found.refused.counts.get("missing", 0) == cells[start:].count(None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_reason_and_its_samples(protocol):
    plan, cells = plan_of(protocol), strange_cells(protocol)
    verdicts = judge(pa.array(cells, pa.binary()), plan).tolist()
    refused = sift_array(pa.array(cells, pa.binary()), plan).refused
    for number, reason in enumerate(REASONS):
        if number == 0:
            continue
        mine = [cell or b"" for cell, verdict in zip(cells, verdicts, strict=True) if verdict == number]
        shown = {cell[:32].hex() + ("…" if len(cell) > 32 else "") for cell in mine}
        assert refused.counts.get(reason, 0) == len(mine)
        assert refused.samples.get(reason, ()) == tuple(sorted(shown)[:SAMPLES])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reasons_are_the_right_ones(protocol):
    plan, report = plan_of(protocol), reports_of(protocol)[0]
    batch = plan.client(seed=6).report_batch([1, 2, 3])
    foreign = sunzi.make_plan(protocol, SIZE, 2).client(seed=6).report_batch([1, 2, 3])
    damaged = batch[:-1] + bytes([batch[-1] ^ 1])
    cases = {
        None: "missing",
        b"": "wrong length",
        bytes(70): "wrong length",
        batch: "good",
        foreign: "of another plan",
        damaged: "malformed",
        batch[:30]: "malformed",
        report: "good",
    }
    found = judge(pa.array(list(cases), pa.binary()), plan).tolist()
    assert [REASONS[number] for number in found] == list(cases.values())


@pytest.mark.parametrize(
    "protocol", [name for name in PROTOCOLS if wire.is_narrow(plan_of(name).protocol.report_layout)]
)
def test_values_out_of_range(protocol):
    """The largest value is valid and the next one is not."""
    plan = plan_of(protocol)
    limit, width = plan.protocol.report_layout.payload_limits[0], len(reports_of(protocol)[0])
    values = [limit - 1, *(value for value in (limit, limit + 1, (1 << 8 * width) - 1) if value < 1 << 8 * width)]
    found = sift_array(pa.array([value.to_bytes(width, "little") for value in values], pa.binary()), plan)
    assert found.tally.reports == 1
    assert found.refused.counts == ({"out of range": len(values) - 1} if len(values) > 1 else {})


@pytest.mark.parametrize("protocol", ["rappor", "oue"])
def test_a_batch_that_is_just_as_long_as_a_report_is_a_batch(protocol):
    """An empty batch has 52 bytes, and so has any report of 416 items, for which all byte values are valid."""
    plan = sunzi.make_plan(protocol, 416, 1)
    own, foreign = (one.client(seed=1).report_batch([]) for one in (plan, plan_of(protocol)))
    report = plan.client(seed=1).report(3)
    assert len(own) == len(foreign) == len(report) == 52
    found = sift_array(pa.array([own, foreign, report, own[:-1] + b"\x00"], pa.binary()), plan)
    assert found.tally == plan.tally([own, report])
    assert found.refused.counts == {"of another plan": 1, "malformed": 1}


def test_a_batch_counts_as_one_cell():
    plan = plan_of("grr")
    batch = plan.client(seed=1).report_batch(np.arange(5000) % SIZE)
    found = sift_array(pa.array([batch, batch[:-1], batch], pa.binary()), plan)
    assert found.tally.reports == 10_000
    assert found.refused.total == 1


def test_many_bad_cells_are_not_looked_at_one_by_one(monkeypatch):
    """A microsecond per cell would add up to minutes if a whole table belongs to another plan."""
    looked = []
    original = arrow.Cells.cell
    monkeypatch.setattr(arrow.Cells, "cell", lambda cells, row: looked.append(row) or original(cells, row))
    plan = plan_of("ss-compact")
    generator = random.Random(3)
    narrow = [generator.randbytes(generator.randrange(2, 6)) for _ in range(3000)]
    cells = [*narrow, *(generator.randbytes(50) for _ in range(3000)), *[None] * 3000, *[b"\xff"] * 3000]
    found = sift_array(pa.array(cells, pa.binary()), plan)
    assert found.refused.counts == {"missing": 3000, "out of range": 3000, "wrong length": 6000}
    assert len(looked) < 30


def test_a_few_bad_ones_among_many_wide_reports_cost_little(monkeypatch):
    plan = plan_of("rappor")
    reports = plan.client(seed=2).reports(np.arange(4096) % SIZE)
    cells = [*reports[:2000], b"\xff" * 8, *reports[2000:]]
    decoded = []
    original = report_cells.wire.decode_reports
    monkeypatch.setattr(
        report_cells.wire, "decode_reports", lambda layout, some: decoded.append(len(some)) or original(layout, some)
    )
    found = sift_array(pa.array(cells, pa.binary()), plan)
    assert found.tally == plan.tally(reports)
    assert found.refused == Refused({"malformed": 1}, {"malformed": ("ff" * 8,)})
    assert sum(decoded) < 5 * len(cells)


def test_a_cell_that_opens_like_a_batch_by_the_vectorised_test():
    cells = [b"SUNZIRB\x01", b"SUNZIRB", b"SUNZIRB\x01 and more", b"SUNZIRB\x02 and more", b"", None, b"x" * 9]
    found = report_cells._open_like_batches(arrow.cells_of(pa.array(cells, pa.binary())), np.arange(len(cells)))
    assert found.tolist() == [is_batch(cell or b"") for cell in cells]


REFUSED = st.dictionaries(
    st.sampled_from(REASONS[1:]),
    st.tuples(
        st.integers(1, 10**12), st.sets(st.sampled_from(["", "00", "01", "01ff", "aa…", "b0", "ff"]), max_size=3)
    ),
).map(
    lambda found: Refused(
        {reason: count for reason, (count, _) in found.items()},
        {reason: tuple(sorted(few)) for reason, (_, few) in found.items()},
    )
)


@given(REFUSED, REFUSED, REFUSED)
def test_refused_cells_add_in_any_order(first, second, third):
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first + Refused() == first == Refused() + first
    assert (first + second).total == first.total + second.total


def test_sifted_parts_add_up_to_the_whole():
    plan, cells = plan_of("mss"), strange_cells("mss")
    whole = sift_array(pa.array(cells, pa.binary()), plan)
    for cut in range(0, len(cells), 7):
        before, after = pa.array(cells[:cut], pa.binary()), pa.array(cells[cut:], pa.binary())
        assert sift_array(before, plan) + sift_array(after, plan) == whole


def test_refused_in_words():
    assert str(Refused()) == "none"
    refused = Refused({"missing": 1, "wrong length": 2000}, {"missing": ("",), "wrong length": ("00ff", "01")})
    assert str(refused) == "1 missing, 2,000 wrong length (such as 00ff, 01)"
