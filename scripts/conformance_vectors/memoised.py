"""Reports whose noise is derived from a device's key, and the questions that devices keep."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from conformance_vectors.cases import Case, good_cases
from conformance_vectors.plans import Record
from conformance_vectors.record_cases import record_cases
from conformance_vectors.text_cases import text_cases
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.reports import encode_report
from sunzi.designs.singletons import Singletons
from sunzi.domains.ranges import OrderedDomain

MEMOISED = {
    "grr_k5": "browser",
    "grr_labels": "browser",
    "grr_labels_other": "Sprache, 言語 🏯",
    "grr_label_file": "colour",
    "grr_groups": "a\0b",
    "grr_largest": " ",
    "ss_k10": "browser",
    "ss_bitmap_k20": "browser",
    "ss_compact_k6_of_7": "browser",
    "ss_compact_union_out_of_order": "browser",
    "pgr_order4_k21": "browser",
    "rappor_labels_other": "browser",
    "oue_k9": "browser",
    "mss_k10": "browser",
    "mss_labels_other": "browser",
    "mss_compact_k8": "browser",
    "mss_compact_k250": "browser",
    "ordered_8_bins": "load time",
    "ordered_dates_clamp": "birthday",
    "ordered_labels_other": "mood",
    "number_5_points": "load time",
    "number_clamp": "load time",
    "tables_survey": "survey",
    "tables_awkward": "survey",
    "prefixes_letters": "query",
    "prefixes_tokens": "query",
}
"""Cases whose reports are memoised, and the attribute of each."""


def memoised() -> Iterator[tuple[str, Record]]:
    """All of them by file name."""
    bins = Case("grr_range", "grr", OrderedDomain(-1, 1, 7), "1", [Singletons(7)], [-1, -0.5, 0.0, 1], batch_rows=0)
    for case in chain(good_cases(), record_cases(), text_cases(), [bins]):
        if case.name in MEMOISED or case is bins:
            yield f"memoised_{case.name}", memoised_record(case, MEMOISED.get(case.name, "load time"))


def memoised_record(case: Case, attribute: str) -> Record:
    """A plan, a key, an attribute, and the report of every value and of what is outside the domain."""
    key = hashlib.sha256(case.name.encode()).digest()
    client = MemoisingClient(case.plan, key, attribute, max_epsilon=32)
    record: Record = {"plan": case.plan.to_json(), "fingerprint": case.plan.fingerprint}
    if case.domain.labels_sha256:
        record["label_file"] = "".join(f"{label}\n" for label in case.domain.labels or ())
    values = [case.value(number) for number in range(len(case.values) or min(case.domain.size, 4))]
    cases = [{"value": value, **memoised_case(client, case.domain.index(value))} for value in values]
    cases.append({"outside": True, **memoised_case(client, None)})
    return {**record, "key": key.hex(), "attribute": attribute, "cases": cases}


def memoised_case(client: MemoisingClient, index: Any) -> Record:
    """The seed, the bytes, and the kept question with the cell that answers it, if the plan has questions."""
    made = client.memoise(index)
    body = encode_report(client.plan.protocol.report_layout, made.report)
    kept = {} if made.kept is None else {"question": made.kept[0], "cell": made.kept[1]}
    return {**kept, "seed": made.seed.hex(), "report": body.hex()}
