"""Tests of the service share `running`, which lies beside them, and the built JavaScript client of tests/clients."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "clients")]
