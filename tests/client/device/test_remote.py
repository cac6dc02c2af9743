"""Sending to a collector: until it acknowledges, only its own answer counts, and no server holds up a device."""

import itertools
import json
import re
import socket
import threading
from contextlib import closing

import numpy as np
import pytest
from agreeing import agreed
from hostile import hostile, response
from listening import answering
from running import running

import sunzi
from sunzi.client import Plan, RemoteCollection, RemoteEpoch, Sender, UnauthorizedError
from sunzi.client.device import remote as remote_module
from sunzi.client.errors import ParameterError, PlanError, PrivacyError, ReportError, StoreError, SunziError

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


def test_a_remote_collection_sends_until_acknowledged(service):
    remote = RemoteCollection(service.address, max_epsilon=2)
    epoch = remote.current()
    assert (epoch.plan, type(epoch.plan)) == (PLAN, Plan), "without numpy"
    assert remote.upload(epoch, batch(), bytes(16)) == "counted"
    assert remote.upload(epoch, batch(), bytes(16)) == "repeated"
    assert remote.upload(epoch, PLAN.client(seed=4).report("word 3")) == "counted"
    assert service.tally().reports == 21
    with pytest.raises(ReportError, match="refused"):
        remote.upload(epoch, batch()[:-1])
    remote.close()


def test_a_remote_collection_waits_for_a_collector_that_is_away():
    slept = []
    remote = RemoteCollection("http://127.0.0.1:9", max_epsilon=1, patience=5, sleep=slept.append)
    with pytest.raises(StoreError, match="could not be reached"):
        remote.current()
    assert len(slept) >= 3
    assert slept[-1] > slept[0]


def test_a_plan_above_the_limit_is_refused(service):
    with closing(RemoteCollection(service.address, max_epsilon="1/2")) as remote, pytest.raises(PrivacyError):
        remote.current()
    with closing(RemoteCollection(service.address, max_epsilon=None)) as remote:
        assert remote.current().plan == PLAN
    with pytest.raises(TypeError, match="max_epsilon"):
        RemoteCollection(service.address)


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
            lambda remote: remote.send(1, PLAN.fingerprint, b"\x01", bytes(16)),
        ):
            with closing(RemoteCollection(address, max_epsilon=2, patience=0)) as remote:
                with pytest.raises(SunziError) as caught:
                    call(remote)
                assert isinstance(caught.value, (StoreError, PlanError))
                assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("wait", ["²", "1e9", "-1", "inf", "9" * 5000, "", "soon"])
def test_a_strange_retry_after_holds_up_no_other_collector(service, tmp_path, wait):
    device = agreed(tmp_path / "device.db", 5, max_epsilon=2)
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
        remote = RemoteCollection(address, max_epsilon=2, patience=0)
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
        with closing(RemoteCollection(address, max_epsilon=2, patience=0.3)) as remote, pytest.raises(StoreError):
            remote.current()
        left.set()


@pytest.mark.usefixtures("hurried")
def test_a_dns_lookup_ends_with_patience(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(30) and [])
    with closing(RemoteCollection("http://collector.example", max_epsilon=2, patience=0)) as remote:
        with pytest.raises(StoreError, match="connecting took too long"):
            remote.current()
        answered.set()


@pytest.mark.usefixtures("hurried")
def test_a_silent_tls_handshake_ends_with_patience():
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(
            RemoteCollection(f"https://127.0.0.1:{listener.getsockname()[1]}", max_epsilon=2, patience=0)
        ) as remote,
        pytest.raises(StoreError, match=r"timed out|too long"),
    ):
        remote.current()


def test_addresses():
    for address in ("http://host:abc", "http://host:99999", "ftp://host", "host:80", "http://", "http://[host"):
        with pytest.raises(ParameterError, match=re.escape(repr(address))):
            RemoteCollection(address, max_epsilon=1)
    with closing(
        RemoteCollection("http://user:password@[::1]:80/base/v1/collections/browsers", max_epsilon=1)
    ) as remote:
        assert remote.url == "http://[::1]/base/v1/collections/browsers"


RECEIPT = b'{"outcome":"counted","reports":1}'
REFUSAL = b'{"error":"ClosedEpochError","message":"epoch 1 is closed"}'
REDIRECTS = (301, 302, 303, 307, 308)
EPOCH = "/v1/collections/default/epochs/1"


@pytest.mark.parametrize("believable", [RECEIPT, REFUSAL, b""], ids=["receipt", "refusal", "empty"])
@pytest.mark.parametrize("status", REDIRECTS)
def test_redirects_are_neither_followed_nor_believed(tmp_path, status, believable):
    """Whoever redirects may be anyone between the device and its collector."""
    with answering(200, RECEIPT) as (elsewhere, followed):
        for target in (f"{elsewhere}{EPOCH}/reports", "/elsewhere", None):
            headers = {} if target is None else {"Location": target}
            with answering(status, believable, headers) as (address, asked):
                device = agreed(tmp_path / f"{len(address)}{target is None}.db", 5, max_epsilon=2)
                device.queue(PLAN, "word", "word 1", f"{address}{EPOCH}", several=True)
                waiting = device.waiting()
                with closing(Sender(patience=0)) as sender:
                    assert device.flush(sender) == 0
                    with pytest.raises(StoreError, match=f"not a collector's response \\({status}\\)"):
                        sender(waiting[-1])
                assert device.waiting() == waiting
                assert {each.path.partition("?")[0] for each in asked} == {f"{EPOCH}/reports"}
        assert followed == []


@pytest.mark.parametrize("status", REDIRECTS)
def test_no_plan_is_loaded_from_where_a_redirect_leads(status):
    with answering(200, envelope()) as (elsewhere, followed):
        headers = {"Location": f"{elsewhere}/v1/collections/default/plan"}
        with answering(status, envelope(), headers) as (address, asked):
            remote = RemoteCollection(address, max_epsilon=2, patience=0)
            with closing(remote), pytest.raises(StoreError, match=f"answers {status}"):
                remote.current()
            assert len(asked) == 1
        assert followed == []


@pytest.mark.parametrize("body", [REFUSAL, RECEIPT, b"Method Not Allowed"], ids=["refusal", "receipt", "text"])
def test_a_method_that_is_not_allowed_loses_no_report(tmp_path, body):
    """Proxies answer so when another redirect has turned POST into GET."""
    device = agreed(tmp_path / "device.db", 5, max_epsilon=2)
    with answering(405, body) as (address, _):
        device.queue(PLAN, "word", "word 1", f"{address}{EPOCH}")
        waiting = device.waiting()
        with closing(Sender(patience=0)) as sender:
            assert device.flush(sender) == 0
        assert device.waiting() == waiting


def test_a_request_carries_nothing_that_tells_devices_apart(tmp_path):
    """No cookie or tag of an earlier answer, no key unless the application gives one, and no name of the program."""
    device = agreed(tmp_path / "device.db", 5, max_epsilon=2)
    kept = {"Set-Cookie": "id=1", "ETag": '"1"', "Last-Modified": "Thu, 01 Jan 1970 00:00:00 GMT"}
    with answering(200, RECEIPT, kept) as (address, asked):
        for number in (1, 2):
            device.queue(PLAN, "word", "word 1", f"{address}/v1/collections/default/epochs/{number}")
        queued = device.waiting()
        assert device.flush() == 2
    for report, each in zip(queued, asked, strict=True):
        assert set(each.headers) == {"Host", "Accept-Encoding", "Content-Length", "Content-Type"}
        assert each.body == report.identity.hex().encode() + b"\n" + report.body
    with answering(200, envelope(), kept) as (address, asked):
        with closing(RemoteCollection(address, max_epsilon=2)) as remote:
            assert remote.current() == remote.current()
        assert [set(each.headers) for each in asked] == [{"Host", "Accept-Encoding"}] * 2


def test_a_key_is_sent_to_whom_it_belongs(tmp_path):
    device = agreed(tmp_path / "device.db", 5, max_epsilon=2)
    with answering(401, REFUSAL) as (address, asked):
        device.queue(PLAN, "word", "word 1", f"{address}{EPOCH}", token="ab" * 32)
        with closing(Sender(secret="upload-key")) as sender, pytest.raises(UnauthorizedError):
            sender(device.waiting()[0])
    assert asked[0].headers["Authorization"] == "Bearer upload-key"
    assert asked[0].body.startswith(device.waiting()[0].identity.hex().encode() + b" " + b"ab" * 32 + b"\n")


def test_undeclared_groups_are_refused_before_anything_is_sent():
    plan = sunzi.make_plan("grr", 100, 1, groups={"country": ["DE"]})
    with answering(200, RECEIPT) as (address, asked), closing(RemoteCollection(address, max_epsilon=1)) as remote:
        epoch = RemoteEpoch(plan, "default", 1, True)
        with pytest.raises(ParameterError, match="country"):
            remote.upload(epoch, b"\x07", groups={"country": "IT"})
        assert asked == []
        assert remote.upload(epoch, b"\x07", bytes(16), groups={"country": "DE"}) == "counted"
        assert asked[0].body == b"0" * 32 + b" country=DE\n\x07"
