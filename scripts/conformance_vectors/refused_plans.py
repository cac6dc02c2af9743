"""Plans that must be refused, each for one fault: one vector for every check that a client makes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from conformance_vectors.plans import (
    COMPACT,
    GRR,
    LABELS,
    MSS,
    MSS_COMPACT,
    OUE,
    PGR,
    PGR_PRIME,
    RAPPOR,
    SS,
    Record,
    plan_json,
    response_with,
    spoilt,
    threshold_for,
)
from conformance_vectors.refused_records import record_faults
from conformance_vectors.refused_texts import open_domain_faults
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.singletons import Singletons
from sunzi.domains.labels import Domain

BadPlan = tuple[str, str, str, Record | str | bytes]


def text_faults() -> Iterator[BadPlan]:
    """Text that is not a JSON plan at all."""
    text = json.dumps(GRR)
    yield "empty", "PlanError", "there is no JSON value", ""
    yield "cut", "PlanError", "the text ends too early", text[:-1]
    yield "trailing_text", "PlanError", "text after the value", text + "{}"
    yield "not_an_object", "PlanError", "a plan is an object", "[]"
    yield "byte_order_mark", "PlanError", "a byte order mark", "\ufeff" + text
    yield "not_utf8", "PlanError", "not UTF-8", json.dumps(LABELS).replace('"a"', '"\xe4"').encode("latin-1")
    yield "comment", "PlanError", "JSON has no comments", text + "// no"
    yield "trailing_comma", "PlanError", "JSON has no trailing commas", text[:-1] + ",}"
    yield "single_quotes", "PlanError", "JSON has double quotes", text.replace('"', "'")
    yield "control_character", "PlanError", "a raw line break in text", json.dumps(LABELS).replace('"a"', '"a\n"')
    yield "duplicate_key", "PlanError", "a key twice", text[:-1] + ', "version": 1}'
    yield "duplicate_escaped_key", "PlanError", "a key twice, once escaped", text[:-1] + ', "versio\\u006e": 1}'
    inner = text.replace('"points": 5', '"points": 5, "points": 5')
    yield "duplicate_inner_key", "PlanError", "a key twice in an inner object", inner
    yield "float_number", "PlanError", "a number with a fraction", text.replace('"points": 5', '"points": 5.0')
    yield "exponent_number", "PlanError", "a number with an exponent", text.replace('"points": 5', '"points": 5e0')
    yield "fraction_number", "PlanError", "half a point", text.replace('"points": 5', '"points": 5.5')
    yield "leading_zero_number", "PlanError", "not a number of JSON", text.replace('"points": 5', '"points": 05')
    yield "nan", "PlanError", "NaN", text.replace('"points": 5', '"points": NaN')
    yield "infinity", "PlanError", "Infinity", text.replace('"points": 5', '"points": Infinity')
    huge = text.replace('"points": 5', '"points": 9007199254740993')
    yield "integer_of_2_to_53", "PlanError", "integers of 2^53 and more are written as text", huge
    long_number = text.replace('"points": 5', '"points": ' + "9" * 4400)
    yield "integer_of_4400_digits", "PlanError", "integers of 2^53 and more are written as text", long_number
    yield "lone_surrogate", "PlanError", "not Unicode text", json.dumps(LABELS).replace('"a"', '"\\ud800"')


def outer_faults() -> Iterator[BadPlan]:
    """Faults in keys, version, epsilon and domain."""
    yield "format", "PlanError", "another format", spoilt(GRR, "format", "sunzi-plans")
    yield "format_missing", "PlanError", "a key is missing", spoilt(GRR, "format", ...)
    yield "version_2", "PlanError", "an unknown version", spoilt(GRR, "version", 2)
    yield "version_0", "PlanError", "an unknown version", spoilt(GRR, "version", 0)
    yield "version_text", "PlanError", "a version is an integer", spoilt(GRR, "version", "1")
    yield "version_true", "PlanError", "a version is an integer", spoilt(GRR, "version", True)
    yield "version_missing", "PlanError", "a key is missing", spoilt(GRR, "version", ...)
    yield "unknown_key", "PlanError", "a key that version 1 does not have", spoilt(GRR, "comment", "hello")
    yield "key_missing", "PlanError", "a key is missing", spoilt(GRR, "parameters", ...)
    yield "null", "PlanError", "null has no meaning", spoilt(LABELS, "domain/other", None)
    yield "protocol_unknown", "PlanError", "an unknown protocol", spoilt(GRR, "protocol", "olh")
    yield "protocol_type", "PlanError", "a protocol is a name", spoilt(GRR, "protocol", ["grr"])
    yield "parameters_type", "PlanError", "parameters are an object", spoilt(GRR, "parameters", [])
    for name, epsilon in (
        ("zero", "0"),
        ("negative", "-1"),
        ("unreduced", "2/4"),
        ("over_one", "1/1"),
        ("over_zero", "1/0"),
        ("decimal", "0.5"),
        ("exponent", "1e999999999"),
        ("leading_zero", "01"),
        ("plus_sign", "+1"),
        ("space", " 1"),
        ("foreign_digits", "\u0661"),
        ("too_large", "33"),
        ("just_too_large", "320000000000000001/10000000000000000"),
        ("long_terms", "1000000000000000001/1000000000000000002"),
        ("empty", ""),
        ("number", 1),
    ):
        yield f"epsilon_{name}", "PlanError", f"epsilon must not be {epsilon!r}", spoilt(GRR, "epsilon", epsilon)
    yield from domain_faults()


def domain_faults() -> Iterator[BadPlan]:
    """Invalid domains."""
    yield "domain_type", "PlanError", "a domain is an object", spoilt(GRR, "domain", 5)
    yield "domain_unknown_key", "PlanError", "an unknown key", spoilt(GRR, "domain/name", "colours")
    yield "domain_size_missing", "PlanError", "size is required", spoilt(LABELS, "domain/size", ...)
    yield "domain_size_0", "PlanError", "an empty domain", spoilt(GRR, "domain/size", 0)
    yield "domain_size_1", "PlanError", "a domain of one value", spoilt(GRR, "domain/size", 1)
    yield "domain_size_negative", "PlanError", "a negative size", spoilt(GRR, "domain/size", -5)
    yield "domain_size_text", "PlanError", "a size is an integer", spoilt(GRR, "domain/size", "5")
    yield "domain_size_true", "PlanError", "a size is an integer", spoilt(GRR, "domain/size", True)
    largest = plan_json("grr", Domain(1 << 30), "20", Singletons(1 << 31))
    yield "domain_size_too_large", "PlanError", "more than 2^30 values", spoilt(largest, "domain/size", (1 << 30) + 1)
    yield "labels_empty", "PlanError", "an empty domain", spoilt(GRR, "domain", {"size": 0, "labels": []})
    yield "labels_duplicate", "PlanError", "a label twice", spoilt(LABELS, "domain/labels", ["a", "c", "c"])
    yield "labels_too_many", "PlanError", "not as many labels as size", spoilt(LABELS, "domain/labels", [*"abcd"])
    yield "labels_too_few", "PlanError", "not as many labels as size", spoilt(LABELS, "domain/labels", ["a", "c"])
    yield "labels_type", "PlanError", "labels are an array", spoilt(LABELS, "domain/labels", "abc")
    yield "labels_number", "PlanError", "labels are an array", spoilt(GRR, "domain", {"size": 5, "labels": 5})
    yield "label_type", "PlanError", "a label is text", spoilt(LABELS, "domain/labels", ["a", 2, "c"])
    yield "other_unknown", "PlanError", "other is not a label", spoilt(LABELS, "domain/other", "d")
    yield "other_type", "PlanError", "other is text", spoilt(LABELS, "domain/other", 2)
    yield "other_without_labels", "PlanError", "other needs labels", spoilt(GRR, "domain/other", "c")
    both = spoilt(LABELS, "domain/labels_sha256", hashlib.sha256(b"a\nb\nc\n").hexdigest())
    yield "labels_twice", "PlanError", "labels and labels_sha256 exclude each other", both
    for name, digest in (("short", "ab" * 31), ("upper_case", "AB" * 32), ("type", 5)):
        record = {"size": 5, "labels_sha256": digest}
        yield f"labels_sha256_{name}", "PlanError", "64 lower-case digits", spoilt(GRR, "domain", record)


def group_faults() -> Iterator[BadPlan]:
    """Invalid groups."""
    for name, reason, groups in (
        ("type", "groups are an object", [["country", "DE"]]),
        ("text", "groups are an object", "country"),
        ("empty", "without groups the key is left out", {}),
        ("nine", "more than 8 attributes", {f"a{number}": ["x"] for number in range(9)}),
        ("attribute_empty", "an attribute has 1 to 32 characters", {"": ["DE"]}),
        ("attribute_long", "an attribute has 1 to 32 characters", {"a" * 33: ["DE"]}),
        ("attribute_upper_case", "an attribute is in lower case", {"Country": ["DE"]}),
        ("attribute_digit", "an attribute starts with a letter", {"1st": ["DE"]}),
        ("attribute_line", "an attribute is one word", {"country\n": ["DE"]}),
        ("values_text", "values are an array", {"country": "DE"}),
        ("values_object", "values are an array", {"country": {"DE": 1}}),
        ("values_none", "a group has values", {"country": []}),
        ("values_many", "more than 1000 values", {"n": [str(number) for number in range(1001)]}),
        ("values_twice", "a value twice", {"country": ["DE", "FR", "DE"]}),
        ("value_type", "a value is text", {"country": ["DE", 1]}),
        ("value_empty", "a value has 1 to 64 characters", {"country": [""]}),
        ("value_long", "a value has 1 to 64 characters", {"country": ["D" * 65]}),
        ("value_space", "a value is one word", {"country": ["D E"]}),
        ("value_comma", "a comma separates groups", {"country": ["D,E"]}),
        ("value_sign_first", "a value starts with a letter or digit", {"country": ["-DE"]}),
        ("value_control", "a control character", {"country": ["D\u0001"]}),
        ("value_line", "a value is one word", {"country": ["DE\n"]}),
        ("value_foreign", "a value is ASCII", {"country": ["Österreich"]}),
        ("value_foreign_digit", "a value is ASCII", {"country": ["\u0661"]}),
    ):
        yield f"groups_{name}", "PlanError", reason, {**GRR, "groups": groups}


def lifetime_faults() -> Iterator[BadPlan]:
    """Lifetime budgets that pay for nothing, or have another spelling."""
    for name, reason, lifetime in (
        ("below_epsilon", "it pays for no report", "1/2"),
        ("unreduced", "a fraction has one spelling", "4/2"),
        ("decimal", "a fraction has one spelling", "2.5"),
        ("number", "it is text", 4),
        ("too_large", "it is at most 32", "33"),
    ):
        yield f"lifetime_{name}", "PlanError", reason, {**GRR, "lifetime": lifetime}


def threshold_faults() -> Iterator[BadPlan]:
    """Integers that do not certify the privacy that the plan claims."""
    right = int(GRR["parameters"]["response"]["threshold"])
    path = "parameters/response/threshold"
    yield "threshold_plus_1", "PrivacyError", "one too large", spoilt(GRR, path, str(right + 1))
    yield "threshold_minus_1", "PrivacyError", "one too small", spoilt(GRR, path, str(right - 1))
    yield "threshold_of_larger_epsilon", "PrivacyError", "leaks more", spoilt(GRR, path, threshold_for(1, 5, "2"))
    yield "epsilon_understated", "PrivacyError", "the threshold is that of epsilon 1", spoilt(GRR, "epsilon", "1/2")
    yield "threshold_0", "PrivacyError", "always a lie", spoilt(GRR, path, "0")
    yield "threshold_2_to_64", "PrivacyError", "always the truth", spoilt(GRR, path, str(1 << 64))
    yield "threshold_says_nothing", "PrivacyError", "p = w/v", spoilt(GRR, path, str((1 << 64) // 5))
    tiny = spoilt(
        spoilt(plan_json("grr", Domain(1000), "1", Singletons(1000)), path, str((1 << 64) // 1000)),
        "epsilon",
        f"1/{10**18}",
    )
    yield "epsilon_too_small", "PrivacyError", "no threshold says anything", tiny
    for name, text in (
        ("number", 5),
        ("leading_zero", f"0{right}"),
        ("sign", f"+{right}"),
        ("hex", hex(right)),
        ("long", "9" * 41),
    ):
        yield f"threshold_{name}", "PlanError", "thresholds are decimal digits as text", spoilt(GRR, path, text)
    yield "threshold_missing", "PlanError", "a key is missing", spoilt(GRR, path, ...)
    for name, plan in (("oue", OUE), ("rappor", RAPPOR)):
        for side in ("true", "false"):
            path = f"parameters/{side}_threshold"
            value = int(plan["parameters"][f"{side}_threshold"])
            for word, shift in (("plus", 1), ("minus", -1)):
                bad = spoilt(plan, path, str(value + shift))
                yield f"{name}_{side}_{word}_1", "PrivacyError", "not the derived threshold", bad
        yield f"{name}_key_missing", "PlanError", "a key is missing", spoilt(plan, "parameters/false_threshold", ...)
        yield f"{name}_unknown_key", "PlanError", "an unknown key", spoilt(plan, "parameters/points", 4)
        yield f"{name}_too_large", "PlanError", "more than 2^24 values", spoilt(plan, "domain/size", (1 << 24) + 1)
    yield "oue_named_rappor", "PrivacyError", "the thresholds of another protocol", spoilt(OUE, "protocol", "rappor")
    swapped = {
        "true_threshold": RAPPOR["parameters"]["false_threshold"],
        "false_threshold": RAPPOR["parameters"]["true_threshold"],
    }
    yield "rappor_swapped", "PrivacyError", "the bits upside down", spoilt(RAPPOR, "parameters", swapped)


def design_faults() -> Iterator[BadPlan]:
    """Faults in singletons and subsets, and combinations of protocol and design that do not exist."""
    path = "parameters/response"
    yield "grr_with_subsets", "PlanError", "grr has singletons", spoilt(SS, "protocol", "grr")
    yield "ss_with_cyclotomic", "PlanError", "ss has subsets", spoilt(COMPACT, "protocol", "ss")
    yield "ss_compact_with_subsets", "PlanError", "ss-compact has no subsets", spoilt(SS, "protocol", "ss-compact")
    yield "ss_compact_with_projective", "PlanError", "ss-compact has no planes", spoilt(PGR, "protocol", "ss-compact")
    yield "pgr_with_subsets", "PlanError", "pgr has projective designs", spoilt(SS, "protocol", "pgr")
    yield "mss_with_cyclotomic", "PlanError", "mss has subsets", spoilt(MSS_COMPACT, "protocol", "mss")
    yield "mss_compact_with_subsets", "PlanError", "mss-compact has no subsets", spoilt(MSS, "protocol", "mss-compact")
    yield "mss_with_response", "PlanError", "mss has responses", spoilt(SS, "protocol", "mss")
    yield "ss_with_responses", "PlanError", "ss has one response", spoilt(MSS, "protocol", "ss")
    yield "response_type", "PlanError", "a response is an object", spoilt(GRR, path, "singletons")
    yield "response_unknown_key", "PlanError", "an unknown key", spoilt(GRR, f"{path}/block_size", 1)
    yield "design_unknown", "PlanError", "an unknown design", spoilt(GRR, f"{path}/design", "pairs")
    yield "design_type", "PlanError", "a design is a name", spoilt(GRR, f"{path}/design", [])
    yield "design_missing", "PlanError", "a key is missing", spoilt(GRR, f"{path}/design", ...)
    few = response_with(GRR["parameters"]["response"], "1", 1, 4, points=4)
    yield "fewer_points_than_values", "PlanError", "v < k", spoilt(GRR, path, few)
    many = response_with(GRR["parameters"]["response"], "30", 1, (1 << 31) + 1, points=(1 << 31) + 1)
    yield "singletons_too_many", "PlanError", "more than 2^31 points", spoilt(spoilt(GRR, "epsilon", "30"), path, many)
    yield "points_true", "PlanError", "points are an integer", spoilt(GRR, f"{path}/points", True)
    yield "points_text", "PlanError", "points are an integer", spoilt(GRR, f"{path}/points", "5")
    subsets = SS["parameters"]["response"]
    yield "block_size_0", "PlanError", "w = 0", spoilt(SS, f"{path}/block_size", 0)
    yield "block_size_all", "PlanError", "w = v", spoilt(SS, f"{path}/block_size", 10)
    yield "block_size_negative", "PlanError", "w < 0", spoilt(SS, f"{path}/block_size", -1)
    yield "code_unknown", "PlanError", "an unknown code", spoilt(SS, f"{path}/code", "gray")
    yield "code_type", "PlanError", "a code is a name", spoilt(SS, f"{path}/code", ["bitmap"])
    yield "code_missing", "PlanError", "a key is missing", spoilt(SS, f"{path}/code", ...)
    long = response_with(subsets, "1", 3, 1 << 20, points=1 << 20)
    yield "arithmetic_too_large", "PlanError", "2^20 points for the arithmetic code", spoilt(SS, path, long)
    wide = response_with(subsets, "1", 3, (1 << 24) + 1, points=(1 << 24) + 1, code="bitmap")
    yield "bitmap_too_large", "PlanError", "more than 2^24 points", spoilt(SS, path, wide)
    listed = [
        response_with(subsets, "1", 3, points, points=points, code="bitmap", block_size=3) for points in (16777183, 37)
    ]
    several = spoilt(MSS, "parameters/responses", listed)
    yield "subsets_too_many_points", "PlanError", "more than 2^24 points in total", several


def algebra_faults() -> Iterator[BadPlan]:
    """Invalid cyclotomic and projective designs."""
    path = "parameters/response"
    compact = COMPACT["parameters"]["response"]
    for name, generator in (("1", 1), ("of_low_order", 3), ("0", 0), ("minus_1", 12), ("13", 13), ("15", 15)):
        yield (
            f"generator_{name}",
            "PlanError",
            "not a primitive root of 13",
            spoilt(COMPACT, f"{path}/generator", generator),
        )
    yield "classes_5", "PlanError", "5 does not divide 12", spoilt(COMPACT, f"{path}/classes", 5)
    yield "classes_0", "PlanError", "no class", spoilt(COMPACT, f"{path}/classes", 0)
    both = response_with(compact, "1", 6, 13, union=[0, 0], block_size=6)
    yield "union_duplicate", "PlanError", "a class twice", spoilt(COMPACT, path, both)
    yield "union_out_of_range", "PlanError", "there is no class 4", spoilt(COMPACT, f"{path}/union", [4])
    yield "union_negative", "PlanError", "there is no class -1", spoilt(COMPACT, f"{path}/union", [-1])
    yield "union_empty", "PlanError", "no class", spoilt(COMPACT, f"{path}/union", [])
    only_zero = response_with(compact, "1", 1, 13, union=[], with_zero=True, block_size=1)
    yield "union_only_zero", "PlanError", "a block of 0 alone needs no classes", spoilt(COMPACT, path, only_zero)
    yield "union_type", "PlanError", "union is an array", spoilt(COMPACT, f"{path}/union", 0)
    yield "union_of_booleans", "PlanError", "classes are integers", spoilt(COMPACT, f"{path}/union", [False])
    yield "with_zero_type", "PlanError", "with_zero is a boolean", spoilt(COMPACT, f"{path}/with_zero", 0)
    everything = spoilt(spoilt(COMPACT, f"{path}/union", [0, 1, 2, 3]), f"{path}/with_zero", True)
    yield "union_of_everything", "PlanError", "w = v", spoilt(everything, f"{path}/block_size", 13)
    wrong = response_with(compact, "1", 4, 13, block_size=4)
    yield "cyclotomic_block_size", "PlanError", "the classes give w = 3", spoilt(COMPACT, path, wrong)
    one = plan_json("ss-compact", Domain(5), "1", Cyclotomic(5, 4))
    yield "cyclotomic_block_size_true", "PlanError", "w is an integer", spoilt(one, f"{path}/block_size", True)
    composite = response_with(compact, "1", 4, 15, points=15, classes=2, generator=2, block_size=7)
    composite["threshold"] = threshold_for(7, 15, "1")
    yield "cyclotomic_composite", "PlanError", "15 is not prime", spoilt(COMPACT, path, composite)
    large = response_with(
        compact, "1", 33554439, 67108879, points=67108879, classes=2, generator=3, block_size=33554439
    )
    yield "cyclotomic_too_large", "PlanError", "more than 2^26 points", spoilt(COMPACT, path, large)
    yield from projective_faults()


def projective_faults() -> Iterator[BadPlan]:
    """Invalid fields, and geometries that are too large."""
    path, plane = "parameters/response", PGR["parameters"]["response"]
    six = response_with(plane, "1", 7, 43, order=6)
    yield "order_6", "PlanError", "6 is not a prime power", spoilt(PGR, path, six)
    yield "order_1", "PlanError", "there is no field of one element", spoilt(PGR, f"{path}/order", 1)
    large = response_with(plane, "14", 1, 1048584, order=1048583, dimension=2, polynomial=[0, 1])
    yield "order_too_large", "PlanError", "more than 2^20 elements", spoilt(spoilt(PGR, "epsilon", "14"), path, large)
    for name, polynomial in (
        ("reducible", [1, 0, 1]),
        ("not_monic", [1, 1, 0]),
        ("of_degree_1", [0, 1]),
        ("of_degree_3", [1, 1, 0, 1]),
        ("out_of_range", [1, 3, 1]),
        ("negative", [1, -1, 1]),
        ("of_booleans", [1, True, 1]),
    ):
        yield (
            f"polynomial_{name}",
            "PlanError",
            "not an irreducible of degree 2",
            spoilt(PGR, f"{path}/polynomial", polynomial),
        )
    yield "polynomial_type", "PlanError", "a polynomial is an array", spoilt(PGR, f"{path}/polynomial", 7)
    prime = spoilt(PGR_PRIME, f"{path}/polynomial", [1, 1])
    yield "polynomial_of_prime_field", "PlanError", "that of a prime field is [0, 1]", prime
    yield "dimension_1", "PlanError", "fewer than 2 coordinates", spoilt(PGR, f"{path}/dimension", 1)
    yield "dimension_65", "PlanError", "more than 64 coordinates", spoilt(PGR, f"{path}/dimension", 65)
    points = (4**17 - 1) // 3
    many = response_with(plane, "1", (4**16 - 1) // 3, points, dimension=17)
    yield "projective_too_large", "PlanError", "2^31 points or more", spoilt(PGR, path, many)
    yield "projective_unknown_key", "PlanError", "an unknown key", spoilt(PGR, f"{path}/points", 21)
    small = spoilt(PGR, "domain/size", 22)
    yield "projective_fewer_points_than_values", "PlanError", "v < k", small


def modular_faults() -> Iterator[BadPlan]:
    """Moduli that are invalid or do not determine the histogram."""
    path = "parameters/responses"
    nine = response_with(MSS["parameters"]["responses"][0], "1", 1, 9, points=9)
    yield "modulus_composite", "PlanError", "9 is not prime", spoilt(MSS, f"{path}/0", nine)
    again = MSS["parameters"]["responses"][2]
    yield "moduli_duplicate", "PlanError", "7 twice", spoilt(MSS, f"{path}/0", again)
    yield "rank_lost", "PlanError", "2 + 4 + 6 < 14 - 1", spoilt(MSS, "domain/size", 14)
    yield "rank_lost_compact", "PlanError", "4 + 6 < 12 - 1", spoilt(MSS_COMPACT, "domain/size", 12)
    yield "responses_empty", "PlanError", "no modulus", spoilt(MSS, path, [])
    yield "responses_type", "PlanError", "responses are an array", spoilt(MSS, path, again)
    primes = [number for number in range(2, 1700) if all(number % divisor for divisor in range(2, number))][:257]
    singles = [{"design": "singletons", "points": prime, "threshold": threshold_for(1, prime, "5")} for prime in primes]
    yield "responses_too_many", "PlanError", "more than 256 moduli", spoilt(spoilt(MSS, "epsilon", "5"), path, singles)
    last = spoilt(MSS, f"{path}/2/threshold", str(int(again["threshold"]) + 1))
    yield "modular_threshold_plus_1", "PrivacyError", "the last response leaks more", last
    yield "modular_unknown_key", "PlanError", "an unknown key", spoilt(MSS, "parameters/moduli", [3, 5, 7])


def refused_plans() -> Iterator[tuple[str, Record]]:
    """All faulty plans."""
    for faults in (
        text_faults,
        outer_faults,
        group_faults,
        lifetime_faults,
        threshold_faults,
        design_faults,
        algebra_faults,
        modular_faults,
        record_faults,
        open_domain_faults,
    ):
        for name, error, reason, plan in faults():
            yield f"bad_plan_{name}", {"reason": reason, "error": error, **content_of(plan)}


def content_of(plan: Record | str | bytes) -> Record:
    """The plan's text, as hexadecimal digits if it is not UTF-8."""
    if isinstance(plan, bytes):
        return {"hex": plan.hex()}
    return {"text": plan if isinstance(plan, str) else json.dumps(plan, ensure_ascii=False, separators=(",", ":"))}
