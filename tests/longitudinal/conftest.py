"""Tests of devices share what lies beside them, the running service of tests/service and the power cuts of
tests/collection.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "longitudinal"), str(TESTS / "service"), str(TESTS / "collection")]
