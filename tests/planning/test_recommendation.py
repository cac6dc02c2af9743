"""Recommendations: the rules of each objective, limits, and correct figures."""

import re
from dataclasses import replace

import pytest

import sunzi
from sunzi.client.errors import DomainError, ParameterError
from sunzi.planning import evaluate, evaluate_moduli, recommend, recommendation
from sunzi.planning.recommendation import Option, at_users, choose_among

MODULAR = ("mss", "mss-compact")


def options(**figures: tuple[float, float, float]) -> list[Option]:
    """Rows with these errors, bits and attackabilities; other figures are those of a real row."""
    plan = sunzi.make_plan("grr", 10, 1)
    known = evaluate(plan, 100)
    return [
        Option(name, plan, replace(known, protocol=name, flat_error=e, bits=b, attackability=a), None)
        for name, (e, b, a) in figures.items()
    ]


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("error", "near"), ("balanced", "usual"), ("bits", "short"), ("attack", "safe")],
)
def test_every_objective_has_its_rule(objective, expected):
    rows = options(
        best=(1.0, 100, 0.5),
        near=(1.009, 60, 0.5),
        leaky=(1.02, 10, 0.9),
        usual=(1.04, 20, 0.55),
        short=(1.24, 5, 0.8),
        safe=(1.9, 30, 0.104),
        safer=(1.95, 200, 0.1),
        far=(2.1, 1, 0.01),
    )
    found = choose_among(rows, objective)
    assert found.protocol == expected
    assert found.chosen is next(row for row in rows if row.protocol == expected)
    assert found.reason.startswith(expected)
    assert f"({found.axes.bits:g} bits)" in found.reason
    assert found.reason.endswith(".")


def test_ties_go_to_less_work():
    slow, quick = options(slow=(1.0, 10, 0.5), quick=(1.0, 10, 0.5))
    quick = replace(quick, axes=replace(quick.axes, read_work=0.0, decode_work=1.0))
    assert choose_among([slow, quick], "balanced").protocol == "quick"


def test_the_table_is_the_catalogue_with_its_axes():
    found = recommend(60, 1, 5000)
    assert tuple(option.protocol for option in found.options) == sunzi.catalogue()
    for option in found.options:
        assert option.axes == evaluate(sunzi.make_plan(option.protocol, 60, 1), 5000)
    assert found.plan == sunzi.make_plan(found.protocol, 60, 1)


def test_a_single_compact_block_beats_modular_ones_on_error():
    for size, epsilon in ((100, 5), (300, 1)):
        by_name = {option.protocol: option.axes for option in recommend(size, epsilon, 1000).options}
        assert by_name["ss-compact"].flat_error < min(by_name[name].flat_error for name in MODULAR)


def test_modular_protocols_reveal_less_at_large_epsilon_and_few_values():
    by_name = {option.protocol: option.axes for option in recommend(100, 5, 1000).options}
    assert by_name["mss"].attackability < 0.65 * by_name["ss-compact"].attackability
    assert recommend(100, 5, 1000, "attack").protocol in MODULAR
    assert recommend(100, 5, 1000, "error").protocol not in MODULAR


@pytest.mark.parametrize(("epsilon", "limit", "block_size"), [(5, 0.4, 2), (5, 0.3, 3), (5, 0.1, 10), (4, 0.2, 4)])
def test_blocks_grow_until_they_keep_the_limit_on_attackability(epsilon, limit, block_size):
    """100 values at ε = 5: blocks of three reveal half as much as single values and take 12 bits."""
    plain, compact, geometry = recommend(
        100, epsilon, 1000, max_attack=limit, protocols=["ss", "ss-compact", "pgr"]
    ).options
    for option in (plain, compact, geometry):
        assert option.excluded is None
        assert option.plan.attackability <= limit
        assert option.plan == sunzi.make_plan(option.protocol, 100, epsilon, max_attack=limit)
    assert plain.plan.protocol.design.block_size == compact.plan.protocol.design.block_size == block_size
    assert max(compact.axes.bits, geometry.axes.bits) <= 13


def test_a_limit_out_of_reach_says_what_is_reached():
    with pytest.raises(ParameterError, match=r"ss-compact does not meet the limits: .* least it reaches is 0.01009"):
        recommend(100, 5, 1000, max_attack=0.005, protocols=["ss-compact"])
    found = recommend(100, 5, 1000, max_attack=0.015, protocols=["ss", "pgr"])
    assert found.protocol == "ss"
    assert "out of reach of pgr" in found.options[1].excluded


def test_residues_are_noted_where_they_do_not_pay():
    by_name = {option.protocol: option for option in recommend(100, 5, 1000).options}
    ratio = by_name["mss"].plan.expected_mse(1) / by_name["ss"].plan.expected_mse(1)
    assert ratio > 1.3
    assert f"{ratio:.3g} times that of ss" in by_name["mss"].note
    assert by_name["mss-compact"].note
    assert all(by_name[name].note == "" for name in by_name if name not in MODULAR)
    assert all(option.note == "" for option in recommend(223, 5, 1000, protocols=MODULAR).options)
    assert all(option.note for option in recommend(222, 5, 1000, protocols=MODULAR).options)


def test_moduli_of_no_use_are_not_recommended():
    with pytest.raises(ParameterError, match="mss does not meet the limits: an attackability of"):
        recommend(100, 6, 1000, max_attack=0.15, protocols=["mss"])


def test_labels_and_named_protocols():
    found = recommend(["a", "b", "c"], "1/2", 50, protocols=["oue"])
    assert found.plan.domain.labels == ("a", "b", "c")
    assert found.reason == "oue is the only candidate."
    assert recommend(sunzi.Domain(5), 1, 50, protocols=["grr", "grr"]).options[0].protocol == "grr"


def test_limits_exclude_and_say_why():
    found = recommend(200, 1, 1000, "error", max_bits=100, protocols=["grr", "oue", "ss-compact"])
    by_name = {option.protocol: option for option in found.options}
    assert by_name["oue"].excluded == "200 bits per report exceed 100"
    assert by_name["oue"].axes is not None
    assert found.protocol == "ss-compact"
    with pytest.raises(ParameterError, match=r"shortest reports take 8 bits \(grr\), the least attackability is 0.00"):
        recommend(200, 1, 1000, max_bits=5, protocols=["grr", "oue"])


def test_only_limits_that_fail_start_the_search(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unexpected search")

    monkeypatch.setattr(recommendation, "pareto_front", refuse)
    monkeypatch.setattr(recommendation, "_LONGEST_REPORT", 10)
    assert recommend(40, 1, 1000, max_bits=1000).protocol in sunzi.catalogue()


def test_the_impractical_stays_in_the_table_but_is_not_taken(monkeypatch):
    monkeypatch.setattr(recommendation, "_LONGEST_REPORT", 50)
    monkeypatch.setattr(recommendation, "_LARGEST_SOLVED", 50)
    by_name = {option.protocol: option for option in recommend(60, 1, 1000).options}
    assert "60 bits are impractical" in by_name["oue"].excluded
    assert by_name["oue"].axes is not None
    assert by_name["mss"].axes is None
    assert "name it" in by_name["mss"].excluded
    assert recommend(60, 1, 1000, protocols=["oue"]).protocol == "oue"
    assert recommend(60, 1, 1000, protocols=["mss"]).protocol == "mss"


def test_protocols_explain_why_they_refuse_a_domain():
    found = recommend((1 << 24) + 1, 1, 1000)
    by_name = {option.protocol: option for option in found.options}
    assert "at most 2^24 values" in by_name["oue"].excluded
    assert found.axes is not None
    with pytest.raises(ParameterError, match="at most 2"):
        recommend((1 << 24) + 1, 1, 1000, protocols=["oue"])


def test_the_objective_chooses_from_the_front_of_the_search(monkeypatch):
    """A set of the front that is better by the objective is chosen; limits are passed on."""
    asked = {}
    sets = [(17, 23, 29, 31, 37), (19, 29, 31, 37, 41, 43, 47, 53), (61, 67)]

    def front(domain_size, epsilon, kind, **limits):
        asked[kind] = limits
        found = [evaluate_moduli(domain_size, epsilon, kind, moduli) for moduli in sets]
        return sorted((each for each in found if each.bits <= (limits["max_bits"] or 100)), key=lambda each: each.error)

    monkeypatch.setattr(recommendation, "pareto_front", front)
    seen = []
    found = recommend(60, 1, 1000, "error", protocols=["mss"], search=True, progress=seen.append)
    assert found.plan.protocol.moduli == sets[2]
    assert asked["mss"]["effort"] == "normal"
    assert seen[-1] == 1
    recommend(60, 1, 1000, protocols=["mss"], max_bits=25)
    assert asked["mss"]["max_bits"] == 25
    assert asked["mss"]["max_attack"] is None
    assert asked["mss"]["effort"] == "quick"


def test_an_empty_front_leaves_the_quick_moduli(monkeypatch):
    monkeypatch.setattr(recommendation, "pareto_front", lambda *_, **__: [])
    assert recommend(60, 1, 1000, protocols=["mss"], search=True).plan == sunzi.make_plan("mss", 60, 1)


@pytest.mark.slow
def test_a_real_search_keeps_to_its_limits(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    quick = evaluate(sunzi.make_plan("mss", 40, 2), 1000)
    found = recommend(40, 2, 1000, protocols=["mss"], max_bits=quick.bits - 2)
    assert found.axes.bits <= quick.bits - 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"objective": "beauty"}, "objective must be one of balanced, error, bits, attack; got 'beauty'"),
        ({"max_bits": 0}, "max_bits must be at least 1, got 0"),
        ({"max_attack": 1.5}, "max_attack must lie between 0 and 1, got 1.5"),
        ({"users": 0}, "users must be at least 1, got 0"),
        ({"epsilon": -1}, "epsilon must be positive, got -1"),
        ({"protocols": ["telepathy"]}, "got 'telepathy'"),
    ],
)
def test_wrong_wishes_are_named(arguments, words):
    with pytest.raises(ParameterError) as caught:
        recommend(**({"domain": 10, "epsilon": 1, "users": 10} | arguments))
    assert words in str(caught.value)


def test_a_domain_is_checked():
    with pytest.raises(DomainError):
        recommend(1, 1, 10)


def test_a_skewed_histogram_is_weighed_on_request():
    """Errors of protocols with support counts stay; the choice and another number of users follow the skewed ones."""
    names = ["oue", "mss"]
    flat, skewed = (recommend(40, 3, 1000, protocols=names, histogram=name) for name in ("flat", "skewed"))
    for before, after in zip(flat.options, skewed.options, strict=True):
        assert before.axes.skewed_error is None
        assert after.axes == evaluate(after.plan, 1000, "skewed")
        assert after.axes.mean_error == after.axes.skewed_error
        assert before.axes.mean_error == before.axes.flat_error == after.axes.flat_error
    assert skewed.options[0].axes.mean_error == flat.options[0].axes.mean_error
    assert at_users(skewed, 4000).axes.skewed_error == pytest.approx(skewed.axes.skewed_error / 2)
    with pytest.raises(ParameterError, match="histogram must be flat or skewed, got 'steep'"):
        recommend(40, 3, 1000, histogram="steep")


def test_the_text_is_the_choice_and_its_reason():
    found = recommend(5, 1, 1000)
    assert repr(found) == f"Recommendation({found.protocol}: {found.reason})"


@pytest.mark.slow
def test_central_epsilon_of_every_protocol():
    found = recommend(1024, 2, 1_000_000, protocols=["grr", "ss"], delta=1e-8)
    header, rows = found.table_rows()
    assert header[3] == "central"
    for row, option in zip(rows, found.options, strict=True):
        bound, attack = re.fullmatch(r"(\S+) \((\S+)\)", row[3]).groups()
        batch = option.axes.batch
        assert float(bound) / 1.01 < batch.epsilon <= float(bound)  # rounded to the safe side
        assert float(attack) <= batch.attack_epsilon < float(attack) * 1.01
    assert at_users(found, 2_000_000).axes.batch.minimum_reports == 2_000_000
    with pytest.raises(ParameterError, match="delta must lie between"):
        recommend(9, 1, 10, delta=0)


def test_the_minimal_profile_compares_what_small_clients_have():
    found = recommend(60, 1, 5000, profile="minimal")
    assert [option.protocol for option in found.options] == ["grr", "ss-compact"]
    huge = recommend(1 << 27, 1, 5000, profile="minimal")
    assert huge.protocol == "grr"
    assert "at most 2^26 points" in huge.options[1].excluded


@pytest.mark.parametrize(
    ("domain", "options", "message"),
    [
        (60, {"profile": "small"}, "profile must be 'minimal' or None, got 'small'"),
        (60, {"protocols": ["grr", "oue"]}, "the minimal profile has the protocols grr and ss-compact, got oue"),
        (sunzi.Domain(["a", "b"], separate_labels=True), {}, "needs a size, or labels in the plan"),
        (sunzi.OrderedDomain(0, 1, 8), {}, "needs a size, or labels in the plan"),
    ],
)
def test_the_minimal_profile_refuses_what_small_clients_lack(domain, options, message):
    with pytest.raises(ParameterError, match=message):
        recommend(domain, 1, 5000, **{"profile": "minimal", **options})
