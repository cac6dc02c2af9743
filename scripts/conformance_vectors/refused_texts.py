"""Plans about texts that must be refused, each for one fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_vectors.plans import (
    GRR,
    LABELS,
    MSS_COMPACT,
    NUMBER,
    ORDERED,
    OUE,
    PREFIXES,
    SS,
    TABLES,
    Record,
    response_with,
    spoilt,
)
from conformance_vectors.refused_records import view_faults

BadPlan = tuple[str, str, str, Record]


def open_domain_faults() -> Iterator[BadPlan]:
    """All of them; wrong thresholds are with those of other views."""
    for name, reason, plan in (*symbol_faults(), *domain_faults(), *prefix_faults()):
        yield name, "PlanError", reason, plan
    for name, reason, plan in view_faults(PREFIXES):
        yield f"prefixes_{name}", "PlanError", reason, plan


def symbol_faults() -> Iterator[tuple[str, str, Record]]:
    """Alphabets that are none."""
    lists: tuple[tuple[str, Any], ...] = (
        ("name", "letters"),
        ("name_of_other_case", "Bytes"),
        ("type", 26),
        ("empty", []),
        ("one", ["?"]),
        ("duplicate", ["a", "b", "?", "a"]),
        ("empty_token", ["a", "", "?"]),
        ("number", ["a", 1, "?"]),
        ("nested", ["a", ["b"], "?"]),
    )
    for name, symbols in lists:
        yield f"symbols_{name}", "not distinct texts", spoilt(PREFIXES, "domain/symbols", symbols)
    unknowns: tuple[tuple[str, Any], ...] = (("no_symbol", "c"), ("empty", ""), ("number", 1), ("missing", ...))
    for name, unknown in unknowns:
        yield f"unknown_{name}", "unknown is one of the symbols", spoilt(PREFIXES, "domain/unknown", unknown)
    views = [
        spoilt(spoilt(view, "prefix/base", 300), "prefix/modulus", 300)
        | {"response": response_with(PREFIXES["parameters"]["views"][0]["response"], "1", 1, 300, points=300)}
        for view in PREFIXES["parameters"]["views"]
    ]
    octets = spoilt(PREFIXES, "parameters/views", views)
    octets["domain"] = {"symbols": "bytes", "longest": 3, "unknown": "?"}
    yield "unknown_of_bytes", "all texts are bytes", octets


def domain_faults() -> Iterator[tuple[str, str, Record]]:
    """Other faults of an open domain, and domains that do not belong to the protocol."""
    lengths: tuple[tuple[str, Any], ...] = (("0", 0), ("1025", 1025), ("text", "3"), ("true", True), ("missing", ...))
    for name, longest in lengths:
        yield f"longest_{name}", "longest is from 1 to 1024", spoilt(PREFIXES, "domain/longest", longest)
    yield "longest_of_another", "the views see 4 digits of 5", spoilt(PREFIXES, "domain/longest", 4)
    notes: tuple[tuple[str, Any], ...] = (
        ("empty", ""),
        ("number", 1),
        ("long", "n" * 201),
        ("control_character", "lower\ncase"),
    )
    for name, note in notes:
        yield f"note_{name}", "a note is printable text", spoilt(PREFIXES, "domain/note", note)
    yield "symbols_with_size", "an open domain has no size", spoilt(PREFIXES, "domain/size", 85)
    yield "symbols_with_labels", "an open domain has no labels", spoilt(PREFIXES, "domain/labels", ["a", "b"])
    yield "symbols_with_range", "symbols or a range", spoilt(PREFIXES, "domain/range", ORDERED["domain"]["range"])
    nested = spoilt(TABLES, "domain/attributes/0/domain", PREFIXES["domain"])
    yield "attribute_of_texts", "an attribute has a list of values", nested
    for plan in (GRR, OUE, SS, MSS_COMPACT, ORDERED, NUMBER, TABLES):
        name = plan["protocol"].replace("-", "_")
        yield f"symbols_of_{name}", "only prefixes are about texts", spoilt(plan, "domain", PREFIXES["domain"])
    for name, plan in (("labels", LABELS), ("a_bare_size", GRR), ("a_range", ORDERED), ("records", TABLES)):
        yield f"prefixes_of_{name}", "prefixes are about texts", spoilt(PREFIXES, "domain", plan["domain"])


def prefix_faults() -> Iterator[tuple[str, str, Record]]:
    """Maps that no planner makes."""
    path = "parameters/views/0/prefix"
    yield "prefix_type", "a prefix is an object", spoilt(PREFIXES, path, 2)
    yield "prefix_unknown_key", "an unknown key", spoilt(PREFIXES, f"{path}/seed", 1)
    for key in ("digits", "base", "modulus", "role"):
        yield f"prefix_{key}_missing", "a key is missing", spoilt(PREFIXES, f"{path}/{key}", ...)
    faults: tuple[tuple[str, str, Any], ...] = (
        ("digits_0", "digits", 0),
        ("digits_of_longer_texts", "digits", 5),
        ("digits_text", "digits", "2"),
        ("digits_true", "digits", True),
        ("base_of_fewer_tokens", "base", 4),
        ("base_above_modulus", "base", 14),
        ("base_text", "base", "6"),
        ("modulus_above_points", "modulus", 14),
        ("modulus_negative", "modulus", -13),
        ("modulus_text", "modulus", "13"),
        ("role_unknown", "role", "find"),
        ("role_inherited", "role", "constructor"),
        ("role_list", "role", ["search"]),
        ("role_of_less_than_the_text", "role", "count"),
    )
    for name, key, value in faults:
        yield f"prefix_{name}", f"{key} cannot be this", spoilt(PREFIXES, f"{path}/{key}", value)
    huge = spoilt(PREFIXES, f"{path}/modulus", (1 << 26) + 1)
    wide = PREFIXES["parameters"]["views"][0]["response"]
    points = 1 << 27
    huge = spoilt(huge, "parameters/views/0/response", response_with(wide, "1", 1, points, points=points))
    yield "prefix_modulus_above_2_to_26", "products must stay below 2^53", huge
    none = spoilt(PREFIXES, "parameters/views/2/prefix/role", "search")
    yield "prefixes_without_count", "no view counts", none
    short = spoilt(PREFIXES, "parameters/views/1/prefix/digits", 3)
    yield "prefixes_with_search_of_beginnings", "no view searches whole texts", short
    counting = PREFIXES
    for view in (0, 1):
        counting = spoilt(counting, f"parameters/views/{view}/prefix/role", "count")
    yield "prefixes_without_search", "no view searches", spoilt(counting, f"{path}/digits", 4)
    yield "prefixes_with_level", "prefixes, not levels", {**PREFIXES, "parameters": ORDERED["parameters"]}
