"""A collection over HTTP: serve, simulate, store, and estimate --from."""

import json
import signal
import socket
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from serving import serving

import sunzi
from sunzi.cli import serve as serve_command
from sunzi.cli.main import main
from sunzi.client.errors import ReportError
from sunzi.collector import Collector, RemoteCollector, Settings, serve
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
        estimated(capsys, "sunzi.db", "--epoch", "1", "-o", "page.html")
        assert "Collection default, epoch 1 · " in Path("page.html").read_text(encoding="utf-8")
        rows = remote.splitlines()
        assert [row.partition(",")[0] for row in rows] == ["label", *LABELS]
        assert float(rows[1].split(",")[1]) > 0.9
        assert main(["store", "backup", "sunzi.db", "copy.db"]) == 0
    capsys.readouterr()
    assert main(["store", "show", "sunzi.db", "--format", "json"]) == 0
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
        (["serve", "plan.json", "plan.json"], "two plans without a name"),
        (["serve", "a=plan.json", "a=plan.json"], "two plans for the collection 'a'"),
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


def test_a_signal_waits_for_the_imports(plan, monkeypatch):
    """Raised in the midst of one, its exception could become a traceback."""
    imported, names = set(), {"create_app", "listen", "make_server"}

    class Server(ModuleType):
        def __getattr__(self, name):
            if name not in names:
                raise AttributeError(name)
            signal.raise_signal(signal.SIGTERM)
            imported.add(name)

    monkeypatch.setitem(sys.modules, "sunzi.collector.server", Server("sunzi.collector.server"))
    with pytest.raises(SystemExit, match="143"):
        main(["serve", "plan.json"])
    assert imported == names


def test_a_taken_port_is_an_error_before_the_store_is_touched(plan, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "plan.json", "--port", str(port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sunzi: error: cannot listen on 127.0.0.1, port {port}: Address already in use; choose")
    assert not Path("sunzi.db").exists()


def test_another_plan_needs_a_word_about_the_old_one(plan, capsys):
    with closing(SqliteStore("sunzi.db")) as store:
        Collector(store).open("fruit", plan)
    sunzi.make_plan("grr", [*LABELS, "kiwi"], 4).save("other.json")
    for name in ("", "fruit="):  # a plan without a name is for the only collection
        assert main(["serve", f"{name}other.json", "--port", "0"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        changes = "epsilon 3 → 4, protocol ss-compact → grr, values 4 → 5, new 'kiwi'"
        assert f"epoch 1 of fruit is open with another plan ({changes})" in line
        assert "--old-plan" in line
    assert main(["serve", "other.json", "fruit=plan.json", "--port", "0"]) == 2
    assert "two plans for the collection 'fruit'" in capsys.readouterr().err
    with closing(SqliteStore("sunzi.db")) as store:
        assert [(epoch.collection, epoch.number, epoch.is_open) for epoch in store.epochs()] == [("fruit", 1, True)]


@pytest.mark.parametrize(("old_plan", "state"), [("close", "is closed"), ("keep", "stays open for late reports")])
def test_what_becomes_of_the_old_epoch_is_said(plan, capsys, old_plan, state):
    other = sunzi.make_plan("grr", LABELS, 2)
    with closing(SqliteStore("sunzi.db")) as store:
        Collector(store).open("fruit", plan)
        serve_command._open(Collector(store), {None: other}, old_plan)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [f"fruit: epoch 1 {state}", "fruit: epoch 2, 0 reports so far"]


def test_the_only_collection_needs_no_name(plan, capsys, monkeypatch):
    """Whatever it is called, if the collector lists its collections to this caller."""
    settings = Settings(port=0, minimum_reports=1)
    with serve({"fruit": plan}, settings=settings) as collector:
        assert main(["simulate", "--send", collector.url, "--users", "100"]) == 0
        assert estimated(capsys, collector.url).startswith("label,")
        estimated(capsys, collector.url, "-o", "page.html")
        assert "Collection fruit · " in Path("page.html").read_text(encoding="utf-8")
        collector.open("more", plan)
        for words in (["simulate", "--send", collector.url], ["estimate", "--from", collector.url]):
            assert main(words) == 2
            assert f"serves several collections; choose one: {collector.url}/v1/collections/fruit, " in (
                capsys.readouterr().err
            )
    secret = "a-token-of-sixteen-or-more"
    with serve({"fruit": plan}, settings=replace(settings, admin_token=secret)) as collector:
        assert main(["simulate", "--send", collector.url, "--users", "100"]) == 2
        assert f"name a collection: {collector.url}/v1/collections/NAME" in capsys.readouterr().err
        monkeypatch.setenv("SUNZI_ADMIN_TOKEN", secret)
        assert main(["simulate", "--send", collector.url, "--users", "100"]) == 0
        assert estimated(capsys, collector.url).startswith("label,")


def test_a_store_without_collections_needs_a_plan(plan, capsys):
    SqliteStore("sunzi.db").close()
    assert main(["serve"]) == 2
    assert "sunzi.db holds no collection yet; give a plan file" in capsys.readouterr().err


@pytest.mark.slow
def test_epochs_that_were_due_rotate_at_the_start(plan, tmp_path):
    with closing(SqliteStore("sunzi.db")) as store:
        epoch = Collector(store).open("default", plan).epoch
        store._execute("UPDATE epochs SET opened_at = 0 WHERE key = ?", (epoch.key,))
    with serving(tmp_path, "--rotate", "daily", "--grace", "0", "--audit-log", "audit.log") as address:
        remote = RemoteCollector(address, max_epsilon=None)
        until = time.monotonic() + 30
        while len(Path("audit.log").read_bytes().splitlines() if Path("audit.log").exists() else ()) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
        current = remote.current()
        assert (current.number, current.is_open) == (2, True)
        with pytest.raises(ReportError, match="410"):
            remote.send(1, plan.fingerprint, plan.client().report("fig"), bytes(16))
        assert remote.upload(current, plan.client().report("fig")) == "counted"
        remote.close()
    lines = [json.loads(line) for line in Path("audit.log").read_text().splitlines()]
    assert [(line["operator"], line["action"], line["epoch"]) for line in lines] == [
        ("schedule", "open_epoch", 2),
        ("schedule", "close_epoch", 1),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rotate", "0 25 * * *"], "the hour of the schedule '0 25 * * *' must be 0 to 23"),
        (["--rotate", "daily", "--rotate-at", "4"], "a time of day must be HH:MM"),
        (["--rotate", "daily", "--time-zone", "Berlin"], "there is no time zone 'Berlin' here"),
        (["--rotate", "daily", "--grace", "-1"], "grace_seconds must not be negative"),
        (["--grace", "60"], "--grace is about --rotate; add --rotate daily"),
        (["--rotate-at", "04:00"], "--rotate-at is about --rotate"),
    ],
)
def test_schedules_that_are_refused(plan, capsys, words, message):
    assert main(["serve", "plan.json", *words, "--port", "0"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("sunzi.db").exists()
