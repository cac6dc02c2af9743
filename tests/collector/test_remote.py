"""The client of a collector: it sends until acknowledged and waits while the collector is unreachable."""

import itertools
import json
import re
import socket
import threading
from contextlib import closing, contextmanager

import numpy as np
import pytest
from running import running

import sunzi
from sunzi.client.device.device import Device
from sunzi.client.device.remote import Sender
from sunzi.client.errors import PlanError, PrivacyError, ReportError, StoreError, SunziError
from sunzi.collector import remote as remote_module
from sunzi.collector.remote import RemoteCollector

PLAN = sunzi.make_plan("ss-compact", [f"word {number}" for number in range(50)], 2)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("service") / "store.db", {"default": PLAN}) as made:
        yield made


@pytest.fixture
def hurried(monkeypatch):
    """Each attempt gets a fifth of a second, not a whole one."""
    monkeypatch.setattr(remote_module, "_LEAST_SECONDS", 0.2)


def batch():
    return PLAN.client(seed=1).report_indices(np.arange(20))


def test_the_remote_collector_sends_until_acknowledged(service):
    remote = RemoteCollector(service.address, max_epsilon=2)
    epoch = remote.current()
    assert epoch.plan == PLAN
    assert remote.upload(epoch, batch(), bytes(16)) == "counted"
    assert remote.upload(epoch, batch(), bytes(16)) == "repeated"
    assert remote.upload(epoch, PLAN.client(seed=4).report("word 3")) == "counted"
    plan, tally = remote.tally()
    assert (plan, tally.reports) == (PLAN, 21)
    with pytest.raises(ReportError, match="refused"):
        remote.upload(epoch, batch()[:-1])
    remote.close()


def test_the_remote_collector_waits_for_one_that_is_away(tmp_path):
    slept = []
    remote = RemoteCollector("http://127.0.0.1:9", max_epsilon=1, patience=5, sleep=slept.append)
    with pytest.raises(StoreError, match="could not be reached"):
        remote.current()
    assert len(slept) >= 3
    assert slept[-1] > slept[0]


def test_a_plan_above_the_limit_is_refused(service):
    with closing(RemoteCollector(service.address, max_epsilon="1/2")) as remote, pytest.raises(PrivacyError):
        remote.current()
    with closing(RemoteCollector(service.address, max_epsilon=None)) as remote:
        assert remote.current().plan == PLAN
    with pytest.raises(TypeError, match="max_epsilon"):
        RemoteCollector(service.address)


@contextmanager
def hostile(*pieces):
    """A server that sends these bytes to every client, whatever it asks; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def answer(connection):
        with connection:
            try:
                connection.recv(1 << 16)
                for piece in pieces if len(pieces) > 1 else pieces[0]:
                    connection.sendall(piece)
                    if is_over.is_set():
                        return
            except OSError:
                pass

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


def response(body, *headers, status="200 OK"):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def envelope(**changes):
    terms = {"epoch": 1, "open": True, "fingerprint": PLAN.fingerprint, "plan": PLAN.to_json()}
    return json.dumps({**terms, **changes}).encode()


NESTED = b"[" * 100_000
WRONG = [
    b"",
    b"null",
    b"[]",
    b"{}",
    NESTED,
    NESTED + b"]" * 100_000,
    b'{"plan":' + NESTED,
    envelope().replace(b'"epoch": 1', b'"epoch": 1e999'),
    envelope().replace(b'"epoch": 1', b'"epoch": ' + b"9" * 1_000_000),
    *(envelope(epoch=number) for number in (None, "1", True, 1.0, 0, -1, 1 << 40, [1], {})),
    envelope(epoch=float("nan")),
    envelope(plan=None),
    *(envelope(plan=plan) for plan in ([], "plan", 1, {}, {"format": "sunzi-plan", "version": 10**4000})),
    envelope(plan={**PLAN.to_json(), "epsilon": "9" * 1_000_000}),
    envelope(plan={**PLAN.to_json(), "domain": {"size": 2, "labels": ["a" * 1_000_000] * 2}}),
    envelope(plan={**PLAN.to_json(), "domain": {"size": 2, "labels": ["a" * 1_000_000, None]}}),
    envelope(plan={**PLAN.to_json(), "a" * 1_000_000: 1}),
    envelope(fingerprint=None),
]


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_wrong_answers_are_our_own_short_errors(body):
    with hostile(response(body), b"") as address:
        for call in (
            lambda remote: remote.current(),
            lambda remote: remote.tally(),
            lambda remote: remote.send(1, PLAN.fingerprint, b"\x01", bytes(16)),
        ):
            with closing(RemoteCollector(address, max_epsilon=2, patience=0)) as remote:
                with pytest.raises(SunziError) as caught:
                    call(remote)
                assert isinstance(caught.value, (StoreError, PlanError))
                assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("wait", ["²", "1e9", "-1", "inf", "9" * 5000, "", "soon"])
def test_a_strange_retry_after_holds_up_no_other_collector(service, tmp_path, wait):
    device = Device(tmp_path / "device.db", 5, max_epsilon=2)
    with hostile(response(b"busy", f"Retry-After: {wait}", status="503 Busy"), b"") as address:
        device.queue(PLAN, "word", "word 1", f"{address}/v1/collections/default/epochs/1")
        device.queue(PLAN, "word", "word 1", f"{service.address}/v1/collections/default/epochs/1")
        with closing(Sender(patience=0.1)) as sender:
            assert device.flush(sender) == 1
    assert len(device.waiting()) == 1


CHUNK = b"10000\r\n" + b" " * 65536 + b"\r\n"
ENDLESS = [
    itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], itertools.repeat(b" " * (1 << 20))),
    itertools.chain([b"HTTP/1.1 200 OK\r\nContent-Length: 629145600\r\n\r\n"], itertools.repeat(b" " * (1 << 20))),
    itertools.chain([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], itertools.repeat(CHUNK)),
    itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
]


@pytest.mark.parametrize("pieces", ENDLESS, ids=range(len(ENDLESS)))
@pytest.mark.usefixtures("hurried")
def test_endless_answers_are_not_read(pieces):
    with hostile(pieces) as address:
        remote = RemoteCollector(address, max_epsilon=2, patience=0)
        with closing(remote), pytest.raises(StoreError, match=re.escape(address)):
            remote.send(1, PLAN.fingerprint, b"\x01", bytes(16))


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=range(3))
@pytest.mark.usefixtures("hurried")
def test_dripping_bytes_end_with_patience(start):
    """Each byte comes within a socket's timeout; the server goes on until the client leaves."""
    left = threading.Event()

    def drip():
        yield start
        while not left.wait(0.02):
            yield b"H"

    with hostile(drip()) as address:
        with closing(RemoteCollector(address, max_epsilon=2, patience=0.3)) as remote, pytest.raises(StoreError):
            remote.current()
        left.set()


@pytest.mark.usefixtures("hurried")
def test_a_dns_lookup_ends_with_patience(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(30) and [])
    with closing(RemoteCollector("http://collector.example", max_epsilon=2, patience=0)) as remote:
        with pytest.raises(StoreError, match="connecting took too long"):
            remote.current()
        answered.set()


@pytest.mark.usefixtures("hurried")
def test_a_silent_tls_handshake_ends_with_patience():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(RemoteCollector(f"https://127.0.0.1:{listener.getsockname()[1]}", max_epsilon=2, patience=0)) as remote,
        pytest.raises(StoreError, match=r"timed out|too long"),
    ):
        remote.current()
