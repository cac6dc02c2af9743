"""GET and POST …/discover: the library's own texts, and what is refused."""

import csv
import io
import json

import pytest
from running import running

import sunzi
from sunzi.collector import discoveries

PLAN = sunzi.make_plan(
    "prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=4, cells=1000, groups={"country": ["DE", "FR"]}
)
TEXTS = ["yes"] * 6000 + ["no"] * 3000 + [""] * 1000
LISTED = sunzi.make_plan("grr", ["yes", "no"], 4)
BASE = "/v1/collections/words/epochs/1"


def batch(texts, seed=1):
    return PLAN.client(seed=seed).report_batch(texts)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    directory = tmp_path_factory.mktemp("store")
    plans = {"words": PLAN, "few": PLAN, "fewer": PLAN, "listed": LISTED}
    settings = {"minimum_reports": 50, "audit_log": str(directory / "audit.log")}
    with running(directory / "store.db", plans, **settings) as made:
        made.send_batch(batch(TEXTS), collection="words", groups="country=DE")
        made.send_batch(batch(["yes"] * 60), collection="few")
        made.send_batch(batch(["yes"] * 49), collection="fewer")
        made.send_batch(LISTED.client(seed=1).report_batch(["yes"] * 60), collection="listed")
        made.log = directory / "audit.log"
        yield made


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.body.decode())))


def test_the_texts_are_the_librarys(service):
    found = service.get(f"{BASE}/discover.json?false_share=0.1").json()
    expected = PLAN.discover(service.tally("words"), false_share=0.1)
    assert found["found"] == expected.records()
    assert {row["label"] for row in found["found"]} >= {"yes", "no", ""}
    assert (found["reports"], found["accepted"], found["false_share"]) == (10_000, len(expected), 0.1)
    assert (found["candidates"], found["threshold"]) == (expected.candidates, expected.threshold)
    thresholds = PLAN.thresholds(10_000, false_share=0.1)
    assert found["thresholds"] == [vars(each) for each in thresholds]
    assert (found["collection"], found["epoch"], found["plan"]) == ("words", 1, PLAN.fingerprint)
    assert "one look" in found["note"]
    assert "still open" in found["no_batch_guarantee"]


def test_the_most_frequent_texts_can_be_read_as_csv(service):
    (row,) = rows_of(service.get(f"{BASE}/discover.csv?top=1"))
    assert row["label"] == "yes"
    assert float(row["low"]) < 0.6 < float(row["high"])
    assert len(service.get(f"{BASE}/discover.json?top=1").json()["found"]) == 1
    nothing = service.post(f"{BASE}/discover.csv?false_share=0.000000001", b"zzz")
    assert nothing.body == b"label,frequency,low,high,p_value\n"


def test_lists_are_searched_guide_or_are_counted(service):
    found = service.post(f"{BASE}/discover.json", "yes\nnaïve\n".encode()).json()
    assert ([row["label"] for row in found["found"]], found["candidates"]) == (["yes"], 2)
    guided = service.post(f"{BASE}/discover.json?use=prior", b"yes\nno\nnot\n").json()
    assert {row["label"] for row in guided["found"]} >= {"yes", "no", ""}
    counted = service.post(f"{BASE}/discover.json?use=count&confidence=0.9", "yes\nnaïve\n".encode()).json()
    estimate = PLAN.estimate(service.tally("words"), labels=["yes", "naïve"])
    assert [row["label"] for row in counted["histogram"]] == ["yes", "na?…"]
    assert [row["frequency"] for row in counted["histogram"]] == pytest.approx(estimate.frequencies.tolist())
    assert (counted["confidence"], counted["reports"]) == (0.9, 10_000)
    rows = rows_of(service.post(f"{BASE}/discover.csv?use=count", b"yes\n\n"))
    assert [row["label"] for row in rows] == ["yes", ""]
    details = [json.loads(line) for line in service.log.read_text().splitlines()]
    assert {"use": "count", "bytes": 5}.items() <= details[-1].items()
    assert "naïve" not in service.log.read_text()


def test_groups_have_texts_of_their_own(service):
    found = service.get(f"{BASE}/discover.json?group=country%3DDE").json()
    assert (found["group"], found["reports"], found["found"][0]["label"]) == ("country=DE", 10_000, "yes")
    refused = service.get(f"{BASE}/discover.json?group=country%3DFR")
    assert (refused.status, refused.json()["error"]) == (409, "TooFewReports")


def test_repeated_requests_search_once(service, monkeypatch):
    answer = service.get(f"{BASE}/discover.json").body
    monkeypatch.setattr(discoveries, "_computed", None)
    assert service.get(f"{BASE}/discover.json").body == answer
    assert service.get(f"{BASE}/discover.csv?top=2").status == 200


@pytest.mark.parametrize(
    ("collection", "message"),
    [
        ("fewer", "1 more report is needed: results about fewer than 50 are not published"),
        ("few", "collect about 400 reports"),
        ("listed", "this plan has a list of values"),
    ],
)
def test_nothing_is_shown_of_too_few_reports_or_of_other_plans(service, collection, message):
    for answer in (
        service.get(f"/v1/collections/{collection}/epochs/1/discover.json"),
        service.post(f"/v1/collections/{collection}/epochs/1/discover.csv", b"yes"),
    ):
        assert answer.status == 409
        assert message in answer.json()["message"]
        assert "yes" not in answer.body.decode()


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", b"", 400),
        ("", b"\xff", 400),
        ("?use=count", b"\n" * 10_001, 400),
        ("?use=other", b"yes", 422),
        ("?false_share=0", b"yes", 422),
        ("?top=0", b"yes", 422),
        ("", b"x" * (5 << 20), 413),
    ],
)
def test_other_requests_are_refused(service, query, body, status):
    assert service.post(f"{BASE}/discover.json{query}", body).status == status


@pytest.mark.parametrize(
    "path", ["estimate.json", "estimate.png", "sum.json?value=yes", "answers.json?mean=true", "estimate.csv?table=a"]
)
def test_estimates_of_all_values_point_to_discover(service, path):
    refused = service.get(f"{BASE}/{path}")
    assert refused.status == 409
    assert "…/discover.json finds the frequent texts" in refused.json()["message"]


def test_health_trends_and_metrics_of_open_plans_do_not_fail(service):
    health = service.get(f"{BASE}/health.json").json()
    assert (health["alarm"], health["reports"]) == (False, 10_000)
    assert service.get(f"{BASE}/health.csv").body.startswith(b"name,kind,expected")
    assert service.get("/v1/collections/words/trend.json").status == 409
    assert service.get("/metrics").status == 200


def test_only_the_operator_reads_texts_and_only_of_closed_epochs_if_these_are_published(tmp_path):
    secret = {"Authorization": "Bearer 0123456789abcdef"}
    settings = {"publish_delta": 1e-8, "honest": 0.9, "minimum_reports": 100, "admin_token": "0123456789abcdef"}
    with running(tmp_path / "store.db", {"words": PLAN}, **settings) as service:
        service.send_batch(batch(TEXTS), collection="words")
        assert service.get(f"{BASE}/discover.json").status == 401
        assert service.post(f"{BASE}/discover.json", b"yes").status == 401
        for answer in (
            service.get(f"{BASE}/discover.json", **secret),
            service.post(f"{BASE}/discover.json?use=count", b"yes", secret),
        ):
            assert (answer.status, answer.json()["error"]) == (409, "OpenEpoch")
        assert service.post(f"{BASE}/close", headers=secret).status == 200
        found = service.get(f"{BASE}/discover.json", **secret).json()
        assert found["found"][0]["label"] == "yes"
        assert "batch_guarantee" in found
