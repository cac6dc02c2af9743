"""Cached results: found again, and ignored if anything is wrong with them."""

import json
from pathlib import Path

import pytest

from sunzi.planning import moduli_choice, pareto_front, search_cache

KEY = {"search": "test", "size": 7, "limit": float("inf")}
RESULT = [{"moduli": [2, 3], "error": 0.1}]


def entries():
    return sorted((search_cache.directory() / "moduli").glob("*"))


def test_a_stored_result_is_loaded():
    assert search_cache.load(KEY) is None
    search_cache.store(KEY, RESULT)
    assert search_cache.load(KEY) == RESULT
    assert search_cache.load({**KEY, "size": 8}) is None
    assert len(entries()) == 1  # no temporary file is left


def test_another_version_of_the_library_finds_nothing(monkeypatch):
    search_cache.store(KEY, RESULT)
    monkeypatch.setattr(search_cache, "__version__", "0.0.0")
    assert search_cache.load(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-10],
        lambda data: b"\xff" + data,
        lambda data: b"[]",
        lambda data: b"{}",
        lambda data: b"null",
        lambda data: data.replace(b"0.1", b"0.2"),
        lambda data: data.replace(b'"size": 7', b'"size": 9'),
        lambda data: b"[" * 100_000,
    ],
)
def test_damaged_entries_are_absent(damage):
    search_cache.store(KEY, RESULT)
    (path,) = entries()
    damaged = damage(path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    assert search_cache.load(KEY) is None
    search_cache.store(KEY, RESULT)
    assert search_cache.load(KEY) == RESULT


def test_an_empty_name_turns_it_off(monkeypatch, tmp_path):
    monkeypatch.setenv(search_cache.VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    search_cache.store(KEY, RESULT)
    assert search_cache.directory() is None
    assert search_cache.load(KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_keeps_nothing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv(search_cache.VARIABLE, str(tmp_path / "file" / "below"))
    search_cache.store(KEY, RESULT)
    assert search_cache.load(KEY) is None


def test_the_platform_names_the_place(monkeypatch, tmp_path):
    monkeypatch.delenv(search_cache.VARIABLE)
    monkeypatch.setattr(search_cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert search_cache.directory() == tmp_path / "sunzi"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert search_cache.directory() == tmp_path / ".cache" / "sunzi"
    monkeypatch.setattr(search_cache.sys, "platform", "darwin")
    assert search_cache.directory() == tmp_path / "Library" / "Caches" / "sunzi"
    monkeypatch.setattr(search_cache.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert search_cache.directory() == tmp_path / "local" / "sunzi"


def test_an_unknown_home_directory_turns_it_off(monkeypatch):
    def unknown():
        raise RuntimeError("no home")

    monkeypatch.delenv(search_cache.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(search_cache.sys, "platform", "linux")
    monkeypatch.setattr(search_cache.Path, "home", unknown)
    assert search_cache.directory() is None


def test_a_search_is_made_once(monkeypatch):
    searches = []
    search = moduli_choice.search

    def counted(*arguments, **options):
        searches.append(arguments)
        return search(*arguments, **options)

    monkeypatch.setattr(moduli_choice, "search", counted)
    progress = []
    first = pareto_front(40, 1, effort=30)
    again = pareto_front(40, "1", effort=30, progress=progress.append)
    assert first == again
    assert progress == [1.0]
    assert len(searches) == 1
    for different in (
        {"seed": 1},
        {"max_bits": 20},
        {"max_attack": 0.5},
        {"max_moduli": 9},
        {"effort": 31},
    ):
        pareto_front(40, 1, **{"effort": 30, **different})
    assert len(searches) == 6
    pareto_front(40, 1, effort=30, seconds=60)  # depends on the clock, so it is neither stored nor looked up
    assert len(searches) == 7
    monkeypatch.setattr(moduli_choice, "ALGORITHM", moduli_choice.ALGORITHM + 1)
    assert pareto_front(40, 1, effort=30) == first
    assert len(searches) == 8


def test_an_entry_that_holds_something_else_is_searched_anew():
    first = pareto_front(40, 1, effort=30)
    (path,) = entries()
    entry = json.loads(Path(path).read_bytes())
    for other in ([{"moduli": [2]}], 7, "text", [3], {"a": 1}):
        entry["result"], entry["checksum"] = other, search_cache._checksum(other)
        path.write_text(json.dumps(entry))
        assert pareto_front(40, 1, effort=30) == first
