"""No test reads or fills the user's own cache."""

import pytest

from sunzi.planning import cache


@pytest.fixture(autouse=True)
def private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
