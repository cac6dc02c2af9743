"""What is kept of searches, and which lists are accepted."""

import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.collector import discoveries
from sunzi.collector.discoveries import DiscoveryCache, GivenTexts

PLAN = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest=3), epsilon=4, cells=1000)
TALLY = PLAN.simulate(["yes"] * 6000 + ["no"] * 3000, seed=1)


def test_results_are_those_of_the_plan():
    cache = DiscoveryCache()
    assert cache.find(PLAN, TALLY, 0.1) == PLAN.discover(TALLY, false_share=0.1)
    for use in ("candidates", "prior"):
        given = GivenTexts(use, b"yes\nmaybe\n")
        assert cache.find(PLAN, TALLY, 0.05, given) == PLAN.discover(TALLY, **{use: ["yes", "maybe"]})
    counted = cache.count(PLAN, TALLY, GivenTexts("count", b"yes\nmaybe"))
    assert list(counted.frequencies) == list(PLAN.estimate(TALLY, labels=["yes", "maybe"]).frequencies)


def test_a_search_is_repeated_only_if_the_tally_or_the_arguments_change(monkeypatch):
    cache, searches = DiscoveryCache(), []
    search = discoveries._computed
    monkeypatch.setattr(discoveries, "_computed", lambda *each: searches.append(each) or search(*each))
    first = cache.find(PLAN, TALLY, 0.05)
    assert cache.find(PLAN, sunzi.Tally.from_bytes(TALLY.to_bytes()), 0.05) is first
    assert len(searches) == 1
    more = TALLY + PLAN.simulate(["yes"] * 100, seed=2)
    cache.find(PLAN, more, 0.05)
    cache.find(PLAN, TALLY, 0.1)
    for use in ("candidates", "prior"):
        for content in (b"yes", b"no"):
            cache.find(PLAN, TALLY, 0.05, GivenTexts(use, content))
    assert len(searches) == 7
    assert cache.find(PLAN, TALLY, 0.05) is first
    for share in range(1, 20):
        cache.find(PLAN, TALLY, share / 100)
    assert len(cache._kept) == 16


@pytest.mark.parametrize("content", [b"yes\r\nno\r\n", b"\xef\xbb\xbfyes\nno", b"yes\rno"])
def test_texts_are_lines(content):
    assert GivenTexts("prior", content).texts(PLAN) == ["yes", "no"]
    assert GivenTexts("prior", b"\n\n").texts(PLAN) == ["", ""]


@pytest.mark.parametrize(
    ("use", "content", "message"),
    [
        ("candidates", b"", "the body is empty"),
        ("candidates", b"\xff\xfe", "must be UTF-8"),
        ("count", b"\n" * 10_001, "at most 10,000 texts, got 10,001"),
        ("candidates", b"\n" * 9_000_000, "at most 8,388,608 texts"),
    ],
)
def test_other_bodies_are_refused(use, content, message):
    with pytest.raises(ParameterError, match=message):
        GivenTexts(use, content).texts(PLAN)
