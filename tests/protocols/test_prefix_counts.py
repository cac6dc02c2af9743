"""Counting texts in held-out reports: frequencies, intervals, and the false discovery rate."""

from dataclasses import replace
from itertools import product
from string import ascii_lowercase

import numpy as np
import pytest
from scipy.stats import kstest

import sunzi
from sunzi.client.errors import DomainError
from sunzi.errors import EstimateError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols import prefix_counts
from sunzi.protocols.prefix_counts import accepted, text_estimate
from sunzi.protocols.prefix_tables import least_squares, view_tables

DOMAIN = sunzi.OpenDomain("letters", longest=4)
WORDS = ["one", "two", "three", "four", "five"]
SHARES = [0.4, 0.3, 0.15, 0.1, 0.05]


def collections(plan, number):
    """Tallies, with the users' own shares of the words."""
    digits = DOMAIN.digits(WORDS).astype(np.int64)
    for seed in range(number):
        drawn = np.random.default_rng(seed).choice(5, 8000, p=SHARES)
        tally = plan._tally(8000, plan.protocol.simulate(digits[drawn], ReproducibleSource(seed)))
        yield tally, np.bincount(drawn, minlength=5) / 8000


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("prefixes", DOMAIN, epsilon=3, cells=20_000)


@pytest.fixture(scope="module")
def tallies(plan):
    return list(collections(plan, 60))


def test_estimates_are_unbiased_and_their_errors_are_right(plan, tallies):
    """300 estimates of 5 texts, scaled: mean and spread within 5 standard errors; 95 % intervals cover."""
    scaled, covered = [], 0
    for tally, truth in tallies:
        estimate = plan.estimate(tally, labels=WORDS)
        scaled.append((estimate.frequencies - truth) / estimate.standard_errors())
        low, high = estimate.interval(0.95)
        covered += np.count_nonzero((low <= truth) & (truth <= high))
    values = np.concatenate(scaled)
    assert abs(values.mean()) < 5 / values.size**0.5
    assert abs(values.std() - 1) < 5 / (2 * values.size) ** 0.5
    assert covered >= 0.95 * 300 - 5 * (300 * 0.95 * 0.05) ** 0.5


@pytest.mark.parametrize("cells", [1000, 20_000])
def test_texts_that_nobody_has_are_as_frequent_as_chance(cells):
    """p-values of absent texts are uniform, though most of 1,500 texts share a cell of 1,000 with another."""
    plan = sunzi.make_plan("prefixes", DOMAIN, epsilon=3, cells=cells)
    absent = ["".join(letters) for letters in product("abcdefghijklmno", "pqrstuvwxy", "abcdefghij")]
    found = []
    for tally, _ in collections(plan, 20):
        estimate = plan.estimate(tally, labels=[*WORDS, *absent])
        found.extend(prefix_counts._p_values(estimate._uncertainty)[5:])
    # A false alarm in 1e-6 of seeds.
    assert kstest(found, "uniform", alternative="greater").pvalue > 1e-6
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_texts_in_the_cells_of_other_users_are_as_frequent_as_chance():
    """With little noise single reports stand out, also those of other texts: of 3,000 users, each with another text,
    some have one in the same cell. Of 105,000 p-values of absent texts at most 62 are below 0.0003; more by chance less
    than once in 1e-6.
    """
    plan = sunzi.make_plan("prefixes", DOMAIN, epsilon=10, cells=20_000)
    texts, small = ["".join(letters) for letters in product(ascii_lowercase[:14], repeat=4)], 0
    for seed in range(3):
        mixed = np.random.default_rng(seed).permutation(texts).tolist()
        estimate = plan.estimate(plan.simulate(mixed[:3000], seed=seed), labels=mixed[3000:38_000])
        small += np.count_nonzero(prefix_counts._p_values(estimate._uncertainty) < 0.0003)
    assert small <= 62


@pytest.mark.parametrize("cells", [1000, 20_000])
def test_few_accepted_texts_are_false_and_few_intervals_miss(cells):
    """The mean share of false texts is at most the stated one, and of intervals that miss at most 5 %, within 5
    standard errors.
    """
    plan, held = sunzi.make_plan("prefixes", DOMAIN, epsilon=3, cells=cells), ["one", "two", "thre…", "four", "five"]
    false, missed, number = [], 0, 0
    for tally, truth in collections(plan, 20):
        found, shares = plan.discover(tally, false_share=0.1), dict(zip(held, truth, strict=True))
        false.append(len(set(found.labels) - set(held)) / max(1, len(found)))
        missed += sum(not row.low <= shares.get(row.label, 0.0) <= row.high for row in found)
        number += len(found)
    assert np.mean(false) <= 0.1 + 5 * np.std(false) / len(false) ** 0.5
    assert missed <= 0.05 * number + 5 * (0.05 * number) ** 0.5


def test_texts_that_share_a_cell_are_told_apart(plan, tallies):
    """Two texts in one cell of one view; the other view tells which is the frequent one."""
    tables = view_tables(plan.protocol.with_role("count"), tallies[0][0])
    candidates = DOMAIN.digits(["".join(letters) for letters in product(ascii_lowercase, repeat=4)])
    cell = tables[0].view.points(DOMAIN.digits(["one"]))[0]
    alike = candidates[tables[0].view.points(candidates) == cell][:1]
    solved = least_squares(tables, np.concatenate([DOMAIN.digits(["one"]), alike]))
    assert solved == pytest.approx([0.4, 0.0], abs=0.1)


def test_telling_texts_apart_has_its_price(plan, tallies):
    """Of two views, the texts share a cell in one: the variance is 4/3 of that with a cell each."""
    words, tally = DOMAIN.digits(WORDS), tallies[0][0]
    tables = view_tables(plan.protocol.with_role("count"), tally)
    assert len(tables) == 2
    candidates = DOMAIN.digits(["".join(letters) for letters in product(ascii_lowercase, repeat=4)])
    alike = candidates[tables[0].view.points(candidates) == tables[0].view.points(words[:1])[0]]
    # One that stands out by chance, so that both are solved together.
    chosen = alike[tables[1].at(tables[1].view.points(alike)).argmax()]
    uncertainty = text_estimate(plan.protocol, DOMAIN, tally, np.vstack([words, chosen]))._uncertainty
    assert uncertainty.inflation == pytest.approx([4 / 3, 1, 1, 1, 1, 4 / 3], rel=0.02)
    assert uncertainty.null_variances == pytest.approx(uncertainty.variance * uncertainty.inflation)


def test_few_counts_have_the_wider_interval_where_texts_were_told_apart(plan, tallies):
    known = plan.estimate(tallies[0][0], labels=WORDS)._uncertainty
    separated = replace(known, inflation=np.array([9.0, 1, 1, 1, 1]))
    low, high = (ends - known.frequencies for ends in separated.interval(0.95, "reporters", "exact"))
    before = [ends - known.frequencies for ends in known.interval(0.95, "reporters", "exact")]
    assert low[0] < 1.5 * before[0][0]
    assert high[0] > 1.5 * before[1][0]
    assert np.all(low[1:] == before[0][1:])
    assert np.all(high[1:] == before[1][1:])


def test_texts_that_do_not_stand_out_are_counted_as_if_solved_with_the_others(plan, tallies, monkeypatch):
    labels = [*WORDS, *(f"{a}{b}" for a in "abcdefghijklm" for b in "nopqrstuvwxyz")]
    tally = tallies[0][0]
    apart = plan.estimate(tally, labels=labels)
    monkeypatch.setattr(prefix_counts, "_BY_CHANCE", len(labels))
    together = plan.estimate(tally, labels=labels)
    difference = np.abs(together.frequencies - apart.frequencies)
    assert difference.max() < 3 * apart.standard_errors().max()
    assert np.median(difference) < 0.2 * np.median(apart.standard_errors())


def test_labels_that_read_the_same_are_one_row(plan, tallies):
    estimate = plan.estimate(tallies[0][0], labels=["n't", "n?t", "one", "threes", "threat"])
    assert estimate.domain.labels == ("n?t", "one", "thre…")
    assert estimate["one"].frequency == pytest.approx(0.4, abs=0.1)
    assert len(plan.estimate(tallies[0][0], labels=["one"])) == 1
    assert "one" in estimate
    assert estimate["threads"] == estimate["thre…"]
    assert "zzz" not in estimate
    with pytest.raises(DomainError, match="'zzz' is not in the domain"):
        estimate["zzz"]


def test_what_needs_all_values_is_refused(plan, tallies):
    estimate = plan.estimate(tallies[0][0], labels=WORDS)
    assert estimate.postprocess("clip").frequencies.min() >= 0
    with pytest.raises(EstimateError, match="needs the frequencies of all values"):
        estimate.postprocess("simplex")
    with pytest.raises(EstimateError, match="sums and differences"):
        estimate.sum(["one", "two"])


def test_intervals_of_few_counts_are_exact(plan):
    digits = DOMAIN.digits(["one"]).astype(np.int64)
    tally = plan._tally(300, plan.protocol.simulate(np.repeat(digits, 300, axis=0), ReproducibleSource(1)))
    estimate = plan.estimate(tally, labels=["one", "two"])
    low, high = estimate.interval(0.95)
    assert low[0] <= 1 <= high[0] + 1e-9
    assert low[1] <= 0 <= high[1]
    normal = estimate.interval(0.95, method="normal")
    assert np.all(normal[0] < estimate.frequencies)
    score = estimate.interval(0.95, method="score", target="population")
    assert np.all(score[0] <= score[1])


def test_nothing_to_accept(plan, tallies):
    estimate = text_estimate(plan.protocol, DOMAIN, tallies[0][0], DOMAIN.digits(["zzz"]))
    found = accepted(estimate, 1e-6)
    assert (found.rows, found.candidates) == ((), 1)
