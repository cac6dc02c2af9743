"""The nginx of docs/threat-model.md, started as it is: it forwards reports, and nothing about their senders."""

import http.client
import re
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
from running import running

import sunzi
from sunzi.collector import RemoteCollector
from sunzi.device import Device, Sender

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PLAN = sunzi.make_plan("grr", ["yes", "no"], epsilon=1)
EPOCH = "/v1/collections/default/epochs/1"


@pytest.fixture(scope="module")
def programs():
    for program, package in (("nginx", "nginx-light"), ("openssl", "openssl")):
        if shutil.which(program) is None and (reason := packages.install(package)) is not None:
            pytest.skip(reason)
    return shutil.which("nginx"), shutil.which("openssl")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextmanager
def proxy(programs, directory, upstream):
    """Run the example with its paths, its port and the collector's address replaced; yields the port."""
    nginx, openssl = programs
    certificate = directory / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    keys = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", directory / "key.pem"]
    command = [openssl, "req", "-x509", "-nodes", "-days", "2", *keys, "-out", certificate, *subject]
    subprocess.run(command, check=True, capture_output=True)
    port = free_port()
    text = (ROOT / "examples" / "nginx" / "sunzi.conf").read_text()
    changes = {
        "listen 443": f"listen 127.0.0.1:{port}",
        "127.0.0.1:8765": upstream,
        "/etc/sunzi/": f"{directory}/",
        "/var/log/nginx/": f"{directory}/",
        "/run/": f"{directory}/",
        "worker_processes auto;": "worker_processes 1; daemon off;",
    }
    for old, new in changes.items():
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    (directory / "nginx.conf").write_text(text)
    arguments = [nginx, "-p", directory, "-e", "stderr", "-c", directory / "nginx.conf"]
    subprocess.run([*arguments, "-t"], check=True, capture_output=True)
    with open(directory / "errors", "wb") as errors, subprocess.Popen(arguments, stderr=errors) as process:
        try:
            for _ in range(100):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield port
        finally:
            process.terminate()


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


def test_the_collector_learns_nothing_about_clients(programs, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as upstream:
        upstream.seen = []
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{upstream.server_address[1]}"
        with proxy(programs, tmp_path, address) as port:
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
            body = bytes(32).hex().encode() + b"\n" + bytes(3_000_000)
            connection.request("POST", f"{EPOCH}/reports?plan=abc", body, telling)
            assert connection.getresponse().read() == b'{"outcome":"counted","reports":1}'
            connection.request("POST", f"{EPOCH}/tokens", b"", telling)  # an operator's route
            assert connection.getresponse().status == 404
            connection.close()
        upstream.shutdown()
    ((path, headers, sent),) = upstream.seen
    assert (path, sent) == (f"{EPOCH}/reports?plan=abc", body)
    assert headers["Authorization"] == "Bearer upload-key"
    assert not re.search("telling|203[.]0|127.0.0.1:", str({k: v for k, v in headers.items() if k != "Host"}))
    assert set(headers) <= {"Host", "X-Forwarded-Proto", "Content-Length", "Authorization", "Accept-Encoding"}
    lines = (tmp_path / "sunzi.log").read_text().splitlines()
    assert [line.split()[1:] for line in lines] == [["report", "200"], ["other", "404"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d \w+ \d{3}", line) for line in lines)
    left = {each.name for each in tmp_path.rglob("*") if each.is_file()}
    assert left <= {"certificate.pem", "key.pem", "nginx.conf", "errors", "sunzi.log", "sunzi-nginx.pid"}


def test_a_device_reports_through_it(programs, tmp_path, monkeypatch):
    """Also while the collector is away, when nginx would log errors with addresses."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    device = Device(tmp_path / "device.db", 1, max_epsilon=1)
    with running(tmp_path / "store.db", {"default": PLAN}) as service:
        upstream = service.address.removeprefix("http://")
        with proxy(programs, tmp_path, upstream) as port:
            with closing(RemoteCollector(f"https://127.0.0.1:{port}", max_epsilon=1)) as remote:
                epoch = remote.current()
            device.queue(epoch.plan, "answer", "yes", epoch.url)
            assert device.flush() == 1
    assert (tmp_path / "errors").read_text() == ""
    with proxy(programs, tmp_path, f"127.0.0.1:{free_port()}") as port:
        device.queue(PLAN, "answer", "yes", f"https://127.0.0.1:{port}{EPOCH}")
        with closing(Sender(patience=0)) as sender:
            assert device.flush(sender) == 0
    assert len(device.waiting()) == 1
    assert (tmp_path / "errors").read_text() == ""
    assert "127.0.0.1" not in (tmp_path / "sunzi.log").read_text()
