"""The audit log: what operators did, and nothing about clients."""

import hashlib
import json

import numpy as np
import pytest
from running import fresh_id, running

import sunzi
from sunzi.client.errors import StoreError
from sunzi.collector import service as service_module
from sunzi.collector.audit_log import AuditLog
from sunzi.collector.settings import UploadKey

PLAN = sunzi.make_plan("ss-compact", 50, 2)
BASE = "/v1/collections/default/epochs/1"
TOKEN = "an-admin-token-of-some-length"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_operators_are_logged_and_clients_are_not(tmp_path):
    path, identity, admin = tmp_path / "audit.log", fresh_id(), {"Authorization": f"Bearer {TOKEN}"}
    with running(tmp_path / "store.db", {"default": PLAN}, admin_token=TOKEN, audit_log=path) as service:
        service.send_batch(PLAN.client(seed=1).report_indices(np.arange(50)), identity)
        for name in ("status.json", "estimate.json", "tally"):
            assert service.get(f"{BASE}/{name}", **admin).status == 200
        made = service.post_json(f"{BASE}/tokens", {"count": 2}, admin).json()["tokens"]
        assert service.post_json(f"{BASE}/subtract", {"key": ""}, admin).status == 200
        assert service.post(f"{BASE}/close", headers=admin).status == 200
        assert service.get(f"{BASE}/tally").status == 401
    *found, refused = lines(path)
    assert refused["action"] == "refused"
    assert [line["action"] for line in found] == [
        "estimate", "download_tally", "make_tokens", "subtract_key", "close_epoch",
    ]  # fmt: skip
    assert {line["operator"] for line in found} == {hashlib.sha256(TOKEN.encode()).hexdigest()[:8]}
    assert {(line["collection"], str(line["epoch"]), line["status"]) for line in found} == {("default", "1", 200)}
    assert (found[2]["count"], found[3]["key"]) == (2, "")
    assert path.stat().st_mode & 0o777 == 0o600
    for secret in (identity, TOKEN, *made):
        assert secret not in path.read_text()


@pytest.mark.slow
def test_refused_operators_are_logged_without_what_they_sent(tmp_path, monkeypatch):
    """At most one line per minute, route and key, so that strangers cannot fill the disk."""
    monkeypatch.setattr(service_module, "_WRONG_TOKEN_SECONDS", 0.0)
    path = tmp_path / "audit.log"
    key = UploadKey("app", hashlib.sha256(b"the-secret-of-the-app").digest(), 10)
    settings = {"admin_token": TOKEN, "audit_log": path, "upload_keys": (key,)}
    with running(tmp_path / "store.db", {"default": PLAN}, **settings) as service:
        for _ in range(4):
            assert service.get(f"{BASE}/tally", Authorization="Bearer wrong-secret").status == 401
        assert service.get("/v1/collections/stranger/epochs/7/tally").status == 401
        assert service.post(f"{BASE}/close", headers={"Authorization": "Bearer the-secret-of-the-app"}).status == 401
        assert len(lines(path)) == 2
    found = lines(path)
    assert all(line.pop("time") for line in found)
    tally, close = ("/v1/collections/{collection}/epochs/{epoch}/" + name for name in ("tally", "close"))
    refused = {"operator": None, "action": "refused", "status": 401, "key": None}
    assert found == [
        refused | {"method": "GET", "route": tally, "times": 1},
        refused | {"method": "POST", "route": close, "times": 1, "key": "app"},
        refused | {"method": "GET", "route": tally, "times": 4},
    ]


@pytest.mark.slow
def test_pages_of_other_origins_are_logged(tmp_path):
    with running(tmp_path / "store.db", {"default": PLAN}, audit_log=tmp_path / "audit.log") as service:
        assert service.post(f"{BASE}/close", headers={"Origin": "http://evil.example"}).status == 403
    (line,) = lines(tmp_path / "audit.log")
    assert (line["action"], line["status"]) == ("refused", 403)
    assert "evil" not in str(line)


def test_a_refusal_is_logged_again_after_a_minute(tmp_path, monkeypatch):
    log = AuditLog(tmp_path / "audit.log")
    for now in (1000.0, 1001.0, 1059.0, 1060.0, 1061.0):
        monkeypatch.setattr("sunzi.collector.audit_log.time.time", lambda now=now: now)
        log.write_refusal(401, "GET", "/metrics", None)
    log.close()
    log.close()
    assert [(line["time"], line["times"]) for line in lines(tmp_path / "audit.log")] == [
        (1000.0, 1),
        (1060.0, 3),
        (1061.0, 1),
    ]


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="audit log"):
        AuditLog(tmp_path / "no" / "audit.log").write(None, "close_epoch", 200, {})
    AuditLog(None).write(None, "close_epoch", 200, {})


def test_a_collector_without_an_admin_token_is_local(tmp_path):
    AuditLog(tmp_path / "audit.log").write(None, "close_epoch", 200, {"epoch": 1})
    assert lines(tmp_path / "audit.log")[0]["operator"] == "local"
