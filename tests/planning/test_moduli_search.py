"""The search: exchange steps, and what a request determines."""

from fractions import Fraction

import numpy as np

from sunzi.planning.moduli_candidates import block_family
from sunzi.planning.moduli_search import Exchange, Limits, Request, search
from sunzi.planning.moduli_space import search_space


def request(**changes):
    return Request(
        **{"max_bits": np.inf, "max_attack": np.inf, "max_moduli": 8, "evaluations": 60, "seed": 0, **changes}
    )


def test_seed_decides():
    family = block_family("mss", 150, Fraction(1))
    assert search(family, request()) == search(family, request())
    assert search(family, request()) != search(family, request(seed=1))


def test_time_can_cut_it_short_and_progress_is_reported():
    family, calls = block_family("mss", 1024, Fraction(1)), []
    assert search(family, request(evaluations=10**6), 0.3, calls.append)
    total = len(calls)
    assert calls == [step / total for step in range(1, total + 1)]


def test_exchange_improves_a_poor_start_within_its_limit():
    space = search_space(block_family("mss", 300, Fraction(1)), 64)
    start = np.flatnonzero(np.isin(space.stand_ins, [101, 103, 107, 109, 113, 127, 131, 137]))
    cost, seen = space.costs[start].sum(), []
    Exchange(
        space, start, Limits(cost), lambda rows, error: seen.append((error, rows)) or True, np.random.default_rng(1)
    ).run(150)
    allowed = [error for error, rows in seen if space.costs[rows].sum() <= cost]
    assert min(allowed) < 0.6 * seen[0][0]
    assert len(seen) <= 150
