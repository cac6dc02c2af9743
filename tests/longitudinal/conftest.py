"""Tests of devices share `processes`, which lies beside them, and the running service of tests/service."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "service")]
