"""The stated errors are right: covariances against listed blocks, variances against matrices and simulated runs."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import make_plan
from sunzi.protocols import modular_variance
from sunzi.protocols.modular_variance import BlockMoments, ModularVariance

SIZE = 57
FEW = (7, 11, 37, 41)
PRIMES = [prime for prime in range(2, 60) if all(prime % factor for factor in range(2, prime))]


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
    for items that share a bound on their part in the decoder.
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
        protocol = make_plan("mss", size, float(generator.choice([0.1, 1, 3, 8])), moduli=moduli).protocol
        frequencies = generator.dirichlet(np.full(size, generator.choice([0.01, 0.3])))
        reports = generator.uniform(0.5, 2, count) * 100
        exact = np.diag(oracle.modular_covariance(protocol, frequencies, reports))
        assert (variance_of(protocol, reports).quick(frequencies) / exact).min() > 1 - 1e-9
        checked += 1


@pytest.mark.parametrize("epsilon", ["1/2", 1, 3, 5])
@pytest.mark.parametrize(("name", "options"), [("mss", {}), ("mss", {"moduli": FEW}), ("mss-compact", {})])
def test_the_worst_error_bounds_every_histogram(name, options, epsilon):
    plan = make_plan(name, SIZE, epsilon, **options)
    spikes = [np.eye(SIZE)[index] for index in range(0, SIZE, 4)]
    errors = [plan.expected_mse(1000, frequencies) for frequencies in [*spikes, *random_histograms(SIZE, 5)]]
    assert plan.worst_mse(1000) >= max(errors)


# Blocks of one and of several points, truncated designs. Each protocol once, and with --long at low and high ε:
# test_coverage measures the same settings, and a wrong variance changes coverage too.
MEASURED = [
    ("grr", 5, {}),
    ("ss", 3, {"block_size": 2}),
    ("ss-compact", 1, {}),
    ("ss-compact", 5, {"classes": 30, "points": 61}),
    ("pgr", 3, {"order": 7}),
    ("rappor", 1, {}),
    ("oue", 5, {}),
    ("mss", 3, {"moduli": FEW}),
    ("mss", 5, [Subsets(11, 2), Subsets(37, 2), Subsets(41, 2)]),
    ("mss-compact", 1, {"moduli": (7, 11, 31, 53)}),
    ("mss-compact", 5, [Cyclotomic(13, 6), Cyclotomic(37, 18), Cyclotomic(53, 26)]),
    pytest.param("grr", 1, {}, marks=pytest.mark.long),
    pytest.param("ss", 5, {"block_size": 2}, marks=pytest.mark.long),
    pytest.param("ss-compact", 3, {}, marks=pytest.mark.long),
    pytest.param("pgr", 1, {}, marks=pytest.mark.long),
    pytest.param("rappor", 5, {}, marks=pytest.mark.long),
    pytest.param("oue", 1, {}, marks=pytest.mark.long),
    pytest.param("mss", 5, {"moduli": FEW}, marks=pytest.mark.long),
    pytest.param("mss-compact", 3, {"moduli": (7, 11, 37, 53)}, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("name", "epsilon", "options"), MEASURED)
def test_measured_errors_are_the_stated_ones(name, epsilon, options):
    """Each item's sample variance, and the mean of all squared errors, for a histogram of heavy and absent items.

    False alarms: one in a million per test. Compact blocks are allowed the few per cent by which a 2-design may differ.
    The expected 1/n_j exceeds ℓ/n by a factor of about 1 + ℓ/n, here less than 1/1000.
    """
    runs = 2500
    given = isinstance(options, list)
    plan = (
        statistics.plan_of_designs(name, SIZE, epsilon, options) if given else make_plan(name, SIZE, epsilon, **options)
    )
    protocol = plan.protocol
    users = int(500 / min(false for _, false in protocol.support_probabilities()))
    _, truth = statistics.values_of(statistics.histogram("mixture", SIZE), users)
    holders = np.tile(np.rint(truth * users).astype(np.int64), (500, 1))
    squares, generator, sampler = np.zeros(SIZE), np.random.default_rng(11), statistics.Sampler(plan)
    for _ in range(runs // 500):
        for tally in sampler.tallies(holders, generator):
            squares += (plan.estimate(tally).frequencies - truth) ** 2 / runs
    low, high = statistics.variance_bounds(runs, SIZE + 1)
    slack = 1.08 if name == "mss-compact" else 1.0
    ratios = squares / statistics.stated_variances(protocol, truth, users)
    assert low / slack < ratios.min()
    assert ratios.max() < high * slack
    covariance = oracle.estimate_covariance(protocol, truth, users)
    bound = statistics.mean_square_bound(covariance, runs, SIZE + 1) + (slack - 1) / 10
    assert squares.mean() == pytest.approx(plan.expected_mse(users, truth), rel=bound)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_simulated_subsets_have_the_stated_error(epsilon):
    """Designs with too many blocks to list, by the library's simulation; ε = 1 has subsets of 2 to 15 points."""
    runs, users = 400, 3000
    values, truth = statistics.values_of(statistics.histogram("mixture", SIZE), users)
    for plan in (make_plan("ss", SIZE, epsilon), make_plan("mss", SIZE, epsilon, moduli=(7, 11, 31, 53))):
        errors = np.array([plan.estimate(plan.simulate(values, seed=run)).frequencies - truth for run in range(runs)])
        low, high = statistics.variance_bounds(runs, 2 * SIZE + 2)
        ratios = np.mean(errors**2, axis=0) / statistics.stated_variances(plan.protocol, truth, users)
        assert low < ratios.min()
        assert ratios.max() < high
        covariance = oracle.estimate_covariance(plan.protocol, truth, users)
        bound = statistics.mean_square_bound(covariance, runs, 2 * SIZE + 2)
        assert np.mean(errors**2) == pytest.approx(plan.expected_mse(users, truth), rel=bound + 2e-3)


@pytest.mark.parametrize(
    ("name", "size", "epsilon", "runs"),
    [("mss", 1024, 1, 100), ("mss-compact", 1024, 1, 100), ("mss", 22_000, 2, 5), ("mss-compact", 22_000, 2, 5)],
)
def test_modular_error_is_within_3_per_cent_of_its_prediction(name, size, epsilon, runs):
    """Zipf(3), 10,000 users. The error of one run varies by about 1.3·√(2/k), so 3 per cent is over five deviations."""
    users = 10_000
    plan = make_plan(name, size, epsilon)
    values, truth = statistics.values_of(statistics.histogram("zipf", size), users)
    runs_errors = [
        np.mean((plan.estimate(plan.simulate(values, seed=run)).frequencies - truth) ** 2) for run in range(runs)
    ]
    assert np.mean(runs_errors) == pytest.approx(plan.expected_mse(users, truth), rel=0.03)
    assert plan.expected_mse(users, truth) == pytest.approx(plan.expected_mse(users), rel=0.03)


@pytest.mark.parametrize("epsilon", ["1/2", 1, 2, 4])
@pytest.mark.parametrize("size", [57, 1024, 22_000])
def test_compact_blocks_are_as_accurate_as_subsets(size, epsilon):
    subsets, compact = (make_plan(name, size, epsilon).expected_mse(1000) for name in ("ss", "ss-compact"))
    assert compact == pytest.approx(subsets, rel=0.02)


@pytest.mark.parametrize("epsilon", [1, 2])
def test_compact_modular_blocks_are_as_accurate_as_subsets(epsilon):
    """Both with the same moduli."""
    compact = make_plan("mss-compact", 1024, epsilon)
    subsets = make_plan("mss", 1024, epsilon, moduli=compact.protocol.moduli)
    assert compact.expected_mse(1000) == pytest.approx(subsets.expected_mse(1000), rel=0.02)
