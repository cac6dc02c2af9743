"""``sunzi store``: show, close, merge, back up and restore a collector's store without the service."""

import json
import sqlite3
from pathlib import Path

import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.collector.collector import Collector
from sunzi.collector.settings import UploadKey
from sunzi.collector.sqlite import SqliteStore


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = sunzi.make_plan("ss-compact", ["apple", "pear", "plum", "fig"], 3)
    made.save("plan.json")
    return made


@pytest.fixture
def filled(plan):
    """Two epochs of one collection with 40 and 10 reports."""
    store = SqliteStore("sunzi.db")
    collector = Collector(store)
    other = sunzi.make_plan("grr", ["apple", "pear", "plum", "fig"], 1)
    for number, (made, count) in enumerate([(plan, 40), (other, 10)], start=1):
        live = collector.open("default", made, old_plan="keep")
        body = made.client(seed=number).report_indices(sunzi.Domain(4).indices([0, 1, 2, 3, 0] * (count // 5)))
        store.commit([collector.deposit(live, bytes([number]) * 16, body)])
    store.close()
    return plan


def shown(capsys, *words):
    capsys.readouterr()
    assert main(["store", *words, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_lists_every_epoch(filled, capsys):
    first, second = shown(capsys, "show", "sunzi.db")["epochs"]
    assert (first["epoch"], first["reports"], first["ids"], first["open"]) == (1, 40, 1, True)
    assert first["plan"] == filled.fingerprint
    assert (second["epoch"], second["reports"]) == (2, 10)


def test_only_a_closed_epoch_is_merged(filled, capsys):
    merge = ["store", "merge", "sunzi.db", "--epoch", "1", "-o", "tally"]
    assert main(merge) == 2
    assert "open" in capsys.readouterr().err
    assert main(["store", "close", "sunzi.db", "--epoch", "1"]) == 0
    assert main(merge) == 0
    assert sunzi.load_tally("tally") == filled.tally(
        filled.client(seed=1).report_indices(sunzi.Domain(4).indices([0, 1, 2, 3, 0] * 8))
    )
    first, second = shown(capsys, "show", "sunzi.db")["epochs"]
    assert (first["open"], first["ids"], second["open"]) == (False, 0, True)


def test_a_copy_is_restored_into_an_empty_store_only(filled, capsys):
    assert main(["store", "backup", "sunzi.db", "copy.db"]) == 0
    assert main(["store", "restore", "copy.db", "new.db"]) == 0
    assert shown(capsys, "show", "new.db")["epochs"] == shown(capsys, "show", "sunzi.db")["epochs"]
    assert main(["store", "restore", "copy.db", "new.db"]) == 2


def test_an_epoch_cannot_be_closed_beside_a_running_collector(plan, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    store = SqliteStore("sunzi.db")
    Collector(store).open("default", plan)
    store.claim()
    assert main(["store", "close", "sunzi.db", "--epoch", "1"]) == 2
    assert "in use by another collector" in capsys.readouterr().err
    assert store.epochs()[0].is_open
    store.close()


def test_closing_says_if_traces_are_left(plan, tmp_path, capsys):
    store = SqliteStore("sunzi.db")
    Collector(store).open("default", plan)
    with store.transaction(reading=True):
        store.epochs()
        assert main(["store", "close", "sunzi.db", "--epoch", "1"]) == 0
        said = capsys.readouterr().err
        assert "closed epoch" in said
        assert "traces of the ids remain" in said
    assert main(["store", "close", "sunzi.db", "--epoch", "1"]) == 0
    assert "traces" not in capsys.readouterr().err
    assert not store.epochs()[0].is_open
    store.close()


@pytest.mark.parametrize(
    ("name", "complaint"), [("nothing.db", "no store"), ("plan.json", "plan.json"), ("empty.db", "no store")]
)
def test_what_is_no_store_is_refused_and_left_alone(plan, tmp_path, capsys, name, complaint):
    (tmp_path / "empty.db").touch()
    before = sorted((path.name, path.stat().st_size) for path in tmp_path.iterdir())
    assert main(["store", "show", name]) == 2
    assert complaint in capsys.readouterr().err
    assert sorted((path.name, path.stat().st_size) for path in tmp_path.iterdir()) == before


def test_a_key_is_subtracted(filled, capsys):
    store = SqliteStore("sunzi.db")
    collector = Collector(store)
    live = collector.find("default", 1)
    key = UploadKey("app", bytes(32), 1000)
    store.commit([collector.deposit(live, b"k" * 16, filled.client(seed=9).report_batch(["apple"] * 7), None, key)])
    store.close()
    subtract = ["store", "subtract", "sunzi.db", "--epoch", "1", "--audit-log", "audit.log", "--key"]
    assert main([*subtract, "nobody"]) == 2
    assert "'nobody'; reports have the keys 'app', none" in capsys.readouterr().err
    assert main([*subtract, "app"]) == 0
    assert "subtracted 7 reports of the key app; 40 reports left" in capsys.readouterr().err
    first = shown(capsys, "show", "sunzi.db")["epochs"][0]
    assert first["reports"] == 40
    assert first["keys"] == [
        {"key": "", "reports": 40, "subtracted": False},
        {"key": "app", "reports": 7, "subtracted": True},
    ]
    assert main(["store", "close", "sunzi.db", "--epoch", "1", "--audit-log", "audit.log"]) == 0
    subtracted, closed = (json.loads(line) for line in Path("audit.log").read_text().splitlines())
    assert subtracted.pop("time") <= closed.pop("time")
    where = {"operator": "local", "status": 200, "collection": "default", "epoch": 1}
    assert subtracted == where | {"action": "subtract_key", "key": "app", "reports": 7}
    assert closed == where | {"action": "close_epoch"}


def test_open_the_next_epoch(filled, capsys):
    assert main(["store", "open", "sunzi.db", "--audit-log", "audit.log"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "opened epoch 3 of default",
        "epoch 1 is closed",
        "epoch 2 is closed",
    ]
    epochs = shown(capsys, "show", "sunzi.db")["epochs"]
    assert [(epoch["epoch"], epoch["open"]) for epoch in epochs] == [(1, False), (2, False), (3, True)]
    assert epochs[2]["plan"] == epochs[1]["plan"]
    assert json.loads(Path("audit.log").read_text())["action"] == "open_epoch"
    assert main(["store", "open", "sunzi.db", "plan.json", "--keep"]) == 0
    assert "epoch 3 stays open for late reports" in capsys.readouterr().err
    epochs = shown(capsys, "show", "sunzi.db")["epochs"]
    assert [(epoch["epoch"], epoch["open"]) for epoch in epochs[2:]] == [(3, True), (4, True)]
    assert epochs[3]["plan"] == filled.fingerprint


def test_open_an_epoch_of_a_new_collection(filled, complaint):
    assert main(["store", "open", "sunzi.db", "--collection", "words"]) == 2
    assert "no collection 'words'" in complaint()
    assert main(["store", "open", "sunzi.db", "plan.json", "--collection", "words"]) == 0
