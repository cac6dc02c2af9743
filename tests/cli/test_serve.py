"""A collection over HTTP: serve, simulate, store, and estimate --from."""

import json
from pathlib import Path

import pytest
from serving import serving

import sunzi
from sunzi.cli.main import main
from sunzi.collector.sqlite import SqliteStore

LABELS = ["apple", "pear", "plum", "fig"]


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = sunzi.make_plan("ss-compact", LABELS, 3)
    made.save("plan.json")
    (tmp_path / "empty.db").touch()
    return made


def estimated(capsys, *source):
    capsys.readouterr()
    assert main(["estimate", "--from", *source]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_a_collection_by_commands(plan, tmp_path, capsys):
    with serving(tmp_path, "plan.json") as address:
        assert main(["simulate", "--send", address, "--users", "2050", "--population", "spike"]) == 0
        assert main(["simulate", "--send", f"{address}/v1/collections/default", "--users", "3", "--batch", "1"]) == 0
        remote = estimated(capsys, address)
        assert remote == estimated(capsys, "sunzi.db")
        rows = remote.splitlines()
        assert [row.partition(",")[0] for row in rows] == ["label", *LABELS]
        assert float(rows[1].split(",")[1]) > 0.9
        assert main(["store", "backup", "sunzi.db", "copy.db"]) == 0
    capsys.readouterr()
    assert main(["store", "show", "sunzi.db"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["epochs"]
    assert (shown["reports"], shown["open"], shown["ids"], shown["plan"]) == (2053, True, 24, plan.fingerprint)
    assert main(["store", "merge", "sunzi.db", "--epoch", "1", "-o", "tally"]) == 2  # still open
    assert main(["store", "close", "sunzi.db", "--epoch", "1"]) == 0
    assert main(["store", "merge", "sunzi.db", "--epoch", "1", "-o", "tally"]) == 0
    assert sunzi.load_tally("tally").reports == 2053
    assert main(["store", "restore", "copy.db", "new.db"]) == 0
    assert estimated(capsys, "new.db") == remote
    assert main(["store", "restore", "copy.db", "new.db"]) == 2  # no longer empty


@pytest.mark.slow
def test_several_collections_and_a_token(plan, tmp_path, capsys, monkeypatch):
    secret = "a-token-of-sixteen-or-more"
    with serving(tmp_path, "one=plan.json", "two=plan.json", SUNZI_ADMIN_TOKEN=secret) as address:
        assert main(["simulate", "--send", f"{address}/v1/collections/two", "--users", "100"]) == 0
        assert main(["estimate", "--from", address, "--collection", "two"]) == 2
        assert "admin token" in capsys.readouterr().err
        monkeypatch.setenv("SUNZI_ADMIN_TOKEN", secret)
        assert estimated(capsys, address, "--collection", "two", "--epoch", "1").startswith("label,")
    assert main(["estimate", "--from", "sunzi.db"]) == 2
    assert "--collection" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["serve", "plan.json", "--host", "0.0.0.0"], "admin token"),
        (["serve", "plan.json", "plan.json"], "two plans"),
        (["serve", "Bad=plan.json"], "collection's name"),
        (["serve"], "no store at sunzi.db; `sunzi serve` with a plan creates one"),
        (["serve", "plan.json", "--shard", "4/4"], "shard"),
        (["serve", "plan.json", "--port", "99999"], "port"),
        (["serve", "plan.json", "--allow-origin", "example.org/"], "origin"),
        (["serve", "plan.json", "--trust-proxy", "nonsense"], "proxy"),
        (["estimate", "--from", "nothing.db"], "no store"),
        (["estimate", "plan.json", "--from", "sunzi.db"], "or --from without them"),
        (["estimate", "plan.json"], "a plan and a tally"),
    ],
)
def test_bad_commands_are_refused_and_create_no_store(plan, capsys, words, complaint):
    assert main(words) == 2
    assert complaint in capsys.readouterr().err
    assert not Path("sunzi.db").exists()


def test_a_store_without_collections_needs_a_plan(plan, capsys):
    SqliteStore("sunzi.db").close()
    assert main(["serve"]) == 2
    assert "sunzi.db holds no collection yet; give a plan file" in capsys.readouterr().err
