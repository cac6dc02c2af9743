"""`sunzi serve` is killed at random moments while clients send, repeat and resend: every report is counted once.

Each upload reports a different value, so a 2 in the tally proves a double count and a 0 a loss.
"""

import http.client
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from running import framed

import sunzi
from sunzi.collector.sqlite import SqliteStore
from sunzi.collector.stores import find_epoch, stored_tally

pytestmark = pytest.mark.slow

KILLS = 5
PLAN = sunzi.make_plan("grr", 60_000, 5, groups={"parity": ["even", "odd"]})


def crafted(value):
    """The two bytes of a truthful report of this value."""
    return value.to_bytes(2, "little")


def group_of(value):
    return f"parity={'odd' if value % 2 else 'even'}"


class Service:
    """Start a process on its own port; its standard error says when it listens."""

    def __init__(self, directory):
        self._directory = directory
        self.process = None

    def start(self):
        command = [sys.executable, "-m", "sunzi", "serve", "plan.json", "--store", "store.db", "--port", "0"]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=self._directory, stderr=subprocess.PIPE, text=True, env=environment
        )
        for line in self.process.stderr:
            if line.startswith("collecting at "):
                return int(line.split(";")[0].rpartition(":")[2])
        raise AssertionError("the service ended by itself")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stderr.close()


def send(port, chance, pending, acknowledged, until):
    """One client: upload all pending reports, and half of the acknowledged ones again, until the service dies."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        upload_until_dead(connection, chance, pending, acknowledged, until)


def upload_until_dead(connection, chance, pending, acknowledged, until):
    while time.monotonic() < until:
        again = bool(acknowledged) and chance.random() < 0.5
        source = acknowledged if again else pending
        try:
            identity, value = chance.choice(list(source.items())) if again else source.popitem()
        except (KeyError, RuntimeError):  # nothing left, or another client changed the list meanwhile
            continue
        path = f"/v1/collections/default/epochs/1/reports?plan={PLAN.fingerprint}"
        try:
            connection.request("POST", path, framed(crafted(value), identity, groups=group_of(value)))
            answer = connection.getresponse()
            content = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            if not again:
                pending[identity] = value
            return
        if answer.status == 503:  # busy: not acknowledged, so it is sent again
            if not again:
                pending[identity] = value
            continue
        assert answer.status == 200, content
        assert content["outcome"] == "repeated" or not again
        acknowledged[identity] = value


def test_every_acknowledged_report_is_counted_once_despite_kills(tmp_path):
    PLAN.save(tmp_path / "plan.json")
    chance, service = random.Random(5), Service(tmp_path)
    values = iter(range(PLAN.domain.size))
    pending, acknowledged = {}, {}
    for _ in range(KILLS):
        while len(pending) < 400:
            pending[secrets.token_hex(16)] = next(values)
        port = service.start()
        until = time.monotonic() + 20
        threads = [
            threading.Thread(target=send, args=(port, random.Random(seed), pending, acknowledged, until))
            for seed in range(6)
        ]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.05, 0.8))
        service.kill()
        for thread in threads:
            thread.join()
    last = {}
    port = service.start()  # send the unacknowledged ones again, undisturbed
    while pending:
        send(port, random.Random(9), pending, last, time.monotonic() + 1)
    service.kill()
    store = SqliteStore(tmp_path / "store.db", create=False)
    epoch = find_epoch(store, "default")
    tally, odd, even = (stored_tally(store, epoch, PLAN, group) for group in ("", "parity=odd", "parity=even"))
    store.close()
    sent = np.zeros(PLAN.domain.size, dtype=np.int64)
    sent[: next(values)] = 1
    assert np.array_equal(tally.counts, sent)
    assert np.array_equal(odd.counts, sent * (np.arange(sent.size) % 2))
    assert tally == odd + even
    assert len(acknowledged) > 50
