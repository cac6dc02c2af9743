"""Priors, and the success formulas for them."""

import numpy as np
import pytest

import sunzi
from sunzi.analysis import Prior, attackability, simulate_attack


def test_shares_too_large_to_list_have_no_formula(monkeypatch):
    from sunzi.designs import base

    plan = sunzi.make_plan("ss-compact", 100, 1)
    chances = Prior.of(plan.domain, "zipf:1").chances
    assert attackability(plan, chances) is not None
    monkeypatch.setattr(base, "_MOST_QUESTIONS", 10)
    assert attackability(plan, chances) is None
    assert attackability(plan, np.full(100, 0.01)) == plan.attackability
    assert simulate_attack(plan, trials=100, seed=1, prior="zipf:1").agrees


def test_randomised_response_has_a_formula_at_any_size():
    """Σ_y max_x π(x)·P(y|x) term by term: the best guess for a report is itself or the most likely value overall."""
    plan = sunzi.make_plan("grr", 22_000, 3)
    chances = 1 + np.linspace(0.1, 0, 22_000)
    chances /= chances.sum()
    true, other = (float(rate) for rate in plan.protocol.support_probabilities()[0])
    rivals = np.where(np.arange(22_000) == 0, chances[1], chances[0])
    expected = np.maximum(true * chances, other * rivals).sum()
    assert attackability(plan, chances) == pytest.approx(expected, rel=1e-12)


def test_priors(tmp_path):
    domain = sunzi.Domain(["a", "b", "c"])
    assert Prior.of(domain, None).chances.tolist() == [1 / 3] * 3
    assert Prior.of(domain, np.array([0.5, 0.5, 0.0])).best_guess == 0.5
    path = tmp_path / "prior.csv"
    path.write_text("value,weight\nb,3\n\na,1\n")
    assert Prior.of(domain, str(path)).chances.tolist() == [0.25, 0.75, 0]
    path.write_text("1,1\n0,1\n1,2\n")
    assert Prior.of(sunzi.Domain(3), str(path)).chances.tolist() == [0.25, 0.75, 0]
    path.write_bytes("\ufeff0,1\n1,3\n".encode())  # as some spreadsheets write it
    assert Prior.of(sunzi.Domain(3), str(path)).chances.tolist() == [0.25, 0.75, 0]
    drawn = Prior.of(domain, np.array([0.5, 0.5, 0.0])).draw(10_000, np.random.default_rng(1))
    assert np.bincount(drawn, minlength=3)[2] == 0
    assert abs(np.mean(drawn) - 0.5) < 0.03


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,1\nz,2\n", "line 2: 'z' is not a value"),
        ("a,1\nb,-2\n", "line 2: a weight must be finite and not negative, got '-2'"),
        ("a,-5\nb,1\n", "line 1: a weight must be finite and not negative"),
        ("a,nan\nb,1\n", "line 1: a weight must be finite and not negative"),
        ("a\nb,1\n", "line 1: expected VALUE,WEIGHT"),
        ("z,1\nb,1\n", "line 1: 'z' is not a value"),
        ("b,1\na,\xff1\n", "not UTF-8"),
        ("a,1\nb\n", "line 2: expected VALUE,WEIGHT"),
        ("a,0\n", "no value a weight"),
    ],
)
def test_wrong_prior_files_are_refused(text, words, tmp_path):
    path = tmp_path / "prior.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(sunzi.ParameterError, match=words):
        Prior.of(sunzi.Domain(["a", "b"]), str(path))


def test_the_weight_of_an_unknown_value_is_not_given_to_other(tmp_path):
    path = tmp_path / "prior.csv"
    path.write_text("a,1\nz,2\n")
    with pytest.raises(sunzi.ParameterError, match="line 2: 'z' is not a value"):
        Prior.of(sunzi.Domain(["a", "b"], other="b"), str(path))


@pytest.mark.parametrize("prior", ["gauss", "none.csv", np.array([0.5, 0.6]), np.array([1.5, -0.5]), np.ones(3) / 3])
def test_wrong_priors_are_refused(prior):
    with pytest.raises(sunzi.ParameterError):
        Prior.of(sunzi.Domain(2), prior)


def test_priors_of_tables_name_records(tmp_path):
    domain, path = sunzi.RecordDomain({"a": ["x", "y"], "b": ["u", "v"]}), tmp_path / "prior.csv"
    path.write_text('"{""a"": ""x"", ""b"": ""v""}",3\n"{""a"": ""y"", ""b"": ""u""}",1\n')
    assert Prior.of(domain, str(path)).chances.tolist() == [0, 0.75, 0.25, 0]


def test_priors_of_numbers_name_points(tmp_path):
    plan = sunzi.make_number(0, 100, 4)
    values, path = plan.protocol.attacked_values, tmp_path / "prior.csv"
    path.write_text("0,3\n100,1\n")
    assert Prior.of(plan.domain, str(path), values).chances.tolist() == [0.75, 0, 0, 0, 0.25]
    assert Prior.of(plan.domain, None, values).chances.tolist() == [0.2] * 5
    path.write_text("0,3\n30,1\n")
    with pytest.raises(sunzi.ParameterError, match="line 2: '30' would be rounded by chance; name one of 0 to"):
        Prior.of(plan.domain, str(path), values)
