"""Plans about numbers, dates and records that must be refused, each for one fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_vectors.plans import GRR, LABELS, NUMBER, ORDERED, OUE, PREFIXES, TABLES, Record, response_with, spoilt
from sunzi.domains.ranges import OrderedDomain

BadPlan = tuple[str, str, str, Record]


def record_faults() -> Iterator[BadPlan]:
    """All of them; every error is a PlanError unless a threshold is wrong."""
    for name, reason, plan in (*range_faults(), *attribute_faults(), *ordered_faults(), *table_faults()):
        yield name, "PlanError", reason, plan
    for name, reason, plan in number_faults():
        yield f"number_{name}", "PlanError", reason, plan
    yield from threshold_faults()


def range_faults() -> Iterator[tuple[str, str, Record]]:
    """Ends that are not decimal numbers in their only spelling, and other faults of a range."""
    for name, text in (
        ("exponent", "1e3"),
        ("leading_zero", "01"),
        ("plus_sign", "+1"),
        ("space", " 1"),
        ("empty", ""),
        ("point_first", ".5"),
        ("point_last", "5."),
        ("trailing_zero", "5.50"),
        ("only_zeros", "5.0"),
        ("16_digits", "1234567890123456"),
        ("16_significant_digits", "12345678.12345678"),
        ("16_decimals", "1.0000000000000001"),
        ("infinity", "Infinity"),
        ("nan", "NaN"),
        ("hex", "0x10"),
        ("underscore", "1_000"),
        ("comma", "0,5"),
        ("foreign_digits", "\u0661"),
        ("line_end", "5000\n"),
        ("number", 5000),
    ):
        yield f"range_{name}", "not a decimal number in its only spelling", spoilt(ORDERED, "domain/range/high", text)
    for name, text in (("minus_zero", "-0"), ("minus_zero_point", "-0.0"), ("two_signs", "--1")):
        yield f"range_{name}", "not a decimal number in its only spelling", spoilt(ORDERED, "domain/range/low", text)
    yield "range_empty_interval", "low is high", spoilt(ORDERED, "domain/range/low", "5000")
    yield "range_reversed", "low is above high", spoilt(ORDERED, "domain/range/low", "5001")
    yield "range_low_missing", "a key is missing", spoilt(ORDERED, "domain/range/low", ...)
    yield "range_unknown_key", "an unknown key", spoilt(ORDERED, "domain/range/step", 1)
    yield "range_type", "a range is an object", spoilt(ORDERED, "domain/range", ["0", "5000"])
    clamps: tuple[tuple[str, Any], ...] = (("false", False), ("1", 1), ("text", "true"))
    for name, clamp in clamps:
        yield f"range_clamp_{name}", "clamp is true or missing", spoilt(ORDERED, "domain/range/clamp", clamp)
    units: tuple[tuple[str, Any], ...] = (
        ("empty", ""),
        ("number", 1),
        ("long", "m" * 33),
        ("control_character", "m\u0085s"),
        ("line_end", "ms\n"),
    )
    for name, unit in units:
        yield f"range_unit_{name}", "a unit is printable text", spoilt(ORDERED, "domain/range/unit", unit)
    yield "range_size_1", "one bin", spoilt(NUMBER, "domain/size", 1)
    yield "range_size_too_large", "more than 2^30 bins", spoilt(NUMBER, "domain/size", (1 << 30) + 1)
    yield "range_size_text", "a size is an integer", spoilt(NUMBER, "domain/size", "1048576")
    yield "range_size_missing", "a key is missing", spoilt(NUMBER, "domain/size", ...)
    yield "range_with_labels", "a range has no labels", spoilt(ORDERED, "domain/labels", list("abcdefgh"))
    yield "range_with_other", "a range has no other", spoilt(ORDERED, "domain/other", "a")


def attribute_faults() -> Iterator[tuple[str, str, Record]]:
    """Faults in the attributes of records."""
    path = "domain/attributes"
    listed = TABLES["domain"]["attributes"]
    yield "attributes_type", "attributes are an array", spoilt(TABLES, path, {"version": listed[0]})
    yield "attributes_empty", "no attribute", spoilt(TABLES, path, [])
    yield "attributes_duplicate", "a name twice", spoilt(TABLES, f"{path}/1/name", "version")
    yield "attributes_size", "3 · 2 · 7 is not 41", spoilt(TABLES, "domain/size", 41)
    yield "attributes_size_text", "a size is an integer", spoilt(TABLES, "domain/size", "42")
    yield "attributes_size_missing", "a key is missing", spoilt(TABLES, "domain/size", ...)
    yield "attributes_with_labels", "an unknown key", spoilt(TABLES, "domain/labels", ["a", "b"])
    yield "attributes_with_range", "a range or attributes", spoilt(TABLES, "domain/range", ORDERED["domain"]["range"])
    yield "attribute_type", "an attribute is an object", spoilt(TABLES, f"{path}/0", "version")
    yield "attribute_unknown_key", "an unknown key", spoilt(TABLES, f"{path}/0/unit", "s")
    yield "attribute_domain_missing", "a key is missing", spoilt(TABLES, f"{path}/0/domain", ...)
    yield "attribute_domain_type", "a domain is an object", spoilt(TABLES, f"{path}/2/domain", 7)
    yield "attribute_domain_faulty", "a label twice", spoilt(TABLES, f"{path}/0/domain/labels", ["1", "2", "2"])
    yield "attribute_of_one_value", "one value", spoilt(TABLES, f"{path}/2/domain/size", 1)
    for name, text in (("empty", ""), ("control_character", "a\u0000b"), ("number", 1)):
        yield f"attribute_name_{name}", "a name is printable text", spoilt(TABLES, f"{path}/0/name", text)
    nested = {"size": 42, "attributes": listed}
    yield "attribute_nested", "a record in a record", spoilt(TABLES, f"{path}/0/domain", nested)
    filed = {"size": 3, "labels_sha256": "ab" * 32}
    yield "attribute_label_file", "an attribute's labels are in the plan", spoilt(TABLES, f"{path}/0/domain", filed)
    many = [{"name": f"a{number}", "domain": {"size": 2}} for number in range(65)]
    yield "attributes_too_many", "65 attributes", spoilt(TABLES, path, many)
    wide = spoilt(spoilt(TABLES, path, many[:53]), "domain/size", (1 << 53) - 1)
    yield "attributes_2_to_53", "2^53 records", wide
    yield "attributes_of_ordered", "ordered plans are about single values", spoilt(ORDERED, "domain", TABLES["domain"])
    yield "attributes_of_grr", "grr is about single values", spoilt(GRR, "domain", TABLES["domain"])
    yield "attributes_of_oue", "oue is about single values", spoilt(OUE, "domain", TABLES["domain"])
    yield "attributes_of_number", "a number is a single value", spoilt(NUMBER, "domain", TABLES["domain"])


def view_faults(plan: Record) -> Iterator[tuple[str, str, Record]]:
    """Faults of the views of any plan that has views."""
    views = plan["parameters"]["views"]
    path = "parameters/views"
    yield "views_type", "views are an array", spoilt(plan, path, {"0": views[0]})
    yield "views_empty", "no view", spoilt(plan, path, [])
    yield "view_type", "a view is an object", spoilt(plan, f"{path}/0", [])
    yield "view_unknown_key", "an unknown key", spoilt(plan, f"{path}/0/weight", 1)
    yield "view_response_missing", "a key is missing", spoilt(plan, f"{path}/0/response", ...)
    yield "view_share_missing", "a key is missing", spoilt(plan, f"{path}/0/share", ...)
    share = views[0]["share"]
    yield "shares_too_small", "the shares add up to 2^32 - 1", spoilt(plan, f"{path}/0/share", share - 1)
    yield "shares_too_large", "the shares add up to 2^32 + 1", spoilt(plan, f"{path}/0/share", share + 1)
    rest = share + views[1]["share"]
    none = spoilt(spoilt(plan, f"{path}/0/share", 0), f"{path}/1/share", rest)
    yield "share_0", "a view that is never asked", none
    negative = spoilt(spoilt(plan, f"{path}/0/share", -1), f"{path}/1/share", rest + 1)
    yield "share_negative", "a negative share", negative
    yield "share_text", "a share is an integer", spoilt(plan, f"{path}/0/share", str(share))
    few = response_with(views[0]["response"], plan["epsilon"], 1, 2, points=2)
    yield "view_with_few_points", "v is below the number of cells", spoilt(plan, f"{path}/2/response", few)
    subsets = {"design": "subsets", "points": 64, "block_size": 1, "code": "bitmap"}
    wrong = response_with(subsets, plan["epsilon"], 1, 64)
    yield "view_with_subsets", "views have no subsets", spoilt(plan, f"{path}/2/response", wrong)
    yield "parameters_unknown_key", "an unknown key", spoilt(plan, "parameters/levels", 3)


def ordered_faults() -> Iterator[tuple[str, str, Record]]:
    """Levels that do not rise to that of single values."""
    path = "parameters/views"
    for name, reason, plan in view_faults(ORDERED):
        yield f"ordered_{name}", reason, plan
    for name, level in (("0", 0), ("negative", -1), ("text", "1"), ("true", True), ("list", [1])):
        yield f"ordered_level_{name}", "a level is an integer from 1", spoilt(ORDERED, f"{path}/0/level", level)
    yield "ordered_level_twice", "levels do not rise", spoilt(ORDERED, f"{path}/1/level", 1)
    views = ORDERED["parameters"]["views"]
    yield "ordered_levels_fall", "levels do not rise", spoilt(ORDERED, path, [views[1], views[0], views[2]])
    last = spoilt(spoilt(ORDERED, path, views[:2]), f"{path}/1/share", 1 << 31)
    yield "ordered_last_level_missing", "no level of single values", last
    deep = OrderedDomain(0, 5000, 4).to_json()
    yield "ordered_level_too_deep", "4 values have 2 levels", spoilt(ORDERED, "domain", deep)
    for size in (7, 9, 12):
        yield f"ordered_{size}_bins", "not a power of two", spoilt(ORDERED, "domain/size", size)
    yield "ordered_with_attributes_key", "levels, not attributes", {**TABLES, "protocol": "ordered"}
    yield "ordered_with_response", "ordered plans have views", {**NUMBER, "protocol": "ordered"}


def table_faults() -> Iterator[tuple[str, str, Record]]:
    """Sizes that are not those of the attributes, and tables that do not exist."""
    for name, reason, plan in view_faults(TABLES):
        yield f"tables_{name}", reason, plan
    sizes: tuple[tuple[str, Any], ...] = (
        ("of_another_order", [2, 3, 7]),
        ("of_another_split", [6, 7]),
        ("of_another_product", [3, 2, 8]),
        ("with_1", [3, 2, 7, 1]),
        ("text", ["3", "2", "7"]),
        ("type", 42),
    )
    for name, value in sizes:
        yield f"tables_sizes_{name}", "not the sizes of the attributes", spoilt(TABLES, "parameters/sizes", value)
    yield "tables_sizes_missing", "a key is missing", spoilt(TABLES, "parameters/sizes", ...)
    path = "parameters/views"
    tables: tuple[tuple[str, Any], ...] = (
        ("empty", []),
        ("too_large", [3]),
        ("negative", [-1]),
        ("twice", [0, 0]),
        ("falling", [1, 0]),
        ("text", ["0"]),
        ("true", [True]),
        ("type", 0),
    )
    for name, table in tables:
        yield f"tables_attributes_{name}", "not rising attributes", spoilt(TABLES, f"{path}/0/attributes", table)
    twice = spoilt(TABLES, f"{path}/1/attributes", [0])
    yield "tables_table_twice", "a table twice", twice
    yield "tables_with_level", "attributes, not a level", {**ORDERED, "protocol": "tables"}
    single = spoilt(TABLES, "domain", {"size": 42})
    yield "tables_of_single_values", "tables are about records", single


def number_faults() -> Iterator[tuple[str, str, Record]]:
    """Too many points, another design, and a domain that is no range."""
    path = "parameters/response"
    response = NUMBER["parameters"]["response"]
    many = response_with(response, NUMBER["epsilon"], 1, 257, points=257)
    yield "257_points", "more than 256 points", spoilt(NUMBER, path, many)
    yield "more_points_than_steps", "5 points in a range of 4 steps", spoilt(NUMBER, "domain/size", 4)
    yield "of_labels", "a number has a range", spoilt(NUMBER, "domain", LABELS["domain"])
    yield "of_a_bare_size", "a number has a range", spoilt(NUMBER, "domain", {"size": 1 << 20})
    yield "with_views", "a number has one response", {**ORDERED, "protocol": "number"}
    cyclotomic = response_with(ORDERED["parameters"]["views"][1]["response"], NUMBER["epsilon"], 2, 5)
    yield "with_cyclotomic", "numbers have singletons", spoilt(NUMBER, path, cyclotomic)
    yield "unknown_key", "an unknown key", spoilt(NUMBER, "parameters/points", 5)


def threshold_faults() -> Iterator[BadPlan]:
    """Thresholds that leak more than the plan states."""
    for name, plan, path in (
        ("ordered", ORDERED, "parameters/views/2/response/threshold"),
        ("tables", TABLES, "parameters/views/1/response/threshold"),
        ("number", NUMBER, "parameters/response/threshold"),
        ("prefixes", PREFIXES, "parameters/views/2/response/threshold"),
    ):
        target: Any = plan
        for step in path.split("/"):
            target = target[int(step) if step.isdigit() else step]
        leaking = spoilt(plan, path, str(int(target) + 1))
        yield f"{name}_threshold_plus_1", "PrivacyError", "one too large", leaking
        yield f"{name}_epsilon_understated", "PrivacyError", "the thresholds leak more", spoilt(plan, "epsilon", "1/2")
