"""Plans for open domains: levels, designs, and how frequent a text must be to be found."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

import sunzi
from sunzi.client.errors import ParameterError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols.prefix_planning import levels


@pytest.mark.parametrize(
    ("domain", "depths"),
    [
        (sunzi.OpenDomain("letters", 12), [4, 7, 10, 13]),
        (sunzi.OpenDomain("letters", 3), [4]),
        (sunzi.OpenDomain(list("0123456789abcdef"), 16), [5, 8, 11, 14, 17]),
        (sunzi.OpenDomain([chr(256 + place) for place in range(1023)], 3), [2, 3, 4]),
        (sunzi.OpenDomain("bytes", 5), [2, 3, 4, 5, 6]),
    ],
)
def test_levels_add_a_few_thousand_endings_each(domain, depths):
    assert levels(domain, 1 << 19) == depths


@pytest.mark.parametrize(
    "domain", [sunzi.OpenDomain("letters", 6), sunzi.OpenDomain("bytes", 20), sunzi.OpenDomain(["0", "1"], 64)]
)
@pytest.mark.parametrize("cells", [1000, 3000, 20_000])
def test_no_two_digits_of_a_text_can_be_swapped_in_its_cell(domain, cells):
    """Powers of a base are different: with base −1, for example, only the sum of every other digit would count."""
    for view in sunzi.make_plan("prefixes", domain, epsilon=3, cells=cells).protocol.views:
        powers = {pow(view.base, power, view.cells) for power in range(view.digits)}
        assert len(powers) == view.digits
        assert 2 * domain.end < view.cells


@pytest.mark.parametrize("epsilon", ["1/10", "1", "2", "4", "7", "10"])
def test_designs_are_near_the_least_error_and_of_bounded_size(epsilon):
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 12), epsilon=epsilon)
    odds = exp(Fraction(epsilon))
    least = 4 * odds / (odds - 1) ** 2
    view = plan.protocol.views[0]
    assert 1 << 19 <= view.response.design.points < 1 << 23
    assert view.null_variance <= (1.1 if Fraction(epsilon) < 8 else 3) * least
    assert Fraction(epsilon) > 4 or plan.max_report_bits <= 26


def test_thresholds_of_words_are_those_of_the_formula():
    """c80, in standard errors of a count by all reports, for texts of up to 3, 6, 9 and 12 letters."""
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("letters", 12), epsilon=2)
    error = (plan.protocol.views[0].null_variance / 1e6) ** 0.5
    found = plan.thresholds(10**6, false_share=0.1)
    assert [each.tokens for each in found] == [3, 6, 9, 12, None]
    assert [each.frequency / error for each in found[:4]] == pytest.approx([6.7, 9.6, 11.5, 12.2], rel=0.03)
    more = plan.thresholds(10**8, false_share=0.1)
    assert [each.frequency for each in more] == pytest.approx([each.frequency / 10 for each in found])
    assert plan.thresholds(10**6, recall=0.5)[0].frequency < plan.thresholds(10**6, recall=0.9)[0].frequency
    assert [each.tokens for each in sunzi.make_plan("prefixes", plan.domain, 2, list_only=True).thresholds(100)] == [
        None
    ]
    with pytest.raises(ParameterError, match="between 0 and 1"):
        plan.thresholds(100, recall=1)


@pytest.mark.slow
def test_the_longest_texts_need_the_most_users():
    plan = sunzi.make_plan("prefixes", sunzi.OpenDomain("bytes", 1024), 2)
    *lengths, _ = plan.thresholds(1_000_000)
    assert [each.tokens for each in lengths] == list(range(1, 1025))
    assert np.all(np.diff([each.frequency for each in lengths]) > 0)


def test_texts_at_the_threshold_are_found_four_times_out_of_five():
    """48 texts of the threshold's frequency: their number within 4 standard errors, and .12 for the formula."""
    domain, users = sunzi.OpenDomain("letters", 6), 60_000
    plan = sunzi.make_plan("prefixes", domain, epsilon=4, cells=20_000)
    frequency = plan.thresholds(users, false_share=0.1)[-2].frequency
    generator, found, held = np.random.default_rng(3), 0, 0
    while held < 48:
        number = min(12, int(0.9 / frequency))
        heavy = generator.integers(1, 27, (number, 7))
        heavy[:, 6] = domain.end
        texts = generator.integers(1, 27, (users, 7))
        texts[:, 6] = domain.end
        chosen = generator.random(users) / frequency
        texts[chosen < number] = heavy[chosen[chosen < number].astype(int)]
        tally = plan._tally(users, plan.protocol.simulate(texts, ReproducibleSource(held)))
        labels = set(plan.discover(tally, false_share=0.1).labels)
        found += sum(domain.text(row.astype(np.uint16)) in labels for row in heavy)
        held += number
    assert abs(found / held - 0.8) <= 0.12 + 4 * (0.16 / held) ** 0.5
