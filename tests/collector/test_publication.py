"""Which guarantee holds for what a collector has published, and why none is claimed otherwise."""

import secrets
from dataclasses import replace

import pytest

import sunzi
from sunzi.client.errors import PrivacyError
from sunzi.collector import Collector, Settings, UploadKey, open_store
from sunzi.collector.publication import Publisher, published_groups, smallest_cell

PLAN = sunzi.make_plan("grr", 1024, 4)
OTHER = sunzi.make_plan("grr", 1024, 3)
GROUPED = sunzi.make_plan("grr", 1024, 4, groups={"country": ["DE", "FR", "IT"], "release": ["1", "2"]})
SETTINGS = Settings(port=0, minimum_reports=100, publish_delta=1e-8, honest=0.9)


@pytest.fixture
def collector(tmp_path):
    store = open_store(str(tmp_path / "store.db"))
    yield Collector(store)
    store.close()


def collect(collector, sizes, plan=PLAN, collection="default", close=True):
    """A new epoch with this many reports of each group or upload key."""
    collector.open_next(collection, plan, old="close")
    live = collector.find(collection)
    for name, reports in sizes.items():
        groups = dict(part.split("=") for part in name.split(",")) if "=" in name else None
        key = None if groups or not name else UploadKey(name, b"", 10**6)
        batch = plan.client(seed=1).report_batch([0] * reports)
        collector.store.commit([collector.deposit(live, secrets.token_bytes(16), batch, key=key, groups=groups)])
    return collector.close(collection, live.epoch.number) if close else live


def learned(collector, live, **changes):
    return Publisher(collector, replace(SETTINGS, **changes)).publication(live)


def expected(reports, plan=PLAN, **options):
    return plan.batch_guarantee(reports, 1e-8, honest=0.9, reader="tally", **options)


def test_a_closed_epoch_is_one_batch(collector):
    found = learned(collector, collect(collector, {"": 1500}))
    assert found.guarantee == expected(1500)
    assert found.guarantee.epsilon < PLAN.epsilon
    assert found.reason == ""
    text = " ".join(found.conditions)
    for condition in ("not hold against the operator", "one report per epoch", "no other epoch", "honest share"):
        assert condition in text
    assert "several collections" not in text
    assert found.to_dict()["batch_guarantee"]["conditions"] == list(found.conditions)


def test_nothing_is_claimed_for_readers_of_open_epochs(collector):
    live = collect(collector, {"": 1500}, close=False)
    plain = learned(collector, live, publish_delta=None, honest=None)
    assert plain.guarantee is None
    assert "sees the few reports between them" in plain.reason
    assert "--publish-delta" in plain.reason
    strict = learned(collector, live)
    assert strict.to_dict() == {"batch_guarantee": None, "no_batch_guarantee": strict.reason}
    assert "until it is closed" in strict.reason


def test_nothing_is_claimed_about_few_reports_or_with_a_large_delta(collector):
    live = collect(collector, {"": 99})
    assert "99 reports: nothing is published about fewer than 100" in learned(collector, live).reason
    large = collect(collector, {"": 1500})
    assert "not below 1/1,350" in learned(collector, large, publish_delta=1e-3).reason


def test_the_smallest_group_counts(collector):
    live = collect(collector, {"country=DE": 900, "country=FR": 300, "": 250}, GROUPED)
    assert learned(collector, live).guarantee == expected(250, GROUPED)


def test_combinations_of_attributes_are_not_known(collector):
    live = collect(collector, {"country=DE,release=1": 900, "country=FR,release=2": 300}, GROUPED)
    assert "groups of country and release are published" in learned(collector, live).reason


def test_a_group_is_held_back_if_the_rest_would_be_small():
    counts = {"country=DE": 500, "country=FR": 120, "country=IT": 3, "release=1": 623}
    assert published_groups(counts, 623, 100) == {"country=DE", "release=1"}
    assert published_groups(counts, 620, 100) == {"country=DE", "country=FR", "release=1"}
    assert published_groups({"country=DE": 150}, 151, 100) == set()
    assert smallest_cell(623, counts, [], 100) == 123
    assert smallest_cell(151, {"country=DE": 150}, [], 100) == 151
    with pytest.raises(PrivacyError, match="0 reports: nothing"):
        smallest_cell(0, {}, [], 100)


def test_a_correction_publishes_a_difference(collector):
    live = collect(collector, {"app": 1500, "web": 400, "test": 60})
    collector.subtract(live, "web")
    assert learned(collector, live).guarantee == expected(400)
    collector.subtract(live, "test")
    assert "60 reports were subtracted after it was closed" in learned(collector, live).reason


def test_what_was_subtracted_before_closing_was_never_published(collector):
    live = collect(collector, {"app": 1500, "test": 60}, close=False)
    collector.subtract(live, "test")
    assert learned(collector, collector.close("default", 1)).guarantee == expected(1500)


def test_a_correction_of_groups_is_not_known(collector):
    live = collect(collector, {"country=DE": 900, "app": 500}, GROUPED)
    collector.subtract(live, "app")
    assert "and it has groups" in learned(collector, live).reason


def test_epochs_with_fresh_noise_add_up(collector):
    live = [collect(collector, {"": reports}) for reports in (1500, 99, 2000, 1700)]
    found = learned(collector, live[3], fresh_noise=True)
    assert found.guarantee == expected([1500, 1700, 2000])
    assert "3 so far" in " ".join(found.conditions)
    alone = learned(collector, live[0])
    assert alone.guarantee == expected(1500)
    assert alone.guarantee.epsilon < found.guarantee.epsilon


def test_a_single_epoch_of_memoised_reports_needs_no_cohort(collector):
    found = learned(collector, collect(collector, {"": 1500}), cohort=5000)
    assert found.guarantee == expected(1500)
    conditions = " ".join(found.conditions)
    assert "only published epoch so far" in conditions
    assert "from the second one on the guarantee is for cohorts of at least 5,000 people" in conditions
    assert "others who are in exactly the same" not in conditions


def test_memoised_reports_need_a_cohort(collector):
    live, _ = [collect(collector, {"": reports}) for reports in (1500, 2000)]
    found = learned(collector, live, cohort=800)
    assert found.guarantee == expected([1500, 2000], cohort=800)
    assert "799 others" in " ".join(found.conditions)
    assert "cohort" in learned(collector, live, cohort=1600).reason


@pytest.mark.parametrize("option", [{"fresh_noise": True}, {"cohort": 200}])
def test_nothing_is_claimed_over_epochs_of_different_plans(collector, option):
    _, live = [collect(collector, {"": 1500}, plan) for plan in (PLAN, OTHER)]
    assert "epochs 1 and 2 have different plans" in learned(collector, live, **option).reason
    assert learned(collector, live).guarantee == expected(1500, OTHER)


def test_an_epoch_that_was_published_once_counts(collector):
    first = collect(collector, {"app": 50, "web": 1400})
    collector.subtract(first, "web")
    second = collect(collector, {"": 1500})
    assert "epoch 1: 50 reports" in learned(collector, second, fresh_noise=True).reason
    assert learned(collector, second).guarantee == expected(1500)


def test_several_collections_are_named(collector):
    collect(collector, {"": 1500}, collection="words")
    live = collect(collector, {"": 1500})
    assert "several collections" in " ".join(learned(collector, live).conditions)


def test_a_guarantee_is_computed_once(collector, monkeypatch):
    live, publisher = collect(collector, {"": 1500}), Publisher(collector, SETTINGS)
    first = publisher.publication(live)
    monkeypatch.setattr(sunzi.Plan, "batch_guarantee", None)
    assert publisher.publication(live) == first
