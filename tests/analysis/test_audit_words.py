"""The audit by chosen words."""

from fractions import Fraction

import sunzi
from sunzi.analysis import audit
from sunzi.analysis.audit_words import expected_report, scripted_report


def test_expected_messages_match_scripted_words():
    """By hand: GRR on four values, ε = 1; 2^64 mod 3 = 1, so the word 0 is rejected."""
    plan = sunzi.make_plan("grr", 4, 1)
    third = (1 << 64) // 3
    assert expected_report(plan.protocol, 2, [(1 << 64) - 1, third + 1, 9]) == ((0, 1), 2)
    assert expected_report(plan.protocol, 2, [(1 << 64) - 1, 0, 2 * third + 2, 9]) == ((0, 3), 3)
    assert expected_report(plan.protocol, 2, [0, 5, 9]) == ((0, 2), 2)
    for script in ([(1 << 64) - 1, third + 1, 9], [(1 << 64) - 1, 0, 2 * third + 2, 9], [0, 5, 9]):
        sent = scripted_report(plan, lambda source: plan.client(source=source), 2, script)
        assert sent == expected_report(plan.protocol, 2, script)


def test_labels_are_spoken_to_clients_that_know_labels():
    plan = sunzi.make_plan("ss-compact", ["a", "b", "c", "d", "e"], Fraction(3, 2))
    found = audit(plan, trials=5_000, seed=2)
    assert found.passed, found.findings
