"""Uploads over HTTP: counted once, acknowledged when durable, refused with clear errors."""

import hashlib
import json
import threading
import time

import numpy as np
import pytest
from running import framed, fresh_id, running

import sunzi
from sunzi.client.errors import StoreError
from sunzi.collector.epochs import Shard
from sunzi.collector.settings import UploadKey, read_upload_keys
from sunzi.collector.sqlite import SqliteStore

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("ss-compact", [f"word {number}" for number in range(50)], 2)
OTHER = sunzi.make_plan("ss-compact", 50, 2)


@pytest.fixture
def service(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN, "numbers": OTHER}) as made:
        yield made


def batch(count=20, seed=1, plan=PLAN):
    return plan.client(seed=seed).report_indices(np.arange(count) % plan.domain.size)


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_every_protocol_is_counted_as_the_library_counts_it(tmp_path, name):
    plan = sunzi.make_plan(name, 40, 1)
    body, single = batch(30, plan=plan), plan.client(seed=2).report(7)
    with running(tmp_path / "store.db", {"default": plan}) as service:
        assert service.send_batch(body).json() == {"outcome": "counted", "reports": 30}
        assert service.send_report(plan, single).json() == {"outcome": "counted", "reports": 1}
        assert service.tally() == plan.tally([body, single])


def test_small_reports_of_wide_protocols_need_no_other_thread(tmp_path, monkeypatch):
    """Handing each to a thread made the event loop wait for the interpreter, longer with more connections."""
    plan, decoded_on = sunzi.make_plan("oue", 4096, 2), []
    with running(tmp_path / "store.db", {"default": plan}) as service:
        deposit = service.collector.deposit

        def noted(*arguments):
            decoded_on.append(threading.current_thread().name)
            return deposit(*arguments)

        monkeypatch.setattr(service.collector, "deposit", noted)
        assert service.send_report(plan, plan.client(seed=1).report_index(0)).status == 200
        assert service.send_batch(batch(2, plan=plan)).status == 200
    assert decoded_on[0] == "sunzi-collector"
    assert decoded_on[1] != "sunzi-collector"


def test_a_repeated_id_is_acknowledged_and_not_counted(service):
    identity = fresh_id()
    assert service.send_batch(batch(), identity).json()["outcome"] == "counted"
    for _ in range(3):
        answer = service.send_batch(batch(), identity)
        assert (answer.status, answer.json()["outcome"]) == (200, "repeated")
    single = PLAN.client(seed=3).report("word 4")
    assert service.send_report(PLAN, single, identity).json()["outcome"] == "repeated"
    assert service.tally() == PLAN.tally(batch())


def test_ids_of_different_epochs_do_not_meet(service):
    identity = fresh_id()
    assert service.send_batch(batch(), identity).json()["outcome"] == "counted"
    assert service.send_batch(batch(plan=OTHER), identity, collection="numbers").json()["outcome"] == "counted"


def test_acknowledged_deposits_are_on_disk(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        assert service.send_batch(batch()).status == 200
        beside = SqliteStore(tmp_path / "store.db", create=False)  # as after kill -9: nothing was closed
        assert beside.epochs()[0].reports == 20
        beside.close()


def test_a_restart_goes_on_where_it_stopped(tmp_path):
    identity = fresh_id()
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        service.send_batch(batch(), identity)
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        assert service.send_batch(batch(), identity).json()["outcome"] == "repeated"
        assert service.send_batch(batch(seed=2)).json()["outcome"] == "counted"
        assert service.tally() == PLAN.tally([batch(), batch(seed=2)])


def test_many_clients_at_once_are_each_counted_once(service):
    """Eight threads send the same forty uploads: each arrives eight times."""
    uploads = [(fresh_id(), batch(5, seed)) for seed in range(40)]
    outcomes = []

    def send():
        outcomes.extend(service.send_batch(body, identity).json()["outcome"] for identity, body in uploads)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("counted") == 40
    assert outcomes.count("repeated") == 280
    assert service.tally() == PLAN.tally([body for _, body in uploads])


def test_a_closed_epoch_refuses_for_good(service):
    identity = fresh_id()
    service.send_batch(batch(), identity)
    before = service.tally()
    assert service.post("/v1/collections/default/epochs/1/close").json()["open"] is False
    for again in (identity, None):
        answer = service.send_batch(batch(), again)
        assert (answer.status, answer.json()["error"]) == (410, "ClosedEpochError")
    assert service.tally() == before
    assert service.collector.store.identity_count(1) == 0
    assert service.post("/v1/collections/default/epochs/1/close").status == 200
    reopened = service.post_json("/v1/collections/default/epochs", PLAN.to_json()).json()
    assert (reopened["epoch"], reopened["open"], reopened["reports"]) == (2, True, 0)
    assert service.send_batch(batch(), identity).status == 410
    assert service.send_batch(batch(), identity, epoch=2).json()["outcome"] == "counted"


def test_a_new_plan_is_a_new_epoch_and_the_old_one_stays(service):
    newer = sunzi.make_plan("grr", ["a", "b", "c"], 1)
    refused = service.post_json("/v1/collections/default/epochs", newer.to_json())
    assert (refused.status, refused.json()["error"]) == (409, "AnotherPlanError")
    kept = service.post_json("/v1/collections/default/epochs?old_plan=keep", newer.to_json())
    assert kept.json()["epoch"] == 2
    assert service.get("/v1/collections/default/plan").json()["epoch"] == 2
    assert service.post_json("/v1/collections/default/epochs", newer.to_json()).json()["epoch"] == 2
    assert service.send_batch(batch()).status == 200
    refused = service.send_batch(batch(), epoch=2)
    assert refused.status == 400
    assert "another plan" in refused.json()["message"] or "plan" in refused.json()["message"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda body: body[:-1], 400),
        (lambda body: body + b"\0", 400),
        (lambda body: body[:60] + bytes([body[60] ^ 1]) + body[61:], 400),
        (lambda body: b"", 400),
        (lambda body: batch(plan=OTHER), 400),
        (lambda body: b"SUNZIRB\x01" + b"\xff" * 60, 413),
        (lambda body: PLAN.client(seed=1).report("word 1"), 400),
        (lambda body: batch(0), 400),
    ],
)
def test_bad_batches_are_refused_and_leave_no_trace(service, change, status):
    identity = fresh_id()
    answer = service.send_batch(change(batch()), identity)
    assert answer.status == status
    assert answer.json()["message"]
    assert service.tally().reports == 0
    assert service.send_batch(batch(), identity).json()["outcome"] == "counted"  # the id was not used up


def test_bad_single_reports_are_refused(service):
    single = PLAN.client(seed=1).report("word 1")
    assert service.send_report(PLAN, single + b"\0").status == 400
    assert service.send_report(PLAN, b"\xff" * len(single)).status == 400
    assert service.send_report(PLAN, batch()).status == 400
    wrong = service.send_report(OTHER, single)
    assert (wrong.status, wrong.json()["error"]) == (409, "WrongPlan")
    assert service.tally().reports == 0


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/collections/nobody/epochs/1/batches", 404),
        ("/v1/collections/default/epochs/9/batches", 404),
        ("/v1/collections/default/epochs/0/batches", 404),
        ("/v1/collections/Default/epochs/1/batches", 404),
        ("/v1/collections/default/epochs/1/reports", 422),
        ("/v1/collections/default/epochs/1/reports?plan=xyz", 422),
        ("/v1/nothing", 404),
    ],
)
def test_wrong_addresses(service, path, status):
    answer = service.post(path, framed(batch()))
    assert answer.status == status
    assert set(answer.json()) == {"error", "message"}


@pytest.mark.parametrize("query", ["id=" + "0" * 32, "token=" + "0" * 64, "id="])
def test_ids_and_tokens_in_an_address_are_refused(service, query):
    """Proxies log addresses."""
    for path in (
        f"batches?{query}",
        f"reports?plan={PLAN.fingerprint}&{query}",
        f"reports?{query}&plan={PLAN.fingerprint}",
    ):
        answer = service.post(f"/v1/collections/default/epochs/1/{path}", framed(batch()))
        assert (answer.status, "in the body" in answer.json()["message"]) == (400, True)
    assert service.tally().reports == 0


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"0" * 31 + b"\n", b"0" * 32, b"G" * 32 + b"\n", b"0" * 32 + b" 00\n", b"A" * 32 + b"\n"]
)
def test_a_malformed_first_line_is_refused(service, line):
    answer = service.post("/v1/collections/default/epochs/1/batches", line + batch())
    assert (answer.status, "starts with a line" in answer.json()["message"]) == (400, True)
    assert service.tally().reports == 0


def test_wrong_methods(service):
    assert service.get("/v1/collections/default/epochs/1/batches").status == 405
    assert service.request("DELETE", "/v1/collections").status == 405


def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, body_bytes=1000) as service:
        answer = service.send_batch(b"\0" * 1001)
        assert (answer.status, answer.json()["error"]) == (413, "TooLarge")
        chunked = service.post("/v1/collections/default/epochs/1/batches", iter([b"\0" * 600, b"\0" * 600]))
        assert chunked.status == 413
        assert service.send_batch(batch()).status == 200


def test_keys_and_quotas(tmp_path):
    keys = [{"name": "app", "sha256": hashlib.sha256(b"s3cret").hexdigest(), "reports_per_minute": 50}]
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    with running(
        tmp_path / "store.db", {"default": PLAN}, upload_keys=read_upload_keys(tmp_path / "keys.json")
    ) as service:
        key = {"Authorization": "Bearer s3cret"}
        assert service.send_batch(batch()).status == 401
        assert service.send_batch(batch(), headers={"Authorization": "Bearer wrong"}).status == 401
        assert service.send_batch(batch(), headers=key).status == 200
        assert service.send_batch(batch(), headers=key).status == 200
        answer = service.send_batch(batch(), headers=key)
        assert answer.status == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert service.tally().reports == 40


def test_a_quota_is_never_overdrawn_and_survives_a_restart(tmp_path):
    key = UploadKey("app", hashlib.sha256(b"s3cret").digest(), 30)
    with running(tmp_path / "store.db", {"default": PLAN}, upload_keys=(key,)) as service:
        answer = send_with_key(service, batch(31))
        assert (answer.status, answer.json()["error"]) == (413, "TooLarge")
        assert "at most 30 reports" in answer.json()["message"]
        assert send_with_key(service, batch(25)).status == 200
        answer = send_with_key(service, batch(25))
        assert (answer.status, answer.json()["error"], answer.headers["Retry-After"]) == (429, "QuotaExceeded", "50")
    with running(tmp_path / "store.db", {"default": PLAN}, upload_keys=(key,)) as service:
        assert send_with_key(service, batch(25)).status == 429
        assert service.tally().reports == 25


def test_a_token_is_worth_one_report(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, single_use_tokens=True) as service:
        made = service.post_json("/v1/collections/default/epochs/1/tokens", {"count": 2}).json()["tokens"]
        answer = service.send_batch(batch(16_000), token=made[0])
        assert answer.status == 400
        assert "worth one report" in answer.json()["message"]
        assert service.tally().reports == 0
        assert service.send_batch(batch(1), token=made[0]).json() == {"outcome": "counted", "reports": 1}
        single = PLAN.client(seed=3).report("word 4")
        assert service.send_report(PLAN, single, token=made[1]).json() == {"outcome": "counted", "reports": 1}


def test_a_batch_has_a_largest_size(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, batch_reports=100) as service:
        answer = service.send_batch(batch(101))
        assert (answer.status, answer.json()["error"]) == (413, "TooLarge")
        twice = service.send_batch(batch(60) + batch(60, seed=2))
        assert twice.status == 413
        assert service.send_batch(batch(100)).status == 200
        assert service.tally().reports == 100


def test_a_compromised_key_is_subtracted(tmp_path):
    """Before and after closing; what the other key has counted stays."""
    keys = tuple(UploadKey(name, hashlib.sha256(name.encode()).digest(), 1000) for name in ("app", "stolen"))
    base = "/v1/collections/default/epochs/1"
    with running(tmp_path / "store.db", {"default": PLAN}, upload_keys=keys) as service:
        for name in ("app", "stolen"):
            assert service.send_batch(batch(), headers={"Authorization": f"Bearer {name}"}).status == 200
        listed = service.get(f"{base}/keys.json").json()
        assert [(each["key"], each["reports"]) for each in listed] == [("app", 20), ("stolen", 20)]
        service.get(f"{base}/estimate.json")
        assert service.post_json(f"{base}/subtract", {"key": "stolen"}).json() == {"key": "stolen", "reports": 20}
        assert service.tally() == PLAN.tally(batch())
        assert service.post_json(f"{base}/subtract", {"key": "stolen"}).json() == {"key": "stolen", "reports": 0}
        assert service.post_json(f"{base}/subtract", {"key": "nobody"}).status == 404
        assert service.send_batch(batch(), headers={"Authorization": "Bearer stolen"}).status == 200
        service.post(f"{base}/close")
        assert service.post_json(f"{base}/subtract", {"key": "stolen"}).json()["reports"] == 20
        assert service.tally() == PLAN.tally(batch())


@pytest.fixture
def limited(tmp_path):
    """A service whose only key may upload three batches per minute."""
    key = UploadKey("app", hashlib.sha256(b"s3cret").digest(), 60)
    with running(tmp_path / "store.db", {"default": PLAN}, upload_keys=(key,)) as made:
        yield made


def send_with_key(service, *arguments, **options):
    return service.send_batch(*arguments, headers={"Authorization": "Bearer s3cret"}, **options)


def test_only_what_is_counted_uses_up_a_quota(limited, monkeypatch):
    identity = fresh_id()
    with monkeypatch.context() as patch:
        patch.setattr(limited.collector.store, "commit", fail)
        assert [send_with_key(limited, batch(), identity).status for _ in range(4)] == [503] * 4
    assert [send_with_key(limited, batch(), identity).status for _ in range(8)] == [200] * 8
    assert [send_with_key(limited, batch()).status for _ in range(3)] == [200, 200, 429]
    assert limited.tally().reports == 60


def fail(*_):
    raise StoreError("the disk is full")


def test_a_closed_epoch_uses_up_no_quota(limited, tmp_path):
    """Another process closes the epoch, so the service notices only when it writes."""
    beside = SqliteStore(tmp_path / "store.db")
    beside.close_epoch(1)
    beside.close()
    answers = [send_with_key(limited, batch()) for _ in range(5)]
    assert [answer.status for answer in answers] == [410] * 5
    assert not limited.collector.known("default", 1).epoch.is_open


def test_requests_without_a_key_do_not_reach_the_store(limited, monkeypatch):
    """Without a key, no request reaches the store."""
    monkeypatch.setattr(limited.collector.store, "epochs", fail)
    assert limited.send_batch(batch(), collection="nobody").status == 401
    assert limited.send_batch(batch(), epoch=9).status == 401


def test_an_epoch_closed_during_a_read_is_wiped_afterwards(tmp_path):
    """The writer does so by itself, without another report to trigger it."""
    log = tmp_path / "store.db-wal"
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        service.send_batch(batch())
        wait_until_empty(log)
        reader = SqliteStore(tmp_path / "store.db")
        with reader.transaction(reading=True):
            reader.epochs()
            assert service.post("/v1/collections/default/epochs/1/close").json()["open"] is False
            assert log.stat().st_size > 0
        reader.close()
        wait_until_empty(log)


def wait_until_empty(file):
    until = time.monotonic() + 60
    while file.stat().st_size > 0:
        assert time.monotonic() < until, f"{file} is not empty"
        time.sleep(0.1)


def test_single_use_tokens_are_spent_once(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, single_use_tokens=True) as service:
        made = service.post_json("/v1/collections/default/epochs/1/tokens", {"count": 2}).json()["tokens"]
        identity = fresh_id()
        assert service.send_batch(batch()).status == 401
        assert service.send_batch(batch(1), token="0" * 64).status == 401
        first = service.send_batch(batch(1), identity, token=made[0])
        assert first.json()["outcome"] == "counted"
        assert service.send_batch(batch(1), identity, token=made[0]).json()["outcome"] == "repeated"
        assert service.send_batch(batch(1), token=made[0]).status == 401
        assert service.send_batch(batch(1), token=made[1]).json()["outcome"] == "counted"
        assert service.tally().reports == 2


def test_tokens_are_revoked(tmp_path):
    base = "/v1/collections/default/epochs/1"
    with running(tmp_path / "store.db", {"default": PLAN}, single_use_tokens=True) as service:
        made = service.post_json(f"{base}/tokens", {"count": 3}).json()["tokens"]
        assert service.send_batch(batch(1), token=made[0]).status == 200
        assert service.request("DELETE", f"{base}/tokens").json() == {"revoked": 2}
        assert service.request("DELETE", f"{base}/tokens").json() == {"revoked": 0}
        assert service.send_batch(batch(1), token=made[1]).status == 401
        again = service.post_json(f"{base}/tokens", {"count": 1}).json()["tokens"]
        assert service.send_batch(batch(1), token=again[0]).status == 200


def test_keys_are_added_and_revoked_without_a_restart(tmp_path):
    file = tmp_path / "keys.json"

    def write(*names):
        keys = [
            {"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "reports_per_minute": 1000}
            for name in names
        ]
        file.write_text(json.dumps(keys))
        return read_upload_keys(file)

    def status(name):
        return service.send_batch(batch(), headers={"Authorization": f"Bearer {name}"}).status

    with running(tmp_path / "store.db", {"default": PLAN}, upload_keys=write("old"), upload_keys_file=file) as service:
        assert (status("old"), status("new")) == (200, 401)
        write("old", "new")
        assert (status("old"), status("new")) == (200, 200)
        write("new")
        assert (status("old"), status("new")) == (401, 200)
        for broken in ("", "[]", '[{"name": "x"}]'):
            file.write_text(broken)
            assert (status("old"), status("new")) == (401, 200)  # nothing changes, and nobody else gets in
        file.unlink()
        assert (status("old"), status("new")) == (401, 200)


def test_another_shards_ids_are_misdirected(tmp_path):
    SqliteStore(tmp_path / "store.db", Shard(1, 2)).close()
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        mine, others = "0001" + "0" * 28, "0002" + "0" * 28
        assert service.send_batch(batch(), mine).status == 200
        assert service.send_batch(batch(), others).status == 421


def test_the_queue_refuses_what_it_cannot_hold(tmp_path):
    """While the store is busy, one deposit is being written, the next waits and the third is refused.

    If all arrive before the writer has taken the first, only that one waits.
    """
    with running(tmp_path / "store.db", {"default": PLAN}, waiting_deposits=1) as service:
        blocker = SqliteStore(tmp_path / "store.db")
        answers = []
        with blocker.transaction():
            threads = [threading.Thread(target=lambda: answers.append(service.send_batch(batch()))) for _ in range(6)]
            for thread in threads:
                thread.start()
            while len(answers) < 4:
                threads[0].join(0.05)
        for thread in threads:
            thread.join()
        blocker.close()
        statuses = [answer.status for answer in answers]
        counted = statuses.count(200)
        assert counted in (1, 2)
        assert statuses.count(503) == 6 - counted
        refused = next(answer for answer in answers if answer.status == 503)
        assert int(refused.headers["Retry-After"]) >= 1
        assert service.tally().reports == 20 * counted


def test_a_batch_that_declares_too_many_reports_is_refused_before_it_is_decoded(service, monkeypatch):
    monkeypatch.setattr(service.collector, "deposit", lambda *_: pytest.fail("it was decoded"))
    many = PLAN.client(seed=1).report_indices(np.zeros(10_001, dtype=np.int64))
    answer = service.send_batch(many)
    assert (answer.status, answer.json()["error"]) == (413, "TooLarge")
