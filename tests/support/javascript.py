"""The JavaScript client for the tests: built once, run in Node."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CLIENT = ROOT / "clients" / "javascript"
_OLDEST_NODE = (20, 19)


def built():
    """The directory of the client, with an up-to-date build in dist/."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("the JavaScript client is tested with Node and npm, which are not installed")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version.lstrip("v").split(".")[:2])) < _OLDEST_NODE:
        pytest.skip(f"the JavaScript client is tested with Node 20.19 or later, this is {version.strip()}")
    # The lock is outside the build directory, which is replaced; several test processes may call this at once.
    with (CLIENT / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (CLIENT / "node_modules").exists():
            _npm("ci")
        if _is_outdated():
            _npm("run", "build")
    return CLIENT


def _is_outdated():
    entry = CLIENT / "dist" / "index.js"
    sources = [CLIENT / "build.js", CLIENT / "package.json", *(CLIENT / "src").rglob("*.ts")]
    return not entry.exists() or entry.stat().st_mtime < max(source.stat().st_mtime for source in sources)


def _npm(*arguments):
    done = subprocess.run(["npm", *arguments], cwd=CLIENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"npm {' '.join(arguments)}:\n{done.stdout}\n{done.stderr}"


def run_node(script, value, timeout=600):
    """Run a module of tests/clients with a JSON value on standard input; return the JSON it prints."""
    program = [shutil.which("node"), str(ROOT / "tests" / "clients" / script)]
    done = subprocess.run(
        program, input=json.dumps(value), capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
