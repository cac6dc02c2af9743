"""Use the installed wheel of sunzi-client in an environment with nothing else. Run by scripts/test, not by pytest.

It proves that the wheel is complete: plans of every protocol are loaded from files, and a device asks, shows, reports
and sends with the standard library alone.
"""

import importlib.metadata
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import sunzi_client

VECTORS = Path(__file__).resolve().parent.parent / "conformance" / "v1"
PROTOCOLS = {"grr", "ss", "ss-compact", "pgr", "rappor", "oue", "mss", "mss-compact"}
PROTOCOLS |= {"ordered", "tables", "number", "prefixes"}


def check_environment() -> None:
    """Nothing else is installed, and the tested package is the wheel's, with its types."""
    installed = {distribution.metadata["Name"] for distribution in importlib.metadata.distributions()}
    assert installed == {"sunzi-client"}, f"this environment should hold sunzi-client alone, it has {installed}"
    assert not importlib.metadata.requires("sunzi-client")
    package = Path(sunzi_client.__file__).parent
    assert package.is_relative_to(sys.prefix), f"sunzi_client was imported from {package}, not from the wheel"
    assert (package / "py.typed").is_file()
    assert (package / "__init__.pyi").is_file()
    for name in sunzi_client.__all__:
        assert getattr(sunzi_client, name).__module__.startswith("sunzi_client."), name


def check_plans(directory: Path) -> None:
    """Every plan of the conformance vectors is loaded from a file and gives reports of the length that it states."""
    found = set()
    for path in sorted(VECTORS.glob("*.json")):
        vector = json.loads(path.read_text("utf-8"))
        if path.name.startswith("bad_") or "fingerprint" not in vector:
            continue
        file = directory / "plan.json"
        file.write_text(json.dumps(vector["plan"]), "utf-8")
        plan = sunzi_client.load_plan(file)
        assert plan.fingerprint == vector["fingerprint"], path.name
        report = plan.client().report_background()
        assert 8 * len(report) < plan.protocol.report_layout.max_bits + 8, path.name
        found.add(plan.protocol.name)
    assert found == PROTOCOLS, f"no vector of {PROTOCOLS - found}"


def check_device(directory: Path) -> None:
    """Consent, a preview, a report to a server, and its receipt."""
    terms = json.loads((VECTORS / "grr_labels.json").read_text("utf-8"))["plan"]
    value = terms["domain"]["labels"][0]
    received: list[tuple[str, bytes]] = []
    device = sunzi_client.Device(directory / "device.db", lifetime_epsilon=32, max_epsilon=32)
    with collector(terms, received) as url:
        epoch = sunzi_client.RemoteCollection(url, max_epsilon=32).current()
        assert "epsilon" in sunzi_client.notice(epoch.plan, "a setting")
        shown = device.preview(epoch.plan, "setting", value, epoch.url)
        assert device.queue(epoch.plan, "setting", value, epoch.url).outcome == "off"
        assert not device.path.exists(), "a device stored something before its user agreed"
        assert device.enable()
        assert device.queue(epoch.plan, "setting", value, epoch.url).outcome == "queued"
        assert device.queue(epoch.plan, "setting", value, epoch.url).outcome == "repeated"
        assert (device.flush(), device.waiting()) == (1, [])
    ((path, body),) = received
    assert path.endswith(f"/epochs/7/reports?plan={epoch.plan.fingerprint}")
    assert body == shown.upload, "the preview was not what was sent"
    device.disable()
    assert not device.enabled


class collector:
    """An HTTP server that announces a plan and acknowledges reports."""

    def __init__(self, terms: object, received: list[tuple[str, bytes]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fingerprint = sunzi_client.Plan.from_terms(terms).fingerprint
                self.answer({"plan": terms, "fingerprint": fingerprint, "epoch": 7, "open": True})

            def do_POST(self) -> None:
                received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.answer({"outcome": "counted", "reports": 1})

            def answer(self, value: object) -> None:
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def main() -> None:
    """Run every check; a failed assertion ends the program with an error."""
    os.environ.pop("DO_NOT_TRACK", None)
    check_environment()
    with tempfile.TemporaryDirectory() as directory:
        check_plans(Path(directory))
        check_device(Path(directory))
    assert not [name for name in sys.modules if name.partition(".")[0] in {"sunzi", "numpy", "scipy"}]
    print(f"sunzi-client {importlib.metadata.version('sunzi-client')} works alone: {', '.join(sorted(PROTOCOLS))}")


if __name__ == "__main__":
    main()
