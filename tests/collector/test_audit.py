"""The audit log: what operators did, and nothing about clients."""

import hashlib
import json

import numpy as np
import pytest
from running import fresh_id, running

import sunzi
from sunzi.collector.audit import AuditLog
from sunzi.errors import StoreError

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
    found = lines(path)
    assert [line["action"] for line in found] == [
        "estimate", "download_tally", "make_tokens", "subtract_key", "close_epoch",
    ]  # fmt: skip
    assert {line["operator"] for line in found} == {hashlib.sha256(TOKEN.encode()).hexdigest()[:8]}
    assert {(line["collection"], str(line["epoch"]), line["status"]) for line in found} == {("default", "1", 200)}
    assert (found[2]["count"], found[3]["key"]) == (2, "")
    assert path.stat().st_mode & 0o777 == 0o600
    for secret in (identity, TOKEN, *made):
        assert secret not in path.read_text()


def test_a_log_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="audit log"):
        AuditLog(tmp_path / "no" / "audit.log").write(None, "close_epoch", 200, {})
    AuditLog(None).write(None, "close_epoch", 200, {})


def test_a_collector_without_an_admin_token_is_local(tmp_path):
    AuditLog(tmp_path / "audit.log").write(None, "close_epoch", 200, {"epoch": 1})
    assert lines(tmp_path / "audit.log")[0]["operator"] == "local"
