"""Vectors to reproduce byte for byte: plans, words and values with their reports, batches and tallies."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from conformance_vectors.cases import Case, good_cases
from conformance_vectors.memoised import memoised
from conformance_vectors.plans import GRR, MSS, MSS_COMPACT, NUMBER, ORDERED, OUE, PREFIXES, SS, TABLES, Record
from conformance_vectors.record_cases import record_cases
from conformance_vectors.text_cases import text_cases
from conformance_vectors.words import Awkward, Script, crafted_prefixes
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.device.uploads import Upload
from sunzi.domains.labels import Domain
from sunzi.numerics.randomness import ArraySource, ReproducibleSource
from sunzi.plan import Plan

SEED = 20_250_101


def accepted() -> Iterator[tuple[str, Record]]:
    """All accepted vectors by file name."""
    for case in chain(good_cases(), record_cases(), text_cases()):
        yield case.name, good_record(case)
        if case.domain.labels_sha256:
            yield f"{case.name}_untidy", good_record(case) | {"label_file": untidy_label_file(case.domain)}
    yield from tallies()
    yield from memoised()
    yield "device_ids", device_ids()
    yield "upload_bodies", upload_bodies(Plan.from_terms(GRR), [{}])
    groups = {"release": "125.0-beta+2", "constructor": "Z", "country": "FR"}
    yield "upload_bodies_groups", upload_bodies(declaring_plan(), [{"country": "DE"}, groups])


def good_record(case: Case) -> Record:
    """The plan, single reports and batches."""
    stream = ReproducibleSource([SEED, zlib.crc32(case.name.encode())])
    record: Record = {"plan": case.plan.to_json(), "fingerprint": case.plan.fingerprint}
    if case.domain.labels_sha256:
        record["label_file"] = "".join(f"{label}\n" for label in case.domain.labels or ())
    record["cases"] = list(single_records(case, stream))
    record["batches"] = list(batch_records(case, stream))
    return record


def untidy_label_file(domain: Domain) -> str:
    """A label file as a spreadsheet saves it, and without the end of its last line."""
    return "\ufeff" + " \t\r\n".join(domain.labels or ())


def single_records(case: Case, stream: ArraySource) -> Iterator[Record]:
    """Crafted reports, then random ones; each script holds one word more than the report uses."""
    for prefix in crafted_prefixes(case.plan, case.domain.index(case.value(0))):
        yield single_record(case, case.value(0), Script(prefix, stream), stream)
    for number in range(1, 3 if not case.values else len(case.values)):
        yield single_record(case, case.value(number), Script([], stream), stream)


def single_record(case: Case, value: Any, source: Script, stream: ArraySource) -> Record:
    """One report of ``value``."""
    report = case.plan.client(source=source).report(value)
    words = [*source.taken, int(stream.words(1)[0])]
    return {"value": value, "words": texts(words), "report": report.hex(), "words_used": len(source.taken)}


def batch_records(case: Case, stream: ArraySource) -> Iterator[Record]:
    """An empty batch, a batch of one, and batches with rejections in several rounds."""
    yield batch_record(case, 0, Script([], stream))
    if case.batch_rows:
        yield batch_record(case, 1, Script([], Awkward(stream, case.plan)))
        yield batch_record(case, case.batch_rows, Script([], Awkward(stream, case.plan)))


def batch_record(case: Case, rows: int, source: Script) -> Record:
    """One batch."""
    values = [case.value(row) for row in range(rows)]
    batch = case.plan.client(source=source).report_batch(values)
    return {"values": values, "words": texts(source.taken), "batch": batch.hex()}


def texts(words: Iterable[int]) -> list[str]:
    """Words as decimal strings."""
    return [str(word) for word in words]


def tally_bytes(header: Record | bytes, counts: Sequence[int], magic: bytes = b"SUNZITL\x01") -> bytes:
    """A tally with a correct digest around any content, with the correct header or a given one."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    body = magic + struct.pack("<I", len(text)) + text + struct.pack(f"<{len(counts)}q", *counts)
    return body + hashlib.sha256(body).digest()


def device_ids() -> Record:
    """The ids of a device's reports, by attribute and epoch."""
    key, plan = bytes(range(32)), Plan.from_terms(GRR)
    address = "https://collector.example/v1/collections"
    pairs = [
        ("browser", f"{address}/browsers/epochs/1"),
        ("browser", f"{address}/browsers/epochs/2"),
        ("browser", f"{address}/renamed/epochs/1"),
        ("language", f"{address}/browsers/epochs/1"),
        ("年齢", f"http://127.0.0.1:8765/v1/collections/age/epochs/{1 << 31}"),
        # Other spellings of addresses above, with the same ids, and addresses that look alike.
        ("browser", "HTTPS://Collector.EXAMPLE:443/v1/collections/browsers/epochs/1"),
        ("browser", "https://user:secret@collector.example:/v1//collections/browsers/epochs/1/"),
        ("browser", "http://collector.example:80/v1/collections/browsers/epochs/1"),
        ("browser", "http://collector.example/v1/collections/browsers/epochs/1"),
        ("browser", "https://collector.example:8443/Behind/v1/collections/browsers/epochs/1"),
        ("browser", "https://collector.example:8443/behind/v1/collections/browsers/epochs/1"),
        ("browser", "http://[2001:DB8:0::1]:8765/v1/collections/browsers/epochs/1"),
        ("browser", "http://[2001:db8::1]:8765/v1/collections/browsers/epochs/1"),
        ("browser", "https://collector.example./v1/collections/browsers/epochs/1"),
        ("browser", "https://Collector.EXAMPLE.:443/v1/collections/browsers/epochs/1"),
        ("年齢", f"http://127.0.0.1.:8765/v1/collections/age/epochs/{1 << 31}"),
        ("browser", "https://MÜNCHEN.example/v1/collections/browsers/epochs/1"),
        ("browser", "https://xn--mnchen-3ya.example./v1/collections/browsers/epochs/1"),
    ]
    cases = [
        {
            "attribute": name,
            "epoch": epoch,
            "id": MemoisingClient(plan, key, name, max_epsilon=1).report_id(epoch).hex(),
        }
        for name, epoch in pairs
    ]
    return {"plan": GRR, "key": key.hex(), "cases": cases}


def declaring_plan() -> Plan:
    """A plan that declares groups."""
    return next(case.plan for case in good_cases() if case.name == "grr_groups")


def upload_bodies(plan: Plan, chosen_groups: Iterable[dict[str, str]]) -> Record:
    """The bodies of uploads, with and without a token."""
    identity, token, report = bytes(range(16)), bytes(range(32)), b"\x01"
    cases = []
    for chosen_token in (None, token):
        for groups in chosen_groups:
            body = Upload(identity, report, chosen_token, groups).to_bytes()
            case = {"id": identity.hex(), "token": chosen_token and chosen_token.hex(), "groups": groups}
            cases.append({**{k: v for k, v in case.items() if v}, "report": report.hex(), "body": body.hex()})
    return {"plan": plan.to_json(), "cases": cases}


def tallies() -> Iterator[tuple[str, Record]]:
    """Batches and their tallies in both forms; a client may write either form and must read both."""
    stream = ReproducibleSource([SEED, 1])
    few = np.array([0, 1, 2, 3, 3, 3, 1])
    words = ["", "a", "ab", "abba", "abba", "abba", "a"]
    for name, plan_record, spread in (
        ("grr", GRR, 1),
        ("ss", SS, 1),
        ("oue", OUE, 1),
        ("mss", MSS, 1),
        ("mss_compact", MSS_COMPACT, 1),
        ("number", NUMBER, 300_000),
        ("ordered", ORDERED, 2),
        ("tables", TABLES, 10),
        ("prefixes", PREFIXES, None),
    ):
        plan = Plan.from_terms(plan_record)
        indices = plan.domain.indices(words) if spread is None else few * spread
        batch = plan.client(source=Script([], stream)).report_indices(indices)
        tally = plan.tally(batch)
        counts = [int(count) for count in tally.counts]
        filled = [index for index, count in enumerate(counts) if count]
        header = {
            "fingerprint": plan.fingerprint,
            "reports": "7",
            "blocks": [list(block) for block in tally.layout.blocks],
        }
        sparse = tally_bytes({**header, "stored": len(filled)}, [*filled, *(counts[index] for index in filled)])
        start = {"plan": plan_record, "batch": batch.hex()}
        yield f"tally_{name}", {**start, "tally": tally_bytes({**header, "stored": None}, counts).hex()}
        yield f"tally_{name}_sparse", {**start, "tally": sparse.hex()}
