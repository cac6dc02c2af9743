"""Tests of other clients share `javascript`, which lies beside them, and the running service of tests/service."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "service")]


@pytest.fixture(scope="session")
def client_directory():
    """The JavaScript client, built."""
    import javascript

    return javascript.built()
