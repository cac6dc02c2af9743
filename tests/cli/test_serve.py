"""A collection over HTTP: serve, simulate, store, and estimate --from."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.collector.collector import Collector
from sunzi.collector.sqlite import SqliteStore

LABELS = ["apple", "pear", "plum", "fig"]


@contextmanager
def serving(directory, *options, **environment):
    """`sunzi serve` in a subprocess; yields its address."""
    command = [sys.executable, "-m", "sunzi", "serve", *options, "--port", "0"]
    process = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("collecting at "):
                break
        else:
            raise AssertionError("".join(lines))
        yield line.split()[2].rstrip(";")
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


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
def test_simulated_users_with_single_use_tokens(plan, tmp_path, capsys):
    with serving(tmp_path, "plan.json", "--single-use-tokens") as address:
        request = urllib.request.Request(
            f"{address}/v1/collections/default/epochs/1/tokens",
            data=b'{"count": 3}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            tokens = json.load(answer)["tokens"]
        (tmp_path / "tokens.txt").write_text("\n".join(tokens))
        words = ["simulate", "--send", address, "--batch", "10", "--tokens-file", "tokens.txt"]
        assert main([*words, "--users", "31"]) == 2
        assert "tokens.txt holds 3 tokens for 4 uploads" in capsys.readouterr().err
        assert main([*words, "--users", "25"]) == 0
        assert main([*words, "--users", "5"]) == 2  # they are spent
    store = SqliteStore("sunzi.db")
    assert store.epochs()[0].reports == 25
    store.close()


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
        (["simulate", "--send", "ftp://nowhere"], "http://"),
        (["simulate", "--send", "http://h:abc"], "port"),
        (["simulate", "--send", "http://127.0.0.1:9", "--users", "0"], "--users"),
        (["estimate", "--from", "nothing.db"], "no store"),
        (["estimate", "plan.json", "--from", "sunzi.db"], "or --from without them"),
        (["estimate", "plan.json"], "a plan and a tally"),
        (["store", "show", "nothing.db"], "no store"),
        (["store", "show", "plan.json"], "plan.json"),
        (["store", "show", "empty.db"], "no store"),
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
