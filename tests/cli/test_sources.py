"""Epochs that commands read: which ones are chosen, and what they add up to."""

import csv
import io
import json
from argparse import ArgumentTypeError
from contextlib import closing
from dataclasses import dataclass
from html import unescape

import pytest

import sunzi
from sunzi.cli.main import main
from sunzi.cli.sources import EpochChoice, read_epochs
from sunzi.client.errors import StoreError
from sunzi.collector import Collector, RemoteCollector, Settings, open_store, serve


@dataclass(frozen=True)
class Numbered:
    number: int


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("3", [3]),
        ("2:4", [2, 3, 4]),
        ("2:2", [2]),
        ("4:", [4, 5, 7]),
        (":2", [1, 2]),
        ("5:9", [5, 7]),
        ("all", [1, 2, 3, 4, 5, 7]),
        ("last", [7]),
        ("last:3", [4, 5, 7]),
        ("last:99", [1, 2, 3, 4, 5, 7]),
    ],
)
def test_epochs_are_chosen_by_number(text, chosen):
    epochs = [Numbered(number) for number in (7, 1, 2, 3, 4, 5)]
    assert [each.number for each in EpochChoice.parse(text).choose(epochs)] == chosen


@pytest.mark.parametrize("text", ["6", "8:9", "0"])
def test_a_choice_of_nothing_names_the_epochs(text):
    with pytest.raises(StoreError, match=f"no epoch {text} in this collection; its epochs are 1 to 7"):
        EpochChoice.parse(text).choose([Numbered(number) for number in (1, 7)])


@pytest.mark.parametrize("text", ["", ":", "-1", "1-7", "1:7:2", "first", "last:0", "last:", "1:x", "1 7", "9" * 11])
def test_a_malformed_choice_names_the_forms(text):
    with pytest.raises(ArgumentTypeError, match="a range such as 1:7 or 3:, all, last"):
        EpochChoice.parse(text)


def test_a_range_that_ends_before_it_starts():
    with pytest.raises(ArgumentTypeError, match="the range 7:1 ends before it starts"):
        EpochChoice.parse("7:1")


PLANS = [sunzi.make_plan("grr", ["no", "yes"], epsilon) for epsilon in (3, 3, 2)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Three epochs of 100, 200 and 300 reports, the last with another plan."""
    monkeypatch.chdir(tmp_path)
    store = open_store("collector.db")
    collector = Collector(store)
    for number, plan in enumerate(PLANS, 1):
        live = collector.open("poll", plan)
        held = ["yes"] * 80 * number + ["no"] * 20 * number
        store.commit([collector.deposit(live, bytes(16), plan.client(seed=number).report_batch(held))])
        collector.close("poll", live.epoch.number)
    store.close()
    return "collector.db"


def _reports(capsys, *words):
    assert main(["estimate", *words, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    return round(float(rows[0]["count"]) / float(rows[0]["frequency"]))


def test_epochs_of_one_plan_add_up(store, capsys):
    for words, reports in [(["1"], 100), (["1:2"], 300), (["last"], 300), ([":2"], 300)]:
        assert _reports(capsys, "--from", store, "--epoch", *words) == reports
    assert _reports(capsys, "--from", store) == 300
    for epochs, notes in (("1", 0), ("1:2", 1)):
        assert main(["estimate", "--from", store, "--epoch", epochs]) == 0
        assert capsys.readouterr().err.count("assumes different users or fresh noise in each epoch") == notes
    with serve({"poll": PLANS[2]}, store=store, settings=Settings(port=0, minimum_reports=1)) as collector:
        assert _reports(capsys, "--from", collector.url, "--epoch", "1:2") == 300


def test_equal_plans_are_read_once(store):
    first, second, third = read_epochs(store, None, EpochChoice.parse("all"), None)
    assert first.plan is second.plan is not third.plan
    assert [epoch.number for epoch in (first, second, third)] == [1, 2, 3]
    assert first.opened_at <= second.opened_at <= third.opened_at


def test_epochs_of_different_plans_do_not_add_up(store, complaint):
    assert main(["estimate", "--from", store, "--epoch", "all"]) == 2
    message = complaint()
    assert "epochs 1 and 3 of poll have different plans" in message
    assert "compare them with `sunzi diff` or `sunzi trend`" in message


def test_missing_epochs_and_collections(store, complaint):
    assert main(["estimate", "--from", store, "--epoch", "8:9"]) == 2
    assert "there is no epoch 8:9 in this collection; its epochs are 1 to 3" in complaint()
    assert main(["estimate", "--from", store, "--collection", "votes"]) == 2
    assert "no collection 'votes'" in complaint()
    with serve({"poll": PLANS[2]}, store=store) as collector:
        assert main(["estimate", "--from", collector.url, "--collection", "votes"]) == 2
        assert "/v1/collections/votes is not served" in complaint()


def test_a_page_names_its_epochs(store, tmp_path):
    assert main(["estimate", "--from", store, "--epoch", "1:2", "-o", "page.html"]) == 0
    assert "poll, epochs 1 to 2" in (tmp_path / "page.html").read_text()


def test_what_a_collector_says_about_readers_is_passed_on(tmp_path):
    plan = sunzi.make_plan("grr", ["a", "b"], 1)
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    for settings, claimed in (
        (Settings(port=0), False),
        (Settings(port=0, publish_delta=1e-8, honest=0.9), True),
    ):
        with serve(plan, settings=settings) as collector:
            with closing(RemoteCollector(collector.url, max_epsilon=1)) as remote:
                epoch = remote.current()
                remote.upload(epoch, epoch.plan.client().report_batch(["a"] * 500))
                collector.collector.close("default", 1)
                told = remote.guarantee(1)
                with pytest.raises(StoreError, match="answers 404"):
                    remote.guarantee(7)
            words = ["estimate", "--from", collector.url, "--force", "-o", str(page), "-o", str(data)]
            assert main([*words, "--epoch", "1"]) == 0
        found, shown = json.loads(data.read_text()), unescape(page.read_text())
        assert found["batch_guarantee"] == told["batch_guarantee"]
        assert (found["batch_guarantee"] is not None) == claimed
        if claimed:
            expected = plan.batch_guarantee(500, 1e-8, honest=0.9, reader="tally")
            assert found["batch_guarantee"]["epsilon"] == expected.epsilon
            assert all(text in shown for text in (expected.in_words(), *dict(expected.facts()).values()))
        else:
            assert found["no_batch_guarantee"] == told["no_batch_guarantee"]
            assert f"No guarantee is claimed for readers: {told['no_batch_guarantee']}." in shown
