"""The JavaScript client that the tests here run."""

import pytest


@pytest.fixture(scope="session")
def client_directory():
    """The JavaScript client, built."""
    import javascript

    return javascript.built()
