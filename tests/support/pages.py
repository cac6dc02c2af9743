"""Static sites on loopback, with another origin than the collector."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def served(client_directory, directory):
    """Serve page.html next to the client's dist/; yields the origin."""
    directory.mkdir()
    (directory / "dist").symlink_to(client_directory / "dist")
    (directory / "page.html").write_bytes((Path(__file__).resolve().parents[1] / "clients" / "page.html").read_bytes())
    with static(directory) as origin:
        yield origin


@contextmanager
def static(directory):
    """Serve the files of a directory; yields the origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
