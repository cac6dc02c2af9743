"""Thousands of malformed uploads, of every kind, on real connections: each a clean 4xx, and nothing counted."""

import http.client
import random
from collections import Counter

import numpy as np
from running import fresh_id, running

import sunzi

PLAN = sunzi.make_plan("mss-compact", 200, 2)
FOREIGN = sunzi.make_plan("mss-compact", 201, 2)
REQUESTS = 4_000


def good_batch(plan=PLAN):
    return plan.client(seed=1).report_indices(np.arange(60))


def mutated(chance, body):
    """One change to good bytes."""
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


def test_malformed_uploads_are_refused_and_leave_nothing(tmp_path):
    chance, good = random.Random(3), good_batch()
    with running(tmp_path / "store.db", {"default": PLAN}, body_bytes=2000) as service:
        connection = http.client.HTTPConnection(service.host, service.port, timeout=30)
        statuses = Counter()
        for number in range(REQUESTS):
            body = mutated(chance, good) if number % 20 else chance.randbytes(3000)
            kind, query = ("batches", "") if number % 3 else ("reports", f"&plan={PLAN.fingerprint}")
            if (kind == "reports" and len(body) == 2) or body == good:
                continue  # may be a good report, or is the good batch
            path = f"/v1/collections/default/epochs/1/{kind}?id={fresh_id()}{query}"
            connection.request("POST", path, body)
            answer = connection.getresponse()
            answer.read()
            statuses[answer.status] += 1
        connection.close()
        assert set(statuses) <= {400, 413}, statuses
        assert sum(statuses.values()) > 0.9 * REQUESTS
        assert service.tally().reports == 0
        assert service.collector.store.identity_count(1) == 0
        assert service.send_batch(good).json() == {"outcome": "counted", "reports": 60}
