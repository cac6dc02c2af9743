"""The audit by enumeration."""

from sunzi.analysis.audit_enumeration import passing


def test_passing_words_are_spread_evenly():
    for bound in range(1, 9):
        drawn = list(passing(bound, 3).values())
        assert [drawn.count(value) for value in range(bound)] == [8 // bound] * bound
