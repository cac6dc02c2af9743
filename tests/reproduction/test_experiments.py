"""Every experiment of the catalogue, at a scale too small for its figures to mean anything."""

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.collecting import PAPERS
from reproduction.experiment import Experiment
from reproduction.geometry import projective_size
from reproduction.moduli_per_trial import FIRST_TWENTY, NEIGHBOURS, kappa_bound
from reproduction.moduli_search import find_valid_moduli, paper_search, search_for_trial, shared_epsilon
from reproduction.mse import SIZES
from reproduction.paper_formula import printed_mse
from reproduction.trials import EPSILONS

import sunzi
from reproduction import catalogue, claims, runner
from sunzi.client.designs.primes import is_prime
from sunzi.client.errors import ParameterError
from sunzi.planning import Population

FINDINGS = {"for", "in part", "against", None}
CLAIMS = [value for value in vars(claims).values() if isinstance(value, claims.Claim)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """One directory for all, so that shared cells are measured once."""
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture
def no_pdf(monkeypatch):
    """Write empty PDF files: those of all experiments are drawn in test_committed.py, from the committed tables."""
    draw = Figure.savefig

    def drawn(figure, stream, *, format, **options):
        return stream.write(b"%PDF") if format == "pdf" else draw(figure, stream, format=format, **options)

    monkeypatch.setattr(Figure, "savefig", drawn)


@pytest.mark.usefixtures("no_pdf")
@pytest.mark.parametrize("name", catalogue.NAMES)
def test_runs_draws_and_judges(name, root):
    experiment = catalogue.find(name)
    assert isinstance(experiment, Experiment)
    assert experiment.name == name
    runner.run([experiment], "tiny", root, jobs=1)
    results = root / "results"
    for suffix in (".csv", ".svg", ".pdf"):
        assert 0 < (results / f"{name}{suffix}").stat().st_size < 300_000
    table = runner.Table.load(results / f"{name}.csv")
    assert len(table) > 0
    evidence = experiment.evidence(table)
    assert evidence
    assert {piece.finding for piece in evidence} | {piece.beyond_finding for piece in evidence} <= FINDINGS
    assert len({piece.claim for piece in evidence}) == len(evidence)
    report = (root / "REPORT.md").read_text()
    for piece in evidence:
        assert piece.claim in CLAIMS
        assert all([piece.measured or piece.beyond, piece.why, piece.claim.where, piece.claim.setting])
        assert bool(piece.finding) <= bool(piece.measured)
        assert bool(piece.beyond_finding) <= bool(piece.beyond)
        assert piece.claim.words in report


@pytest.mark.parametrize("name", catalogue.NAMES)
@pytest.mark.parametrize("scale", ["tiny", "quick", "full"])
def test_cells_are_distinct_and_can_be_filed(name, scale):
    experiment = catalogue.find(name)
    cells = experiment.cells(scale)
    assert len({experiment.key(cell, 1) for cell in cells}) == len(cells) > 0
    assert all(cell.cost > 0 for cell in cells)


def test_quick_is_quick_and_full_is_the_papers_size():
    cost = {scale: _seconds(scale) for scale in ("quick", "full")}
    assert cost["quick"] < 1200  # on one core: ten minutes on two
    assert 10 * cost["quick"] < cost["full"] < 2 * 8 * 3600  # a night on two
    cells = catalogue.find("mse").cells("full")
    assert {cell["epsilon"] for cell in cells} == set(EPSILONS)
    assert {cell["trials"] for cell in cells if cell["domain_size"] == 1024} == {300}
    large = [cell for cell in cells if cell["domain_size"] == 22_000 and cell["protocol"] in PAPERS]
    fewer = {(cell["protocol"], cell["epsilon"]) for cell in large if cell["trials"] < 300}
    assert fewer == {("ss", 0.5), ("ss", 1.0)} | {("mss", epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5)}
    drawn = [cell for cell in catalogue.find("moduli-per-trial").cells("full") if cell["kind"] == "drawn"]
    assert {(cell["domain_size"], cell["epsilon"]) for cell in drawn} == {(k, e) for k in SIZES for e in EPSILONS}
    assert {cell["sets"] for cell in catalogue.find("lengths").cells("full")} == {200}
    assert {cell["users"] for cell in cells} == {10_000}


def _seconds(scale):
    """The estimated cost of all experiments; shared cells count once."""
    costs = {}
    for name in catalogue.NAMES:
        experiment = catalogue.find(name)
        costs |= {experiment.key(cell, 1): cell.cost for cell in experiment.cells(scale)}
    return sum(costs.values())


def test_the_same_seed_gives_the_same_rows():
    experiment = catalogue.find("mse")
    cell = next(cell for cell in experiment.cells("tiny") if cell["protocol"] == "mss")
    first = experiment.measure(cell, 5)
    assert experiment.measure(cell, 5) == first
    assert experiment.measure(cell, 6) != first


def test_unknown_experiments_are_named():
    with pytest.raises(ParameterError, match="must be one of mse"):
        catalogue.find("alchemy")


def test_all_means_all_and_names_keep_the_reports_order():
    assert [experiment.name for experiment in catalogue.find_all(["all"])] == list(catalogue.NAMES)
    assert [experiment.name for experiment in catalogue.find_all(["ridge", "mse"])] == ["mse", "ridge"]


def test_the_printed_formula_is_the_dense_one_and_too_high_at_small_epsilon():
    """Compared with the equation written out with dense matrices."""
    size, users, epsilon = 40, 1000, 0.5
    plan = sunzi.make_plan("mss", size, epsilon, moduli=(11, 17, 23, 29))
    chances = Population.parse("zipf:3").chances(size)
    blocks, rates, weights, covariance, means = [], plan.protocol.support_probabilities(), [], [], []
    for modulus, (true, false) in zip(plan.protocol.moduli, rates, strict=True):
        matrix = (np.arange(size) % modulus == np.arange(modulus)[:, None]).astype(float)
        pi = false + (true - false) * matrix @ chances
        flat = false + (true - false) / modulus
        blocks.append(matrix)
        weights.append(np.full(modulus, (true - false) ** 2 * (users / 4) / (flat * (1 - flat))))
        covariance.append((np.diag(pi) - np.outer(pi, pi)) / (users / 4 * (true - false) ** 2))
        means.append(pi / (true - false))
    design, diagonal = np.vstack(blocks), np.diag(np.concatenate(weights))
    total = np.zeros((design.shape[0],) * 2)
    start = 0
    for block in covariance:
        total[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    total -= 4 / users**2 * np.outer(np.concatenate(means), np.concatenate(means))
    gain = np.linalg.solve(design.T @ diagonal @ design, design.T @ diagonal)
    dense = np.trace(gain @ total @ gain.T) / size
    (probed,) = printed_mse(plan, users, [chances], probes=6_000)
    assert probed == pytest.approx(dense, rel=0.01)  # the random signs of the trace
    assert dense > 1.2 * plan.expected_mse(users, chances)


def test_drawn_moduli_are_valid():
    for length in (3, 6):
        moduli, kappa = find_valid_moduli(200, 1.0, length, seed=1)
        assert len(set(moduli)) == length
        assert all(is_prime(modulus) for modulus in moduli)
        assert sum(moduli) - length >= 200
        assert kappa <= 10
        assert find_valid_moduli(200, 1.0, length, seed=1) == (moduli, kappa)


def test_a_shared_search_has_its_values_at_each_epsilon():
    assert [shared_epsilon(22_000, 4.0), shared_epsilon(1024, 0.5), shared_epsilon(1024, 3.0)] == [2.5, 1.0, 3.0]
    own, shared = paper_search(1024, 1.0, 0), search_for_trial(1024, 0.5, 0)
    assert shared.moduli == own.moduli
    assert shared.kappa == pytest.approx(own.kappa, rel=0.05)
    assert shared.alpha != own.alpha
    assert shared.error > 2 * own.error
    assert search_for_trial(1024, 1.0, 0) == own


@pytest.mark.parametrize(("base", "epsilon", "points"), [(100, 0.5, 121), (1024, 1.0, 1365), (1024, 4.5, 8011)])
def test_projective_sizes_are_those_of_pgr(base, epsilon, points):
    assert projective_size(base, epsilon) == points
    assert sunzi.make_plan("pgr", base, epsilon).protocol.tally_layout.length == points


def test_the_counterexamples_are_valid_moduli_and_break_the_bound():
    assert kappa_bound(1024, 1.0, 8) == pytest.approx(24.6, abs=0.05)
    for moduli in (NEIGHBOURS, FIRST_TWENTY):
        assert all(is_prime(modulus) for modulus in moduli)
        assert sum(moduli) - len(moduli) >= 1024
