"""Work in subprocesses: without numba, with separate memory, or in the peers' environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class UnavailableError(Exception):
    """The benchmark cannot run on this machine; the message says what is missing."""


def call(function: str, scale: float, environment: Mapping[str, str] | None = None) -> Any:
    """Call ``module:function`` of this package with a scale in a fresh Python and return its result, passed as JSON."""
    command = [sys.executable, "-m", "benchmarks.children", function, repr(scale)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, check=True, stdout=subprocess.PIPE
    )
    return json.loads(done.stdout)


def measured_import(statement: str) -> float:
    """Processor time in seconds that a statement takes in a fresh Python."""
    program = f"from time import process_time as clock\nstart = clock()\n{statement}\nprint(clock() - start)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE).stdout)


class PeerClient:
    """multi-freq-ldpy's SubsetSelection client, running in its own environment."""

    def __init__(self, domain_size: int, epsilon: float) -> None:
        python = os.environ.get("SUNZI_PEERS_PYTHON", "")
        if not python:
            raise UnavailableError("set SUNZI_PEERS_PYTHON to a Python that has multi-freq-ldpy; scripts/bench does so")
        self._process = subprocess.Popen(
            [python, str(ROOT / "benchmarks" / "peer_client.py"), str(domain_size), repr(epsilon)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, users: int) -> float:
        """Processor time of the peer for ``users`` users."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{users}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Wait for the process to end."""
        self._process.communicate()


def main() -> None:
    """Call one function and print its result as JSON."""
    module, function = sys.argv[1].split(":")
    print(json.dumps(getattr(import_module(f"benchmarks.{module}"), function)(float(sys.argv[2]))))


if __name__ == "__main__":
    main()
