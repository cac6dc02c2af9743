"""The tightest event, and the stated distributions."""

from math import exp, log

import numpy as np
import pytest

import sunzi
from sunzi.analysis import audit
from sunzi.analysis.audit_sampling import bound_epsilon, collision_probability, tightest_event, trials_for
from sunzi.protocols import Protocol


@pytest.mark.parametrize(
    ("name", "size", "options"),
    [
        ("ss", 7, {"block_size": 3}),
        ("ss-compact", 9, {"classes": 3, "points": 13}),
        ("pgr", 10, {"order": 3}),
        ("mss", 20, {"moduli": (3, 5, 7, 11)}),
        ("mss-compact", 20, {"moduli": (5, 7, 13)}),
        ("rappor", 5, {}),
        ("oue", 5, {}),
    ],
)
def test_the_event_is_the_largest_of_ratio_e_to_the_epsilon(name, size, options):
    """Its probabilities by listing all messages: every message in it has ratio e^ε, and no other has."""
    plan = sunzi.make_plan(name, size, "3/2", **options)
    for pair in ((0, 1), (2, 4), (0, 3)):
        event = tightest_event(plan, np.random.default_rng(1), pair)
        assert (event.hit, event.miss) == pytest.approx(listed(plan.protocol, *pair), rel=1e-12)
    chosen = tightest_event(plan, np.random.default_rng(1))
    assert chosen.pair is not None
    assert event.hit <= chosen.hit


def listed(protocol, first, second):
    """P(ratio e^ε) under the first value, and P(ratio e^−ε)."""
    if not protocol.responses:
        true, false = protocol.probabilities.true, protocol.probabilities.false
        return true * (1 - false), (1 - true) * false
    hit = miss = 0.0
    for response in protocol.responses:
        design = response.design
        messages = design.every_message()
        inside, outside = (float(chance) for chance in response.message_probabilities())
        own, other = (design.contains(messages, np.full(len(messages), x % design.points)) for x in (first, second))
        likely, unlikely = np.where(own, inside, outside), np.where(other, inside, outside)
        odds = exp(protocol.epsilon)
        hit += likely[np.isclose(likely, odds * unlikely)].sum() / len(protocol.responses)
        miss += likely[np.isclose(odds * likely, unlikely)].sum() / len(protocol.responses)
    return hit, miss


def test_randomised_response_tells_all_pairs_at_once():
    plan = sunzi.make_plan("grr", 30, 1)
    event = tightest_event(plan, np.random.default_rng(1))
    assert event.pair is None
    assert event.rivals == 29
    pair = tightest_event(plan, np.random.default_rng(1), (3, 4))
    assert (pair.rivals, pair.hit) == (1, event.hit)
    assert pair.miss == pytest.approx(event.miss / 29)
    assert trials_for(event, 1, 3) < trials_for(pair, 1, 3)


@pytest.mark.parametrize("pair", [(1, 1), (0, 5), (-1, 2)])
def test_wrong_pairs_are_refused(pair):
    with pytest.raises(sunzi.ParameterError, match="two different values of the domain"):
        audit(sunzi.make_plan("grr", 5, 1), pair=pair, trials=10)


def test_bounds_at_the_extremes():
    assert bound_epsilon(0, 0, 1, 0.0) == 0
    assert bound_epsilon(5, 0, 1, 1.0) == np.inf
    assert bound_epsilon(10, 90, 1, 0.05) == 0
    assert bound_epsilon(90, 10, 1, 0.9) == pytest.approx(log(9))
    assert bound_epsilon(90, 10, 4, 0.9) == pytest.approx(log(36))


def test_equal_reports_are_as_likely_as_stated():
    for name, options in (("grr", {}), ("ss-compact", {}), ("oue", {}), ("mss-compact", {"moduli": (5, 7)})):
        plan = sunzi.make_plan(name, 7, 1, **options)
        each = plan.client(seed=4).reports([3] * 40_000)
        equal = np.mean([one == two for one, two in zip(each[::2], each[1::2], strict=True)])
        stated = collision_probability(plan)
        assert equal == pytest.approx(stated, abs=5 * (stated / 20_000) ** 0.5)


def test_protocols_of_another_kind_are_refused():
    class Foreign(Protocol):
        name = "foreign"
        choose = from_parameters = parameters = randomize = encode = decode = count = estimate = None
        words_per_report = expected_mse = worst_mse = attackability = support_probabilities = None

    plan = sunzi.Plan(Foreign(), sunzi.Domain(5))
    with pytest.raises(sunzi.ParameterError, match="foreign"):
        tightest_event(plan, np.random.default_rng(1))
