"""A million mutated reports: an accepted one encodes to the same bytes again, and only ReportError is raised.

Which reports a plan must accept is derived independently of the library, from the layout of docs/format.md: a selector,
the length that it implies, a payload below its limit, for bitmaps the number of ones, and for other subsets that the
payload is the word of the subset that it leads to. So the tests check that exactly the valid mutants are accepted, not
only that nothing crashes.
"""

import io
import struct
import zlib
from math import comb

import numpy as np
import pytest

from sunzi import wire
from sunzi.client.errors import ReportError
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue

pytestmark = pytest.mark.slow

# Protocol, domain size, options, single reports, batches.
CASES = {
    "grr": ("grr", 13, {}, 150_000, 400),
    "grr, two bytes": ("grr", 1000, {}, 150_000, 400),
    "ss-compact": ("ss-compact", 1000, {}, 200_000, 400),
    "pgr": ("pgr", 500, {}, 150_000, 400),
    "mss-compact": ("mss-compact", 200, {"moduli": [7, 13, 31, 61, 97]}, 150_000, 400),
    "rappor": ("rappor", 12, {}, 100_000, 300),
    "rappor, wide": ("rappor", 90, {}, 30_000, 300),
    "oue": ("oue", 30, {}, 50_000, 300),
    "ss": ("ss", 11, {"block_size": 3}, 100_000, 300),
    "ss, wide": ("ss", 130, {}, 10_000, 100),
    "ss, bitmap": ("ss", 20, {"block_size": 6, "code": "bitmap"}, 30_000, 200),
    "mss": ("mss", 40, {"moduli": [3, 11, 13, 19, 23]}, 100_000, 200),
    "mss, wide": ("mss", 200, {"moduli": [2, 5, 89, 97, 101]}, 10_000, 100),
}
SOURCES = 300
REPORTS_PER_BATCH = 40


def test_there_are_a_million_mutants_over_all_protocols():
    assert sum(singles for *_, singles, _ in CASES.values()) >= 1_000_000
    assert {name for name, *_ in CASES.values()} == set(catalogue())


def plan_of(case):
    name, size, options, *_ = CASES[case]
    return make_plan(name, size, 1, **options)


class Oracle:
    """The rules of docs/format.md for one plan's reports, in plain integers."""

    def __init__(self, plan):
        protocol = plan.protocol
        if plan.protocol.name in ("rappor", "oue"):
            self.kinds = [(plan.domain.size, 1 << plan.domain.size, None)]
        elif plan.protocol.name == "mss-compact":
            total = sum(response.design.message_count for response in protocol.responses)
            self.kinds = [((total - 1).bit_length(), total, None)]
        else:
            responses = protocol.responses if plan.protocol.name == "mss" else [protocol.response]
            self.kinds = [self.kind_of(response.design) for response in responses]
        self.shift = (len(self.kinds) - 1).bit_length()

    @staticmethod
    def kind_of(design):
        """(bits, limit, the payload's own rule)."""
        if design.kind != "subsets":
            return (design.message_count - 1).bit_length(), design.message_count, None
        if design.code == "bitmap":
            return design.points, 1 << design.points, lambda payload: payload.bit_count() == design.block_size
        room = (1 << 40) - design.points * (design.points + 1) // 2
        bits = (-(-comb(design.points, design.block_size) * (1 << 40) // room) - 1).bit_length()
        return bits, 1 << bits, lambda payload: is_word(payload, bits, design.points, design.block_size)

    def accepts(self, report):
        number = int.from_bytes(report, "little")
        selector, payload = number & ((1 << self.shift) - 1), number >> self.shift
        if selector >= len(self.kinds):
            return False
        bits, limit, rule = self.kinds[selector]
        if len(report) != (self.shift + bits + 7) // 8 or payload >= limit:
            return False
        return rule is None or rule(payload)


def is_word(payload, bits, points, left):
    """Whether the payload is the first multiple of 2^-bits in the interval of its subset, in unbounded integers."""
    first = payload.to_bytes((bits + 7) // 8, "little")
    last_bits = bits - 8 * (len(first) - 1)
    word = int.from_bytes(first[:-1], "big") << last_bits | first[-1]
    low, width, scale = 0, 1 << 48, 48
    for rest in range(points, 0, -1):
        if left in (0, rest):
            break
        part = width // rest * left
        if word << scale < (low + part) << bits:
            width, left = part, left - 1
        else:
            low, width = low + part, width - part
        while width < 1 << 40:
            low, width, scale = low << 8, width << 8, scale + 8
    return (word - 1) << scale < low << bits <= word << scale


def mutants(reports, number, generator):
    """Random bytes of the right length, one to three flipped bits, and shortened and lengthened reports."""
    sources = generator.integers(0, len(reports), number).tolist()
    ways = generator.choice(6, number, p=[0.3, 0.35, 0.2, 0.05, 0.05, 0.05]).tolist()
    noise = generator.integers(0, 256, (number, max(map(len, reports)) + 3), dtype=np.uint8)
    places = generator.integers(0, 1 << 20, (number, 3)).tolist()
    for source, way, row, place in zip(sources, ways, noise, places, strict=True):
        report = reports[source]
        if way == 0:
            yield row[: len(report)].tobytes()
        elif way <= 2:
            value = int.from_bytes(report, "little")
            for position in place[: 1 if way == 1 else 2 + source % 2]:
                value ^= 1 << position % (8 * len(report))
            yield value.to_bytes(len(report), "little")
        elif way == 3:
            yield report[: place[0] % len(report)]
        elif way == 4:
            yield report + row[: 1 + place[0] % 3].tobytes()
        else:
            yield row[: place[0] % row.size].tobytes()


def is_refused(plan, report):
    try:
        plan.protocol.decode(wire.decode_reports(plan.protocol.report_layout, [report]))
    except ReportError:
        return True
    return False


@pytest.mark.parametrize("case", CASES)
def test_single_reports(case):
    plan, number = plan_of(case), CASES[case][-2]
    oracle, generator = Oracle(plan), np.random.default_rng(61)
    values = generator.integers(0, plan.domain.size, SOURCES)
    reports = plan.client(seed=61).reports(values)
    assert all(oracle.accepts(report) for report in reports)
    good, bad = [], []
    for mutant in mutants(reports, number, generator):
        (good if oracle.accepts(mutant) else bad).append(mutant)
    assert len(good) > number // 200
    assert len(bad) > number // 100
    check_accepted(plan, good)
    for report in set(bad):  # short reports have few different mutants
        assert is_refused(plan, report), report.hex()
    for report in bad[:: 1 + len(bad) // 200]:
        for data in (report, [report], [*reports[:3], report, *reports[3:6]]):
            with pytest.raises(ReportError):
                plan.tally(data)


def check_accepted(plan, reports):
    """All are accepted, and each encodes to its original bytes."""
    layout, protocol = plan.protocol.report_layout, plan.protocol
    for start in range(0, len(reports), 20_000):
        part = reports[start : start + 20_000]
        encoded = wire.decode_reports(layout, part)
        assert wire.encode_each(layout, encoded) == part
        assert wire.encode_each(layout, protocol.encode(protocol.decode(encoded))) == part
    assert plan.tally(reports[:5000]).reports == min(len(reports), 5000)


def mutated_batch(batch, generator):
    """Up to three changes anywhere, mostly in the content; in three of four cases the checksum is corrected."""
    data = bytearray(batch[:-4])
    for _ in range(generator.integers(1, 4)):
        way = generator.integers(8)
        first = 48 if generator.random() < 0.9 else 0
        place = int(generator.integers(first, len(data))) if len(data) > first else None
        if way <= 4 and place is not None:
            data[place] ^= 1 << int(generator.integers(8))
        elif way == 5 and place is not None:
            data[place] = int(f"{data[place]:08b}"[::-1], 2)  # keeps the number of ones
        elif way == 6:
            data[40:48] = struct.pack("<Q", int(generator.integers(0, 1 << int(generator.integers(1, 50)))))
        else:
            data = data[: int(generator.integers(len(data) + 1))] if generator.random() < 0.5 else data + b"\x01"
    if generator.random() < 0.75:
        return bytes(data) + struct.pack("<I", zlib.crc32(data))
    return bytes(data) + batch[-4:]


@pytest.mark.parametrize("case", CASES)
def test_batches(case):
    """An accepted batch consists of acceptable reports and packs to the same bytes again."""
    plan, number = plan_of(case), CASES[case][-1]
    layout, fingerprint = plan.protocol.report_layout, bytes.fromhex(plan.fingerprint)
    oracle, generator = Oracle(plan), np.random.default_rng(62)
    values = generator.integers(0, plan.domain.size, REPORTS_PER_BATCH)
    batch = plan.client(seed=62).report_batch(values)
    accepted = 0
    for _ in range(number):
        mutant = mutated_batch(batch, generator)
        try:
            tally = plan.tally(io.BytesIO(mutant))
        except ReportError:
            continue
        accepted += 1
        pieces = list(wire.read_batches(io.BytesIO(mutant), layout, fingerprint))
        if not pieces:
            assert tally.reports == 0
            continue
        assert len(pieces) == 1
        assert tally.reports == len(pieces[0])
        assert all(oracle.accepts(report) for report in wire.encode_each(layout, pieces[0]))
        again = plan.protocol.encode(plan.protocol.decode(pieces[0]))
        assert wire.encode_batch(layout, fingerprint, again) == mutant
    assert 0 < accepted < number


@pytest.mark.parametrize("case", ["grr", "rappor, wide", "mss"])
def test_noise_is_not_a_batch(case):
    plan, generator = plan_of(case), np.random.default_rng(63)
    for length in generator.integers(1, 400, 3000).tolist():
        noise = generator.bytes(length)
        for data in (noise, wire.BATCH_MAGIC + noise, wire.BATCH_MAGIC + bytes.fromhex(plan.fingerprint) + noise):
            with pytest.raises(ReportError):
                plan.tally(io.BytesIO(data))
