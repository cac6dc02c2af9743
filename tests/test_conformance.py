"""Every vector of conformance/v1 against the library: the exact bytes if valid, the exact error class if invalid."""

import io
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from sunzi.contract import Contract

import sunzi
from sunzi import errors
from sunzi.client.device.memoising import MemoisingClient
from sunzi.client.device.uploads import Upload
from sunzi.client.groups import chosen_groups
from sunzi.client.strict_json import parse_json
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan
from sunzi.tally import Tally

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "conformance" / "v1"
OTHERS = ("ordered", "tables", "number", "prefixes")
GOOD_PREFIXES = tuple(name.replace("-", "_") + "_" for name in (*sunzi.catalogue(), *OTHERS))


def names(prefix):
    return sorted(path.stem for path in VECTORS.glob(f"{prefix}*.json"))


def load(name):
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


GOOD = sorted({name for prefix in GOOD_PREFIXES for name in names(prefix)})


def plan_of(record, directory):
    """The record's plan, with its labels attached if they are in a file."""
    if "label_file" not in record:
        return Plan.from_json(json.dumps(record["plan"]))
    paths = directory / "plan.json", directory / "labels.txt"
    paths[0].write_text(json.dumps(record["plan"]), encoding="utf-8")
    paths[1].write_bytes(record["label_file"].encode())
    return sunzi.load_plan(paths[0], labels=paths[1])


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

    def words(self, count):
        self.requests += 1
        return super().words(count)


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


@pytest.mark.parametrize("name", GOOD)
def test_plan(name, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path)
    assert plan.fingerprint == record["fingerprint"]
    assert plan.to_json() == record["plan"]
    assert parse_json(plan.canonical) == record["plan"]
    assert plan.client(max_epsilon=plan.epsilon, fingerprint=record["fingerprint"]).is_private
    expect("PrivacyError", lambda: plan.client(max_epsilon=plan.epsilon * Fraction(999, 1000)))


@pytest.mark.parametrize("name", GOOD)
def test_single_reports(name, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path)
    for case in record["cases"]:
        source = scripted(case["words"])
        report = plan.client(source=source).report(case["value"])
        assert report.hex() == case["report"]
        assert len(case["words"]) - source.remaining == case["words_used"]
        assert plan.client(source=scripted(case["words"])).reports([case["value"]]) == [report]
        assert plan.tally([report]).reports == 1


@pytest.mark.parametrize("name", GOOD)
def test_batches(name, tmp_path):
    record = load(name)
    plan = plan_of(record, tmp_path)
    for case in record["batches"]:
        source = scripted(case["words"])
        batch = plan.client(source=source).report_batch(case["values"])
        assert batch.hex() == case["batch"]
        assert source.remaining == 0
        single = plan.client(source=scripted(case["words"])).reports(case["values"])
        assert plan.tally(io.BytesIO(batch)) == plan.tally(single)
    both = b"".join(bytes.fromhex(case["batch"]) for case in record["batches"])
    assert plan.tally(io.BytesIO(both)).reports == sum(len(case["values"]) for case in record["batches"])


@pytest.mark.parametrize("name", names("bad_plan_"))
def test_bad_plan(name):
    record = load(name)
    data = bytes.fromhex(record["hex"]) if "hex" in record else record["text"].encode()
    expect(record["error"], lambda: Plan.from_json(data))


@pytest.mark.parametrize("name", names("bad_client_"))
def test_bad_client(name):
    record = load(name)
    plan = Plan.from_json(json.dumps(record["plan"]))
    terms = {"max_epsilon": record.get("max_epsilon"), "fingerprint": record.get("pinned")}
    expect(record["error"], lambda: plan.client(**terms))
    assert plan.client(max_epsilon=plan.epsilon, fingerprint=plan.fingerprint).is_private


@pytest.mark.parametrize("name", names("bad_value_"))
def test_bad_value(name):
    record = load(name)
    client = Plan.from_json(json.dumps(record["plan"])).client()
    expect(record["error"], lambda: client.report(record["value"]))
    expect(record["error"], lambda: client.report_batch([record["value"]]))


@pytest.mark.parametrize("name", names("bad_labels_"))
def test_bad_label_file(name, tmp_path):
    record = load(name)
    assert Contract.from_json(record["plan"])
    expect(record["error"], lambda: plan_of(record, tmp_path))


@pytest.mark.parametrize("name", names("bad_report_"))
def test_bad_report(name):
    record = load(name)
    plan = Plan.from_json(json.dumps(record["plan"]))
    expect(record["error"], lambda: plan.tally([bytes.fromhex(record["report"])]))


@pytest.mark.parametrize("name", names("bad_batch_"))
def test_bad_batch(name):
    record = load(name)
    plan = Plan.from_json(json.dumps(record["plan"]))
    batch = bytes.fromhex(record["batch"])
    expect(record["error"], lambda: plan.tally(io.BytesIO(batch)))
    expect(record["error"], lambda: plan.tally(batch))


@pytest.mark.parametrize("name", names("tally_"))
def test_tally(name):
    record = load(name)
    plan = Plan.from_json(json.dumps(record["plan"]))
    tally = Tally.from_bytes(bytes.fromhex(record["tally"]))
    assert tally == plan.tally(bytes.fromhex(record["batch"]))
    assert Tally.from_bytes(tally.to_bytes()) == tally
    labels = {"labels": ["a"]} if plan.domain.is_open else {}
    assert plan.estimate(tally, **labels).reports == tally.reports


@pytest.mark.parametrize("name", names("bad_tally_"))
def test_bad_tally(name):
    record = load(name)
    expect(record["error"], lambda: Tally.from_bytes(bytes.fromhex(record["tally"])))


def test_device_ids():
    record = load("device_ids")
    plan, key = Plan.from_json(json.dumps(record["plan"])), bytes.fromhex(record["key"])
    for case in record["cases"]:
        assert (
            MemoisingClient(plan, key, case["attribute"], max_epsilon=32).report_id(case["epoch"]).hex() == case["id"]
        )


@pytest.mark.parametrize("name", names("bad_groups_"))
def test_bad_groups(name):
    record = load(name)
    plan = Plan.from_json(json.dumps(record["plan"]))
    expect(record["error"], lambda: chosen_groups(plan.groups, record["groups"]))


def test_upload_bodies():
    record = load("upload_bodies")
    plan = Plan.from_json(json.dumps(record["plan"]))
    for case in record["cases"]:
        identity, report, token = (bytes.fromhex(case.get(name, "")) for name in ("id", "report", "token"))
        groups = case.get("groups", {})
        assert len(chosen_groups(plan.groups, groups)) == len(groups)
        upload = Upload(identity, report, token or None, groups)
        assert upload.to_bytes().hex() == case["body"]
        assert Upload.from_bytes(bytes.fromhex(case["body"])) == upload


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
    )
    tested = {*GOOD, "device_ids", "upload_bodies", *(name for prefix in prefixes for name in names(prefix))}
    assert tested == {path.stem for path in VECTORS.iterdir()}
    assert sum(path.stat().st_size for path in VECTORS.iterdir()) < 780_000


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


@pytest.mark.slow
def test_generator_gives_the_same_files():
    script = ROOT / "scripts" / "make-conformance"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
