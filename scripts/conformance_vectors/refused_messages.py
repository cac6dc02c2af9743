"""Clients, values, label files, reports, batches and tallies that must be refused."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator
from datetime import date
from itertools import count

from conformance_vectors.accepted import tally_bytes
from conformance_vectors.plans import (
    COMPACT,
    GRR,
    LABELS,
    MSS,
    MSS_COMPACT,
    NUMBER,
    ORDERED,
    OUE,
    PGR,
    PREFIXES,
    RAPPOR,
    SS,
    TABLES,
    Record,
    plan_json,
    spoilt,
)
from conformance_vectors.words import LARGEST_WORD, payload_of
from sunzi.client.errors import ReportError
from sunzi.client.reports import BATCH_MAGIC
from sunzi.client.strict_json import canonical_json
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain


def refused_messages() -> Iterator[tuple[str, Record]]:
    """All refused vectors by file name."""
    yield from bad_clients()
    yield from bad_values()
    yield from bad_groups()
    yield from bad_labels()
    yield from bad_reports()
    yield from bad_batches()
    yield from bad_tallies()


def bad_clients() -> Iterator[tuple[str, Record]]:
    """Valid plans that this client does not accept."""
    start = {"error": "PrivacyError", "plan": GRR}
    yield "bad_client_epsilon", {"reason": "epsilon 1 exceeds 1/2", **start, "max_epsilon": "1/2"}
    yield "bad_client_epsilon_by_a_hair", {"reason": "epsilon 1 exceeds it", **start, "max_epsilon": "999999/1000000"}
    other = hashlib.sha256(canonical_json(SS)).hexdigest()
    yield "bad_client_pinned", {"reason": "pinned to another plan", **start, "pinned": other}
    start = {"error": "PlanError"}
    wide = plan_json("oue", Domain((1 << 20) + 1), "1")
    raised = {"accepted": {"max_bits": (1 << 20) + 1}}
    yield "bad_client_bits", {"reason": "2^20 + 1 bits exceed 2^20, the default", **start, "plan": wide, **raised}
    wider = plan_json("oue", Domain((1 << 21) + 1), "1")
    raised = {"accepted": {"max_bits": 1 << 22, "max_work": (1 << 21) + 1}}
    reason = "work of 2^21 + 1 exceeds 2^21, the default"
    yield "bad_client_work", {"reason": reason, **start, "plan": wider, "max_bits": 1 << 22, **raised}
    yield from costly_clients()


def costly_clients() -> Iterator[tuple[str, Record]]:
    """Plans whose reports have one bit, or one step of work, more than the client allows."""
    bitmap = plan_json("ss", Domain(20), "1", Subsets(20, 5, "bitmap"))
    for name, plan, bits, work in (
        ("grr", GRR, 3, 2),
        ("labels", LABELS, 2, 2),
        ("ss", SS, Subsets(10, 3).payload_bits, 15),
        ("ss_bitmap", bitmap, 20, 27),
        ("ss_compact", COMPACT, 6, 4),
        ("pgr", PGR, 5, 3),
        ("oue", OUE, 4, 4),
        ("rappor", RAPPOR, 4, 4),
        ("mss", MSS, 2 + Subsets(7, 2).payload_bits, 12),
        ("mss_compact", MSS_COMPACT, 5, 5),
        ("ordered", ORDERED, 7, 5),
        ("tables", TABLES, 9, 5),
        ("number", NUMBER, 3, 3),
        ("prefixes", PREFIXES, 7, 5),
    ):
        for option, needed in (("bits", bits), ("work", work)):
            refused, accepted = {f"max_{option}": needed - 1}, {"accepted": {f"max_{option}": needed}}
            reason = f"{needed} exceed {needed - 1}"
            start = {"reason": reason, "error": "PlanError", "plan": plan}
            yield f"bad_client_{option}_{name}", {**start, **refused, **accepted}


def bad_values() -> Iterator[tuple[str, Record]]:
    """Values outside the domain."""
    plain = spoilt(LABELS, "domain/other", ...)
    clamped = spoilt(ORDERED, "domain/range/clamp", True)
    dates = spoilt(ORDERED, "domain", OrderedDomain(date(2024, 1, 1), date(2024, 1, 9), 8).to_json())
    for name, plan, value in (
        ("too_large", GRR, 5),
        ("negative", GRR, -1),
        ("text", GRR, "1"),
        ("boolean", GRR, True),
        ("fraction", GRR, 1.5),
        ("unknown_label", plain, "d"),
        ("index_for_label", plain, 0),
        ("label_of_other_case", plain, "A"),
        ("number_with_other", LABELS, 0),
        ("below_range", ORDERED, -0.001),
        ("above_range", ORDERED, 5000.0000000001),
        ("boolean_for_number", ORDERED, True),
        ("null_for_number", ORDERED, None),
        ("word_for_number", ORDERED, "fast"),
        ("list_for_number", ORDERED, [1]),
        ("date_for_number", ORDERED, "1970-01-02"),
        ("word_for_clamped_number", clamped, "fast"),
        ("null_for_clamped_number", clamped, None),
        ("day_before", dates, "2023-12-31"),
        ("day_after", dates, "2024-01-09"),
        ("day_after_as_number", dates, 19731),
        ("day_two_after", dates, "2024-01-10"),
        ("day_30_of_february", dates, "2024-02-30"),
        ("month_13", dates, "2024-13-01"),
        ("date_of_words", dates, "tomorrow"),
        ("record_for_number", NUMBER, {"version": "1"}),
        ("number_for_record", TABLES, 5),
        ("list_for_record", TABLES, []),
        ("text_for_record", TABLES, "version"),
        ("null_for_record", TABLES, None),
        ("attribute_missing", TABLES, {"version": "1", "crashed": "no"}),
        ("attribute_null", TABLES, {"version": None, "crashed": "no", "day": 1}),
        ("attribute_unknown", TABLES, {"version": "1", "crashed": "no", "day": 1, "country": "DE"}),
        ("attribute_value_unknown", TABLES, {"version": "4", "crashed": "no", "day": 1}),
        ("attribute_value_too_large", TABLES, {"version": "1", "crashed": "no", "day": 7}),
        ("number_for_text", PREFIXES, 5),
        ("boolean_for_text", PREFIXES, True),
        ("null_for_text", PREFIXES, None),
        ("list_for_text", PREFIXES, ["a"]),
        ("digits_for_text", PREFIXES, [1, 2, 5]),
        ("record_for_text", PREFIXES, {"text": "a"}),
    ):
        yield f"bad_value_{name}", {"reason": "not in the domain", "error": "DomainError", "plan": plan, "value": value}


def bad_groups() -> Iterator[tuple[str, Record]]:
    """Groups that the plan does not declare."""
    declaring = {**GRR, "groups": {"country": ["DE", "FR"], "release": ["1"]}}
    for name, plan, groups in (
        ("no_groups", GRR, {"country": "DE"}),
        ("attribute", declaring, {"city": "Bonn"}),
        ("inherited_attribute", declaring, {"constructor": "DE"}),
        ("value", declaring, {"country": "IT"}),
        ("value_of_another", declaring, {"country": "1"}),
        ("value_of_other_case", declaring, {"country": "de"}),
        ("one_of_two", declaring, {"country": "DE", "release": "2"}),
    ):
        reason = "the plan does not declare it"
        yield f"bad_groups_{name}", {"reason": reason, "error": "ParameterError", "plan": plan, "groups": groups}


def bad_labels() -> Iterator[tuple[str, Record]]:
    """Label files that do not match the plan."""
    domain = Domain(["a", "b", "c"], other="c", separate_labels=True)
    good = plan_json("grr", domain, "1", Singletons(4))
    start = {"error": "DomainError"}
    yield "bad_labels_other_file", {"reason": "another file", **start, "plan": good, "label_file": "a\nb\nd\n"}
    yield "bad_labels_cut", {"reason": "a label is missing", **start, "plan": good, "label_file": "a\nb\n"}
    yield "bad_labels_blank_line", {"reason": "a blank line", **start, "plan": good, "label_file": "a\n\nb\nc\n"}
    size = spoilt(good, "domain/size", 4)
    yield "bad_labels_count", {"reason": "3 labels for 4 values", **start, "plan": size, "label_file": "a\nb\nc\n"}
    unknown = spoilt(good, "domain/other", "d")
    yield (
        "bad_labels_without_other",
        {"reason": "other is not there", **start, "plan": unknown, "label_file": "a\nb\nc\n"},
    )
    twice = spoilt(good, "domain/labels_sha256", hashlib.sha256(b"a\na\nc\n").hexdigest())
    yield "bad_labels_duplicate", {"reason": "a label twice", **start, "plan": twice, "label_file": "a\na\nc\n"}


def bad_reports() -> Iterator[tuple[str, Record]]:
    """Bytes that are not a report."""
    small, wide = plan_json("grr", Domain(300), "1", Singletons(300)), plan_json("ss", Domain(70), "1", Subsets(70, 19))
    bitmap = plan_json("ss", Domain(20), "1", Subsets(20, 5, "bitmap"))
    wide_bits = Subsets(70, 19).payload_bits
    for name, plan, report, reason in (
        ("empty", small, b"", "no bytes"),
        ("truncated", small, b"\x01", "one byte of two"),
        ("too_long", small, b"\x01\x00\x00", "three bytes for two"),
        ("padding", small, b"\x01\x02", "bit 9 of 9 bits"),
        ("payload_at_limit", small, struct.pack("<H", 300), "300 is not below 300"),
        ("payload_of_ones", small, struct.pack("<H", 511), "511 is not below 300"),
        ("word_unused", SS, unused_word(Subsets(10, 3)), "the second word in the interval of its subset"),
        ("word_padding", SS, bytes([1 << 7]), "a bit above 7"),
        ("wide_truncated", wide, bytes(6), "6 bytes for 56 bits and more"),
        ("wide_too_long", wide, bytes(wide_bits // 8 + 2), "a byte too many"),
        ("wide_of_ones", wide, b"\xff" * (wide_bits // 8 + 1), "padding of ones"),
        ("wide_padding", wide, bytes(wide_bits // 8) + bytes([1 << wide_bits % 8]), "the first bit of padding"),
        ("wide_unused", wide, unused_word(Subsets(70, 19)), "the second word in the interval of its subset"),
        ("bitmap_too_many_ones", bitmap, (0b111111).to_bytes(3, "little"), "6 ones for 5"),
        ("bitmap_too_few_ones", bitmap, (0b1111).to_bytes(3, "little"), "4 ones for 5"),
        ("bitmap_padding", bitmap, (0b1111 | 1 << 20).to_bytes(3, "little"), "a one beyond the last point"),
        ("cyclotomic_at_limit", COMPACT, bytes([52]), "52 is not below 4 * 13"),
        ("projective_at_limit", PGR, bytes([21]), "21 is not below 21"),
        ("unary_padding", OUE, bytes([0b10001]), "a bit for a fifth value of four"),
        ("unary_truncated", plan_json("oue", Domain(60), "1"), bytes(7), "7 bytes for 60 bits"),
        ("selector", MSS, bytes([3, 0]), "selector 3 of 3"),
        ("selector_short", MSS, bytes([3]), "selector 3 of 3"),
        ("modular_payload_at_limit", MSS, bytes([0 | 3 << 2]), "residue 3 modulo 3"),
        ("modular_word_unused", MSS, bytes([2 | unused_word(Subsets(7, 2))[0] << 2]), "the second word in an interval"),
        ("modular_padding", MSS, bytes([0 | 1 << 4]), "a bit above 2 + 2"),
        ("modular_too_long", MSS, bytes([0, 0]), "two bytes for four bits"),
        ("compact_at_limit", MSS_COMPACT, bytes([31]), "31 is not below 2 * 5 + 3 * 7"),
        ("ordered_at_limit", ORDERED, bytes([67]), "67 is not below 2 + 2 * 5 + 5 * 11"),
        ("prefixes_at_limit", PREFIXES, bytes([78]), "78 is not below 13 + 4 * 13 + 13"),
        ("tables_at_limit", TABLES, struct.pack("<H", 282), "282 is not below 3 + 3 * 7 + 6 * 43"),
        ("number_at_limit", NUMBER, bytes([5]), "5 is not below 5"),
    ):
        yield f"bad_report_{name}", {"reason": reason, "error": "ReportError", "plan": plan, "report": report.hex()}


def unused_word(design: Subsets) -> bytes:
    """The payload of the least word that no subset has."""
    for word in count():
        payload = payload_of(word, design.payload_bits)
        try:
            design.decode(payload)
        except ReportError:
            return payload.tobytes()
    raise AssertionError


def batch_bytes(plan: Record, count: int, body: bytes, magic: bytes = BATCH_MAGIC) -> bytes:
    """A batch with a correct checksum around any content."""
    content = struct.pack("<8s32sQ", magic, hashlib.sha256(canonical_json(plan)).digest(), count) + body
    return content + struct.pack("<I", zlib.crc32(content))


def bad_batches() -> Iterator[tuple[str, Record]]:
    """Bytes that are almost a batch."""
    good = batch_bytes(GRR, 3, (0 | 1 << 3 | 4 << 6).to_bytes(2, "little"))
    bits = plan_json("ss", Domain(20), "1", Subsets(20, 5, "bitmap"))
    residues = batch_bytes(MSS, 2, bytes([0 | 2 << 2, 2]))
    damaged = bytearray(good)
    damaged[48] ^= 1
    for name, plan, batch, reason in (
        ("foreign_fingerprint", GRR, batch_bytes(SS, 0, b""), "reports of another plan"),
        ("magic", GRR, batch_bytes(GRR, 0, b"", b"SUNZIRX\x01"), "another magic"),
        ("version_2", GRR, batch_bytes(GRR, 0, b"", b"SUNZIRB\x02"), "an unknown version"),
        ("cut_magic", GRR, good[:5], "cut in the magic"),
        ("cut_header", GRR, good[:40], "cut in the header"),
        ("cut_body", GRR, good[:49], "cut in the reports"),
        ("cut_checksum", GRR, good[:-1], "cut in the checksum"),
        ("trailing_byte", GRR, good + b"\x00", "a byte after the batch"),
        ("trailing_report", GRR, good + b"\x01", "a single report after the batch"),
        ("trailing_half_batch", GRR, good + good[:30], "half a batch after the batch"),
        ("checksum", GRR, good[:-1] + bytes([good[-1] ^ 1]), "a wrong checksum"),
        ("damaged", GRR, bytes(damaged), "a flipped bit"),
        ("count_too_large", GRR, batch_bytes(GRR, 6, good[48:50]), "6 reports need 3 bytes"),
        ("count_too_small", GRR, batch_bytes(GRR, 2, good[48:50]), "2 reports need 1 byte"),
        ("count_2_to_48", GRR, batch_bytes(GRR, 1 << 48, good[48:50]), "no batch is so large"),
        ("count_of_ones", GRR, batch_bytes(GRR, LARGEST_WORD, good[48:50]), "no batch is so large"),
        ("padding", GRR, batch_bytes(GRR, 1, bytes([0b1001])), "a bit after the last report"),
        ("payload_at_limit", GRR, batch_bytes(GRR, 2, bytes([1 | 5 << 3])), "5 is not below 5"),
        ("bitmap", bits, batch_bytes(bits, 1, (0b111111).to_bytes(3, "little")), "6 ones for 5"),
        ("selector", MSS, batch_bytes(MSS, 2, bytes([0 | 3 << 2, 0])), "selector 3 of 3"),
        (
            "selector_padding",
            MSS,
            batch_bytes(MSS, 2, bytes([residues[48] | 16, residues[49]])),
            "a bit after the selectors",
        ),
        (
            "modular_padding",
            MSS,
            batch_bytes(MSS, 2, bytes([residues[48], residues[49] | 128])),
            "a bit after the payloads",
        ),
        (
            "modular_payload_at_limit",
            MSS,
            batch_bytes(MSS, 2, bytes([residues[48], 3 | residues[49] & ~3])),
            "residue 3 modulo 3",
        ),
        (
            "modular_word_unused",
            MSS,
            batch_bytes(MSS, 2, bytes([residues[48], 2 | unused_word(Subsets(7, 2))[0] << 2])),
            "a word of no subset",
        ),
        ("compact_at_limit", MSS_COMPACT, batch_bytes(MSS_COMPACT, 1, bytes([31])), "31 is not below 31"),
    ):
        yield f"bad_batch_{name}", {"reason": reason, "error": "ReportError", "plan": plan, "batch": batch.hex()}


def _with_digest(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def bad_tallies() -> Iterator[tuple[str, Record]]:
    """Tallies that no reports can have."""
    digest = hashlib.sha256(canonical_json(GRR)).hexdigest()
    header = {"fingerprint": digest, "reports": "3", "blocks": [[5, 1]], "stored": None}
    good = tally_bytes(header, [1, 1, 0, 0, 1])
    subsets = {
        "fingerprint": hashlib.sha256(canonical_json(SS)).hexdigest(),
        "reports": "2",
        "blocks": [[10, 3]],
        "stored": None,
    }
    unary = {
        "fingerprint": hashlib.sha256(canonical_json(OUE)).hexdigest(),
        "reports": "2",
        "blocks": [[4, 0]],
        "stored": None,
    }
    for name, plan, data, reason in (
        ("magic", GRR, tally_bytes(header, [1, 1, 0, 0, 1], b"SUNZITX\x01"), "another magic"),
        ("version_2", GRR, tally_bytes(header, [1, 1, 0, 0, 1], b"SUNZITL\x02"), "an unknown version"),
        ("cut", GRR, good[:-1], "a byte is missing"),
        ("empty", GRR, b"", "no bytes"),
        ("damaged", GRR, good[:-40] + bytes([good[-40] ^ 1]) + good[-39:], "the digest does not match"),
        ("too_few_counts", GRR, tally_bytes(header, [1, 1, 1]), "3 numbers for 5 counters"),
        ("too_many_counts", GRR, tally_bytes(header, [1, 1, 0, 0, 1, 0]), "6 numbers for 5 counters"),
        ("negative", GRR, tally_bytes(header, [1, 1, 0, 2, -1]), "a negative count"),
        ("reports", GRR, tally_bytes(header, [1, 1, 0, 0, 2]), "4 counts for 3 reports"),
        ("indices", GRR, tally_bytes({**header, "stored": 2}, [4, 0, 1, 2]), "indices that do not ascend"),
        (
            "stored_zero",
            GRR,
            tally_bytes({**header, "stored": 4}, [0, 1, 2, 4, 1, 1, 0, 1]),
            "a count of 0 in a sparse tally",
        ),
        ("index_too_large", GRR, tally_bytes({**header, "stored": 2}, [0, 5, 1, 2]), "an index outside"),
        (
            "key_missing",
            GRR,
            tally_bytes({"fingerprint": digest, "reports": "3", "blocks": [[5, 1]]}, [1, 1, 0, 0, 1]),
            "no stored",
        ),
        ("header_spaces", GRR, tally_bytes(json.dumps(header).encode(), [1, 1, 0, 0, 1]), "spaces in the header"),
        (
            "header_key_order",
            GRR,
            tally_bytes(dict(sorted(header.items())), [1, 1, 0, 0, 1]),
            "the keys of the header in another order",
        ),
        ("header_unknown_key", GRR, tally_bytes({**header, "name": "x"}, [1, 1, 0, 0, 1]), "a fifth key"),
        (
            "fingerprint_upper_case",
            GRR,
            tally_bytes({**header, "fingerprint": digest.upper()}, [1, 1, 0, 0, 1]),
            "upper-case digits",
        ),
        (
            "fingerprint_type",
            GRR,
            tally_bytes({**header, "fingerprint": [digest]}, [1, 1, 0, 0, 1]),
            "an array for a text",
        ),
        ("reports_number", GRR, tally_bytes({**header, "reports": 3}, [1, 1, 0, 0, 1]), "a number for a text"),
        ("reports_leading_zero", GRR, tally_bytes({**header, "reports": "03"}, [1, 1, 0, 0, 1]), "a leading zero"),
        (
            "header_length",
            GRR,
            _with_digest(good[:8] + struct.pack("<I", 1 << 31) + good[12:-32]),
            "longer than the file",
        ),
        ("weight", SS, tally_bytes(subsets, [1] * 5 + [0] * 5), "5 points are no multiple of 3"),
        ("count_above_reports", SS, tally_bytes(subsets, [3, 1, 1, 1] + [0] * 6), "a point thrice in 2 reports"),
        ("unary_count_above_reports", OUE, tally_bytes(unary, [3, 0, 0, 0]), "a bit thrice in 2 reports"),
    ):
        yield f"bad_tally_{name}", {"reason": reason, "error": "TallyError", "plan": plan, "tally": data.hex()}
