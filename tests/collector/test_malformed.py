"""Thousands of malformed uploads of every kind on real connections: each gets a 4xx, and nothing is counted."""

import http.client
import random
import threading
from collections import Counter
from contextlib import closing

import numpy as np
import pytest
from running import framed, running

import sunzi

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("mss-compact", 200, 2)
FOREIGN = sunzi.make_plan("mss-compact", 201, 2)
CLIENTS = 16


def good_batch(plan=PLAN):
    return plan.client(seed=1).report_indices(np.arange(60))


def mutated(chance, body):
    """One change to valid bytes."""
    kind = chance.randrange(7)
    place = chance.randrange(len(body))
    if kind == 0:
        return body[:place]
    if kind == 1:
        return body + chance.randbytes(1 + chance.randrange(40))
    if kind == 2:
        return body[:place] + bytes([body[place] ^ (1 << chance.randrange(8))]) + body[place + 1 :]
    if kind == 3:
        return chance.randbytes(chance.randrange(400))
    if kind == 4:
        return body[:40] + chance.randbytes(8) + body[48:]
    if kind == 5:
        return good_batch(FOREIGN)
    return body[:place] + body[place + 1 :]


def send_malformed(service, seed, requests, good, statuses):
    """One client, which sends its share of malformed uploads on one connection."""
    chance = random.Random(seed)
    with closing(http.client.HTTPConnection(service.host, service.port, timeout=30)) as connection:
        for number in range(requests // CLIENTS):
            body = mutated(chance, good) if number % 20 else chance.randbytes(3000)
            kind, query = ("batches", "") if number % 3 else ("reports", f"?plan={PLAN.fingerprint}")
            if (kind == "reports" and len(body) == 2) or body == good:
                continue  # may be a valid report, or is the valid batch
            connection.request("POST", f"/v1/collections/default/epochs/1/{kind}{query}", framed(body))
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)


def test_malformed_uploads_are_refused_and_leave_nothing(tmp_path, pytestconfig):
    requests = 8_000 if pytestconfig.getoption("--long") else 2_000
    good, statuses = good_batch(), []
    with running(tmp_path / "store.db", {"default": PLAN}, body_bytes=2000) as service:
        clients = [
            threading.Thread(target=send_malformed, args=(service, seed, requests, good, statuses))
            for seed in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert set(statuses) == {400, 413}, Counter(statuses)
        assert len(statuses) > 0.9 * requests
        assert service.tally().reports == 0
        assert service.collector.store.identity_count(1) == 0
        assert service.send_batch(good).json() == {"outcome": "counted", "reports": 60}
