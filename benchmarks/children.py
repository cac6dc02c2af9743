"""Work done in processes of its own: without numba, with a memory of its own, or in the peers' environment."""

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
    """A benchmark cannot run here; the message says what is missing."""


def call(function: str, scale: float, environment: Mapping[str, str] | None = None) -> Any:
    """What ``module:function`` of this package returns for a scale, as JSON, from a fresh Python."""
    command = [sys.executable, "-m", "benchmarks.children", function, repr(scale)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, check=True, stdout=subprocess.PIPE
    )
    return json.loads(done.stdout)


def measured_import(statement: str) -> float:
    """Seconds of processor time that a statement takes in a fresh Python."""
    program = f"from time import process_time as clock\nstart = clock()\n{statement}\nprint(clock() - start)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE).stdout)


class PeerClient:
    """multi-freq-ldpy's SubsetSelection client, waiting in its own environment."""

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
        """Processor time that the peer takes for so many users."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{users}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate()


def main() -> None:
    """Run one function and print what it returns."""
    module, function = sys.argv[1].split(":")
    print(json.dumps(getattr(import_module(f"benchmarks.{module}"), function)(float(sys.argv[2]))))


if __name__ == "__main__":
    main()
