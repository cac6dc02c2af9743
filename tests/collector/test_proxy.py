"""The nginx and the Caddy of examples/, started as they are: they forward reports, and nothing about their senders."""

import http.client
import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import packages
import pytest
from agreeing import agreed
from ports import free_port
from running import running

import sunzi
from sunzi.client import Sender
from sunzi.collector import RemoteCollector

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PLAN = sunzi.make_plan("grr", ["yes", "no"], epsilon=1)
EPOCH = "/v1/collections/default/epochs/1"


def nginx_arguments(directory, port, upstream):
    """Write the example with its paths, its port and the collector's address replaced; return what starts it."""
    config = replaced(
        "nginx/sunzi.conf",
        {
            "listen 443": f"listen 127.0.0.1:{port}",
            "127.0.0.1:8765": upstream,
            "/etc/sunzi/": f"{directory}/",
            "/var/log/nginx/": f"{directory}/",
            "/run/": f"{directory}/",
            "worker_processes auto;": "worker_processes 1; daemon off;",
        },
    )
    (directory / "nginx.conf").write_text(config)
    arguments = ["nginx", "-p", directory, "-e", "stderr", "-c", directory / "nginx.conf"]
    subprocess.run([*arguments, "-t"], check=True, capture_output=True)
    return arguments


def caddy_arguments(directory, port, upstream):
    """The same for Caddy, with the test's certificate instead of one that Caddy gets."""
    own = f"tls {directory}/certificate.pem {directory}/key.pem"
    config = replaced(
        "caddy/Caddyfile",
        {
            "\n{\n": "\n{\n\tadmin off\n\tauto_https disable_redirects\n",
            "collector.example {": f"https://127.0.0.1:{port} {{\n\t{own}",
            "127.0.0.1:8765": upstream,
            "/var/log/caddy/": f"{directory}/",
        },
    )
    (directory / "Caddyfile").write_text(config)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", directory / "Caddyfile"]


def replaced(example, changes):
    text = (ROOT / "examples" / example).read_text()
    for old, new in changes.items():
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    return text


PROGRAMS = {"nginx": ("nginx-light", nginx_arguments), "caddy": ("caddy", caddy_arguments)}
LINES = {
    "nginx": r"\d{4}-\d\d-\d\dT\d\d (?:plan|report|batch|other) (\d{3})",
    "caddy": r'{"level":"\w+","ts":"\d{4}-\d\d-\d\dT\d\d","logger":"[\w.]+","msg":"handled request","status":(\d+)}',
}
FORWARDED = {"Host", "X-Forwarded-Proto", "Content-Length", "Authorization", "Accept-Encoding"}
EMPTY = {"Content-Type", "Origin", "If-None-Match", "Access-Control-Request-Method", "Access-Control-Request-Headers"}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request):
    package, _ = PROGRAMS[request.param]
    for name, source in ((request.param, package), ("openssl", "openssl")):
        if shutil.which(name) is None and (reason := packages.install(source)) is not None:
            pytest.skip(reason)
    return request.param


@contextmanager
def proxy(program, directory, upstream):
    """Run an example before a collector; yields the port."""
    certificate = directory / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", directory / "key.pem"]
    command = ["openssl", "req", "-x509", "-nodes", "-days", "2", *keys, "-out", certificate, *subject]
    subprocess.run(command, check=True, capture_output=True)
    port = free_port()
    arguments = PROGRAMS[program][1](directory, port, upstream)
    home = os.environ | {"HOME": str(directory), "XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory)}
    with (
        open(directory / "errors", "wb") as errors,
        subprocess.Popen(arguments, env=home, stdout=errors, stderr=errors) as process,
    ):
        try:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, (directory / "errors").read_text()
                    time.sleep(0.05)
            yield port
        finally:
            process.terminate()


def kept(directory):
    """All that the proxy wrote: its logs and files of its own, but none for bodies."""
    made = {"certificate.pem", "key.pem", "nginx.conf", "Caddyfile"}
    files = [path for path in directory.rglob("*") if path.is_file() and path.name not in made]
    assert sum(path.stat().st_size for path in files) < 100_000
    return "".join(path.read_text() for path in files)


class Recorder(BaseHTTPRequestHandler):
    """Remembers what it was sent."""

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        self.server.seen.append((self.path, dict(self.headers), self.rfile.read(length)))
        body = b'{"outcome":"counted","reports":1}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_the_collector_learns_nothing_about_clients(program, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as upstream:
        upstream.seen = []
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{upstream.server_address[1]}"
        with proxy(program, tmp_path, address) as port:
            context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
            telling = {
                "User-Agent": "Mozilla/5.0 (telling)",
                "Cookie": "session=telling",
                "Referer": "https://telling.example/page",
                "Accept-Language": "telling",
                "X-Forwarded-For": "203.0.113.9",
                "X-Real-IP": "203.0.113.9",
                "Forwarded": "for=203.0.113.9",
                "Via": "telling",
                "Authorization": "Bearer upload-key",
            }
            identity = secrets.token_hex(16)
            body = identity.encode() + b"\n" + bytes(3_000_000)
            connection.request("POST", f"{EPOCH}/reports?plan=abc", body, telling)
            assert connection.getresponse().read() == b'{"outcome":"counted","reports":1}'
            connection.request("POST", f"{EPOCH}/tokens", b"", telling)  # an operator's route
            assert connection.getresponse().status == 404
            client = connection.sock.getsockname()[1]
            connection.close()
        upstream.shutdown()
    ((path, headers, sent),) = upstream.seen
    assert (path, sent) == (f"{EPOCH}/reports?plan=abc", body)
    assert headers["Authorization"] == "Bearer upload-key"
    assert not re.search("telling|203[.]0|127.0.0.1:", str({k: v for k, v in headers.items() if k != "Host"}))
    rest = {name: value for name, value in headers.items() if name not in FORWARDED}
    assert rest == ({} if program == "nginx" else dict.fromkeys(EMPTY, ""))
    assert statuses(program, tmp_path) == ["200", "404"]
    assert not re.search(f"telling|203[.]0|{identity}|upload-key|:{client}", kept(tmp_path))


def test_a_device_reports_through_it(program, tmp_path, monkeypatch):
    """Also while the collector is away, and with a client that goes away, when proxies log errors with addresses."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    device = agreed(tmp_path / "device.db", 1)
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        with proxy(program, tmp_path, service.address.removeprefix("http://")) as port:
            with closing(RemoteCollector(f"https://127.0.0.1:{port}", max_epsilon=1)) as remote:
                epoch = remote.current()
            device.queue(epoch.plan, "answer", "yes", epoch.url)
            assert device.flush() == 1
            secure = ssl.create_default_context().wrap_socket(
                socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1"
            )
            secure.sendall(f"POST {EPOCH}/reports HTTP/1.1\r\nHost: telling\r\nContent-Length: 9\r\n\r\nx".encode())
            secure.close()
        assert errors(program, tmp_path) == []
    with proxy(program, tmp_path, f"127.0.0.1:{free_port()}") as port:
        device.queue(PLAN, "answer", "yes", f"https://127.0.0.1:{port}{EPOCH}")
        with closing(Sender(patience=0)) as sender:
            assert device.flush(sender) == 0
    assert len(device.waiting()) == 1
    assert errors(program, tmp_path) == []
    assert statuses(program, tmp_path)[-1] == "502"


def test_a_web_page_of_another_origin_may_upload(program, tmp_path):
    asked = {
        "Origin": "https://example.org",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    with (
        running(tmp_path / "store.db", {"default": PLAN}, allow_origins=("https://example.org",)) as service,
        proxy(program, tmp_path, service.address.removeprefix("http://")) as port,
    ):
        context = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
        with closing(http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)) as connection:
            connection.request("OPTIONS", f"{EPOCH}/reports", headers=asked)
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "https://example.org")
            assert answer.headers["Access-Control-Allow-Headers"].lower().count("authorization") == 1
            answer.read()
            connection.request("GET", f"{EPOCH}/plan", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            assert answer.headers["Content-Encoding"] == "gzip"
            fresh = {"If-None-Match": answer.headers["ETag"], "Accept-Encoding": "gzip"}
            answer.read()
            connection.request("GET", f"{EPOCH}/plan", headers=fresh)
            assert connection.getresponse().status == 304


def statuses(program, directory):
    """The statuses in the access log, whose lines hold nothing else but the hour and the kind of request."""
    found = [re.fullmatch(LINES[program], line) for line in (directory / "sunzi.log").read_text().splitlines()]
    assert all(found), (directory / "sunzi.log").read_text()
    return [line[1] for line in found]


def errors(program, directory):
    """Lines about requests in the error log; Caddy also writes there that it starts and stops."""
    lines = (directory / "errors").read_text().splitlines()
    return [line for line in lines if program == "nginx" or re.search("request|remote|telling|read tcp", line)]
