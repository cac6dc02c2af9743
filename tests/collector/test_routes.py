"""Access to routes: plans are public, everything else is for the operator."""

import asyncio
import csv
import gzip
import io
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest
from running import running

import sunzi

LABELS = ["apple", "banana", "Apple pie", "cherry", "<b>", "größe", '"quoted"', "other"]
PLAN = sunzi.make_plan("mss-compact", LABELS, 2, other="other")
BASE = "/v1/collections/default/epochs/1"
TOKEN = "an admin token, long enough".replace(" ", "-").replace(",", "")
ADMIN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("store") / "store.db", {"default": PLAN}) as made:
        values = np.repeat(np.arange(8), [4000, 2000, 1000, 500, 0, 0, 0, 100])
        made.send_batch(PLAN.client(seed=1).report_indices(values))
        yield made


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with running(tmp_path_factory.mktemp("store") / "store.db", {"default": PLAN}, admin_token=TOKEN) as made:
        yield made


def rows(answer):
    return list(csv.DictReader(io.StringIO(answer.body.decode())))


def test_the_plan_is_public_and_whole(guarded):
    envelope = guarded.get("/v1/collections/default/plan").json()
    assert envelope["upload"] == BASE
    assert envelope["epoch"] == 1
    assert envelope["open"] is True
    assert sunzi.Plan.from_json(json.dumps(envelope["plan"])) == PLAN
    assert guarded.get(f"{BASE}/plan").body == PLAN.canonical
    assert guarded.get("/v1/collections/default/epochs/current/plan").body == PLAN.canonical


def test_plans_can_be_cached(guarded):
    envelope = guarded.get("/v1/collections/default/plan")
    current = "/v1/collections/default/epochs/current/plan"
    named = envelope.json()["plan_file"]
    assert named == f"{BASE}/plan/{PLAN.fingerprint}"
    for path, policy in (
        ("/v1/collections/default/plan", "public, no-cache"),
        (f"{BASE}/plan", "public, no-cache"),
        (current, "public, no-cache"),
        (named, "public, max-age=31536000, immutable"),
    ):
        whole = guarded.get(path)
        assert whole.headers["Cache-Control"] == policy
        short = guarded.get(path, **{"Accept-Encoding": "gzip"})
        assert gzip.decompress(short.body) == whole.body
        known = guarded.get(path, **{"If-None-Match": whole.headers["ETag"]})
        assert (known.status, known.body, known.headers["ETag"]) == (304, b"", whole.headers["ETag"])
    assert guarded.get(named).body == PLAN.canonical
    assert guarded.get(f"{BASE}/plan/{'0' * 64}").status == 404


def test_the_tag_changes_with_the_epoch(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        before = service.get("/v1/collections/default/plan")
        service.send_batch(PLAN.client(seed=1).report_indices(np.arange(8)))
        assert service.get("/v1/collections/default/plan").headers["ETag"] == before.headers["ETag"]
        service.collector.close("default", 1)
        closed = service.get("/v1/collections/default/plan", **{"If-None-Match": before.headers["ETag"]})
        assert (closed.status, closed.json()["open"]) == (200, False)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/collections"),
        ("GET", f"{BASE}/status.json"),
        ("GET", f"{BASE}/estimate.json"),
        ("GET", f"{BASE}/tally"),
        ("GET", f"{BASE}/progress.csv"),
        ("GET", f"{BASE}/health.json"),
        ("GET", "/metrics"),
        ("POST", "/v1/collections/default/epochs"),
        ("POST", f"{BASE}/close"),
        ("POST", f"{BASE}/tokens"),
    ],
)
def test_everything_but_uploading_asks_for_the_admin_token(guarded, monkeypatch, method, path):
    monkeypatch.setattr("sunzi.collector.service._WRONG_TOKEN_SECONDS", 0.0)  # the pause has a test of its own
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
        answer = guarded.request(method, path, b"{}", {"Content-Type": "application/json", **headers})
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert guarded.collector.find("default", 1).epoch.is_open


def test_a_small_request_has_a_small_body(guarded):
    answer = guarded.post_json(f"{BASE}/tokens", {"count": 1, "more": "x" * 5000}, ADMIN)
    assert (answer.status, answer.json()["error"]) == (413, "TooLarge")


def test_the_admin_token_opens_it(guarded):
    assert guarded.get("/v1/collections", **ADMIN).json()[0]["collection"] == "default"
    assert guarded.get(f"{BASE}/estimate.json", **ADMIN).status == 409  # no report yet
    assert guarded.get(f"{BASE}/health.json", **ADMIN).status == 409
    assert guarded.get("/metrics", **ADMIN).status == 200


def test_the_estimate_is_the_librarys_own(service):
    estimate = PLAN.estimate(service.tally())
    answer = service.get(f"{BASE}/estimate.json").json()
    assert [row["label"] for row in answer["histogram"]] == LABELS
    assert [row["frequency"] for row in answer["histogram"]] == estimate.frequencies.tolist()
    low, high = estimate.interval(0.95)
    assert [row["low"] for row in answer["histogram"]] == low.tolist()
    assert [row["high"] for row in answer["histogram"]] == high.tolist()
    assert answer["reports"] == 7600
    assert answer["epsilon"] == "2"
    assert answer["histogram"][0]["above_zero"] is True
    as_csv = rows(service.get(f"{BASE}/estimate.csv"))
    assert [float(row["frequency"]) for row in as_csv] == estimate.frequencies.tolist()
    assert [row["label"] for row in as_csv] == LABELS


def test_top_search_level_and_postprocessing(service):
    top = service.get(f"{BASE}/estimate.json?top=2").json()["histogram"]
    assert [row["label"] for row in top] == ["apple", "banana"]
    found = service.get(f"{BASE}/estimate.json?search=APPLE").json()["histogram"]
    assert [row["label"] for row in found] == ["apple", "Apple pie"]
    assert service.get(f"{BASE}/estimate.json?search=nothing").json()["histogram"] == []
    wide = service.get(f"{BASE}/estimate.json?confidence=0.999").json()["histogram"][0]
    narrow = service.get(f"{BASE}/estimate.json?confidence=0.5").json()["histogram"][0]
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    for method in ("simplex", "clip", "significant", "constrained"):
        answer = service.get(f"{BASE}/estimate.json?postprocess={method}").json()
        assert answer["postprocess"] == method
        assert answer["postprocess_effect"]
        assert all(f"frequency_{method}" in row and "frequency" in row for row in answer["histogram"])


def test_bad_questions_are_refused(service):
    for query in ("confidence=2", "confidence=x", "top=0", "postprocess=magic", "target=all", "search=" + "x" * 300):
        answer = service.get(f"{BASE}/estimate.json?{query}")
        assert answer.status == 422, query
        assert set(answer.json()) == {"error", "message"}
    assert service.get(f"{BASE}/estimate.xml").status == 422
    assert service.get(f"{BASE}/estimate.png?postprocess=clip").status == 400
    assert service.get("/v1/collections/default/epochs/nonsense/status.json").status == 422


def test_pictures_parquet_and_tallies(service):
    assert service.get(f"{BASE}/estimate.png?top=5").body.startswith(b"\x89PNG")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(service.get(f"{BASE}/estimate.parquet").body))
    assert table.column("label").to_pylist() == LABELS
    answer = service.get(f"{BASE}/tally")
    assert sunzi.Tally.from_bytes(answer.body) == service.tally()
    assert "default-1.tally" in answer.headers["Content-Disposition"]


def test_progress_status_and_health_have_twins(service):
    minutes = service.get(f"{BASE}/progress.json").json()
    assert sum(row["reports"] for row in minutes) == 7600
    assert all(row["minute"] % 60 == 0 for row in minutes)
    assert sum(int(row["reports"]) for row in rows(service.get(f"{BASE}/progress.csv"))) == 7600
    status = service.get(f"{BASE}/status.json").json()
    assert (status["reports"], status["open"], status["plan"]) == (7600, True, PLAN.fingerprint)
    assert rows(service.get(f"{BASE}/status.csv"))[0]["reports"] == "7600"
    found = service.get(f"{BASE}/health.json").json()
    assert found["alarm"] is False
    assert [row["name"] for row in rows(service.get(f"{BASE}/health.csv"))] == [test["name"] for test in found["tests"]]


def test_live_ready_and_metrics(service):
    assert service.get("/health").json() == {"status": "live"}
    assert service.get("/ready").json() == {"status": "ready"}
    text = service.get("/metrics").body.decode()
    assert 'sunzi_reports{collection="default",epoch="1"} 7600.0' in text
    assert 'sunzi_uploads_total{collection="default",outcome="counted"} 1.0' in text
    assert float(re.search(r"^sunzi_commit_seconds_total (.*)$", text, re.MULTILINE)[1]) > 0
    assert float(re.search(r"^sunzi_store_bytes (.*)$", text, re.MULTILINE)[1]) == service.collector.store.size()


def test_a_bad_plan_opens_nothing(service):
    good = PLAN.to_json()
    for wrong in ({}, {**good, "epsilon": "1"}, {**good, "version": 2}, {**good, "extra": 1}):
        assert service.post_json("/v1/collections/new/epochs", wrong).status == 400
    assert service.post_json("/v1/collections/new/epochs", []).status == 400
    assert "new" not in service.collector.collections()


def test_every_answer_carries_the_headers(service):
    for path in ("/", "/health", "/v1/collections/default/plan", "/nowhere", f"{BASE}/estimate.json?top=0"):
        headers = service.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == ("public, no-cache" if path.endswith("/plan") else "no-store")
        assert headers["Server"] is None


def test_other_origins_only_if_allowed(service, tmp_path):
    origin = {"Origin": "https://example.org"}
    assert service.get("/v1/collections/default/plan", **origin).headers["Access-Control-Allow-Origin"] is None
    with running(tmp_path / "store.db", {"default": PLAN}, allow_origins=("https://example.org",)) as open_to_one:
        answer = open_to_one.get("/v1/collections/default/plan", **origin)
        assert answer.headers["Access-Control-Allow-Origin"] == "https://example.org"
        other = open_to_one.get("/v1/collections/default/plan", Origin="https://evil.example")
        assert other.headers["Access-Control-Allow-Origin"] is None
        assert answer.headers["Access-Control-Expose-Headers"] == "Retry-After"
        asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        for path in (f"{BASE}/batches", f"{BASE}/reports", f"{BASE}/plan"):
            assert open_to_one.request("OPTIONS", path, None, asked).status == 200
        refused = open_to_one.post(f"{BASE}/batches", b"rubbish", origin)
        assert (refused.status, refused.headers["Access-Control-Allow-Origin"]) == (400, "https://example.org")


def test_an_allowed_origin_may_fetch_the_plan_and_upload_and_no_more(tmp_path):
    origin = {"Origin": "https://example.org"}
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for number, settings in enumerate(({}, {"admin_token": TOKEN})):
        settings["allow_origins"] = ("https://example.org",)
        with running(tmp_path / f"{number}.db", {"default": PLAN}, **settings) as service:
            for path in (f"{BASE}/close", f"{BASE}/tokens", f"{BASE}/estimate.json", "/v1/collections", "/metrics"):
                preflight = service.request("OPTIONS", path, None, asked)
                assert (preflight.status, preflight.headers["Access-Control-Allow-Origin"]) == (405, None)
                answer = service.get(path, **origin, **(ADMIN if settings.get("admin_token") else {}))
                assert answer.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {
            "Origin": "https://evil.example",
            "Host": "evil.example",
        },  # an attacker's host name that resolves to this machine
        {"Origin": "http://localhost:3000", "Host": "localhost:8765"},  # another program on this machine
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8765"},
        {"Host": ""},
    ],
)
def test_pages_of_others_are_not_the_operator(service, headers):
    for method, path in (("POST", f"{BASE}/close"), ("GET", f"{BASE}/status.json"), ("GET", "/metrics")):
        answer = service.request(method, path, None, headers)
        assert (answer.status, answer.json()["error"][:7]) == (403, "Foreign")
    assert service.collector.find("default", 1).epoch.is_open
    assert service.request("GET", "/v1/collections/default/plan", None, headers).status == 200


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_services_own_page_and_programs_are(service, name):
    host = f"{name}:{service.port}"
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}, {"Host": name}):
        assert service.request("GET", f"{BASE}/status.json", None, headers).status == 200


def test_the_admin_token_is_valid_under_any_host_name(guarded):
    by_proxy = {"Host": "collect.example", "Origin": "https://collect.example", **ADMIN}
    assert guarded.request("GET", "/v1/collections", None, by_proxy).status == 200


def test_a_trusted_proxy_says_how_it_was_reached(tmp_path):
    """Only redirects depend on it: they must lead back to https."""
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7", "Host": "collect.example"}
    for trusted, scheme in ((("127.0.0.1",), "https"), (("10.0.0.0/8",), "http"), ((), "http")):
        with running(tmp_path / f"{scheme}{len(trusted)}.db", {"default": PLAN}, trusted_proxies=trusted) as service:
            answer = service.request("GET", "/v1/collections/", None, headers)
            assert answer.status == 307
            assert answer.headers["Location"] == f"{scheme}://collect.example/v1/collections"


def test_nothing_is_published_below_a_minimum(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, minimum_reports=100) as service:
        client = PLAN.client(seed=1)
        for sent in (0, 60):
            for name in ("estimate.json", "estimate.csv", "estimate.png", "tally", "health.json", "health.csv"):
                answer = service.get(f"{BASE}/{name}")
                assert (answer.status, answer.json()["error"]) == (409, "TooFewReports")
                assert f"{100 - sent} more reports are needed" in answer.json()["message"]
            assert service.get(f"{BASE}/status.json").json()["reports"] == sent
            assert service.send_batch(client.report_indices(np.arange(60) % PLAN.domain.size)).status == 200
        for name in ("estimate.json", "tally", "health.json"):
            assert service.get(f"{BASE}/{name}").status == 200


def test_too_few_reports_to_speak_of_no_alarm(tmp_path):
    faint = sunzi.make_plan("grr", 50, "1/20")
    with running(tmp_path / "store.db", {"default": faint}) as service:
        service.send_batch(faint.client(seed=1).report_indices(np.arange(200) % 50))
        shares = [row["frequency"] for row in service.get(f"{BASE}/estimate.json").json()["histogram"]]
        assert max(shares) > 1  # more than 100 %
        health = service.get(f"{BASE}/health.json").json()
        assert (health["alarm"], health["too_few"], "too few reports" in health["verdict"]) == (False, True, True)


def test_a_wrong_admin_token_is_answered_slowly(guarded, monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    # Only in this module: uvicorn's own loop would never rest again.
    monkeypatch.setattr("sunzi.collector.service.asyncio", SimpleNamespace(**(vars(asyncio) | {"sleep": sleep})))
    assert guarded.get(f"{BASE}/status.json").status == 401
    assert 1.0 not in waited  # the page asks without a token before it prompts for one
    assert guarded.get(f"{BASE}/status.json", Authorization="Bearer guessed-by-somebody").status == 401
    assert 1.0 in waited


def test_every_response_refuses_other_sites(service):
    for path in ("/", "/health", f"{BASE}/plan", f"{BASE}/status.json", "/nowhere"):
        assert service.get(path).headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_the_documented_requests_work_with_curl(tmp_path):
    """All curl commands of docs/collector.md, in their order, with this service's address."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "collector.md").read_text()
    lines = page.replace("\\\n", " ").splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ") and "curl " in line]
    assert len(commands) == 3
    plans = [sunzi.make_plan("grr", LABELS, epsilon) for epsilon in (1, 2)]
    for name, plan in zip(("plan.json", "plan2.json"), plans, strict=True):
        plan.save(tmp_path / name)
    (tmp_path / "report.bin").write_bytes(plans[1].client().report("apple"))
    with running(tmp_path / "store.db", {"browsers": plans[0]}) as service:
        epoch = f"{service.address}/v1/collections/browsers/epochs/2"
        variables = {"EPOCH": epoch, "FINGERPRINT": plans[1].fingerprint, "PATH": os.environ["PATH"]}
        answers = []
        for command in commands:
            shell = command.replace("http://127.0.0.1:8765", service.address).replace("curl ", "curl -sS -m 30 ")
            run = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=variables, capture_output=True, check=True)
            answers.append(json.loads(run.stdout))
    closed, opened, counted = answers
    assert (closed["epoch"], closed["open"]) == (1, False)
    assert (opened["epoch"], opened["open"], opened["plan"]) == (2, True, plans[1].fingerprint)
    assert counted["outcome"] == "counted"


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Collections of numbers and of records."""
    generator = np.random.default_rng(1)
    attributes = {"version": ["1", "2"], "crashed": ["no", "yes"]}
    plans = {
        "loads": sunzi.make_ordered(0, 64, 16, epsilon=4),
        "mean": sunzi.make_number(0, 64, epsilon=4),
        "survey": sunzi.make_tables(attributes, [("version",), ("version", "crashed")], epsilon=4),
    }
    values = {"loads": generator.gamma(3, 8, 500).clip(0, 64), "mean": generator.gamma(3, 8, 500).clip(0, 64)}
    values["survey"] = {name: generator.choice(labels, 500) for name, labels in attributes.items()}
    with running(tmp_path_factory.mktemp("store") / "store.db", plans) as made:
        for name, plan in plans.items():
            made.send_batch(plan.client(seed=1).report_batch(values[name]), collection=name)
        yield made


@pytest.mark.parametrize(
    ("name", "asked", "questions"),
    [
        ("loads", "range=0:16&range=16:64&quantile=0.5&mean=true", ["0 to 16", "16 to 64", "quantile 0.5", "mean"]),
        ("mean", "mean=true", ["mean"]),
        ("survey", "table=version,crashed&share=crashed%3Dyes&given=version%3D2", ["crashed=yes among version=2"]),
    ],
)
def test_numbers_and_tables_are_asked_about(records, name, asked, questions):
    base = f"/v1/collections/{name}/epochs/1"
    document = records.get(f"{base}/answers.json?{asked}&confidence=0.9").json()
    assert {key: document[key] for key in ("collection", "epoch", "confidence", "target", "group")} == {
        "collection": name,
        "epoch": 1,
        "confidence": 0.9,
        "target": "reporters",
        "group": None,
    }
    assert document["reports"] > 0
    found = document["answers"]
    assert [answer["question"] for answer in found] == questions
    assert all(answer["low"] < answer["value"] < answer["high"] for answer in found)
    assert [row["question"] for row in rows(records.get(f"{base}/answers.csv?{asked}"))] == questions


@pytest.mark.parametrize(
    ("name", "asked", "labels"),
    [
        ("loads", "search=17.5", ["16 to 20"]),
        ("loads", "search=page", []),
        ("survey", "search=version%201", ["version 1, crashed no", "version 1, crashed yes"]),
        ("survey", "search=yes&table=version", []),
    ],
)
def test_bins_and_cells_are_found(records, name, asked, labels):
    found = records.get(f"/v1/collections/{name}/epochs/1/estimate.json?{asked}").json()["histogram"]
    assert sorted(row["label"] for row in found) == labels


def test_a_table_of_some_attributes_is_estimated(records):
    base = "/v1/collections/survey/epochs/1"
    cell = {row["label"]: row for row in rows(records.get(f"{base}/estimate.csv"))}["version 2, crashed no"]
    summed = records.get(f"{base}/sum.json?" + urlencode({"value": '{"version": "2", "crashed": "no"}'})).json()
    assert summed["frequency"] == pytest.approx(float(cell["frequency"]))
    assert "such as {" in records.get(f"{base}/sum.json?value=version").json()["message"]
    labels = [row["label"] for row in rows(records.get(f"{base}/estimate.csv?table=version"))]
    assert labels == ["version 1", "version 2"]
    assert records.get(f"{base}/estimate.csv?table=country").status == 400


@pytest.mark.parametrize(
    ("name", "asked"), [("loads", ""), ("loads", "range=3:70"), ("mean", "quantile=0.5"), ("loads", "share=a%3Db")]
)
def test_wrong_questions_are_refused(records, name, asked):
    answer = records.get(f"/v1/collections/{name}/epochs/1/answers.json?{asked}")
    assert answer.status == 400
    assert answer.json()["message"]
