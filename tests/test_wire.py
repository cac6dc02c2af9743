"""Bytes of reports and batches: round trips, exact lengths, and all invalid bytes that must be refused."""

import io
import os
import struct
import threading
import tracemalloc
import zlib
from math import comb, prod
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunzi import wire
from sunzi.client.errors import ReportError
from sunzi.plan import make_plan

PLANS = {
    "grr": lambda: make_plan("grr", 13, 1),
    "grr, whole bytes": lambda: make_plan("grr", 256, 1),
    "ss": lambda: make_plan("ss", 20, 1),
    "ss, wide": lambda: make_plan("ss", 300, 1),
    "ss, bitmap": lambda: make_plan("ss", 21, 1, code="bitmap"),
    "ss, wide bitmap": lambda: make_plan("ss", 99, 1, code="bitmap"),
    "ss-compact": lambda: make_plan("ss-compact", 50, 1),
    "pgr": lambda: make_plan("pgr", 50, 1),
    "pgr, prime power": lambda: make_plan("pgr", 50, 1, order=9),
    "rappor": lambda: make_plan("rappor", 11, 1),
    "rappor, wide": lambda: make_plan("rappor", 100, 1),
    "oue, 56 bits": lambda: make_plan("oue", 56, 1),
    "oue, 57 bits": lambda: make_plan("oue", 57, 1),
    "mss": lambda: make_plan("mss", 40, 1, moduli=[3, 11, 13, 19, 23]),
    "mss, wide": lambda: make_plan("mss", 300, 1, moduli=[2, 5, 101, 211, 307, 127]),
    "mss, one modulus": lambda: make_plan("mss", 40, 1, moduli=[41]),
    "mss-compact": lambda: make_plan("mss-compact", 40, 1, moduli=[7, 13, 31, 37]),
}
HEADER = struct.Struct("<8s32sQ")


@pytest.fixture(scope="module", params=list(PLANS))
def plan(request):
    return PLANS[request.param]()


def values_of(plan, number, seed=0):
    return np.random.default_rng(seed).integers(0, plan.domain.size, number)


def packed(values, widths):
    """Pack values into one integer, lowest bits first."""
    number = position = 0
    for value, width in zip(values, widths, strict=True):
        number |= value << position
        position += width
    return number.to_bytes((position + 7) // 8, "little")


def build_batch(plan, reports, fingerprint=None, count=None):
    """A batch built from its documented format, from reports as (selector, payload)."""
    layout = plan.protocol.report_layout
    selector_bits = (len(layout.payload_bits) - 1).bit_length()
    head = HEADER.pack(
        b"SUNZIRB\x01", fingerprint or bytes.fromhex(plan.fingerprint), len(reports) if count is None else count
    )
    selectors = packed([selector for selector, _ in reports], [selector_bits] * len(reports))
    payloads = packed([payload for _, payload in reports], [layout.payload_bits[selector] for selector, _ in reports])
    return sealed(head + selectors + payloads)


def sealed(body):
    return body + struct.pack("<I", zlib.crc32(body))


def split_report(plan, report):
    """A report as (selector, payload)."""
    bits = (len(plan.protocol.report_layout.payload_bits) - 1).bit_length()
    number = int.from_bytes(report, "little")
    return number & ((1 << bits) - 1), number >> bits


@settings(max_examples=12)
@given(data=st.data())
def test_round_trips(plan, data):
    """Single reports, lists, batches, lists of both and streams give the same counts and encode to the same bytes."""
    values = data.draw(st.lists(st.integers(0, plan.domain.size - 1), max_size=40))
    seed = data.draw(st.integers(0, 2**32))
    each = plan.client(seed=seed).reports(values)
    batch = plan.client(seed=seed).report_batch(values)
    assert batch == build_batch(plan, [split_report(plan, report) for report in each])
    tally = plan.tally(each)
    assert tally.reports == len(values)
    assert plan.tally(batch) == tally
    assert plan.tally(io.BytesIO(batch)) == tally
    assert sum((plan.tally(report) for report in each), start=plan.empty_tally()) == tally
    assert plan.tally([batch, *each, batch]) == tally + tally + tally
    layout = plan.protocol.report_layout
    decoded = plan.protocol.decode(wire.decode_reports(layout, each))
    assert wire.encode_each(layout, plan.protocol.encode(decoded)) == each


@pytest.mark.slow
@settings(max_examples=8)
@given(data=st.data())
def test_streams_of_batches_in_odd_pieces(plan, data):
    """Several batches back to back, read in pieces of a few bytes: no bit is lost at the borders of pieces."""
    sizes = data.draw(st.lists(st.integers(0, 70), min_size=1, max_size=4))
    batches = [plan.client(seed=size).report_batch(values_of(plan, size, size)) for size in sizes]
    expected = sum((plan.tally(batch) for batch in batches), start=plan.empty_tally())
    chunk = data.draw(st.sampled_from([1, 2, 3, 7, 8, 13, 50, 101]))
    fingerprint, layout = bytes.fromhex(plan.fingerprint), plan.protocol.report_layout
    with mock.patch.multiple(wire, _NARROW_REPORTS=8 * chunk, _WIDE_CHUNK_BYTES=chunk):
        assert plan.tally(io.BytesIO(b"".join(batches))) == expected
        pieces = list(wire.read_batches(io.BytesIO(b"".join(batches)), layout, fingerprint))
    assert sum(len(piece) for piece in pieces) == sum(sizes)
    assert all(len(piece) <= max(8, 8 * chunk) for piece in pieces)
    again = [report for piece in pieces for report in wire.encode_each(layout, piece)]
    of_batches = [plan.client(seed=size).reports(values_of(plan, size, size)) for size in sizes]
    assert again == [report for each in of_batches for report in each]


@settings(max_examples=8)
@given(data=st.data())
def test_a_single_report_is_a_batch_of_one(plan, data):
    value, seed = data.draw(st.integers(0, plan.domain.size - 1)), data.draw(st.integers(0, 2**32))
    assert plan.client(seed=seed).report(value) == plan.client(seed=seed).reports([value])[0]


def test_the_length_depends_on_the_selector_alone(plan):
    layout = plan.protocol.report_layout
    lengths = {}
    for value in range(0, plan.domain.size, 1 + plan.domain.size // 20):
        for report in plan.client(seed=value).reports([value] * 60):
            lengths.setdefault(split_report(plan, report)[0], set()).add(len(report))
    for selector, found in lengths.items():
        assert found == {(layout.selector_bits + layout.payload_bits[selector] + 7) // 8}
    assert len(lengths) == len(layout.payload_bits)


def bits(count):
    return (count - 1).bit_length()


@pytest.mark.parametrize("epsilon", ["1/2", 1, 3])
@pytest.mark.parametrize("size", [2, 3, 50, 257])
def test_bits_are_those_of_the_table(size, epsilon):
    """⌈log2 of the number of messages⌉ for every protocol."""
    assert make_plan("grr", size, epsilon).report_bits == bits(size)
    for name in ("rappor", "oue"):
        assert make_plan(name, size, epsilon).report_bits == size
    subset = make_plan("ss", size, epsilon)
    assert subset.report_bits == bits(comb(size, subset.protocol.design.block_size))
    compact = make_plan("ss-compact", size, epsilon)
    classes = getattr(compact.protocol.design, "classes", 1)
    assert compact.report_bits == bits(classes * compact.protocol.design.points)
    projective = make_plan("pgr", size, epsilon)
    assert projective.report_bits == bits(projective.protocol.design.points)
    modular = make_plan("mss", size, epsilon, code="arithmetic")
    designs = [response.design for response in modular.protocol.responses]
    widths = [bits(comb(design.points, design.block_size)) for design in designs]
    assert modular.report_bits == pytest.approx(bits(len(designs)) + sum(widths) / len(widths))
    assert modular.max_report_bits == bits(len(designs)) + max(widths)
    joint = make_plan("mss-compact", size, epsilon)
    designs = [response.design for response in joint.protocol.responses]
    assert joint.report_bits == bits(sum(getattr(design, "classes", 1) * design.points for design in designs))


@pytest.mark.parametrize(
    ("size", "epsilon", "expected"),
    [
        (1024, "1/2", 12),
        (1024, 1, 13),
        (1024, 2, 14),
        (1024, 5, 18),
        (22_000, "1/2", 17),
        (22_000, 1, 17),
        (22_000, 2, 18),
        (22_000, 5, 22),
    ],
)
def test_the_compact_design_takes_the_promised_bits(size, epsilon, expected):
    assert make_plan("ss-compact", size, epsilon).report_bits <= expected


def test_a_foreign_fingerprint_is_refused(plan):
    other = make_plan("grr", 14, 1)
    batch = plan.client(seed=1).report_batch(values_of(plan, 5))
    with pytest.raises(ReportError, match="belong to the plan"):
        other.tally(batch)
    for byte in range(32):
        fingerprint = bytearray(bytes.fromhex(plan.fingerprint))
        fingerprint[byte] ^= 0x80
        forged = build_batch(plan, [], bytes(fingerprint))
        with pytest.raises(ReportError, match="belong to the plan"):
            plan.tally(forged)


def test_truncation_at_every_byte_is_refused(plan):
    batch = plan.client(seed=2).report_batch(values_of(plan, 21))
    for cut in range(1, len(batch)):
        with pytest.raises(ReportError):
            plan.tally(io.BytesIO(batch[:cut]))
        with pytest.raises(ReportError):
            plan.tally(io.BytesIO(batch + batch[:cut]))
    for cut in range(len(wire.BATCH_MAGIC), len(batch)):
        with pytest.raises(ReportError):
            plan.tally(batch[:cut])
    report = plan.client(seed=2).report(1)
    for cut in range(len(report)):
        with pytest.raises(ReportError):
            plan.tally(report[:cut])


def test_leftover_bytes_are_refused(plan):
    batch, report = plan.client(seed=3).report_batch(values_of(plan, 9)), plan.client(seed=3).report(0)
    for rest in (b"\0", b"S", b"SUNZIRB\x01", bytes(60)):
        for data in (batch + rest, io.BytesIO(batch + rest), report + rest, [report, report + rest]):
            with pytest.raises(ReportError):
                plan.tally(data)


def test_every_flipped_bit_of_a_batch_is_refused(plan):
    """Magic, fingerprint, count, content and checksum: a CRC-32 detects every single bit flip."""
    batch = plan.client(seed=4).report_batch(values_of(plan, 5))
    for bit in range(8 * len(batch)):
        damaged = bytearray(batch)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ReportError):
            plan.tally(io.BytesIO(bytes(damaged)))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [1, 3, 1 << 23])
def test_padding_that_is_not_zero_is_refused(plan, chunk):
    """Unused bits are set and the checksum matches."""
    layout = plan.protocol.report_layout
    checked = 0
    for number in range(1, 20):
        each = plan.client(seed=5).reports(values_of(plan, number))
        reports = [split_report(plan, report) for report in each]
        payload_bits = sum(layout.payload_bits[selector] for selector, _ in reports)
        body = bytearray(build_batch(plan, reports)[:-4])
        selector_end = HEADER.size + (number * layout.selector_bits + 7) // 8
        spots = [(selector_end - 1, number * layout.selector_bits), (len(body) - 1, payload_bits)]
        for byte, used in spots:
            for bit in range(used % 8, 8) if used % 8 else ():
                damaged = bytearray(body)
                damaged[byte] |= 1 << bit
                checked += 1
                with (
                    mock.patch.multiple(wire, _NARROW_REPORTS=8 * chunk, _WIDE_CHUNK_BYTES=chunk),
                    pytest.raises(ReportError, match="padding"),
                ):
                    plan.tally(sealed(bytes(damaged)))
    assert checked or all(width % 8 == 0 for width in layout.payload_bits)


def test_padding_of_single_reports_is_refused(plan):
    layout = plan.protocol.report_layout
    for seed in range(12):
        report = plan.client(seed=seed).report(seed % plan.domain.size)
        selector, _ = split_report(plan, report)
        for bit in range(layout.selector_bits + layout.payload_bits[selector], 8 * len(report)):
            damaged = (int.from_bytes(report, "little") | 1 << bit).to_bytes(len(report), "little")
            with pytest.raises(ReportError):
                plan.tally(damaged)


def test_payloads_out_of_range_are_refused(plan):
    """The limit itself and the largest payload that fits in the bits, alone and in a batch; of bytes, ones that no
    client sends.
    """
    layout = plan.protocol.report_layout
    checked = 0
    good = [split_report(plan, report) for report in plan.client(seed=6).reports(values_of(plan, 9))]
    pairs = list(zip(layout.payload_bits, layout.payload_limits, strict=True))
    for selector, (width, limit) in enumerate(pairs):
        for payload in bad_payloads(plan, selector, width, limit):
            checked += 1
            length = (layout.selector_bits + width + 7) // 8
            reason = "no subset|must name" if limit is None else "must be below"
            with pytest.raises(ReportError, match=reason):
                plan.tally((selector | payload << layout.selector_bits).to_bytes(length, "little"))
            for place in range(len(good)):
                bad = [*good[:place], (selector, payload), *good[place:]]
                with pytest.raises(ReportError, match=reason):
                    plan.tally(build_batch(plan, bad))
    assert checked or not plan.protocol.responses or all(limit == 1 << width for width, limit in pairs)


def bad_payloads(plan, selector, width, limit):
    """Payloads that fit in the bits and must be refused; none if all are valid."""
    if limit is not None:
        return {payload for payload in (limit, (1 << width) - 1) if limit <= payload < 1 << width}
    if not plan.protocol.responses:  # any bits will do
        return set()
    design, length, found = plan.protocol.responses[selector].design, (width + 7) // 8, set()
    for payload in range(min(1 << width, 2000)):
        try:
            design.decode(np.array([list(payload.to_bytes(length, "little"))], dtype=np.uint8))
        except ReportError:
            found.add(payload)
    assert found
    return set(sorted(found)[:3])


def test_the_last_payload_below_the_limit_is_accepted(plan):
    layout = plan.protocol.report_layout
    pairs = zip(layout.payload_bits, layout.payload_limits, strict=True)
    payloads = [last_payload(plan, selector, *pair) for selector, pair in enumerate(pairs)]
    for selector, payload in enumerate(payloads):
        length = (layout.selector_bits + layout.payload_bits[selector] + 7) // 8
        report = (selector | payload << layout.selector_bits).to_bytes(length, "little")
        assert plan.tally(report).reports == 1
        assert plan.tally(build_batch(plan, [(selector, payload)])) == plan.tally(report)


def last_payload(plan, selector, width, limit):
    """The largest integer, all bits, or the last subset."""
    if limit is not None or not plan.protocol.responses:
        return (limit or 1 << width) - 1
    design = plan.protocol.responses[selector].design
    if design.code == "bitmap":
        return ((1 << design.block_size) - 1) << (design.points - design.block_size)
    return wire.payload_integers(design.encode(np.arange(design.points - design.block_size, design.points)[None]))[0]


@pytest.mark.parametrize("name", ["mss", "mss, wide"])
def test_selectors_out_of_range_are_refused(name):
    plan = PLANS[name]()
    layout = plan.protocol.report_layout
    good = [split_report(plan, report) for report in plan.client(seed=7).reports(values_of(plan, 9))]
    for selector in range(len(layout.payload_bits), 1 << layout.selector_bits):
        for length in range(1, 60):
            with pytest.raises(ReportError, match="selector must be below"):
                plan.tally(selector.to_bytes(length, "little"))
        batch = bytearray(build_batch(plan, good))
        first = HEADER.size
        batch[first] = batch[first] & ~((1 << layout.selector_bits) - 1) | selector
        with pytest.raises(ReportError, match="selector must be below"):
            plan.tally(sealed(bytes(batch[:-4])))


@pytest.mark.parametrize("name", ["ss, bitmap", "ss, wide bitmap"])
def test_a_bitmap_must_name_exactly_w_points(name):
    plan = PLANS[name]()
    size, points = plan.protocol.design.block_size, plan.domain.size
    for ones in (0, 1, size - 1, size + 1, points):
        with pytest.raises(ReportError, match="must name"):
            plan.tally(((1 << ones) - 1).to_bytes((points + 7) // 8, "little"))


@pytest.mark.parametrize("there", [0, 3, 100_000])
def test_a_huge_count_allocates_nothing(plan, there):
    """A false count in a header must not reserve memory: memory follows the bytes that are actually there."""
    for count in (1, 1 << 20, 1 << 40, 1 << 47, (1 << 48) - 1, 1 << 48, (1 << 64) - 1):
        data = HEADER.pack(b"SUNZIRB\x01", bytes.fromhex(plan.fingerprint), count) + bytes(there)
        tracemalloc.start()
        try:
            with pytest.raises(ReportError):
                plan.tally(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 40 << 20, count


@pytest.mark.parametrize("name", ["grr", "rappor", "oue", "mss", "mss-compact"])
def test_millions_of_tiny_reports_take_little_memory(name):
    """A batch of a megabyte: reports are decoded and counted in pieces."""
    plan = make_plan(name, 3, 1)
    layout = plan.protocol.report_layout
    count = int(8e6 / wire.mean_bits(layout))
    valid = plan.client(seed=1).report_indices(np.zeros(1000, dtype=np.int64))
    pieces = list(wire.read_batches(io.BytesIO(valid), layout, bytes.fromhex(plan.fingerprint)))
    many = wire.EncodedReports(
        np.tile(pieces[0].selectors, count // 1000),
        tuple(np.concatenate([part] * (count // 1000)) for part in pieces[0].payloads),
    )
    batch = wire.encode_batch(layout, bytes.fromhex(plan.fingerprint), many)
    tracemalloc.start()
    try:
        plan.tally(batch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20


def test_the_header_declares_the_number_of_reports(plan):
    batch = plan.client(seed=1).report_batch(values_of(plan, 7))
    assert wire.declared_reports(batch) == 7
    assert wire.declared_reports(batch[:47]) == wire.declared_reports(b"") == wire.declared_reports(bytes(100)) == 1


def test_another_magic_or_version_is_refused(plan):
    for magic in (b"SUNZIRB\x02", b"SUNZIRB\x00", b"SUNZITL\x01", b"sunzirb\x01"):
        with pytest.raises(ReportError, match="not a batch"):
            plan.tally(io.BytesIO(sealed(magic + build_batch(plan, [])[8:-4])))


def test_objects_that_are_not_bytes_are_refused(plan):
    for wrong in ("text", ["text"], [5], [None], [[b"a"]]):
        with pytest.raises(ReportError, match="bytes"):
            plan.tally(wrong)


def test_all_kinds_of_buffers_are_bytes(plan):
    batch, report = plan.client(seed=8).report_batch([1, 0]), plan.client(seed=8).report(1)
    for data in (batch, report):
        assert plan.tally(bytearray(data)) == plan.tally(memoryview(data)) == plan.tally([bytearray(data)])
    assert plan.tally(iter([report, batch])) == plan.tally(report) + plan.tally(batch)
    assert plan.tally([]) == plan.empty_tally()
    assert plan.tally(io.BytesIO(b"")) == plan.empty_tally()


def test_a_refused_report_among_good_ones_counts_nothing(plan):
    each = plan.client(seed=9).reports(values_of(plan, 30))
    with pytest.raises(ReportError):
        plan.tally([*each, each[0] + b"\0"])
    batch = plan.client(seed=9).report_batch(values_of(plan, 30))
    with pytest.raises(ReportError):
        plan.tally([batch, batch[:-1]])


def test_an_empty_batch_has_52_bytes(plan):
    batch = plan.client().report_batch([])
    assert batch == build_batch(plan, [])
    assert len(batch) == 52
    assert plan.tally(batch) == plan.empty_tally()


def test_the_layouts_used_here_cover_both_sides_of_every_divide():
    layouts = [make().protocol.report_layout for make in PLANS.values()]
    assert {wire.is_narrow(layout) for layout in layouts} == {True, False}
    assert {layout.selector_bits > 0 for layout in layouts} == {True, False}
    mixed = [layout for layout in layouts if len(set(layout.payload_bits)) > 1]
    assert any(min(layout.payload_bits) <= 2 and max(layout.payload_bits) > 56 for layout in mixed)
    assert prod(layout.max_bits for layout in layouts) > 0


def test_unbuffered_pipes_give_what_they_have() -> None:
    plan = make_plan("ss-compact", 1000, 1)
    batch = plan.client(seed=1).report_batch(np.arange(200_000) % 1000)
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(batch)

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb", buffering=0) as stream:
        assert plan.tally(stream) == plan.tally(batch)
    writer.join()
