"""The audit by enumeration."""

import sunzi
from sunzi.analysis.audit_enumeration import check_enumeration, passing
from sunzi.designs import Singletons


def test_passing_words_are_spread_evenly():
    for bound in range(1, 9):
        drawn = list(passing(bound, 3).values())
        assert [drawn.count(value) for value in range(bound)] == [8 // bound] * bound


def test_a_large_design_without_small_relatives_is_not_enumerated(monkeypatch):
    plan = sunzi.make_plan("grr", 10_000, 1)
    assert check_enumeration(plan, plan.client(seed=1)).passed
    monkeypatch.setattr(Singletons, "smallest", classmethod(lambda _: ()))
    assert check_enumeration(plan, plan.client(seed=1)) is None
    small = sunzi.make_plan("grr", 4, 1)
    assert check_enumeration(small, small.client(seed=1)).passed
