"""Settings for the tests of devices."""

import pytest

from sunzi.client.device.consent import VARIABLE


@pytest.fixture(autouse=True)
def nobody_objects(monkeypatch):
    """Whoever runs the tests may have set DO_NOT_TRACK."""
    monkeypatch.delenv(VARIABLE, raising=False)
