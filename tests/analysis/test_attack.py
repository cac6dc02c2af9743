"""The simulated attacker agrees with the formula for any prior; more reports help it, a repeated report does not."""

from itertools import count, islice

import numpy as np
import pytest
from small_records import RECORD_PLANS

import sunzi
from sunzi import wire
from sunzi.analysis import Attack, Prior, attack_growth, attackability, simulate_attack
from sunzi.analysis.attack import attack_trials, fresh_rounds, guess, replayed_rounds
from sunzi.analysis.evidence import decode, read_reports
from sunzi.wire import payload_integers

# Seeds are fixed; over all seeds, one of these comparisons in a million would fail.
LEVEL = 1 - 1e-6
SMALL = [
    ("grr", 6, {}),
    ("ss", 7, {"block_size": 3}),
    ("ss-compact", 9, {"classes": 3, "points": 13}),
    ("ss-compact", 3, {"classes": 6, "points": 31}),
    ("pgr", 10, {"order": 3}),
    ("pgr", 3, {"order": 4}),
    ("rappor", 5, {}),
    ("oue", 6, {}),
    ("mss", 10, {"moduli": (3, 11)}),
    ("mss-compact", 10, {"moduli": (3, 31)}),
]
RECORDS = [(name, 0, {}) for name in RECORD_PLANS]


def make(name, size, options, epsilon):
    return RECORD_PLANS[name](epsilon) if name in RECORD_PLANS else sunzi.make_plan(name, size, epsilon, **options)


def trials_for(plan):
    """Enough to detect a wrong formula, few enough for subsets of thousands of bits."""
    return min(attack_trials(plan), 60_000 if wire.is_narrow(plan.protocol.report_layout) else 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 100, 1024])
@pytest.mark.parametrize("name", sunzi.catalogue())
def test_the_attacker_succeeds_as_often_as_the_formula_says(name, size):
    for epsilon, prior in ((1, None), (4, "zipf:1")):
        plan = sunzi.make_plan(name, size, epsilon)
        found = simulate_attack(plan, trials=trials_for(plan), prior=prior, seed=11, confidence=LEVEL)
        assert found.formula is not None
        assert found.agrees, found
        if prior is None:
            assert found.formula == plan.attackability
            assert found.baseline == pytest.approx(1 / size)
        assert found.formula > found.baseline


def all_reports(plan):
    """Every possible report of the plan."""
    layout = plan.protocol.report_layout
    widths = range(len(layout.payload_bits))
    for selector in widths:
        bits = layout.selector_bits + layout.payload_bits[selector]
        limit = layout.payload_limits[selector]
        responses = plan.protocol.responses
        if limit is None and responses:
            design = responses[selector].design
            payloads = payload_integers(design.encode(design.every_message()))
        else:
            payloads = range(1 << layout.payload_bits[selector] if limit is None else limit)
        for payload in payloads:
            yield (selector | payload << layout.selector_bits).to_bytes(-(-bits // 8), "little")


def message_chances(plan, reports):
    """P(y|x) of every report y (row), computed from the values that it supports; columns sum to 1."""
    evidence = read_reports(plan, reports)
    supported = evidence.table(np.asarray(plan.protocol.attacked_values))
    protocol = plan.protocol
    if hasattr(protocol, "true_threshold"):
        rates = np.where(
            np.eye(plan.domain.size, dtype=bool), protocol.probabilities.true, protocol.probabilities.false
        )
        return np.where(supported[:, None, :], rates[None], 1 - rates[None]).prod(axis=2)
    blocks = protocol.responses
    stated = [tuple(map(float, block.message_probabilities())) for block in blocks]
    inside = np.array([stated[selector][0] for selector in evidence.selectors]) * protocol.shares[evidence.selectors]
    outside_ = np.array([stated[selector][1] for selector in evidence.selectors]) * protocol.shares[evidence.selectors]
    return np.where(supported, inside[:, None], outside_[:, None])


@pytest.mark.parametrize("epsilon", ["1/2", 3])
@pytest.mark.parametrize(("name", "size", "options"), [*SMALL, *RECORDS])
def test_formula_and_guess_by_listing_all_messages(name, size, options, epsilon):
    plan = make(name, size, options, epsilon)
    values = np.asarray(plan.protocol.attacked_values)
    reports = list(all_reports(plan))
    chances = message_chances(plan, reports)
    np.testing.assert_allclose(chances.sum(axis=0), 1, rtol=1e-12)
    evidence = read_reports(plan, reports)
    for text in ("uniform", "zipf:0.3", "zipf:2", "spike"):
        prior = Prior.of(plan.domain, text, plan.protocol.attacked_values)
        shuffled = Prior(text, np.random.default_rng(3).permutation(prior.chances))
        for belief in (prior, shuffled):
            joint = chances * belief.chances
            assert attackability(plan, belief.chances) == pytest.approx(joint.max(axis=1).sum(), rel=1e-11)
            named = joint[np.arange(len(reports)), np.searchsorted(values, guess(evidence, belief, values))]
            np.testing.assert_allclose(named, joint.max(axis=1), rtol=1e-9)


@pytest.mark.parametrize(("name", "size", "options"), SMALL)
def test_tables_agree_with_single_questions(name, size, options):
    plan = sunzi.make_plan(name, size, 1, **options)
    values = np.random.default_rng(1).integers(0, size, 50)
    batch = plan.client(seed=2).report_indices(values)
    evidence = read_reports(plan, batch)
    table = evidence.table(np.arange(size))
    for value in range(size):
        assert np.array_equal(table[:, value], evidence.supports(np.full(50, value)))
    chosen = np.array([7, 3, 3, 49])
    assert np.array_equal(evidence.take(chosen).table(np.arange(size)), table[chosen])
    each = plan.client(seed=2).reports(values)
    assert np.array_equal(read_reports(plan, each).table(np.arange(size)), table)
    tally = plan.tally(batch)
    if hasattr(plan.protocol, "support_counts"):
        assert np.array_equal(table.sum(axis=0), plan.protocol.support_counts(tally))


@pytest.mark.slow
@pytest.mark.parametrize("name", sunzi.catalogue())
def test_fresh_reports_add_up_and_memoised_ones_do_not(name):
    plan = sunzi.make_plan(name, 20, 1, **({"moduli": (5, 7, 11)} if name.startswith("mss") else {}))
    found = simulate_attack(plan, trials=1500, seed=4, reports=(1, 10, 60), confidence=LEVEL)
    first, tenth, last = (growth.success for growth in found.repeated)
    assert [growth.reports for growth in found.repeated] == [1, 10, 60]
    assert first.low <= plan.attackability <= first.high
    assert tenth.low > first.high
    assert last.low > tenth.high
    assert {growth.success.successes for growth in found.memoised} == {found.memoised[0].success.successes}
    assert found.memoised[0].success.low <= plan.attackability <= found.memoised[0].success.high


def test_growth_is_the_exact_posterior():
    """Two values, three reports: the best attacker follows the majority, so its success is a binomial sum."""
    plan = sunzi.make_plan("grr", 2, 1)
    true = plan.protocol.probabilities.true
    users = np.random.default_rng(8).integers(0, 2, 40_000)
    found = attack_growth(plan, users, fresh_rounds(plan.client(seed=9), users), [3], confidence=LEVEL)
    exact = true**3 + 3 * true**2 * (1 - true)
    assert found[0].success.low <= exact <= found[0].success.high


def test_under_a_prior_a_replayed_report_counts_once():
    """If a repeated report counted again and again, it would outweigh the prior."""
    plan = sunzi.make_plan("grr", 10, 1)
    prior = Prior.of(plan.domain, "zipf:2")
    users = prior.draw(3000, np.random.default_rng(1))
    rounds = list(islice(replayed_rounds(plan.client(seed=2), users), 8))
    knowing = attack_growth(plan, users, rounds, [1, 8], prior=prior, memoised=True)
    assert knowing[0].success.successes == knowing[1].success.successes
    deceived = attack_growth(plan, users, rounds, [1, 8], prior=prior)
    assert deceived[1].success.successes < knowing[1].success.successes


def test_any_client_can_be_plugged_in():
    """Rounds of single reports, with one client per user that remembers its reports."""
    plan = sunzi.make_plan("ss-compact", 20, 2)
    users = np.arange(200) % 20
    source = plan.client(seed=5)
    remembered: dict[int, bytes] = {}

    def sends(user, value):
        return remembered.setdefault(user, source.report(int(value)))

    rounds = ([sends(user, value) for user, value in enumerate(users)] for _ in count())
    grown = attack_growth(plan, users, rounds, [1, 5, 20], memoised=True)
    assert len({growth.success.successes for growth in grown}) == 1
    # A client that forgets half of the time is soon identified.
    forgetful = ([source.report(int(value)) for value in users] for _ in range(20))
    assert attack_growth(plan, users, forgetful, [20], memoised=True)[0].success.rate > 2 * grown[0].success.rate


def test_rounds_are_checked():
    plan = sunzi.make_plan("grr", 5, 1)
    users = np.arange(5)
    with pytest.raises(sunzi.ParameterError, match="one report of each of 5 users, got 4"):
        attack_growth(plan, users, [plan.client(seed=1).report_indices(users[:4])], [1])
    with pytest.raises(sunzi.ParameterError, match="after 3 reports needs 3 rounds"):
        attack_growth(plan, users, islice(fresh_rounds(plan.client(seed=1), users), 2), [3])
    with pytest.raises(sunzi.ParameterError, match="at least 1, got"):
        attack_growth(plan, users, [], [0])
    with pytest.raises(sunzi.ReportError, match="no bytes"):
        decode(plan, b"")


def test_an_attack_repeats_and_becomes_plain_values():
    plan = sunzi.make_plan("pgr", 30, 1)
    runs = [simulate_attack(plan, trials=2000, seed=seed, reports=(1, 2)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert isinstance(runs[0], Attack)
    flat = runs[0].to_dict()
    assert flat["success"]["successes"] == runs[0].success.successes
    assert [growth["reports"] for growth in flat["memoised"]] == [1, 2]
    with pytest.raises(AttributeError):
        runs[0].baseline = 0.0


def test_another_client_than_the_one_that_ships_is_attacked():
    plan = sunzi.make_plan("grr", 10, 1)

    class Frank(sunzi.BatchClient):
        def report_indices(self, indices):
            from sunzi import wire

            encoded = self.plan.protocol.encode(indices)
            return wire.encode_batch(self.plan.protocol.report_layout, self.plan.digest, encoded)

    found = simulate_attack(plan, trials=500, seed=1, client=Frank(plan, seed=1))
    assert found.success.rate == 1
    assert not found.agrees


@pytest.mark.parametrize("amount", [0, -1, 10**9, 10**400])
def test_amounts_out_of_reach_are_refused(amount):
    with pytest.raises(sunzi.ParameterError, match="trials must be a whole number between 1 and 100000000"):
        simulate_attack(sunzi.make_plan("grr", 5, 1), trials=amount)
    with pytest.raises(sunzi.ParameterError, match="the seed must be a whole number of at least 0, got -1"):
        simulate_attack(sunzi.make_plan("grr", 5, 1), trials=10, seed=-1)


@pytest.mark.parametrize("name", RECORD_PLANS)
def test_record_plans_are_attacked_as_the_formula_says(name):
    plan = RECORD_PLANS[name](2)
    for prior in (None, "zipf:1"):
        found = simulate_attack(plan, trials=30_000, seed=5, prior=prior, reports=(1, 30), confidence=LEVEL)
        assert found.agrees, found
        assert found.repeated[-1].success.low > max(found.formula, found.baseline)
        assert found.memoised[0].success == found.memoised[-1].success
    assert simulate_attack(plan, trials=100, seed=5).formula == plan.attackability
    assert found.choices == {"ordered": 8, "tables": 24, "number": len(plan.protocol.attacked_values)}[name]
    assert found.guessed in plan.attacker_in_words()


def test_numbers_between_points_are_harder_to_guess():
    """The nearest point is reported less often by any other number than by one at the point."""
    plan = sunzi.make_number(0, 1, 2)
    points = np.array(plan.protocol.attacked_values)
    between = (points[:-1] + points[1:]) // 2 + 1000
    rates = []
    for values in (points, between):
        sent = np.repeat(values, 20_000)
        evidence = read_reports(plan, plan.client(seed=3).report_indices(sent))
        rates.append(np.mean(evidence.supports(sent)))
    assert rates[0] == pytest.approx(plan.attackability, abs=0.02)
    assert rates[1] < rates[0] - 0.1


def test_too_many_records_to_attack_are_named():
    survey = {f"question {number}": list("01234") for number in range(12)}
    plan = sunzi.make_tables(survey, [(name,) for name in survey], 1)
    assert 1 / plan.domain.size < plan.attackability < 3 / plan.domain.size
    with pytest.raises(sunzi.ParameterError, match="244,140,625 values, too many to attack one by one"):
        simulate_attack(plan)
