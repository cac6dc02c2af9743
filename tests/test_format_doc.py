"""docs/format.md is correct: its listings form a complete client that is run against the library and all vectors.

Fenced blocks are ``python`` (run in order, one program), ``pycon`` (doctests of that program), ``json NAME`` (an
example, in ``EXAMPLES`` of the doctests) and ``hex NAME``. A JSON or hex example that no test checks fails.
"""

import doctest
import functools
import io
import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sunzi
from sunzi import wire
from sunzi.client.domains.labels import MOST_VALUES
from sunzi.client.epsilon import LARGEST_EPSILON
from sunzi.client.protocols.modular import MOST_MODULI
from sunzi.client.protocols.views import MOST_VIEWS
from sunzi.client.thresholds import (
    exponential_below,
    optimal_unary_thresholds,
    symmetric_unary_thresholds,
    truth_threshold,
)
from sunzi.designs import cyclotomic, projective, singletons, subsets
from sunzi.domains import records
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan
from sunzi.protocols.registry import find
from sunzi.protocols.views import SHARE_BITS
from sunzi.tally import Tally

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "conformance" / "v1"
TEXT = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*) ?([\w-]*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
PROGRAM = "\n\n".join(text for kind, _, text in BLOCKS if kind == "python")
JSON_EXAMPLES = {name: text for kind, name, text in BLOCKS if kind == "json"}
EXAMPLES = ["grr", "mss-compact", "ordered", "prefixes"]
HEX_EXAMPLES = {name: bytes.fromhex(text) for kind, name, text in BLOCKS if kind == "hex"}


COMPACT = {"cyclotomic", "singletons"}
ABOUT_RECORDS = {
    "ordered": COMPACT,
    "tables": COMPACT,
    "number": {"singletons"},
    "prefixes": {"cyclotomic", "projective", "singletons"},
}


@pytest.fixture(scope="module")
def document():
    """The names that the document's listings define."""
    namespace = {"__name__": "format_document"}
    exec(compile(PROGRAM, "docs/format.md", "exec"), namespace)
    namespace["load_plan"] = functools.cache(namespace["load_plan"])  # several tests read each plan
    return namespace


def vectors(prefix=""):
    return sorted(path.stem for path in VECTORS.glob(f"{prefix}*.json"))


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


GOOD = [name for name in vectors() if not name.startswith(("bad_", "tally_", "device_", "upload_"))]


def plan_of(document, record):
    plan = document["load_plan"](json.dumps(record["plan"]).encode())
    if "label_file" in record:
        plan = plan._replace(domain=document["attach_labels"](plan.domain, record["label_file"].encode()))
    return plan


def take_from(texts):
    words = [int(text) for text in reversed(texts)]
    return words, words.pop


def refuses(document, record, action):
    """The listing raises exactly the error class that the vector names."""
    with pytest.raises(document[record["error"]]) as caught:
        action()
    assert type(caught.value) is document[record["error"]]


# --- the listings against the vectors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOOD)
def test_listing_makes_the_reports(document, name):
    record = load(name)
    plan = plan_of(document, record)
    assert plan.fingerprint.hex() == record["fingerprint"]
    for case in record["cases"]:
        left, take = take_from(case["words"])
        [report] = document["randomize"](plan, [document["index_of"](plan.domain, case["value"])], take)
        encoded = document["encode_report"](plan, *report)
        assert encoded.hex() == case["report"]
        assert len(case["words"]) - len(left) == case["words_used"]
        assert document["decode_report"](plan, encoded) == report


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_listing_makes_the_batches(document, name):
    record = load(name)
    plan = plan_of(document, record)
    everything = []
    for case in record["batches"]:
        left, take = take_from(case["words"])
        indices = [document["index_of"](plan.domain, value) for value in case["values"]]
        reports = document["randomize"](plan, indices, take)
        assert document["encode_batch"](plan, reports).hex() == case["batch"]
        assert not left
        everything += reports
    together = bytes.fromhex("".join(case["batch"] for case in record["batches"]))
    assert document["decode_batches"](plan, together) == everything


@pytest.mark.parametrize("name", vectors("bad_plan_"))
def test_listing_refuses_the_plan(document, name):
    record = load(name)
    data = bytes.fromhex(record["hex"]) if "hex" in record else record["text"].encode()
    refuses(document, record, lambda: document["load_plan"](data))


@pytest.mark.parametrize("name", vectors("bad_client_"))
def test_listing_refuses_the_terms(document, name):
    record = load(name)
    plan = plan_of(document, record)
    largest = Fraction(record["max_epsilon"]) if "max_epsilon" in record else None
    pinned = bytes.fromhex(record["pinned"]) if "pinned" in record else None
    refuses(document, record, lambda: document["check_terms"](plan, largest, pinned))
    document["check_terms"](plan, plan.epsilon, plan.fingerprint)


@pytest.mark.parametrize("name", vectors("bad_value_"))
def test_listing_refuses_the_value(document, name):
    record = load(name)
    domain = plan_of(document, record).domain
    refuses(document, record, lambda: document["index_of"](domain, record["value"]))


@pytest.mark.parametrize("name", vectors("bad_groups_"))
def test_listing_refuses_the_groups(document, name):
    record = load(name)
    plan = plan_of(document, record)
    refuses(document, record, lambda: document["upload_body"](plan, bytes(16), None, record["groups"], b""))


def test_listing_makes_the_bodies_of_uploads(document):
    record = load("upload_bodies")
    plan = plan_of(document, record)
    for case in record["cases"]:
        identity, report, token = (bytes.fromhex(case.get(name, "")) for name in ("id", "report", "token"))
        body = document["upload_body"](plan, identity, token, case.get("groups", {}), report)
        assert body.hex() == case["body"]


@pytest.mark.parametrize("name", vectors("bad_labels_"))
def test_listing_refuses_the_labels(document, name):
    record = load(name)
    refuses(document, record, lambda: plan_of(document, record))


@pytest.mark.parametrize("name", vectors("bad_report_"))
def test_listing_refuses_the_report(document, name):
    record = load(name)
    plan = plan_of(document, record)
    refuses(document, record, lambda: document["decode_report"](plan, bytes.fromhex(record["report"])))


@pytest.mark.parametrize("name", vectors("bad_batch_"))
def test_listing_refuses_the_batch(document, name):
    record = load(name)
    plan = plan_of(document, record)
    refuses(document, record, lambda: document["decode_batches"](plan, bytes.fromhex(record["batch"])))


# --- the listings and the text against the library --------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", ["1", "1/3", "2", "32", "1/1000000000000000000", "999999999999999999/100000000000000000"]
)
def test_thresholds_are_the_library_s(document, epsilon):
    budget = document["parse_epsilon"](epsilon)
    assert document["exponential_below"](budget) == exponential_below(budget)
    assert document["unary_thresholds"]("oue", budget) == optimal_unary_thresholds(budget)
    assert document["unary_thresholds"]("rappor", budget) == symmetric_unary_thresholds(budget)
    assert document["truth_threshold"](1, 2, budget) == truth_threshold(1, 2, budget)


def test_words_are_the_library_s_on_unlikely_subsets(document):
    for points, chosen in ((200, range(40)), (200, range(160, 200)), (333, range(0, 333, 7)), (129, [0, 128])):
        design = subsets.Subsets(points, len(chosen))
        payload = document["encode_subset"](list(chosen), points)
        assert wire.payload_integers(design.encode(np.array([chosen]))) == [payload]
        assert document["decode_subset"](payload, points, len(chosen)) == list(chosen)
        assert document["word_bits"](points, len(chosen)) == design.payload_bits


@pytest.mark.parametrize("alphabet", ["letters", "bytes", ["ab", "a", "abc", "é", "😀", "?"]])
def test_texts_give_the_library_s_reports(document, alphabet):
    """Open domains: texts of all kinds, each report from the same words."""
    made = sunzi.make_plan("prefixes", sunzi.OpenDomain(alphabet, 5, note="as typed"), epsilon=2, cells=1000)
    plan = document["load_plan"](made.canonical)
    generator = np.random.default_rng(5)
    for text in ("", "abcab", "naïve", "longer than planned", "\ud83d\ude00", "a\ud800b", "zz", "\n"):
        digits = document["index_of"](plan.domain, text)
        assert digits == tuple(digit for digit in made.domain.index(text) if digit)
        words = generator.integers(0, 1 << 64, 60, dtype=np.uint64)
        [report] = document["randomize"](plan, [digits], take_from(words.tolist())[1])
        source = ScriptedSource(words, 64)
        assert document["encode_report"](plan, *report) == made.client(source=source).report(text)
    with pytest.raises(document["DomainError"]):
        document["index_of"](plan.domain, 3)


def test_tables_name_every_protocol_and_design(document):
    designs = {name: set(find(name).designs) for name in sunzi.catalogue() if hasattr(find(name), "designs")}
    assert document["DESIGNS_OF"] == {**designs, **ABOUT_RECORDS}
    assert set(document["BLOCK_DESIGNS"]) == set().union(*designs.values())
    for name in (*sunzi.catalogue(), *ABOUT_RECORDS):
        assert f'`"{name}"`' in TEXT


@pytest.mark.parametrize(
    ("stated", "constant"),
    [
        ("an integer k with 2 ≤ k ≤ 2^30", MOST_VALUES == 2**30),
        ("It is at most 32", LARGEST_EPSILON == 32),
        ("| 2 ≤ v ≤ 2^31 |", singletons.MOST_POINTS == 2**31),
        ("2 ≤ v ≤ 2^24, 1 ≤ w < v; `code` is", subsets.MOST_POINTS == 2**24),
        ("only for v < 2^20", subsets.MOST_CODED == 2**20 - 1),
        ("a prime, 2 ≤ m ≤ 2^26", cyclotomic.MOST_POINTS == 2**26),
        ("2 ≤ q ≤ 2^20", projective.LARGEST_ORDER == 2**20),
        ("at most 2^31 − 1", projective.MOST_POINTS == 2**31 - 1),
        ("an array of 1 … 256 block responses", MOST_MODULI == 256),
        ("an array of 1 … 4096 views", MOST_VIEWS == 4096),
        ("an array of 1 … 64 objects", records.MOST_ATTRIBUTES == 64),
        ("`size` is the product of the attributes' sizes, below 2^53", records.MOST_RECORDS == 2**53 - 1),
        ("all shares add up to 2^32", SHARE_BITS == 32),
    ],
)
def test_stated_limits_are_the_library_s(stated, constant):
    assert stated in " ".join(TEXT.split())
    assert constant


# --- the examples -----------------------------------------------------------------------------------------------------


def test_blocks_are_of_known_kinds():
    assert {kind for kind, _, _ in BLOCKS} == {"python", "pycon", "json", "hex"}
    assert TEXT.count("\n```") == 2 * len(BLOCKS), "a fence is not closed or has an unknown label"
    named = [name for kind, name, _ in BLOCKS if kind in ("json", "hex")]
    assert all(named), "an example has no name"
    assert len(set(named)) == len(named), "two examples have the same name"


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_what_the_library_makes(name):
    plan = Plan.from_json(JSON_EXAMPLES[f"{name}-plan"])
    run = json.loads(JSON_EXAMPLES[f"{name}-run"])
    source = ScriptedSource([int(text) for text in run["words"]])
    batch = plan.client(source=source).report_batch(run["values"])
    assert source.remaining == 0
    assert batch == HEX_EXAMPLES.get(f"{name}-batch", batch)
    if f"{name}-tally" in HEX_EXAMPLES:
        assert plan.tally(batch) == Tally.from_bytes(HEX_EXAMPLES[f"{name}-tally"])


def test_every_example_is_checked():
    assert set(JSON_EXAMPLES) == {f"{name}-{part}" for name in EXAMPLES for part in ("plan", "run")}
    assert set(HEX_EXAMPLES) == {"grr-batch", "grr-tally", "mss-compact-batch"}


def test_examples_are_vectors_too():
    """The same two plans are among the conformance vectors."""
    for example, vector in (("grr-plan", "grr_k5"), ("mss-compact-plan", "mss_compact_k8")):
        assert json.loads(JSON_EXAMPLES[example]) == load(vector)["plan"]


def test_table_of_vectors_names_every_kind_of_file():
    stated = set(re.findall(r"`((?:bad_)?[a-z]+_)\*`", TEXT)) | set(
        re.findall("`(device_|upload_)(?:ids|bodies)`", TEXT)
    )
    kinds = {
        "bad_plan_",
        "bad_client_",
        "bad_value_",
        "bad_groups_",
        "bad_labels_",
        "bad_report_",
        "bad_batch_",
        "bad_tally_",
        "tally_",
        "device_",
        "upload_",
    }
    assert kinds < stated
    assert all(any(name.startswith(kind) for kind in kinds) for name in vectors() if name not in GOOD)


def test_doctests(document):
    examples = "\n".join(text for kind, _, text in BLOCKS if kind == "pycon")
    names = {**document, "EXAMPLES": {name: text.encode() for name, text in JSON_EXAMPLES.items()}}
    test = doctest.DocTestParser().get_doctest(examples, names, "docs/format.md", "docs/format.md", 0)
    assert len(test.examples) >= 20
    output = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=output.write)
    assert output.getvalue() == ""
