"""The JavaScript client for these tests."""

import pytest


@pytest.fixture(autouse=True)
def _devices_may_be_turned_on(monkeypatch):
    """DO_NOT_TRACK turns devices off."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)


@pytest.fixture(scope="session")
def client_directory():
    """The JavaScript client, built."""
    import javascript

    return javascript.built()
