"""docs/format.md is correct: its listings are the client's source, its examples run, its limits are the client's.

Fenced blocks are ``python`` (a listing, after a comment that names its source), ``pycon`` (doctests, one program),
``json NAME`` and ``hex NAME`` (examples, in ``EXAMPLES`` of the doctests). A JSON or hex example that no test checks
fails.
"""

import doctest
import io
import json
import re
import runpy
import shutil
from pathlib import Path

import pytest

import sunzi
from sunzi.client import client, epsilon, groups
from sunzi.client.designs import cyclotomic, finite_fields, projective, response, singletons, subset_code, subsets
from sunzi.client.device import addresses, memoising, uploads
from sunzi.client.domains import labels, ranges, records, texts
from sunzi.client.plan import Plan
from sunzi.client.protocols import modular, number, prefixes, unary, views
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan as OperatorsPlan
from sunzi.tally import Tally

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "conformance" / "v1"
PAGE = ROOT / "docs" / "format.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*) ?([\w-]*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
JSON_EXAMPLES = {name: text for kind, name, text in BLOCKS if kind == "json"}
HEX_EXAMPLES = {name: text for kind, name, text in BLOCKS if kind == "hex"}
EXAMPLES = ["grr", "mss-compact", "ordered", "prefixes"]
PROTOCOLS = (*sunzi.catalogue(), "ordered", "tables", "number", "prefixes")
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "make-format-listings"))


# --- the listings -----------------------------------------------------------------------------------------------------


def test_listings_are_the_source():
    assert SCRIPT["refreshed"](TEXT) == TEXT, "run scripts/make-format-listings"
    assert len(SCRIPT["LISTING"].findall(TEXT)) == sum(kind == "python" for kind, _, _ in BLOCKS) > 15


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("thresholds.py", "    term, total, index = SCALE, 0, 0"),
        ("designs/singletons.py", "        other = variates[0] + (variates[0] >= value)"),
        ("device/memoising.py", '_PURPOSE = b"sunzi memoised report, version 1\\0"'),
    ],
)
def test_a_change_of_the_source_is_noticed(file, line, tmp_path):
    shutil.copytree(ROOT / "src" / "sunzi" / "client", tmp_path / "src" / "sunzi" / "client")
    path = tmp_path / "src" / "sunzi" / "client" / file
    assert SCRIPT["refreshed"](TEXT, tmp_path) == TEXT
    source = path.read_text(encoding="utf-8")
    assert source.count(line) == 1
    path.write_text(source.replace(line, f"{line}  # changed"), encoding="utf-8")
    assert SCRIPT["refreshed"](TEXT, tmp_path) != TEXT


def test_a_name_that_is_gone_is_noticed(tmp_path):
    path = tmp_path / "some.py"
    path.write_text("FIRST = 1\n\n\ndef second():\n    return 2\n", encoding="utf-8")
    assert SCRIPT["listing"](path, ["second", "FIRST"]) == "def second():\n    return 2\nFIRST = 1\n"
    with pytest.raises(SystemExit, match="has no third"):
        SCRIPT["listing"](path, ["third"])


# --- the text ---------------------------------------------------------------------------------------------------------


def test_every_protocol_and_design_is_named():
    assert set(PROTOCOLS) == set(sunzi.client.plan._PROTOCOLS)
    for name in PROTOCOLS:
        assert f'`"{name}"`' in TEXT
    for name in response._DESIGNS:
        assert f"| `{name}` |" in TEXT


@pytest.mark.parametrize(
    ("stated", "constant"),
    [
        ("an integer k with 2 ≤ k ≤ 2^30", labels.MOST_VALUES == 2**30),
        ("It is at most 32, and a and b are at most 10^18", epsilon.LARGEST_EPSILON == 32),
        ("It is at most 32, and a and b are at most 10^18", epsilon._LARGEST_TERM == 10**18),
        ("| 2 ≤ v ≤ 2^31 |", singletons.MOST_POINTS == 2**31),
        ("2 ≤ v ≤ 2^24, 1 ≤ w < v; `code` is", subsets.MOST_POINTS == 2**24),
        ("only for v < 2^20", subset_code.MOST_POINTS == 2**20 - 1),
        ("of a plan have at most 2^24 points in total", modular.MOST_LISTED_POINTS == 2**24),
        ("`rappor` and `oue`: k ≤ 2^24", unary.MOST_VALUES == 2**24),
        ("as many as keep the product of their bounds below 2^32", subsets.MOST_PER_WORD == 2**32 - 1),
        ("a prime, 2 ≤ m ≤ 2^26", cyclotomic.MOST_POINTS == 2**26),
        ("2 ≤ q ≤ 2^20", finite_fields.LARGEST_ORDER == 2**20),
        ("at most 2^31 − 1", projective.MOST_POINTS == 2**31 - 1),
        ("an array of 1 … 256 block responses", modular.MOST_MODULI == 256),
        ("an array of 1 … 4096 views", views.MOST_VIEWS == 4096),
        ("an array of 1 … 64 objects", records.MOST_ATTRIBUTES == 64),
        ("`size` is the product of the attributes' sizes, below 2^53", records.MOST_RECORDS == 2**53 - 1),
        ("all shares add up to 2^32", views.SHARE_BITS == 32),
        ("2 ≤ v ≤ min(256, k)", number.MOST_GRID_POINTS == 256),
        ("2 ≤ `modulus` ≤ 2^26", prefixes.LARGEST_MODULUS == 2**26),
        ("an array of 2 … 2^15 distinct texts", texts.MOST_SYMBOLS == 2**15),
        ("`longest` is an integer L, 1 ≤ L ≤ 2^10", texts.LONGEST == 2**10),
        ("text of 1 to 200 code points", texts._LONGEST_NOTE == 200),
        ("There are at most 15 decimals and at most 15 significant digits", ranges.MOST_DIGITS == 15),
        ("text of 1 to 32 code points", ranges._LONGEST_UNIT == 32),
        ('`"days since 1970-01-01"` makes values dates', ranges.DAYS == "days since 1970-01-01"),
        ("an object of 1 … 8 attributes", groups.MOST_ATTRIBUTES == 8),
        ("an array of 1 … 1000 distinct values", groups.MOST_VALUES == 1000),
        ("`max_bits`, 2^20 by default", client.MOST_BITS == 2**20),
        ("`max_work`, 2^21 by default", client.MOST_WORK == 2**21),
        ("It has a *key*, 32 random bytes", memoising.KEY_BYTES == 32),
        ("the first 16 bytes of an HMAC", uploads.ID_BYTES == 16),
        ("the single-use token of 32 bytes", uploads.TOKEN_BYTES == 32),
        ("NAME is 1 to 64 of", addresses._COLLECTION.pattern == "[a-z0-9][a-z0-9_-]{0,63}"),
        ("a decimal number of at most 10 digits", addresses._EPOCH.pattern == "[1-9][0-9]{0,9}"),
    ],
)
def test_stated_limits_are_the_client_s(stated, constant):
    assert stated in " ".join(TEXT.split())
    assert constant


# --- the examples -----------------------------------------------------------------------------------------------------


def test_blocks_are_of_known_kinds():
    assert {kind for kind, _, _ in BLOCKS} == {"python", "pycon", "json", "hex"}
    assert TEXT.count("\n```") == 2 * len(BLOCKS), "a fence is not closed or has an unknown label"
    named = [name for kind, name, _ in BLOCKS if kind in ("json", "hex")]
    assert all(named), "an example has no name"
    assert len(set(named)) == len(named), "two examples have the same name"


@pytest.mark.parametrize("kind", [Plan, OperatorsPlan])
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_what_the_library_makes(name, kind):
    plan = kind.from_json(JSON_EXAMPLES[f"{name}-plan"])
    run = json.loads(JSON_EXAMPLES[f"{name}-run"])
    source = ScriptedSource([int(text) for text in run["words"]])
    batch = plan.client(source=source).report_batch(run["values"])
    assert source.remaining == 0
    assert batch == bytes.fromhex(HEX_EXAMPLES.get(f"{name}-batch", batch.hex()))
    if f"{name}-tally" in HEX_EXAMPLES and kind is OperatorsPlan:
        assert plan.tally(batch) == Tally.from_bytes(bytes.fromhex(HEX_EXAMPLES[f"{name}-tally"]))


def test_every_example_is_checked():
    assert set(JSON_EXAMPLES) == {f"{name}-{part}" for name in EXAMPLES for part in ("plan", "run")}
    assert set(HEX_EXAMPLES) == {"grr-batch", "grr-tally", "mss-compact-batch"}


def test_examples_are_vectors_too():
    """The same two plans are among the conformance vectors."""
    for example, vector in (("grr-plan", "grr_k5"), ("mss-compact-plan", "mss_compact_k8")):
        record = json.loads((VECTORS / f"{vector}.json").read_text(encoding="utf-8"))
        assert json.loads(JSON_EXAMPLES[example]) == record["plan"]


def test_doctests():
    examples = "\n".join(text for kind, _, text in BLOCKS if kind == "pycon")
    names = {"EXAMPLES": {**JSON_EXAMPLES, **HEX_EXAMPLES}}
    test = doctest.DocTestParser().get_doctest(examples, names, "docs/format.md", "docs/format.md", 0)
    assert len(test.examples) >= 20
    output = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=output.write)
    assert output.getvalue() == ""
