"""``sunzi simulate``: reports of simulated users, sent to a collector."""

import json
import urllib.request

import pytest
from serving import serving

import sunzi
from sunzi.cli.main import main
from sunzi.collector import Settings, serve
from sunzi.collector.sqlite import SqliteStore


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = sunzi.make_plan("ss-compact", ["apple", "pear", "plum", "fig"], 3, groups={"country": ["DE"]})
    made.save("plan.json")
    return made


@pytest.mark.slow
def test_simulated_users_with_single_use_tokens(plan, tmp_path, capsys):
    with serving(tmp_path, "plan.json", "--single-use-tokens") as address:
        request = urllib.request.Request(
            f"{address}/v1/collections/default/epochs/1/tokens",
            data=b'{"count": 25}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            tokens = json.load(answer)["tokens"]
        (tmp_path / "tokens.txt").write_text("\n".join(tokens))
        words = ["simulate", "--send", address, "--tokens-file", "tokens.txt"]
        assert main([*words, "--users", "31"]) == 2
        assert "tokens.txt holds 25 tokens for 31 uploads" in capsys.readouterr().err
        assert main([*words, "--users", "25", "--group", "country=FR"]) == 2
        assert "the group country has no value 'FR'" in capsys.readouterr().err
        assert main([*words, "--users", "25", "--group", "country=DE"]) == 0
        assert main([*words, "--users", "5"]) == 2  # they are spent
    store = SqliteStore("sunzi.db")
    assert store.epochs()[0].reports == 25
    assert store.group_reports(store.epochs()[0].key) == {"country=DE": 25}
    store.close()


def test_texts_without_a_list_are_not_drawn(tmp_path, capsys):
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 3), 4, cells=1000)
    with serve({"words": plan}, store=tmp_path / "s.db", settings=Settings(port=0)) as collector:
        assert main(["simulate", "--send", collector.url]) == 2
    assert "the values of words are texts without a list, so none can be drawn" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["ftp://nowhere"], "http://"),
        (["http://h:abc"], "port"),
        (["http://127.0.0.1:9", "--users", "0"], "--users must be at least 1, got 0"),
        (["http://127.0.0.1:9", "--batch", "0"], "--batch must be at least 1, got 0"),
        (["http://127.0.0.1:9", "--population", "bell"], "population"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_sent(plan, capsys, words, complaint):
    assert main(["simulate", "--send", *words]) == 2
    assert complaint in capsys.readouterr().err
