"""The JavaScript client for these tests."""

import pytest


@pytest.fixture(scope="session")
def client_directory():
    """The JavaScript client, built."""
    import javascript

    return javascript.built()
