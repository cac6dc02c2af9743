"""The search for frequent texts: what it finds, with and without public examples and lists."""

import numpy as np
import pytest

import sunzi
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols.prefix_search import PROPOSED, PrefixSearch
from sunzi.protocols.text_prior import TextPrior

DOMAIN = sunzi.OpenDomain("letters", longest=8)
TEXTS = ["", "a", "no", "yes", "maybe", "probably", "definitely", "don't"]
"""Ending at all levels; one too long, one with an unknown character, one empty."""
FOUND = {"", "a", "no", "yes", "maybe", "probably", "definite…", "don?t"}


def tally_of(plan, texts, users, seed=1):
    digits = plan.domain.digits(texts).astype(np.int64)
    drawn = np.random.default_rng(seed).integers(0, len(texts), users)
    return plan._tally(users, plan.protocol.simulate(digits[drawn], ReproducibleSource(seed)))


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("prefixes", DOMAIN, epsilon=4, cells=3000)


@pytest.fixture(scope="module")
def tally(plan):
    return tally_of(plan, TEXTS, 60_000)


@pytest.fixture(scope="module")
def search(plan, tally):
    return PrefixSearch.of(plan.protocol, DOMAIN, tally, beam=50)


def texts_of(digits):
    return [DOMAIN.text(row) for row in digits]


def test_texts_that_end_at_any_level_are_proposed(search):
    proposed = texts_of(search.best())
    assert set(proposed) >= FOUND
    assert len(proposed) <= PROPOSED
    assert len(set(proposed)) == len(proposed)


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_short_texts_need_a_level_or_two(longest):
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", longest), epsilon=4, cells=1000)
    found = plan.discover(tally_of(plan, ["x", "yes"], 20_000))
    assert set(found.labels) == {"x", "yes" if longest == 3 else "yes"[:longest] + "…"}


def test_tokens_and_bytes_are_searched_too():
    for alphabet in (["https://", "www.", ".org", "sun", "moon", "a"], "bytes"):
        plan = sunzi.make_plan("prefixes", sunzi.OpenDomain(alphabet, longest=4), epsilon=5, cells=1000)
        texts = ["sun.org", "moon"] if alphabet != "bytes" else ["sün", "moon"]
        assert set(plan.discover(tally_of(plan, texts, 40_000)).labels) == set(texts)


def test_lists_are_searched_in_all_views_that_see_a_text_whole(search):
    others = ["".join(letters) for letters in np.random.default_rng(2).choice(list("abcdefgh"), (3000, 6)).tolist()]
    proposed = texts_of(search.among(DOMAIN.digits([*others, *TEXTS, *TEXTS])))
    assert len(proposed) == len(set(proposed)) == PROPOSED
    assert set(proposed[: len(FOUND)]) == FOUND


def test_an_empty_list_finds_nothing(plan, tally):
    assert plan.discover(tally, candidates=[]).rows == ()


def test_public_examples_help_where_reports_are_few():
    plan = sunzi.make_plan("prefixes", DOMAIN, epsilon=4, cells=3000)
    words = ["certain", "contain", "captain", "curtain", "mountain", "fountain"]
    proposed = {True: 0, False: 0}
    for seed in range(4):
        search = PrefixSearch.of(plan.protocol, DOMAIN, tally_of(plan, words, 900, seed), beam=10)
        prior = TextPrior.of(DOMAIN.digits(["obtain", "certainly", "mount", "count", "cap", "curt"] * 20), DOMAIN.end)
        for helped in proposed:
            proposed[helped] += len(set(words) & set(texts_of(search.best(prior if helped else None))))
    assert proposed[True] > proposed[False]


@pytest.mark.parametrize("alphabet", ["letters", "bytes"])
def test_chances_of_a_prior_sum_to_1(alphabet):
    domain = sunzi.OpenDomain(alphabet, longest=5)
    prior = TextPrior.of(domain.digits(["the", "then", "other", ""]), domain.end)
    assert prior.memory == (2 if alphabet == "letters" else 1)
    contexts = prior.contexts(domain.digits(["", "t", "th", "zz"])[:, :2])
    assert np.exp(prior.chances(contexts)).sum(axis=1) == pytest.approx(np.ones(4), abs=1e-5)
    after_th = prior.chances(prior.contexts(domain.digits(["th"])[:, :2]))[0]
    assert domain.symbols[int(after_th.argmax())] == "e"
