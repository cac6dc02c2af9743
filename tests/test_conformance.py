"""Every vector of conformance/v1: the exact bytes if valid, the exact error class if invalid.

What a client does is tested on the client that devices run (``sunzi.client``) and on the operator's side, which reads
reports, batches and tallies alone.
"""

import io
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import minimal_client
import pytest

import sunzi
from sunzi.client import errors
from sunzi.client import plan as trusted
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.device.uploads import Upload
from sunzi.client.groups import chosen_groups
from sunzi.client.reports import encode_report
from sunzi.client.strict_json import parse_json
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan
from sunzi.tally import Tally

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "conformance" / "v1"
MINIMAL = (ROOT / "conformance" / "minimal.txt").read_text(encoding="utf-8").split()
OTHERS = ("ordered", "tables", "number", "prefixes")
GOOD_PREFIXES = tuple(name.replace("-", "_") + "_" for name in (*sunzi.catalogue(), *OTHERS))
both_sides = pytest.mark.parametrize("kind", [trusted.Plan, Plan], ids=["client", "operator"])


def names(prefix):
    return sorted(path.stem for path in VECTORS.glob(f"{prefix}*.json"))


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


GOOD = sorted({name for prefix in GOOD_PREFIXES for name in names(prefix)})


def plan_of(record, directory=None, kind=Plan):
    """The record's plan, with its labels attached if they are in a file."""
    plan = kind.from_json(json.dumps(record["plan"]))
    if "label_file" not in record:
        return plan
    path = directory / "labels.txt"
    path.write_bytes(record["label_file"].encode())
    return plan.with_labels(path)


def scripted(texts):
    return ScriptedSource([int(text) for text in texts])


def least_words(plan, rows):
    """The largest number of words of these reports without rejections; at most one random word in 2^32 is rejected."""
    if plan.protocol.first_word is None:
        return rows * int(plan.protocol.words_per_report)
    return rows * (1 + max(response.words_per_report for response in plan.protocol.responses))


class CountingSource(ScriptedSource):
    """Counts requests: the first of a draw is its matrix, each further one a round of replacements."""

    requests = 0

    def array(self, count):
        self.requests += 1
        return super().array(count)


def replacement_rounds(plan, record):
    """The largest number of rounds in any batch of a plan with one response."""
    rounds = []
    for case in record["batches"]:
        source = CountingSource([int(text) for text in case["words"]])
        plan.client(source=source).report_batch(case["values"])
        rounds.append(source.requests - 1)
    return max(rounds)


def responses_in(parameters):
    if "views" in parameters:
        return [view["response"] for view in parameters["views"]]
    return parameters.get("responses", [parameters["response"]] if "response" in parameters else [])


def expect(error, action):
    with pytest.raises(errors.SunziError) as caught:
        action()
    found = type(caught.value)
    # Which protocols are installed is no matter of the format, so vectors know a single error for a plan.
    assert (errors.PlanError if found is errors.UnknownProtocolError else found).__name__ == error


# --- what a client does -----------------------------------------------------------------------------------------------


@both_sides
@pytest.mark.parametrize("name", GOOD)
def test_plan(name, kind, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path, kind)
    assert plan.fingerprint == record["fingerprint"]
    assert plan.to_json() == record["plan"]
    assert parse_json(plan.canonical) == record["plan"]
    assert plan.client(max_epsilon=plan.epsilon, fingerprint=record["fingerprint"]).is_private
    expect("PrivacyError", lambda: plan.client(max_epsilon=plan.epsilon * Fraction(999, 1000)))


@both_sides
@pytest.mark.parametrize("name", GOOD)
def test_single_reports(name, kind, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path, kind)
    for case in record["cases"]:
        source = scripted(case["words"])
        report = plan.client(source=source).report(case["value"])
        assert report.hex() == case["report"]
        assert len(case["words"]) - source.remaining == case["words_used"]


@both_sides
@pytest.mark.parametrize("name", GOOD)
def test_batches(name, kind, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path, kind)
    for case in record["batches"]:
        source = scripted(case["words"])
        batch = plan.client(source=source).report_batch(case["values"])
        assert batch.hex() == case["batch"]
        assert source.remaining == 0


@both_sides
@pytest.mark.parametrize("name", names("memoised_"))
def test_memoised(name, kind, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path, kind)
    assert plan.fingerprint == record["fingerprint"]
    client = MemoisingClient(plan, bytes.fromhex(record["key"]), record["attribute"], max_epsilon=32)
    for case in record["cases"]:
        index = None if case.get("outside") else plan.domain.index(case["value"])
        made = client.memoise(index)
        assert made.seed.hex() == case["seed"]
        assert made.kept == ((case["question"], case["cell"]) if "question" in case else None)
        assert encode_report(plan.protocol.report_layout, made.report).hex() == case["report"]
        assert client.report_index(index).hex() == case["report"]


@both_sides
@pytest.mark.parametrize("name", names("bad_plan_"))
def test_bad_plan(name, kind):
    record = load(name)
    data = bytes.fromhex(record["hex"]) if "hex" in record else record["text"].encode()
    expect(record["error"], lambda: kind.from_json(data))


@both_sides
@pytest.mark.parametrize("name", names("bad_client_"))
def test_bad_client(name, kind):
    record = load(name)
    plan = plan_of(record, kind=kind)
    renamed = {"max_epsilon": "max_epsilon", "pinned": "fingerprint", "max_bits": "max_bits", "max_work": "max_work"}
    terms = {renamed[key]: value for key, value in record.items() if key in renamed}
    expect(record["error"], lambda: plan.client(**terms))
    accepted = {"max_epsilon": plan.epsilon, "fingerprint": plan.fingerprint, **record.get("accepted", {})}
    assert plan.client(**accepted).is_private
    if not {"pinned", "max_epsilon"} & set(record):
        memoised = {"max_epsilon": 32, **terms}
        expect(record["error"], lambda: MemoisingClient(plan, bytes(32), "a", **memoised))


@both_sides
@pytest.mark.parametrize("name", names("bad_value_"))
def test_bad_value(name, kind):
    record = load(name)
    client = plan_of(record, kind=kind).client()
    expect(record["error"], lambda: client.report(record["value"]))
    expect(record["error"], lambda: client.report_batch([record["value"]]))


@both_sides
@pytest.mark.parametrize("name", names("bad_labels_"))
def test_bad_label_file(name, kind, tmp_path):
    record = load(name)
    assert kind.from_json(json.dumps(record["plan"]))
    expect(record["error"], lambda: plan_of(record, tmp_path, kind))


def test_device_ids():
    record = load("device_ids")
    plan, key = plan_of(record, kind=trusted.Plan), bytes.fromhex(record["key"])
    for case in record["cases"]:
        client = MemoisingClient(plan, key, case["attribute"], max_epsilon=32)
        assert client.report_id(case["epoch"]).hex() == case["id"]


@pytest.mark.parametrize("name", names("bad_groups_"))
def test_bad_groups(name):
    record = load(name)
    plan = plan_of(record, kind=trusted.Plan)
    expect(record["error"], lambda: chosen_groups(plan.groups, record["groups"]))


@pytest.mark.parametrize("name", names("upload_bodies"))
def test_upload_bodies(name):
    record = load(name)
    plan = plan_of(record, kind=trusted.Plan)
    for case in record["cases"]:
        identity, report, token = (bytes.fromhex(case.get(name, "")) for name in ("id", "report", "token"))
        groups = case.get("groups", {})
        assert len(chosen_groups(plan.groups, groups)) == len(groups)
        upload = Upload(identity, report, token or None, groups)
        assert upload.to_bytes().hex() == case["body"]
        assert Upload.from_bytes(bytes.fromhex(case["body"])) == upload


# --- what an operator does --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOOD)
def test_reports_and_batches_are_read(name, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path)
    for case in record["cases"]:
        report = bytes.fromhex(case["report"])
        assert plan.client(source=scripted(case["words"])).reports([case["value"]]) == [report]
        assert plan.tally([report]).reports == 1
    for case in record["batches"]:
        single = plan.client(source=scripted(case["words"])).reports(case["values"])
        assert plan.tally(io.BytesIO(bytes.fromhex(case["batch"]))) == plan.tally(single)
    both = b"".join(bytes.fromhex(case["batch"]) for case in record["batches"])
    assert plan.tally(io.BytesIO(both)).reports == sum(len(case["values"]) for case in record["batches"])


@pytest.mark.parametrize("name", names("bad_report_"))
def test_bad_report(name):
    record = load(name)
    plan = plan_of(record)
    expect(record["error"], lambda: plan.tally([bytes.fromhex(record["report"])]))


@pytest.mark.parametrize("name", names("bad_batch_"))
def test_bad_batch(name):
    record = load(name)
    plan = plan_of(record)
    batch = bytes.fromhex(record["batch"])
    expect(record["error"], lambda: plan.tally(io.BytesIO(batch)))
    expect(record["error"], lambda: plan.tally(batch))


@pytest.mark.parametrize("name", names("tally_"))
def test_tally(name):
    record = load(name)
    plan = plan_of(record)
    tally = Tally.from_bytes(bytes.fromhex(record["tally"]))
    assert tally == plan.tally(bytes.fromhex(record["batch"]))
    assert Tally.from_bytes(tally.to_bytes()) == tally
    labels = {"labels": ["a"]} if plan.domain.is_open else {}
    assert plan.estimate(tally, **labels).reports == tally.reports


@pytest.mark.parametrize("name", names("bad_tally_"))
def test_bad_tally(name):
    record = load(name)
    expect(record["error"], lambda: Tally.from_bytes(bytes.fromhex(record["tally"])))


# --- the minimal profile ----------------------------------------------------------------------------------------------


def refused_by_minimal_client(error, action):
    with pytest.raises(minimal_client.RefusedError) as caught:
        action()
    assert type(caught.value).__name__ == error


@pytest.mark.parametrize("name", MINIMAL)
def test_minimal_client_passes_the_profile(name):
    record, load_plan = load(name), minimal_client.Plan
    text = json.dumps(record.get("plan")).encode()
    if name.startswith("bad_plan_"):
        data = bytes.fromhex(record["hex"]) if "hex" in record else record["text"].encode()
        refused_by_minimal_client(record["error"], lambda: load_plan(data))
    elif name.startswith("bad_client_"):
        assert load_plan(text)
        terms = {key: record[key] for key in ("max_epsilon", "pinned") if key in record}
        refused_by_minimal_client(record["error"], lambda: load_plan(text, **terms))
    elif name.startswith("bad_value_"):
        refused_by_minimal_client(record["error"], lambda: load_plan(text).index(record["value"]))
    elif name.startswith("memoised_"):
        device = minimal_client.Device(load_plan(text), bytes.fromhex(record["key"]), record["attribute"])
        for case in record["cases"]:
            value = case.get("value", object())
            assert device.seed(value)[0].hex() == case["seed"]
            assert device.report(value).hex() == case["report"]
    elif name == "device_ids":
        for case in record["cases"]:
            device = minimal_client.Device(load_plan(text), bytes.fromhex(record["key"]), case["attribute"])
            assert device.report_id(case["epoch"]).hex() == case["id"]
    elif name == "upload_bodies":
        for case in record["cases"]:
            token = bytes.fromhex(case["token"]) if "token" in case else None
            body = minimal_client.upload_body(bytes.fromhex(case["id"]), token, bytes.fromhex(case["report"]))
            assert body.hex() == case["body"]
    else:
        plan = load_plan(text, max_epsilon="32", pinned=record["fingerprint"])
        for case in record["cases"]:
            words = iter([int(word) for word in case["words"]])
            assert plan.report(plan.index(case["value"]), words.__next__).hex() == case["report"]
            assert len(list(words)) == len(case["words"]) - case["words_used"]


@pytest.mark.parametrize("name", sorted({*GOOD, *names("memoised_")} - set(MINIMAL)))
def test_no_plan_of_the_profile_is_missing(name):
    """A minimal client refuses every plan of version 1 outside the profile, like any that it does not understand."""
    text = json.dumps(load(name)["plan"]).encode()
    refused_by_minimal_client("PlanError", lambda: minimal_client.Plan(text))


def test_profile_lists_what_a_minimal_client_must_do():
    """The refused plans that are not listed have thresholds outside the profile: there, PlanError is as good."""
    assert [(VECTORS / f"{name}.json").exists() for name in MINIMAL] == [True] * len(MINIMAL)
    assert [name for name in MINIMAL if name.startswith(("bad_report_", "bad_batch_", "tally_", "bad_tally_"))] == []
    missing = sorted(set(names("bad_plan_")) - set(MINIMAL))
    assert {load(name)["error"] for name in missing} == {"PrivacyError"}
    for name in missing:
        refused_by_minimal_client("PlanError", lambda name=name: minimal_client.Plan(load(name)["text"].encode()))
    for name in set(names("bad_value_")) - set(MINIMAL):
        text = json.dumps(load(name)["plan"]).encode()
        refused_by_minimal_client("PlanError", lambda text=text: minimal_client.Plan(text))


def test_minimal_client_knows_nothing_of_the_library():
    source = Path(minimal_client.__file__).read_text(encoding="utf-8")
    assert not re.search("^ *(import|from) (sunzi|numpy)", source, flags=re.MULTILINE)
    assert len(source.splitlines()) < 280


# --- the vectors ------------------------------------------------------------------------------------------------------


def test_every_file_is_tested():
    """Every vector's name is covered by some test."""
    prefixes = (
        "bad_plan_",
        "bad_client_",
        "bad_value_",
        "bad_groups_",
        "bad_labels_",
        "bad_report_",
        "bad_batch_",
        "bad_tally_",
        "tally_",
        "memoised_",
        "upload_bodies",
    )
    tested = {*GOOD, "device_ids", *(name for prefix in prefixes for name in names(prefix))}
    assert tested == {path.stem for path in VECTORS.iterdir()}
    assert sum(path.stat().st_size for path in VECTORS.iterdir()) < 850_000
    page = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    for kind in (*prefixes[:-1], "device_ids", "upload_bodies"):
        assert f"`{kind}*`" in page or f"`{kind}`" in page


def test_vectors_cover_protocols_designs_and_edges(tmp_path):
    """All protocols in several sizes, all designs, codes and fields, and rejections in single reports and batches."""
    kinds, codes, fields, singles, batches, twice, sizes = set(), set(), set(), set(), set(), set(), {}
    for name in GOOD:
        record = load(name)
        plan = plan_of(record, tmp_path)
        protocol, parameters = plan.protocol.name, record["plan"]["parameters"]
        responses = responses_in(parameters)
        kinds |= {(protocol, response["design"]) for response in responses}
        codes |= {response["code"] for response in responses if "code" in response}
        fields |= {response["order"] for response in responses if "order" in response}
        sizes.setdefault(protocol, set()).add(plan.domain.size)
        if any(case["words_used"] > least_words(plan, 1) for case in record["cases"]):
            singles.add(protocol)
        if any(len(case["words"]) > least_words(plan, len(case["values"])) for case in record["batches"]):
            batches.add(protocol)
        if "response" in parameters and replacement_rounds(plan, record) >= 2:
            twice.add(protocol)
    protocols = {*sunzi.catalogue(), *OTHERS}
    with_draws = protocols - {"rappor", "oue"}
    assert singles == batches == with_draws
    assert twice == {"grr", "ss", "ss-compact", "pgr", "number"}
    assert kinds >= {("grr", "singletons"), ("ss", "subsets"), ("ss-compact", "cyclotomic"), ("pgr", "projective")}
    assert kinds >= {("mss", "subsets"), ("mss-compact", "cyclotomic")}
    assert kinds >= {(protocol, "singletons") for protocol in with_draws}
    assert codes == {"arithmetic", "bitmap"}
    assert fields >= {2, 3, 4, 5, 8, 9, 16, 27}
    assert kinds >= {("ordered", "cyclotomic"), ("tables", "cyclotomic"), ("number", "singletons")}
    assert set(sizes) == protocols
    assert all(len(found) >= 4 for found in sizes.values())


def test_memoised_vectors_cover_protocols_and_domains():
    records = [load(name) for name in names("memoised_")]
    assert {record["plan"]["protocol"] for record in records} == {*sunzi.catalogue(), *OTHERS}
    keys = {key for record in records for key in record["plan"]["domain"]}
    assert keys >= {"size", "labels", "labels_sha256", "other", "range", "attributes", "symbols"}
    kept = {record["plan"]["protocol"] for record in records if "question" in record["cases"][0]}
    assert kept == set(OTHERS)
    assert all(record["cases"][-1]["outside"] for record in records)


@pytest.mark.slow
def test_generator_gives_the_same_files():
    script = ROOT / "scripts" / "make-conformance"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
