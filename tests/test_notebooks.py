"""The notebooks of examples/ run from top to bottom in a real kernel and print what they show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


def test_notebooks_run_and_their_outputs_are_current(tmp_path):
    # The kernel's files go to a directory of the test.
    folders = {name: str(tmp_path) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "HOME")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make-notebooks"), "--check"],
        env=os.environ | folders | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
