"""Slow, long and malformed requests; what is logged; what may be bound to."""

import http.client
import logging
import socket
import time

import numpy as np
import pytest
from running import fresh_id, running

import sunzi
from sunzi.errors import ParameterError
from sunzi.service.quotas import Quotas
from sunzi.service.settings import Settings, UploadKey, read_secret, read_upload_keys

PLAN = sunzi.make_plan("ss-compact", 50, 2)


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
        return connection.recv(4096) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    "sent", [b"", b"GET", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "]
)
def test_a_request_that_never_begins_is_hung_up_on(service, sent):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(sent)
        begun = time.monotonic()
        assert closes_within(connection, 20)
        assert time.monotonic() - begun > 1
    assert service.send_batch(batch()).status == 200


def test_a_header_that_drips_is_hung_up_on(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            drip(connection)


def drip(connection):
    for number in range(200):
        connection.sendall(f"X-{number}: y\r\n".encode())
        time.sleep(0.1)


def test_a_header_that_never_ends_is_hung_up_on(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        try:
            for number in range(1000):
                connection.sendall(f"X-{number}: {'y' * 100}\r\n".encode())
        except (ConnectionResetError, BrokenPipeError):
            return
        assert closes_within(connection, 20)


def test_a_body_that_drips_is_answered_with_408(service):
    head = f"POST /v1/collections/default/epochs/1/batches?id={fresh_id()} HTTP/1.1\r\nHost: x\r\n"
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
    for _ in range(3):
        connection.request("GET", "/health")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b'{"status":"live"}')
        assert connection.sock is socket_of_all
        time.sleep(2)
    connection.close()


@pytest.mark.parametrize(
    "request_bytes",
    [b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\x16\x03\x01\x02"],
)
def test_what_is_not_http_is_refused(service, request_bytes):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(request_bytes)
        connection.settimeout(20)
        try:
            answer = connection.recv(4096)
        except ConnectionResetError:
            answer = b""
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert service.get("/health").status == 200


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


def test_only_loopback_without_an_admin_token():
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        with pytest.raises(ParameterError, match="admin token"):
            Settings(host=host)
        Settings(host=host, admin_token="long-enough-to-be-one")
    with pytest.raises(ParameterError, match="16 characters"):
        Settings(admin_token="short")
    assert "long-enough" not in repr(Settings(admin_token="long-enough-to-be-one"))


@pytest.mark.parametrize("name", ["body_bytes", "header_bytes", "header_seconds", "body_seconds", "waiting_deposits"])
def test_limits_are_positive(name):
    with pytest.raises(ParameterError, match=name):
        Settings(**{name: 0})


def test_secrets_and_keys_from_files(tmp_path):
    (tmp_path / "token").write_text("  a-secret-of-mine\n")
    assert read_secret(tmp_path / "token") == "a-secret-of-mine"
    for text in ("two words", "naïve", "a\x00b"):
        (tmp_path / "token").write_text(text)
        with pytest.raises(ParameterError, match="printable"):
            read_secret(tmp_path / "token")
    for text in ("{}", "[]", "nonsense", '[{"name": "a", "sha256": "00", "reports_per_minute": 5}]'):
        (tmp_path / "keys").write_text(text)
        with pytest.raises(ParameterError, match="keys"):
            read_upload_keys(tmp_path / "keys")


def test_a_bucket_fills_steadily():
    now = [0.0]
    quotas, key = Quotas(lambda: now[0]), UploadKey("app", b"", 60)
    assert quotas.take(key, 60) == 0
    assert quotas.take(key, 1) == 1
    now[0] = 10
    assert quotas.take(key, 10) == 0
    assert quotas.take(key, 20) == 20
    now[0] = 1000
    assert quotas.take(key, 90) == 0  # more than the bucket holds passes when it is full, and is paid off later
    assert quotas.take(key, 1) == 31
