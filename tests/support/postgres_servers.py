"""PostgreSQL servers for tests: a cluster in its own directory, which can be killed and restarted."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import packages

_START_SECONDS = 60.0
_numbers = itertools.count()


class NoServer(Exception):
    """PostgreSQL is not installed and cannot be."""


def find_programs() -> Path:
    """The directory of initdb and postgres, which Debian does not put on PATH."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(place.parent.name), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise NoServer("PostgreSQL's initdb and postgres are not installed")


def install() -> Path:
    """The directory of the programs; installs them if they are missing and this machine allows it."""
    try:
        return find_programs()
    except NoServer:
        reason = packages.install("postgresql")
        if reason is not None:
            raise NoServer(reason) from None
    return find_programs()


class Server:
    """One cluster. As root, the server runs as user ``postgres``, because it refuses to run as root."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._programs = install()
        self.directory = Path(tempfile.mkdtemp(prefix="sunzi-pg-"))
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, object] = {}
        if os.geteuid() == 0:
            shutil.chown(self.directory, "postgres", "postgres")
            self._as = {"user": "postgres", "group": "postgres", "extra_groups": []}
        command = [self._programs / "initdb", "-D", self.directory / "data", "-U", "sunzi", "-A", "trust", "-N"]
        done = subprocess.run(
            [*command, "-E", "UTF8", "--locale=C"], cwd=self.directory, capture_output=True, check=False, **self._as
        )
        if done.returncode:
            raise NoServer(f"initdb failed: {done.stderr.decode()[-500:]}")

    def address(self, database: str = "postgres", schema: str = "sunzi") -> str:
        return f"postgresql://sunzi@/{database}?host={self.directory}&schema={schema}"

    @property
    def conninfo(self) -> str:
        """Connection string for psycopg."""
        return f"host={self.directory} user=sunzi dbname=postgres"

    def fresh_address(self) -> str:
        """Address of a new, empty store."""
        return self.address(schema=f"store_{os.getpid()}_{next(_numbers)}")

    def start(self) -> None:
        """Start the server and wait until it answers; after a kill this includes its recovery."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            "shared_buffers": "32MB",
            "max_connections": "40",
            "recovery_init_sync_method": "syncfs",  # one call instead of one per file, after every kill
        }
        options = [f"-c{name}={value}" for name, value in (settings | self._settings).items()]
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            with open(self.directory / "log", "ab") as log:
                self._process = subprocess.Popen(
                    [self._programs / "postgres", "-D", self.directory / "data", *options],
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    **self._as,
                )
            if self._wait(until):
                return
        raise RuntimeError((self.directory / "log").read_text()[-2000:])

    def _wait(self, until: float) -> bool:
        """Whether it accepts connections; False if it ended, which happens while processes of a killed server are still
        alive.
        """
        state = self.directory / "data" / "postmaster.pid"  # its first line is the process, the eighth its state
        while self._process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(FileNotFoundError):
                lines = state.read_text().splitlines()
                if lines[:1] == [str(self._process.pid)] and "ready" in map(str.strip, lines[7:]):
                    return True
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        """SIGKILL the server and all its processes, as if the machine lost its memory but not its disk."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        os.kill(pid, signal.SIGSTOP)  # stop it from starting others meanwhile
        victims = [int(child) for child in children.read_text().split()] if children.exists() else []
        for victim in [pid, *victims]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Stop the server and remove its files."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # "immediate", because its files are removed anyway
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def running_server(settings: dict[str, str] | None = None) -> Iterator[Server]:
    server = Server(settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
