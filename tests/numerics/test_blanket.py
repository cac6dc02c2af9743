from math import exp, log, log1p, sqrt

import numpy as np
import pytest
from scipy import stats

from sunzi.numerics.blanket import Blanket, _cells_above


def subsets(local: float, size: int = 1024) -> Blanket:
    block = max(1, round(size / (exp(local) + 1)))
    return Blanket.of_block(size, block, exp(local), (block - 1) / (size - 2))


def randomised(local: float, size: int = 1024) -> Blanket:
    return Blanket.of_block(size, 1, exp(local), 0.0)


def optimal_bits(local: float) -> Blanket:
    return Blanket.of_bits(0.5, 1 / (exp(local) + 1), 1024)


def symmetric_bits(local: float) -> Blanket:
    true = exp(local / 2) / (exp(local / 2) + 1)
    return Blanket.of_bits(true, 1 - true, 1024)


TABLE = {
    (10**4, 1): (0.0394, 0.0333, 0.00302, 0.00302, 0.0394, 0.0333, 0.0406, 0.0315, 0.0566, 0.0690),
    (10**4, 4): (0.3472, 0.3433, 0.1083, 0.1083, 0.3492, 0.3449, 0.4529, 0.4181, 0.5145, 0.7547),
    (10**6, 1): (0.00348, 0.00294, 0.00025, 0.00025, 0.00348, 0.00294, 0.00359, 0.00279, 0.00501, 0.00613),
    (10**6, 2): (0.00907, 0.00847, 0.00102, 0.00102, 0.00906, 0.00846, 0.01003, 0.00849, 0.01304, 0.01757),
    (10**6, 4): (0.03123, 0.03088, 0.00950, 0.00949, 0.03139, 0.03103, 0.03990, 0.03725, 0.04512, 0.06429),
    (10**6, 6): (0.0958, 0.0954, 0.0681, 0.0680, 0.0917, 0.0914, 0.1257, 0.1221, 0.1320, 0.1898),
    (10**8, 4): (0.00275, 0.00273, 0.00083, 0.00083, 0.00277, 0.00274, 0.00353, 0.00329, 0.00399, 0.00571),
}
"""By users and local ε: ε and the attack of subsets, randomised response, optimal and symmetric bits, then ε of the two
generic bounds; computed before by an independent program, with δ = 1e-8.
"""
WIDEST = {subsets: 1.2, randomised: 1.01, optimal_bits: 1.2, symmetric_bits: 1.3}
"""How far the bound may be above the attack."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "local"),
    [pytest.param(*row, marks=() if row == (10**6, 4) else pytest.mark.slow) for row in TABLE],
)
def test_known_values(users: int, local: float) -> None:
    def is_known(found: float, expected: float) -> bool:
        return found == pytest.approx(expected, rel=5e-3, abs=6e-6)  # the small ones have three digits

    expected = TABLE[users, local]
    odds = exp(local)
    generic, clones = (
        each.epsilon_above(users, 1e-8) for each in (Blanket(odds, 1 / (odds + 1)), Blanket.of_any(odds))
    )
    assert is_known(generic, expected[8])
    assert is_known(clones, expected[9])
    for number, (make, widest) in enumerate(WIDEST.items()):
        blanket = make(local)
        bound, attack = blanket.epsilon_above(users, 1e-8), blanket.epsilon_below(users, 1e-8)
        assert is_known(bound, expected[2 * number])
        assert is_known(attack, expected[2 * number + 1])
        assert attack <= bound <= widest * attack
        assert bound <= generic * (1 + 1e-3) <= clones


def test_masses_add_up() -> None:
    for blanket in (subsets(2), randomised(3), optimal_bits(2), symmetric_bits(1)):
        held = (blanket.odds + 1) * blanket.one + blanket.odds * blanket.both + blanket.neither
        assert held == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("make", WIDEST)
def test_large_batches_hide_more(make) -> None:
    blanket = make(4)
    found = [blanket.epsilon_above(users, 1e-8) for users in (2, 10, 100, 1000, 10**5, 10**7, 10**9)]
    assert found[0] == pytest.approx(4, rel=2e-2)
    assert np.all(np.diff(found) <= 0)
    assert found[-1] < 1e-2 * found[2]


@pytest.mark.parametrize(
    ("seed", "settings"),
    [(20, 8), pytest.param(21, 40, marks=pytest.mark.slow), pytest.param(22, 250, marks=pytest.mark.long)],
)
def test_never_below_the_full_sum(seed: int, settings: int) -> None:
    """The mean of (ΣZ)_+ over simulated counts, whose error is known, on random settings."""
    generator = np.random.default_rng(seed)
    for _ in range(settings):
        local, users = generator.uniform(0.3, 5), int(10 ** generator.uniform(1.2, 5))
        points = int(generator.integers(3, 300))
        blanket = Blanket.of_block(points, int(generator.integers(1, points)), exp(local))
        epsilon = generator.uniform(0.05, 0.5) * min(
            local, 4 * (2 * blanket.one * (exp(local) - 1) ** 2 / users) ** 0.5
        )
        masses = [blanket.one, blanket.one, blanket.both, blanket.neither]
        counts = generator.multinomial(users, [*masses, max(0.0, 1 - sum(masses))], size=5_000)[:, :4]
        s, e = exp(epsilon), blanket.odds
        sums = np.maximum(counts @ np.array([e - s, 1 - s * e, e * (1 - s), 1 - s]), 0) / users
        noise = float(sums.std()) / 5_000**0.5
        bound, mean = blanket.largest_delta(users, epsilon), float(sums.mean())
        assert mean - 5.5 * noise < bound < 1.25 * mean + 5.5 * noise  # false alarms below 1e-7 each


@pytest.mark.parametrize(("local", "users", "epsilon"), [(1, 300, 0.3), (4, 3000, 0.3)])
def test_cells_are_never_below_the_exact_sum(local: float, users: int, epsilon: float) -> None:
    """Blocks of one of three values: two counts, which are summed without cells. The bound has so many cells that they
    are put together; every end of a cell must be the one of more loss.
    """
    blanket = Blanket.of_block(3, 1, exp(local))
    exact = sum_of_counts(blanket, users, epsilon)
    assert exact * (1 - 1e-9) <= blanket.largest_delta(users, epsilon) <= 1.02 * exact
    for coarser in (1.0, 4.0, 8.0):
        assert exact * (1 - 1e-9) <= _cells_above(blanket, users, coarser).delta(epsilon) <= 1.25 * exact


def sum_of_counts(blanket: Blanket, users: int, epsilon: float) -> float:
    """E[(ΣZ)_+]/n where no report favours both values."""
    e, s, total = blanket.odds, exp(epsilon), 0.0
    for telling, chance in enumerate(stats.binom.pmf(np.arange(users + 1), users, 2 * blanket.one)):
        if chance > 1e-16:
            rest, signs = np.arange(users - telling + 1), 2 * np.arange(telling + 1) - telling
            hidden = stats.binom.pmf(rest, users - telling, blanket.neither / (1 - 2 * blanket.one))
            law = stats.binom.pmf(np.arange(telling + 1), telling, 0.5)
            held, seen = hidden > 1e-16, law > 1e-16
            weight = (e + 1) * telling + 2 * rest[held]
            sums = (e - 1) * (s + 1) / 2 * signs[seen, None] - (s - 1) / 2 * weight
            total += float(chance * (law[seen] @ np.maximum(sums, 0) @ hidden[held]))
    return total / users


def test_the_bound_for_any_randomiser_knows_no_attack() -> None:
    clones = Blanket.of_any(exp(4))
    assert not clones.attacks(10**6)
    assert clones.epsilon_below(10**6, 1e-8) == 0


@pytest.mark.parametrize(("users", "local", "known"), [(10**4, 1, 0.241), (10**6, 4, 0.2264), (10**6, 6, 0.539)])
def test_the_closed_form_for_any_randomiser_is_far_larger(users: int, local: float, known: float) -> None:
    """Of Feldman, McMillan and Talwar (2021), where log(4/δ) in its condition allows it."""
    odds, log_delta = exp(local), log(4e8)
    assert local <= log(users / (16 * log_delta))
    closed = log1p((odds - 1) / (odds + 1) * (8 * sqrt(odds * log_delta / users) + 8 * odds / users))
    assert closed == pytest.approx(known, rel=2e-3)
    assert Blanket.of_any(odds).epsilon_above(users, 1e-8) < closed / 2


def test_a_mixture_attacks_only_where_there_is_a_third_value() -> None:
    two, many = Blanket.of_block(2, 1, exp(1)), Blanket.of_block(5, 1, exp(1), 0.0)
    mixed = Blanket.mixed([0.25, 0.75], [two, many])
    assert mixed.attacked == pytest.approx(0.75 * many.one)
    assert mixed.one == pytest.approx(0.25 * two.one + 0.75 * many.one)
    assert Blanket.mixed([0.5, 0.5], [two, two]) == two


@pytest.mark.parametrize("users", [10**4, 10**6])
def test_blankets_without_reports_that_hide(users: int) -> None:
    """Yes or no, and protocols of which only ε is known, at every ε."""
    for local in np.arange(0.5, 12, 0.5):
        for blanket in (Blanket.of_block(2, 1, exp(local)), Blanket.of_any(exp(local))):
            assert 0 < blanket.epsilon_above(users, 1e-8) <= local


def test_small_delta_in_many_batches() -> None:
    losses = Blanket.of_block(1024, 1, exp(4), 0.0).losses(10**6, 1e-19)
    assert losses.times(100).epsilons(1e-15)[1] < 0.18
