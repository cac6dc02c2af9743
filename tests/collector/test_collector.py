"""The collector without HTTP: epochs, deposits, tokens and estimates."""

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, ReportError
from sunzi.collector import collector as collector_module
from sunzi.collector.collector import (
    AnotherPlanError,
    ClosedEpochError,
    Collector,
    MisdirectedError,
    UnknownEpochError,
    plan_changes,
)
from sunzi.collector.epochs import Shard
from sunzi.collector.sqlite import SqliteStore
from sunzi.domains.labels import Domain
from sunzi.plan import Plan, make_plan

PLAN = make_plan("grr", ["Äpfel", "pear", "plum"], 1)
BODY = PLAN.client(seed=1).report_indices(np.array([0, 1, 2, 0]))


@pytest.fixture
def collector(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    yield Collector(store)
    store.close()


def test_a_plan_joins_its_open_epoch_and_another_plan_opens_a_new_one(collector):
    assert [collector.open("web", PLAN).epoch.number for _ in range(2)] == [1, 1]
    assert collector.open("web", make_plan("grr", 3, 1), old_plan="keep").epoch.number == 2
    assert collector.open("app", PLAN).epoch.number == 1
    assert collector.collections() == ["app", "web"]
    assert [epoch.number for epoch in collector.epochs("web")] == [1, 2]


def test_many_groups_of_many_values_have_small_pages(collector):
    """Else each report would rewrite a large page of every group that it names."""
    few, many = (make_plan("grr", 20_000, 1, groups={"release": list(map(str, range(n)))}) for n in (10, 1000))
    assert collector.open("few", few).epoch.page_cells == collector.open("web", PLAN).epoch.page_cells == 500
    assert collector.open("many", many).epoch.page_cells == collector.open_next("many").page_cells == 8


def test_another_plan_must_say_what_becomes_of_the_open_epoch(collector):
    newer, newest = make_plan("grr", ["Äpfel", "pear", "fig"], 3), make_plan("ss-compact", 5, 3)
    collector.open("web", PLAN)
    with pytest.raises(AnotherPlanError, match=r"epoch 1 of web is open .*epsilon 1 → 3, new 'fig', removed 'plum'"):
        collector.open_all({"app": PLAN, "web": newer})
    assert [(epoch.collection, epoch.number) for epoch in collector.epochs()] == [("web", 1)]
    assert collector.open("web", newer, old_plan="close").epoch.number == 2
    assert [epoch.is_open for epoch in collector.epochs("web")] == [False, True]
    assert collector.open("web", newest, old_plan="keep").epoch.number == 3
    assert [epoch.is_open for epoch in collector.epochs("web")] == [False, True, True]
    # Clients fetch the newest epoch's plan, so an older one that is still open is not joined by itself.
    with pytest.raises(AnotherPlanError, match="epoch 3 of web"):
        collector.open("web", newer)
    assert collector.open("web", newer, old_plan="keep").epoch.number == 4
    assert collector.open("web", newest, old_plan="close").epoch.number == 3
    assert [epoch.is_open for epoch in collector.epochs("web")] == [False, False, True, False]
    collector.close("web", 3)
    assert collector.open("web", PLAN).epoch.number == 5  # nothing is open, so nothing changes unnoticed


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        (make_plan("grr", 3, 1), make_plan("ss", 4, "1/2"), "epsilon 1 → 1/2, protocol grr → ss, values 3 → 4"),
        (make_plan("grr", ["a", "b"], 1), make_plan("grr", ["b", "a"], 1), "labels in another order"),
        (make_plan("grr", ["a", "b"], 1), make_plan("grr", ["a", "b"], 1, other="b"), "other None → 'b'"),
        (make_plan("grr", ["a", "b"], 1), make_plan("grr", 2, 1), "labels → numbers"),
        (
            make_plan("grr", Domain(["a", "b"], separate_labels=True), 1),
            make_plan("grr", Domain(["a", "c"], separate_labels=True), 1),
            "new 'c', removed 'b'",
        ),
        (make_plan("ss", 9, 1, block_size=2), make_plan("ss", 9, 1, block_size=3), "other parameters of the protocol"),
    ],
)
def test_changes_of_plans_in_words(old, new, changes):
    assert plan_changes(old, new) == changes


def test_changed_label_files_that_were_not_read():
    old, new = (make_plan("grr", Domain(["a", last], separate_labels=True), 1) for last in "bc")
    assert plan_changes(Plan.from_json(old.canonical), new) == "another label file"


def test_a_plan_without_a_name_belongs_to_the_only_collection(collector):
    assert collector.unnamed() == "default"
    collector.open("web", PLAN)
    assert collector.unnamed() == "web"
    collector.open("app", PLAN)
    with pytest.raises(ParameterError, match=r"holds the collections \['app', 'web'\]"):
        collector.unnamed()
    collector.open("default", PLAN)
    assert collector.unnamed() == "default"


def test_the_newest_open_epoch_is_found(collector):
    for size in (3, 4, 5):
        collector.open("web", make_plan("grr", size, 1), old_plan="keep")
    collector.close("web", 3)
    assert collector.find("web").epoch.number == 2
    assert collector.find("web", 3).plan.domain.size == 5
    for number in (1, 2):
        collector.close("web", number)
    assert collector.find("web").epoch.number == 3
    with pytest.raises(UnknownEpochError, match="no epoch 9 of 'web'"):
        collector.find("web", 9)
    with pytest.raises(UnknownEpochError, match="no collection 'app'"):
        collector.find("app")


def test_epochs_opened_elsewhere_are_found(collector, tmp_path):
    other = SqliteStore(tmp_path / "store.db")
    Collector(other).open("web", PLAN)
    assert collector.known("web", 1) is None
    assert collector.find("web", 1).plan == PLAN
    Collector(other).close("web", 1)
    assert not collector.epochs("web")[0].is_open
    other.close()


def test_plans_are_loaded_when_they_are_used_and_let_go(tmp_path, monkeypatch):
    plans = [make_plan("grr", size, 1) for size in range(3, 9)]
    store = SqliteStore(tmp_path / "store.db")
    first = Collector(store)
    for plan in plans:
        first.open("web", plan, old_plan="keep")
    parsed = []
    from_json = Plan.from_json.__func__
    monkeypatch.setattr(Plan, "from_json", classmethod(lambda cls, data: parsed.append(data) or from_json(cls, data)))
    monkeypatch.setattr(collector_module, "_KEPT_PLANS", 2)
    collector = Collector(store)
    assert [epoch.number for epoch in collector.epochs()] == [1, 2, 3, 4, 5, 6]
    assert collector.plan_file(collector.find_epoch("web")) == plans[-1].canonical
    assert (collector.known("web", 1), parsed) == (None, [])
    assert [collector.find("web", number).plan for number in (1, 2, 1, 3, 1)] == [plans[at] for at in (0, 1, 0, 2, 0)]
    assert len(parsed) == 3
    assert [number for number in range(1, 7) if collector.known("web", number)] == [1, 3]
    collector.close("web", 5)
    with pytest.raises(ClosedEpochError, match="epoch 5 of web is closed"):
        collector.find_open("web", 5)
    store.close()


def test_epochs_share_a_plan(collector):
    collector.open("web", PLAN)
    collector.close("web", 1)
    collector.open("web", Plan.from_json(PLAN.canonical))
    fresh = Collector(collector.store)
    assert fresh.find("web", 1).plan is fresh.find("web", 2).plan


def test_labels_in_a_file_of_their_own_stay(collector, monkeypatch):
    monkeypatch.setattr(collector_module, "_KEPT_PLANS", 1)
    labelled = make_plan("grr", Domain(["a", "b"], separate_labels=True), 1)
    for plan in (labelled, PLAN):
        collector.open("web", plan, old_plan="keep")
    assert collector.find("web", 1).plan.domain.labels == ("a", "b")


def test_a_deposit_has_the_counts_of_its_reports(collector):
    live = collector.open("web", PLAN)
    deposit = collector.deposit(live, bytes(16), BODY)
    assert deposit.reports == 4
    collector.store.commit([deposit])
    assert collector.tally(live) == PLAN.tally(BODY)


def test_bad_deposits_are_refused(collector, tmp_path):
    live = collector.open("web", PLAN)
    with pytest.raises(ParameterError, match="an id must have 16 bytes, got 3"):
        collector.deposit(live, b"abc", BODY)
    with pytest.raises(ReportError, match="the batch holds no reports"):
        collector.deposit(live, bytes(16), PLAN.client(seed=1).report_batch([]))
    with pytest.raises(ReportError):
        collector.deposit(live, bytes(16), BODY[:-1])
    with pytest.raises(ClosedEpochError, match="epoch 1 of web is closed"):
        collector.deposit(collector.close("web", 1), bytes(16), BODY)
    store = SqliteStore(tmp_path / "shard.db", Shard(1, 2))
    shard = Collector(store)
    with pytest.raises(MisdirectedError, match="this collector is shard 1/2"):
        shard.deposit(shard.open("web", PLAN), bytes(16), BODY)
    store.close()


def test_a_token_pays_for_one_deposit(collector):
    live = collector.open("web", PLAN)
    (token,) = collector.make_tokens(live, 1)
    deposits = [collector.deposit(live, bytes([number]) * 16, BODY, bytes.fromhex(token)) for number in (1, 2)]
    assert [outcome.value for outcome in collector.store.commit(deposits)] == ["counted", "token refused"]
    assert token.encode() not in deposits[0].token


def test_an_estimate_is_computed_once_per_count(collector):
    live = collector.open("web", PLAN)
    collector.store.commit([collector.deposit(live, b"1" * 16, BODY)])
    tally, estimate = collector.estimate(live)
    assert collector.estimate(live)[1] is estimate
    assert np.array_equal(estimate.frequencies, PLAN.estimate(PLAN.tally(BODY)).frequencies)
    collector.store.commit([collector.deposit(live, b"2" * 16, BODY)])
    assert collector.estimate(live)[0].reports == 2 * tally.reports


def test_the_next_epoch_of_a_plan_keeps_the_labels_of_its_file(collector):
    labelled = make_plan("grr", Domain(["a", "b"], separate_labels=True), 1)
    collector.open("fruit", labelled)
    assert collector.open_next("fruit").number == 2
    assert collector.find("fruit").plan.domain.labels == ("a", "b")
    assert [epoch.is_open for epoch in collector.epochs("fruit")] == [False, True]
