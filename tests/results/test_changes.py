"""Differences of two estimates: intervals, verdicts about all values, and what is refused."""

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError

SIZE, USERS = 40, 40_000
BEFORE = sunzi.make_plan("mss", SIZE, 3)
AFTER = sunzi.make_plan("oue", SIZE, 3)
FLAT = np.arange(USERS) % SIZE


def estimated(plan, values, seed):
    return plan.estimate(plan.simulate(values, seed=seed))


def test_plans_may_differ_and_changes_are_found():
    found = sunzi.difference(estimated(BEFORE, FLAT, 1), estimated(AFTER, np.where(FLAT == 3, 5, FLAT), 2))
    assert {row.index for row in found.top(2)} == {3, 5}
    assert np.flatnonzero(found.changed()).tolist() == [3, 5]
    assert found.changed(0.05, "discoveries")[[3, 5]].all()
    assert found.p_value() < 1e-6
    row = next(row for row in found.top(2) if row.index == 5)
    assert row.low < 1 / SIZE < row.high
    assert row.change == pytest.approx(row.after - row.before)
    assert found.to_frame("pandas")["changed"].sum() == 2
    assert found._repr_html_().count(">changed<") == 2
    assert found.to_html("A test").startswith("<!DOCTYPE html>")


def test_intervals_of_normal_errors_are_normal():
    first, second = estimated(AFTER, FLAT, 1), estimated(AFTER, FLAT, 2)
    found = sunzi.difference(first, second)
    low, high = found.interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.96 * found.standard_errors, rel=0.02)
    wide_low, wide_high = found.interval(0.95, simultaneous=True)
    assert ((wide_low < low) & (high < wide_high)).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "epsilon"), [("grr", 5), ("oue", 0.5)])
def test_false_verdicts_are_rare(name, epsilon):
    """With nothing changed, P(more than 25 of 200 runs have one) < 1e-6 at the stated 5 %; 95 % of intervals cover."""
    generator, alarms, covered = np.random.default_rng(3), 0, 0
    plan = sunzi.make_plan(name, SIZE, epsilon)
    frequencies = np.full(SIZE, 0.2 / SIZE)
    frequencies[:2] += [0.5, 0.3]
    for run in range(200):
        sides = [estimated(plan, generator.choice(SIZE, 4000, p=frequencies), (run, side)) for side in (0, 1)]
        found = sunzi.difference(*sides)
        alarms += bool(found.changed(0.05).any())
        low, high = found.interval(0.95)
        covered += np.count_nonzero((low <= 0) & (high >= 0))
    assert alarms <= 25
    # 8,000 intervals, nearly independent: 5 sd are 1.2 %.
    assert abs(covered / (200 * SIZE) - 0.95) < 0.015


def test_discoveries_are_mostly_true():
    """Ten values change by four standard errors. The mean share of false ones in 60 runs is at most 10 %: it exceeds
    16 % with probability below 1e-6, since the share of one run varies by about 9 %.
    """
    plan, shares = sunzi.make_plan("grr", SIZE, 3), []
    for run in range(60):
        changed = np.where((FLAT < 10) & (np.arange(USERS) % 3 > 0), FLAT + 10, FLAT)
        found = sunzi.difference(estimated(plan, FLAT, (run, 1)), estimated(plan, changed, (run, 2)))
        named = found.changed(0.1, "discoveries")
        shares.append(np.count_nonzero(named[20:]) / max(1, np.count_nonzero(named)))
        assert named[:20].sum() >= 15
    assert np.mean(shares) < 0.16


def test_what_has_no_difference_is_refused():
    first, other = estimated(AFTER, FLAT, 1), sunzi.make_plan("grr", 3, 1)
    with pytest.raises(EstimateError, match="40 and 3 values"):
        sunzi.difference(first, estimated(other, [0, 1, 2], 1))
    with pytest.raises(EstimateError, match="PostprocessedHistogram"):
        sunzi.difference(first, first.postprocess("clip"))
    with pytest.raises(ParameterError, match="everyone"):
        sunzi.difference(first, first, target="everyone")
    with pytest.raises(ParameterError, match="some"):
        sunzi.difference(first, first).changed(0.05, "some")
    assert sunzi.difference(first, first).p_value() == 1.0
