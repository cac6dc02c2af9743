"""Counting texts in held-out reports: frequencies, intervals, and the false discovery rate."""

from itertools import product
from string import ascii_lowercase

import numpy as np
import pytest
from scipy.stats import kstest

import sunzi
from sunzi.errors import DomainError, EstimateError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols import prefix_counts
from sunzi.protocols.prefix_counts import accepted, text_estimate
from sunzi.protocols.prefix_tables import least_squares, view_tables

DOMAIN = sunzi.OpenDomain("letters", longest=4)
WORDS = ["one", "two", "three", "four", "five"]
SHARES = [0.4, 0.3, 0.15, 0.1, 0.05]


@pytest.fixture(scope="module")
def plan():
    return sunzi.make_plan("prefixes", DOMAIN, epsilon=3, cells=20_000)


@pytest.fixture(scope="module")
def tallies(plan):
    """Collections with the users' own shares of the words."""
    found, digits = [], DOMAIN.digits(WORDS).astype(np.int64)
    for seed in range(60):
        drawn = np.random.default_rng(seed).choice(5, 8000, p=SHARES)
        tally = plan._tally(8000, plan.protocol.simulate(digits[drawn], ReproducibleSource(seed)))
        found.append((tally, np.bincount(drawn, minlength=5) / 8000))
    return found


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


def test_texts_that_nobody_has_are_as_frequent_as_chance(plan, tallies):
    """p-values of absent texts are uniform; a false alarm in 1e-6 of seeds."""
    absent = [f"{a}{b}x" for a in "abcdefghij" for b in "klmno"]
    found = []
    for tally, _ in tallies[:40]:
        estimate = plan.estimate(tally, labels=[*WORDS, *absent])
        found.extend(prefix_counts._p_values(estimate._uncertainty)[5:])
    assert kstest(found, "uniform", alternative="greater").pvalue > 1e-6
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)


def test_few_accepted_texts_are_false(plan, tallies):
    """The mean share of false ones is at most the stated one, within 3 standard errors."""
    shares = []
    for tally, _ in tallies[:20]:
        found = plan.discover(tally, false_share=0.2)
        shares.append(sum(label not in {*WORDS, "thre…"} for label in found.labels) / max(1, len(found)))
    assert np.mean(shares) <= 0.2 + 3 * np.std(shares) / len(shares) ** 0.5


def test_texts_that_share_a_cell_are_told_apart(plan, tallies):
    """Two texts in one cell of one view; the other view tells which is the frequent one."""
    tables = view_tables(plan.protocol.with_role("count"), tallies[0][0])
    candidates = DOMAIN.digits(["".join(letters) for letters in product(ascii_lowercase, repeat=4)])
    cell = tables[0].view.points(DOMAIN.digits(["one"]))[0]
    alike = candidates[tables[0].view.points(candidates) == cell][:1]
    solved = least_squares(tables, np.concatenate([DOMAIN.digits(["one"]), alike]))
    assert solved == pytest.approx([0.4, 0.0], abs=0.1)


def test_long_lists_are_solved_like_short_ones(plan, tallies, monkeypatch):
    labels = [*WORDS, *(f"{a}{b}" for a in "abcdefghijklm" for b in "nopqrstuvwxyz")]
    tally = tallies[0][0]
    together = plan.estimate(tally, labels=labels)
    monkeypatch.setattr(prefix_counts, "_MOST_TOGETHER", 50)
    apart = plan.estimate(tally, labels=labels)
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
