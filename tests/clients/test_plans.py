"""Python and JavaScript accept the same plans: thousands of new mutants of the conformance vectors in every run."""

import copy
import json
import random
import re
import secrets

import javascript
import pytest

from sunzi.client.errors import PlanError
from sunzi.plan import Plan

MUTANTS = 2000
# Plans whose checks take long, or that need a label file.
SKIPPED = re.compile("bad_|tally_|device_|memoised_|upload_|.*(largest|1000|untidy|label_file|k131|k300|k70|mss_k100)")
ODD_VALUES = [
    *(0, 1, -1, 2, 3, 5, 7, 8, 16, 2**30, 2**30 + 1, 2**31, 2**32, 2**53 - 1, True, False),
    *("", "0", "1", "-0", "00", "-1", "0.5", "0.50", "1e3", "1/2", "5000", "123456789012345", "1234567890123456"),
    *("0.123456789012345", "0.1234567890123456", "1.23456789012345", "1.234567890123456", "100000000000000.5"),
    *("m" * 32, "m" * 33, "😀" * 32, "\u0085", "a\u0000", "days since 1970-01-01"),
    *("singletons", "cyclotomic", "subsets", "projective", "grr", "mss-compact", "ordered", "tables", "number"),
    *("prefixes", "search", "count", "bytes", "letters", 4, 26, 256, 257, 2**10, 2**10 + 1, 2**26),
    *([], {}, [0], [1, 0], [0, 1], ["a"], {"size": 2}, {"low": "0", "high": "1"}),
]
KEYS = ["attributes", "clamp", "groups", "labels", "level", "longest", "name", "note", "other", "range", "role"]
KEYS += ["share", "sizes", "symbols", "unit", "unknown", "x"]


def originals():
    paths = (javascript.ROOT / "conformance" / "v1").glob("*.json")
    return [json.loads(path.read_text("utf-8"))["plan"] for path in sorted(paths) if not SKIPPED.match(path.stem)]


def places(value):
    """Every object or array inside a value, with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def mutant(generator, plan):
    """A copy in which one or two values are replaced, removed, added, moved or changed by 1."""
    changed = copy.deepcopy(plan)
    for _ in range(generator.choice([1, 1, 2])):
        found = list(places(changed))
        inside, key = generator.choice(found)
        action = generator.choice(["odd", "odd", "odd", "remove", "add", "near", "copy"])
        if action == "remove":
            inside.pop(key)
        elif action == "add" and isinstance(inside, dict):
            inside[generator.choice(KEYS)] = copy.deepcopy(generator.choice(ODD_VALUES))
        elif action == "near" and type(inside[key]) is int:
            inside[key] += generator.choice([-1, 1])
        elif action == "copy":
            other, place = generator.choice(found)
            inside[key] = copy.deepcopy(other[place])
        else:
            inside[key] = copy.deepcopy(generator.choice(ODD_VALUES))
    return json.dumps(changed, ensure_ascii=False)


def verdict(text):
    try:
        return Plan.from_json(text).fingerprint
    except PlanError:
        return None


@pytest.mark.usefixtures("client_directory")
def test_mutated_plans_are_accepted_by_both_or_by_none():
    seed = secrets.randbits(32)
    generator = random.Random(seed)
    plans = originals()
    mutants = [mutant(generator, generator.choice(plans)) for _ in range(MUTANTS)]
    expected = [verdict(text) for text in mutants]
    assert 20 < sum(each is not None for each in expected) < MUTANTS / 2
    for text, wanted, got in zip(mutants, expected, javascript.run_node("plans.mjs", mutants), strict=True):
        assert got == wanted, f"seed {seed}: {text}"
