"""No test reads or writes the user's cache."""

import pytest

from sunzi.planning import search_cache


@pytest.fixture(autouse=True)
def private_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(search_cache.VARIABLE, str(tmp_path / "cache"))
