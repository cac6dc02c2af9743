"""A plan's figures as text."""

from fractions import Fraction

import sunzi
from sunzi.cli.plan_figures import AXES_HEADER, attacker_success, axes_cells, privacy_bound
from sunzi.planning import evaluate


def test_what_epsilon_guarantees():
    assert privacy_bound(Fraction(1)) == (
        "epsilon = 1: any report is at most 2.72 times as likely under one value as under any other"
    )
    assert "at most e^1000 times as likely" in privacy_bound(Fraction(1000))


def test_what_one_report_reveals():
    assert attacker_success(sunzi.make_plan("grr", 12, 1).attackability, 12) == (
        "someone who sees a report guesses the value correctly 19.8 % of the time, compared with 8.33 % without it, "
        "if all values are equally likely"
    )
    assert "over 99.9 % of the time" in attacker_success(1 - 1e-9, 12)


def test_cells_of_a_table():
    undetected = axes_cells(evaluate(sunzi.make_plan("grr", 500, 1), 10))
    assert len(undetected) == len(AXES_HEADER)
    assert "none" in undetected
