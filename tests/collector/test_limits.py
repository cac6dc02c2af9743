"""Slow, long and malformed requests are refused or cut off; nothing about clients is logged."""

import asyncio
import errno
import http.client
import logging
import resource
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from itertools import islice

import numpy as np
import pytest
from running import Running, fresh_id, running
from serving import serving_process

import sunzi
from sunzi.collector import Settings, limits

pytestmark = pytest.mark.slow

PLAN = sunzi.make_plan("ss-compact", 50, 2)
TOKEN = "a-token-of-sixteen-or-more"
ADMIN = f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture
def service(tmp_path):
    with running(
        tmp_path / "store.db", {"default": PLAN}, header_seconds=1.5, body_seconds=1.5, header_bytes=4096
    ) as made:
        yield made


def batch():
    return PLAN.client(seed=1).report_indices(np.arange(20))


def closes_within(connection, seconds):
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):  # the rest of a response
            pass
        return True
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "]
)
def test_a_connection_without_a_request_is_closed(service, sent):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(sent)
        begun = time.monotonic()
        assert closes_within(connection, 20)
        assert time.monotonic() - begun > 1
    assert service.send_batch(batch()).status == 200


def test_a_connection_with_a_dripping_header_is_closed(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            drip(connection, b"X: y\r\n")


def drip(connection, drop):
    for _ in range(200):
        connection.sendall(drop)
        time.sleep(0.1)


def test_a_connection_with_an_endless_header_is_closed(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        try:
            for number in range(1000):
                connection.sendall(f"X-{number}: {'y' * 100}\r\n".encode())
        except (ConnectionResetError, BrokenPipeError):
            return
        assert closes_within(connection, 20)


@pytest.mark.parametrize(
    "begun", [b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ", b"GET /", b"%s\r\n1\r\nx\r\n0\r\nX-Long: "]
)
def test_a_connection_with_an_endless_line_is_closed(service, begun):
    """A header, path or trailer that the parser does not report until it is complete."""
    head = "POST /v1/collections/default/epochs/1/batches HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(begun.replace(b"%s", head.encode()))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_in_pieces(connection, b"y" * 65536, 500)
    assert service.get("/health").status == 200


def send_in_pieces(connection, piece, count):
    for _ in range(count):
        connection.sendall(piece)


def test_a_connection_that_drips_empty_lines_is_closed(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            drip(connection, b"\r\n")


# Uploads and operator routes, which read bodies, and a route that reads none.
BODIES = {
    "upload": "/v1/collections/default/epochs/1/batches",
    "operator": "/v1/collections/new/epochs",
    "nobody": "/nowhere",
}


def begin(connection, path, headers):
    connection.settimeout(20)
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{headers}\r\n".encode())


@pytest.fixture
def strict(tmp_path):
    settings = {"body_bytes": 1000, "body_seconds": 1.5, "admin_token": TOKEN}
    with running(tmp_path / "strict.db", {"default": PLAN}, **settings) as made:
        yield made


@pytest.mark.parametrize("path", [BODIES["upload"], BODIES["operator"]])
@pytest.mark.parametrize("headers", ["Content-Length: 1001\r\n", "Transfer-Encoding: chunked\r\n"])
def test_no_route_reads_a_body_that_is_too_large(strict, path, headers):
    with socket.create_connection((strict.host, strict.port)) as connection:
        begin(connection, path, ADMIN + headers)
        connection.sendall(b"3e9\r\n" + b" " * 1001 if "chunked" in headers else b"")
        answer = connection.recv(4096)
        while not answer.endswith(b"}"):  # it may arrive in pieces
            answer += connection.recv(4096)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer
        assert b"TooLarge" in answer


@pytest.mark.parametrize("path", ["/v1/collections/new/epochs", "/v1/collections/default/epochs/1/tokens"])
@pytest.mark.parametrize("headers", ["", "Authorization: Bearer wrong\r\n"])
def test_an_operator_route_refuses_a_stranger_before_it_reads_the_body(strict, path, headers):
    with socket.create_connection((strict.host, strict.port)) as connection:
        begin(connection, path, f"{headers}Content-Length: 900\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("path", [BODIES["upload"], BODIES["operator"]])
def test_no_route_waits_for_ever_for_a_body(strict, path):
    with socket.create_connection((strict.host, strict.port)) as connection:
        begin(connection, path, f"{ADMIN}Content-Length: 100\r\n")
        connection.sendall(b"{")
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
        assert closes_within(connection, 20)


@pytest.mark.parametrize(("path", "status"), [(BODIES["upload"], b"413"), (BODIES["nobody"], b"404")])
def test_a_refused_client_cannot_keep_sending(strict, path, status):
    with socket.create_connection((strict.host, strict.port)) as connection:
        begin(connection, path, "Content-Length: 1000000\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 " + status)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            drip(connection, b"x")


def test_a_client_that_sends_too_much_receives_the_error(strict):
    """The client sends the whole body, far more than any buffer holds, before it reads the answer."""
    assert strict.send_batch(bytes(20 << 20)).status == 413


def test_the_rest_of_only_a_few_refused_bodies_is_read(tmp_path):
    with running(tmp_path / "patient.db", {"default": PLAN}, body_seconds=60) as made, ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((made.host, made.port)))
            for _ in range(limits._MOST_DISCARDING + 1)
        ]
        for connection in connections:
            begin(connection, BODIES["nobody"], "Content-Length: 1000000\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 404")
        *_, last, excess = connections
        assert closes_within(excess, 20)
        assert not closes_within(last, 0.1)


def test_a_slow_store_does_not_hold_up_the_service(service, monkeypatch):
    """The first upload to an epoch queries the store; other requests are answered meanwhile."""
    asked, over = threading.Event(), threading.Event()
    find_epoch = service.collector.store.find_epoch

    def slow(*arguments):
        asked.set()
        assert over.wait(30)
        return find_epoch(*arguments)

    monkeypatch.setattr(service.collector.store, "find_epoch", slow)
    answers = []
    late = threading.Thread(target=lambda: answers.append(service.send_batch(batch(), epoch=9).status))
    late.start()
    try:
        assert asked.wait(30)
        assert service.get("/health").status == 200
        assert service.send_batch(batch()).status == 200
        assert answers == []
    finally:
        over.set()
        late.join()
    assert answers == [404]


def test_a_body_that_drips_is_answered_with_408(service):
    head = "POST /v1/collections/default/epochs/1/batches HTTP/1.1\r\nHost: x\r\n"
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(f"{head}Content-Length: 200\r\n\r\n".encode())
        connection.sendall(b"SUNZI")
        connection.settimeout(20)
        assert connection.recv(4096).startswith(b"HTTP/1.1 408")
    assert service.tally().reports == 0


def test_a_keep_alive_connection_is_not_taken_for_a_slow_one(service):
    connection = http.client.HTTPConnection(service.host, service.port, timeout=20)
    connection.connect()
    socket_of_all = connection.sock
    for pause in (0, 2, 2):
        time.sleep(pause)
        connection.request("GET", "/health")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b'{"status":"live"}')
        assert connection.sock is socket_of_all
    connection.close()


@pytest.mark.parametrize(
    "request_bytes",
    [b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\x16\x03\x01\x02"],
)
def test_bytes_that_are_not_http_are_refused(service, request_bytes):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(request_bytes)
        connection.settimeout(20)
        try:
            answer = connection.recv(4096)
        except ConnectionResetError:
            answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert service.get("/health").status == 200


def test_half_open_connections_do_not_keep_others_out(tmp_path, caplog):
    """Neither those without a request nor those that hold back their body; the oldest are closed."""
    with running(tmp_path / "store.db", {"default": PLAN}, connections=20) as service, ExitStack() as stack:
        for number in range(200):
            connection = stack.enter_context(socket.create_connection((service.host, service.port)))
            if number % 2:
                begin(connection, BODIES["upload"], "Content-Length: 100\r\n")
            if number == 0:
                oldest = connection
        assert service.send_batch(batch()).status == 200
        assert closes_within(oldest, 20)
    assert caplog.text == ""


@pytest.fixture
def many_files():
    """Lets this process open more files than the collector may."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))"


def test_more_half_open_connections_than_files_cause_no_outage(tmp_path, many_files):
    """Every honest upload is counted meanwhile, and nothing is logged."""
    PLAN.save(tmp_path / "plan.json")
    with serving_process(tmp_path, "plan.json", before=FEW_FILES) as (process, url):
        service = Running(url, None)
        with ExitStack() as stack:
            for number in range(1300):
                connection = stack.enter_context(socket.create_connection((service.host, service.port), timeout=20))
                if number % 3:
                    begin(connection, BODIES["upload"], "Content-Length: 100\r\n" if number % 3 == 1 else "X-Slow: ")
                if number % 100 == 0:
                    assert service.send_batch(batch()).status == 200
        process.terminate()
        assert process.stderr.read() == ""


def test_a_lack_of_files_is_logged_once_a_minute(caplog, monkeypatch):
    handler, loop = limits.AcceptErrors(), asyncio.new_event_loop()
    context = {"message": "accept failed", "exception": OSError(errno.EMFILE, "Too many open files")}
    for now in (0.0, 1.0, 59.0, 60.0, 61.0):
        monkeypatch.setattr(limits.time, "monotonic", lambda now=now: now)
        handler(loop, context)
    assert [record.message for record in caplog.records] == [
        "new connections have to wait: Too many open files; raise the limit on open files, or lower --connections"
    ] * 2
    handler(loop, {"message": "something else"})
    assert caplog.records[-1].message == "something else"
    loop.close()


def test_too_many_requests_are_answered_with_503(tmp_path, monkeypatch):
    with running(tmp_path / "store.db", {"default": PLAN}, connections=3) as service:
        over, commit = threading.Event(), service.collector.store.commit

        def held_up(deposits):
            assert over.wait(30)
            return commit(deposits)

        monkeypatch.setattr(service.collector.store, "commit", held_up)
        with ThreadPoolExecutor(8) as pool:
            try:
                sent = [pool.submit(service.send_batch, batch()) for _ in range(8)]
                refused = [answer.result() for answer in islice(as_completed(sent), 5)]
            finally:
                over.set()
        assert [answer.status for answer in refused] == [503] * 5
        assert all(answer.headers["Retry-After"] == "2" for answer in refused)
        assert sorted(answer.result().status for answer in sent) == [200] * 3 + [503] * 5
        assert service.send_batch(batch()).status == 200


def test_large_bodies_share_a_limited_memory(tmp_path):
    """While one large body is being read, another is refused and a small one is counted."""
    with running(tmp_path / "store.db", {"default": PLAN}, waiting_bytes=1 << 20, batch_reports=200_000) as service:
        with socket.create_connection((service.host, service.port)) as connection:
            begin(connection, BODIES["upload"], f"Content-Length: {1 << 20}\r\n")
            connection.sendall(bytes(1 << 19))
            for _ in range(200):  # until it has arrived
                answer = service.send_batch(bytes(1 << 20))
                if answer.status == 503:
                    break
            assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
            assert service.send_batch(batch()).status == 200
        large = PLAN.client(seed=1).report_indices(np.zeros(200_000, dtype=np.int64))
        for _ in range(200):  # until the service has seen the end of that connection
            answer = service.send_batch(large)
            if answer.status == 200:
                break
        assert answer.status == 200


def test_few_descriptors_lower_the_limit(monkeypatch):
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: (400, 400))
    assert limits.most_requests(Settings()) == 400 - 212
    assert limits.most_requests(Settings(connections=5)) == 5
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: (limits.resource.RLIM_INFINITY,) * 2)
    assert limits.most_requests(Settings()) == 2000


def test_nothing_of_clients_secrets_or_reports_is_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    token = "an-admin-token-that-is-long"
    with running(tmp_path / "store.db", {"default": PLAN}, admin_token=token) as service:
        identity = fresh_id()
        service.send_batch(batch(), identity)
        service.send_batch(b"garbage-of-a-client", identity)
        service.get("/v1/collections", Authorization=f"Bearer {token}")
        service.get("/v1/collections", Authorization="Bearer wrong-secret")
    for secret in (token, "wrong-secret", identity, "garbage-of-a-client", "127.0.0.1", batch().hex()[:40]):
        assert secret not in caplog.text.replace(service.address, "")
