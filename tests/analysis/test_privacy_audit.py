"""The audit's bound comes within 4 % of ε from below, and its exact checks know what they claim to know."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

import sunzi
from sunzi.analysis import Audit, audit
from sunzi.analysis.audit_enumeration import check_enumeration, passing
from sunzi.analysis.audit_sampling import Finding, bound_epsilon, collision_probability, tightest_event, trials_for
from sunzi.analysis.audit_words import check_words, expected_report, scripted_report
from sunzi.analysis.privacy_audit import DEFAULT_CONFIDENCE, LIKELY_EVENT, SHORTFALL, default_trials
from sunzi.analysis.statistics import lower_limits
from sunzi.protocols import Protocol

EPSILONS = ["1/2", 1, 2, 5]
MILLION = 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [7, 15, 100, 1024])
@pytest.mark.parametrize("name", sunzi.catalogue())
def test_a_million_trials_bound_epsilon_within_four_per_cent_from_below(name, size, epsilon):
    """The counts of an audit have a known distribution, so 500 audits of every protocol are drawn from it."""
    plan = sunzi.make_plan(name, size, epsilon)
    generator = np.random.default_rng(12)
    event = tightest_event(plan, generator)
    assert event.exact_epsilon() == pytest.approx(float(plan.epsilon), rel=1e-12)
    needed = trials_for(event, float(plan.epsilon), 3.719)
    trials = MILLION if event.hit >= LIKELY_EVENT else needed
    drawn = generator.multinomial(trials, [event.hit, event.miss, max(0.0, 1 - event.hit - event.miss)], 500)
    shares = lower_limits(drawn[:, 0], drawn[:, 0] + drawn[:, 1], 1 - DEFAULT_CONFIDENCE)
    pairs = zip(drawn.tolist(), shares.tolist(), strict=True)
    bounds = np.array([bound_epsilon(hits, misses, event.rivals, share) for (hits, misses, _), share in pairs])
    within = (bounds >= (1 - SHORTFALL) * float(plan.epsilon)).mean()
    # Rare misses are not normal, so what is needed is only nearly enough.
    assert within >= (0.97 if event.hit >= LIKELY_EVENT else 0.9), (within, event)
    # One audit in 10,000 may exceed ε; three in 500 would be one case in 50,000,000.
    assert np.count_nonzero(bounds > float(plan.epsilon)) <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "epsilon", "options"),
    [
        ("grr", 10, "1/2", {}),
        ("grr", 1000, 5, {}),
        ("ss-compact", 1024, "1/2", {}),
        ("ss-compact", 100, 5, {}),
        ("pgr", 50, 2, {}),
        ("oue", 3, "1/2", {}),
        ("rappor", 3, 5, {}),
        ("mss-compact", 100, 1, {"moduli": (31, 61, 41)}),
    ],
)
def test_the_shipped_client_by_a_million_reports(name, size, epsilon, options):
    """The same with real reports. Over all seeds 2 audits in 10,000 would fail; this seed does not."""
    plan = sunzi.make_plan(name, size, epsilon, **options)
    found = audit(plan, trials=MILLION, seed=21, exact=False)
    assert found.event_probability >= LIKELY_EVENT
    assert found.passed, found.findings
    assert 0.96 * float(plan.epsilon) <= found.lower_bound <= float(plan.epsilon)
    stated = tightest_event(plan, np.random.default_rng(1)).hit
    assert found.hits / MILLION == pytest.approx(stated, abs=5 * (stated / MILLION) ** 0.5)


@pytest.mark.parametrize(("name", "options"), [("ss", {}), ("mss", {"moduli": (5, 7, 11)})])
def test_long_reports_get_fewer_trials_and_a_wider_bound(name, options):
    plan = sunzi.make_plan(name, 15, 2, **options)
    found = audit(plan, trials=50_000, seed=3)
    assert found.passed, found.findings
    assert 2 * (1 - 0.04 * 20**0.5) <= found.lower_bound <= 2
    assert found.trials_needed > 50_000
    assert default_trials(sunzi.make_plan("ss", 1024, 1)) < default_trials(plan) <= MILLION


def test_private_clients_are_audited_by_default():
    found = audit(sunzi.make_plan("ss-compact", 20, 1), trials=20_000, confidence=1 - 1e-7)  # two such checks
    assert found.is_private
    assert found.passed, found.findings
    assert not audit(sunzi.make_plan("ss-compact", 20, 1), trials=2_000, seed=1).is_private


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
    """Its chances by listing all messages: every message in it has ratio e^ε, and no other has."""
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
        messages = design.decode(np.arange(design.message_count, dtype=np.uint64))
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


def test_wrong_settings_are_refused():
    plan = sunzi.make_plan("grr", 5, 1)
    with pytest.raises(sunzi.ParameterError, match="trials must be a whole number between 1 and 100000000, got 0"):
        audit(plan, trials=0)
    with pytest.raises(sunzi.ParameterError, match="confidence must lie between 0 and 1"):
        audit(plan, confidence=1.0)
    with pytest.raises(sunzi.ParameterError, match="another plan"):
        audit(plan, client=sunzi.make_plan("grr", 5, 2).client(seed=1))


def test_bounds_at_the_extremes():
    assert bound_epsilon(0, 0, 1, 0.0) == 0
    assert bound_epsilon(5, 0, 1, 1.0) == np.inf
    assert bound_epsilon(10, 90, 1, 0.05) == 0
    assert bound_epsilon(90, 10, 1, 0.9) == pytest.approx(log(9))
    assert bound_epsilon(90, 10, 4, 0.9) == pytest.approx(log(36))


def test_an_audit_repeats_and_becomes_plain_values():
    plan = sunzi.make_plan("mss-compact", 20, 1, moduli=(5, 7, 13))
    runs = [audit(plan, trials=5_000, seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert isinstance(runs[0], Audit)
    flat = runs[0].to_dict()
    assert flat["verdict"] == "consistent"
    assert flat["epsilon"] == "1"
    assert [finding["check"] for finding in flat["findings"]][:2] == ["epsilon", "thresholds"]


def test_verdicts():
    found = audit(sunzi.make_plan("grr", 5, 1), trials=100, seed=1)
    changed = {name: getattr(found, name) for name in Audit.__dataclass_fields__}
    for finding, verdict in (
        (Finding("x", True, ""), "consistent"),
        (Finding("x", False, ""), "deviation"),
        (Finding("x", False, "", True), "violation"),
    ):
        assert Audit(**{**changed, "findings": (finding,)}).verdict == verdict


@pytest.mark.parametrize("name", sunzi.catalogue())
@pytest.mark.parametrize(("size", "epsilon"), [(9, "1/10"), (40, 1), (300, 5)])
def test_exact_checks_of_the_shipped_client(name, size, epsilon):
    plan = sunzi.make_plan(name, size, epsilon)
    client = plan.client(seed=1)
    found = check_words(plan, lambda source: plan.client(source=source))
    assert [finding.check for finding in found] == ["thresholds", "words"]
    assert all(finding.passed for finding in found), found
    enumerated = check_enumeration(plan, client)
    assert enumerated is not None
    assert enumerated.passed, enumerated


def test_what_is_due_is_what_a_script_gives():
    """By hand: GRR on four values, ε = 1; 2^64 mod 3 = 1, so the word 0 is rejected."""
    plan = sunzi.make_plan("grr", 4, 1)
    third = (1 << 64) // 3
    assert expected_report(plan.protocol, 2, [(1 << 64) - 1, third + 1, 9]) == ((0, 1), 2)
    assert expected_report(plan.protocol, 2, [(1 << 64) - 1, 0, 2 * third + 2, 9]) == ((0, 3), 3)
    assert expected_report(plan.protocol, 2, [0, 5, 9]) == ((0, 2), 2)
    for script in ([(1 << 64) - 1, third + 1, 9], [(1 << 64) - 1, 0, 2 * third + 2, 9], [0, 5, 9]):
        sent = scripted_report(plan, lambda source: plan.client(source=source), 2, script)
        assert sent == expected_report(plan.protocol, 2, script)


def test_passing_words_are_spread_evenly():
    for bound in range(1, 9):
        drawn = list(passing(bound, 3).values())
        assert [drawn.count(value) for value in range(bound)] == [8 // bound] * bound


def test_equal_reports_are_as_likely_as_stated():
    for name, options in (("grr", {}), ("ss-compact", {}), ("oue", {}), ("mss-compact", {"moduli": (5, 7)})):
        plan = sunzi.make_plan(name, 7, 1, **options)
        each = plan.client(seed=4).reports([3] * 40_000)
        equal = np.mean([one == two for one, two in zip(each[::2], each[1::2], strict=True)])
        stated = collision_probability(plan)
        assert equal == pytest.approx(stated, abs=5 * (stated / 20_000) ** 0.5)


def test_labels_are_spoken_to_clients_that_know_labels():
    plan = sunzi.make_plan("ss-compact", ["a", "b", "c", "d", "e"], Fraction(3, 2))
    found = audit(plan, trials=5_000, seed=2)
    assert found.passed, found.findings


def test_protocols_of_another_kind_are_refused():
    class Foreign(Protocol):
        name = "foreign"
        choose = from_parameters = parameters = randomize = encode = decode = count = estimate = None
        words_per_report = expected_mse = worst_mse = attackability = support_probabilities = None

    plan = sunzi.Plan(sunzi.make_plan("grr", 5, 1).contract, Foreign())
    with pytest.raises(sunzi.ParameterError, match="foreign"):
        tightest_event(plan, np.random.default_rng(1))
