"""Designs that keep a limit on attackability."""

import re
from fractions import Fraction

import pytest

import sunzi
from sunzi.designs import Cyclotomic
from sunzi.designs.attack_limits import AttackLimit, compact_within, projective_within, subsets_within
from sunzi.designs.choice import choose_compact, optimal_block_size
from sunzi.protocols.block_protocols import SubsetSelection

FAMILIES = {"ss": subsets_within, "ss-compact": compact_within, "pgr": projective_within}
SETTINGS = [(100, 5, 0.4), (100, 5, 0.1), (1024, 2, 0.002), (1024, 6, 0.05), (22_000, 4, 0.001), (30, 1, 0.06)]


def limits(size, epsilon, most):
    return AttackLimit(size, Fraction(epsilon), most)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", FAMILIES)
def test_the_limit_is_kept_exactly(name, setting):
    size, epsilon, most = setting
    plan = sunzi.make_plan(name, size, epsilon, max_attack=most)
    assert plan.attackability <= most < sunzi.make_plan(name, size, epsilon).attackability
    assert plan.protocol.design == FAMILIES[name](limits(*setting))


@pytest.mark.parametrize("setting", SETTINGS)
def test_subsets_have_the_smallest_size_that_keeps_it(setting):
    size, epsilon, most = setting
    block_size = subsets_within(limits(*setting)).block_size
    assert sunzi.make_plan("ss", size, epsilon, block_size=block_size - 1).attackability > most


@pytest.mark.parametrize("setting", SETTINGS)
def test_compact_designs_err_little_more_than_subsets(setting):
    size, epsilon, most = setting
    plain, compact = (sunzi.make_plan(name, size, epsilon, max_attack=most) for name in ("ss", "ss-compact"))
    assert compact.worst_mse(1) < 1.05 * plain.worst_mse(1)
    assert compact.report_bits <= 20


def test_no_other_geometry_that_keeps_it_errs_less():
    plan = sunzi.make_plan("pgr", 100, 5, max_attack=0.3)
    for order in (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37, 41, 53, 64, 97):
        other = sunzi.make_plan("pgr", 100, 5, order=order)
        assert other.attackability > 0.3 or other.worst_mse(1) >= plan.worst_mse(1)


def test_blocks_that_miss_the_domain_count():
    """12 values on 31 points: many blocks contain no value, which the bound does not know."""
    design = Cyclotomic(31, 10, (0,), with_zero=False)
    exact, bound = limits(12, 2, 1).reached(design), limits(12, 2, 1).bound(31, design.block_size)
    assert exact < 0.9 * bound
    assert limits(12, 2, (exact + bound) / 2).allows(31, design.block_size, lambda: design)
    assert not limits(12, 2, 0.99 * exact).allows(31, design.block_size, lambda: design)


@pytest.mark.parametrize(("name", "usual"), [("ss", 269), ("ss-compact", None), ("pgr", None)])
def test_a_wide_limit_changes_nothing(name, usual):
    plan = sunzi.make_plan(name, 1000, 1, max_attack=0.5)
    assert plan == sunzi.make_plan(name, 1000, 1)
    assert usual is None or plan.protocol.design.block_size == usual == optimal_block_size(1000, Fraction(1))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_attackability_of_a_plan_is_a_limit_that_it_keeps(name):
    options = {"order": 5} if name == "pgr" else {"block_size": 7}
    plan = sunzi.make_plan(name, 60, 3, **options)
    again = sunzi.make_plan(name, 60, 3, max_attack=plan.attackability)
    assert again.attackability <= plan.attackability
    assert again.worst_mse(1) <= 1.01 * plan.worst_mse(1)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize(("size", "epsilon"), [(5, 3), (100, 1), (100, 6)])
def test_a_limit_out_of_reach_names_the_least_that_is_reached(name, size, epsilon):
    with pytest.raises(sunzi.ParameterError, match=f"is out of reach of {name} on {size} values") as refusal:
        sunzi.make_plan(name, size, epsilon, max_attack=0.9 / size)
    least = float(re.search(r"the least it reaches is ([0-9.]+),", str(refusal.value))[1])
    assert 1 / size < least
    assert least * 0.998 < sunzi.make_plan(name, size, epsilon, max_attack=least).attackability <= least


@pytest.mark.parametrize("most", [0, -0.1, 1.01, float("nan"), "0.1", None, True])
def test_a_limit_is_a_probability(most):
    with pytest.raises(sunzi.ParameterError, match="max_attack must"):
        limits(10, 1, most)


@pytest.mark.parametrize(
    ("name", "options", "other"),
    [
        ("ss", {"block_size": 3}, "block_size"),
        ("ss-compact", {"block_size": 3}, "block_size"),
        ("ss-compact", {"classes": 4}, "classes"),
        ("pgr", {"order": 3}, "order"),
    ],
)
def test_one_option_determines_the_design(name, options, other):
    with pytest.raises(sunzi.ParameterError, match=f"max_attack determines the design, so {other} cannot be given too"):
        sunzi.make_plan(name, 20, 1, max_attack=0.2, **options)
    with pytest.raises(sunzi.ParameterError, match="there is no option 'max_attack'"):
        sunzi.make_plan("grr", 20, 1, max_attack=0.2)


def test_subsets_keep_their_code():
    design = SubsetSelection.choose_design(20, Fraction(3), code="bitmap", max_attack=0.2)
    assert design.code == "bitmap"
    assert choose_compact(20, Fraction(3)).block_size < design.block_size


@pytest.mark.parametrize("name", FAMILIES)
def test_the_best_attacker_of_all_succeeds_no_more_often(name):
    """Enumerated: every message and every value, with exact probabilities."""
    protocol = sunzi.make_plan(name, 8, 3, max_attack=0.4).protocol
    chances = [protocol.channels[0].payload_probabilities(value) for value in range(8)]
    success = sum(max(each[payload] for each in chances) for payload in chances[0]) / 8
    assert float(success) == pytest.approx(protocol.attackability, abs=1e-12)
    assert success <= Fraction(0.4)
