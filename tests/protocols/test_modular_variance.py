"""Variances of modular estimates: exact on small domains, near on large ones, bounded when quick, and at the flat
histogram.
"""

from itertools import combinations
from math import exp

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.client.epsilon import parse_epsilon
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.plan import make_plan
from sunzi.protocols import modular_variance
from sunzi.protocols.modular_variance import BlockMoments, ModularVariance, flat_error

pytestmark = pytest.mark.slow

SIZE = 57
FEW = (7, 11, 37, 41)
PRIMES = [prime for prime in range(2, 60) if all(prime % factor for factor in range(2, prime))]
FLAT_SETTINGS = [
    ("mss", 12, 1, (5, 7, 11)),
    ("mss", 12, 3, (5, 7, 11)),
    ("mss", 10, 2, (7, 13)),
    ("mss", 16, 4, None),
    ("mss", 30, 3, None),
    ("mss", 64, 1, None),
    ("mss", 64, 5, None),
    ("mss", 64, 8, None),
    ("mss", 100, 5, (13, 37, 53, 61, 97)),
    ("mss", 211, 6, None),
    ("mss-compact", 60, 1, None),
    ("mss-compact", 100, 4, None),
]


def variance_of(protocol, reports):
    return ModularVariance(protocol.gram, protocol.moments, protocol.planned_weights, reports)


def random_histograms(size, number, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(number):
        yield generator.dirichlet(np.full(size, generator.choice([0.02, 0.2, 3.0])))


@pytest.mark.parametrize("epsilon", ["1/10", 1, 3, 5])
@pytest.mark.parametrize("points", [3, 5, 7, 11])
def test_the_covariance_of_a_report_is_exact_for_subsets(points, epsilon):
    for block_size in range(1, points):
        response = BlockResponse(Subsets(points, block_size), parse_epsilon(epsilon))
        moments = BlockMoments.of(response)
        for residues in [*random_histograms(points, 3), np.eye(points)[1]]:
            listed = oracle.listed_covariance(response, residues)
            ours = np.diag(moments.light + moments.heavy * residues) - np.outer(residues, residues)
            crossed = np.outer(np.ones(points), residues)
            ours += moments.constant + moments.mixed * (crossed + crossed.T)
            np.testing.assert_allclose(ours, listed, rtol=0, atol=1e-9 * listed.max())


@pytest.mark.parametrize(("points", "classes", "with_zero"), [(13, 4, False), (31, 5, True), (37, 18, False)])
def test_the_variances_of_a_report_are_exact_for_every_2_design(points, classes, with_zero):
    """A 2-design determines the variances, and the row sums of the covariance matrix are 0; only covariances differ."""
    response = BlockResponse(Cyclotomic(points, classes, with_zero=with_zero), parse_epsilon(1))
    for residues in random_histograms(points, 5):
        listed = oracle.listed_covariance(response, residues)
        formula = oracle.block_covariance(response, residues)
        np.testing.assert_allclose(np.diag(formula), np.diag(listed), rtol=1e-9)
        np.testing.assert_allclose(formula.sum(axis=0), 0, atol=1e-9 * listed.max())
        np.testing.assert_allclose(listed.sum(axis=0), 0, atol=1e-9 * listed.max())


@pytest.mark.parametrize("histogram", ["uniform", "zipf", "spike", "mixture"])
@pytest.mark.parametrize("epsilon", [1, 3, 5])
@pytest.mark.parametrize("options", [{"moduli": FEW}, {"moduli": (13, 37, 41)}, {"moduli": (3, 5, 61)}, {}])
def test_variances_on_small_domains_are_exact(options, epsilon, histogram):
    """Also with unequal blocks. Approximating by a typical residue was 40 % off here, with few residues."""
    protocol = make_plan("mss", SIZE, epsilon, **options).protocol
    frequencies = statistics.histogram(histogram, SIZE)
    for reports in ([100.0] * len(protocol.moduli), np.random.default_rng(1).uniform(50, 200, len(protocol.moduli))):
        exact = np.diag(oracle.modular_covariance(protocol, frequencies, reports))
        np.testing.assert_allclose(variance_of(protocol, reports).full(frequencies), exact, rtol=1e-7)


@pytest.mark.parametrize("designs", [[Subsets(7, 2), Subsets(11, 3), Subsets(13, 4)], [Subsets(5, 3), Subsets(17, 2)]])
@pytest.mark.parametrize("epsilon", [1, 5])
def test_variances_agree_with_listed_blocks(designs, epsilon):
    plan = statistics.plan_of_designs("mss", 20, epsilon, designs)
    reports = [100.0] * len(designs)
    for frequencies in random_histograms(20, 4):
        listed = np.diag(oracle.modular_covariance(plan.protocol, frequencies, reports, listed=True))
        np.testing.assert_allclose(variance_of(plan.protocol, reports).full(frequencies), listed, rtol=1e-7)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_variances_of_compact_blocks_are_near_those_of_listed_ones(epsilon):
    """A 2-design is not a 3-design, so single items are off by a few per cent; their mean is not."""
    protocol = make_plan("mss-compact", SIZE, epsilon).protocol
    reports = [100.0] * len(protocol.moduli)
    for frequencies in (statistics.histogram(name, SIZE) for name in ("uniform", "zipf", "spike")):
        listed = np.diag(oracle.modular_covariance(protocol, frequencies, reports, listed=True))
        ours = variance_of(protocol, reports).full(frequencies)
        assert ours.mean() == pytest.approx(listed.mean(), rel=5e-3)
        np.testing.assert_allclose(ours, listed, rtol=0.03)


def scattered(size, number):
    """``number`` items of equal weight anywhere in the domain; all others are absent."""
    frequencies = np.zeros(size)
    frequencies[np.random.default_rng(1).choice(size, number, replace=False)] = 1 / number
    return frequencies


@pytest.mark.parametrize(
    ("size", "epsilon", "options"),
    [
        (1201, 1, {}),
        (1201, 5, {}),
        (1201, 8, {}),
        (1201, 5, {"moduli": (409, 443, 487)}),
        (1201, 8, {"count": 4}),
        (1500, 3, {"moduli": (31, 1009, 1511)}),
    ],
)
def test_variances_on_large_domains_are_near(size, epsilon, options, monkeypatch):
    """Few and many moduli, skewed histograms and up to two hundred equally heavy items, against the exact method for
    small domains. A fixed number of heavy residues per block was up to 80 % off here.
    """
    protocol = make_plan("mss", size, epsilon, **options).protocol
    variance = variance_of(protocol, np.random.default_rng(2).uniform(50, 200, len(protocol.moduli)))
    permuted = np.random.default_rng(3).permutation(1 / np.arange(1, size + 1))
    skewed = [statistics.histogram("zipf", size), permuted / permuted.sum()]
    histograms = [*skewed, *(scattered(size, number) for number in (1, 10, 40, 200))]
    near = [variance.full(frequencies) for frequencies in histograms]
    monkeypatch.setattr(modular_variance, "_FORMED_SIZE", size)
    exact = [variance.full(frequencies) for frequencies in histograms]
    np.testing.assert_allclose(near, exact, rtol=0.04)


def test_variances_on_large_domains_are_near_those_of_matrices(monkeypatch):
    """The same against explicit matrices, on a small enough domain with the exact method switched off."""
    size, moduli = 301, (53, 101, 109, 127)
    monkeypatch.setattr(modular_variance, "_FORMED_SIZE", 0)
    protocol = make_plan("mss", size, 5, moduli=moduli).protocol
    reports = [100.0] * len(moduli)
    for frequencies in (statistics.histogram("zipf", size), scattered(size, 10), scattered(size, 100)):
        exact = np.diag(oracle.modular_covariance(protocol, frequencies, reports))
        np.testing.assert_allclose(variance_of(protocol, reports).full(frequencies), exact, rtol=0.04)


def test_large_domains_take_few_columns_and_form_the_decoder_where_that_is_less_work(monkeypatch):
    size, taken = 1201, []
    for method in ("_formed", "_by_columns"):
        original = getattr(ModularVariance, method)

        def recorded(self, *arguments, method=method, original=original):
            taken.append(method)
            return original(self, *arguments)

        monkeypatch.setattr(ModularVariance, method, recorded)
    for epsilon, options in ((2, {}), (8, {"count": 4})):
        protocol = make_plan("mss", size, epsilon, **options).protocol
        variance_of(protocol, [100.0] * len(protocol.moduli)).full(scattered(size, 400))
    assert taken == ["_by_columns", "_formed"]


def test_work_is_bounded_and_the_heaviest_residues_come_first(monkeypatch):
    """Twelve columns per block, although hundreds are heavy: twelve items are ten times as frequent as a hundred
    others.
    """
    size = 1201
    frequencies = scattered(size, 100)
    frequencies[np.random.default_rng(4).choice(size, 12, replace=False)] = 0.1
    frequencies /= frequencies.sum()
    protocol = make_plan("mss", size, 8, count=4).protocol
    variance = variance_of(protocol, [100.0] * 4)
    exact = variance.full(frequencies)
    columns = []
    solve = type(variance.gram).solve

    def counted(self, right_side, **options):
        columns.append(1 if right_side.ndim == 1 else len(right_side))
        return solve(self, right_side, **options)

    monkeypatch.setattr(type(variance.gram), "solve", counted)
    monkeypatch.setattr(modular_variance, "_FORMED_SIZE", 0)
    monkeypatch.setattr(modular_variance, "_MOST_CELLS", 48 * size)
    bounded = variance.full(frequencies)
    assert sum(columns) <= 48 + 4 + 1  # plus one for the mean of every block and one for the sum
    np.testing.assert_allclose(bounded.mean(), exact.mean(), rtol=0.02)
    monkeypatch.setattr(modular_variance, "_MOST_CELLS", 0)
    worse = np.abs(variance.full(frequencies) / exact - 1).mean()
    assert np.abs(bounded / exact - 1).mean() < 0.5 * worse


def test_the_quick_bound_is_never_below_the_exact_variance(monkeypatch):
    """Moduli below, around and far above the domain, ε from 1/10 to 8, equal and unequal blocks; for single items, and
    for items that share a bound on their part in the decoder; with one, a few or all residues treated exactly.
    """
    generator = np.random.default_rng(5)
    checked = 0
    while checked < 150:
        size, count = int(generator.integers(5, 50)), int(generator.integers(1, 6))
        moduli = sorted(generator.choice(PRIMES, count, replace=False).tolist())
        matrix = oracle.stacked_matrix(moduli, size)
        if sum(moduli) - count < size - 1 or np.linalg.cond(matrix) > 300:
            continue
        monkeypatch.setattr("sunzi.numerics.toeplitz._INTERVALS", int(generator.choice([2, 3, 5, 9, 512])))
        monkeypatch.setattr(modular_variance, "_QUICK_COLUMNS", int(generator.choice([1, 3, 1000])))
        protocol = make_plan("mss", size, float(generator.choice([0.1, 1, 3, 8])), moduli=moduli).protocol
        frequencies = generator.dirichlet(np.full(size, generator.choice([0.01, 0.3])))
        reports = generator.uniform(0.5, 2, count) * 100
        exact = np.diag(oracle.modular_covariance(protocol, frequencies, reports))
        assert (variance_of(protocol, reports).quick(frequencies) / exact).min() > 1 - 1e-9
        checked += 1


def listed_covariance(points: int, size: int, epsilon: float, residues: np.ndarray) -> np.ndarray:
    """The covariance of one debiased report, by listing all blocks."""
    blocks = np.array([[a in block for a in range(points)] for block in combinations(range(points), size)], dtype=float)
    true = size * exp(epsilon) / (size * exp(epsilon) + points - size)
    false = (size - true) / (points - 1)
    inside = blocks[:, 0].sum()
    chances = np.where(blocks, true / inside, (1 - true) / (len(blocks) - inside)) @ residues
    debiased = (blocks - false) / (true - false)
    return (debiased.T * chances) @ debiased - np.outer(residues, residues)


def dense_error(protocol, histogram: np.ndarray) -> float:
    """The mean variance of one report about the users at hand: decoder times covariance times decoder."""
    size, weights = protocol.domain_size, protocol.planned_weights
    matrices = [np.equal.outer(np.arange(m), np.arange(size) % m).astype(float) for m in protocol.moduli]
    inverse = np.linalg.inv(sum(w * a.T @ a for w, a in zip(weights, matrices, strict=True)))
    ones = inverse.sum(axis=1)
    correction = np.eye(size) - np.outer(ones, np.ones(size)) / ones.sum()
    total = np.zeros(size)
    for response, weight, matrix in zip(protocol.responses, weights, matrices, strict=True):
        design = response.design
        covariance = listed_covariance(design.points, design.block_size, float(protocol.epsilon), matrix @ histogram)
        decoder = weight * correction @ inverse @ matrix.T
        total += len(weights) * np.einsum("ia,ab,ib->i", decoder, covariance, decoder)
    return float(np.mean(total - histogram * (1 - histogram)))


def linear_error(protocol, histogram: np.ndarray) -> float:
    """The same from the library."""
    count = len(protocol.moduli)
    variance = ModularVariance(protocol.gram, protocol.moments, protocol.planned_weights, [1 / count] * count)
    return float(np.mean(variance.full(histogram) - histogram * (1 - histogram)))


@pytest.mark.parametrize(("epsilon", "moduli"), [(1, (5, 7, 11)), (3, (5, 7, 11)), (1, (7, 13)), (2, (3, 5, 7))])
def test_errors_by_histogram_are_those_of_listed_reports(epsilon, moduli):
    size = 12
    protocol = make_plan("mss", size, epsilon, moduli=moduli).protocol
    steep = np.arange(1, size + 1) ** -1.1
    for histogram in (np.full(size, 1 / size), steep / steep.sum(), np.eye(size)[3]):
        assert linear_error(protocol, histogram) == pytest.approx(dense_error(protocol, histogram), rel=1e-9)


@pytest.mark.parametrize(("size", "epsilon"), [(5, 1), (7, 2), (11, 1), (11, 5)])
def test_a_modulus_of_the_domains_size_is_subset_selection(size, epsilon):
    alone = make_plan("mss", size, epsilon, moduli=[size])
    flat = np.full(size, 1 / size)
    assert alone.expected_mse(1) == pytest.approx(make_plan("ss", size, epsilon).expected_mse(1), rel=1e-9)
    assert alone.expected_mse(1) == pytest.approx(dense_error(alone.protocol, flat), rel=1e-9)


@pytest.mark.parametrize(("name", "size", "epsilon", "moduli"), FLAT_SETTINGS)
def test_the_flat_error_is_right_within_six_per_cent(name, size, epsilon, moduli):
    """No modulus divides these sizes, so that some residues hold one value more than others."""
    plan = make_plan(name, size, epsilon, **({} if moduli is None else {"moduli": moduli}))
    exact = linear_error(plan.protocol, np.full(size, 1 / size))
    assert 0.995 * exact < plan.expected_mse(1) < 1.06 * exact


@pytest.mark.parametrize(("size", "epsilon"), [(64, 3), (64, 5), (100, 5), (256, 5), (40, 8)])
def test_the_planned_weights_are_nearly_the_best_at_the_flat_histogram(size, epsilon):
    """Against the inverse variance at empty residues, and against weights a little off to either side."""
    protocol = make_plan("mss", size, epsilon).protocol
    flat, count = np.full(size, 1 / size), len(protocol.moduli)

    def error(weights):
        gram = type(protocol.gram)(size, protocol.moduli, weights)
        return ModularVariance(gram, protocol.moments, weights, [1 / count] * count).full(flat).mean()

    planned = protocol.planned_weights
    assert error(planned) < error(np.array([1 / moments.light for moments in protocol.moments]))
    for power in (0.8, 1.25):
        assert error(planned) < 1.005 * error(planned**power)


def test_pairs_of_values_that_share_a_residue_are_counted():
    moments = BlockMoments(points=5, light=1.0, heavy=2.0, mixed=0.0, constant=0.0)
    for size in (3, 5, 12, 20):
        shares = np.bincount(np.arange(size) % 5) / size
        assert moments.flat(size) == pytest.approx(1 + 2 * (shares @ shares))


@pytest.mark.parametrize("epsilon", [10, 20, 32])
def test_errors_stay_positive_where_hardly_any_is_left(epsilon):
    protocol = make_plan("mss", 20, epsilon, moduli=[23, 29]).protocol
    assert 0 < flat_error(protocol.gram, 20) < 1e-2
