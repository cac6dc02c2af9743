"""The stated errors are those of simulated runs, and the worst error bounds every histogram."""

import numpy as np
import oracle
import pytest
import simulation_statistics as statistics

from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.subsets import Subsets
from sunzi.plan import make_plan

SIZE = 57
FEW = (7, 11, 37, 41)


def random_histograms(size, number, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(number):
        yield generator.dirichlet(np.full(size, generator.choice([0.02, 0.2, 3.0])))


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
            squares += (plan.estimate(tally, weights="planned").frequencies - truth) ** 2 / runs
    low, high = statistics.variance_bounds(runs, SIZE + 1)
    slack = 1.08 if name == "mss-compact" else 1.0
    stated = statistics.stated_variances(protocol, truth, users)
    ratios = squares / stated
    assert low / slack < ratios.min()
    assert ratios.max() < high * slack
    covariance = oracle.estimate_covariance(protocol, truth, users)
    bound = statistics.mean_square_bound(covariance, runs, SIZE + 1) + (slack - 1) / 10
    assert squares.mean() == pytest.approx(stated.mean(), rel=bound)


@pytest.mark.parametrize("epsilon", [1, 3])
def test_simulated_subsets_have_the_stated_error(epsilon):
    """Designs with too many blocks to list, by the library's simulation; ε = 1 has subsets of 2 to 15 points."""
    runs, users = 400, 3000
    values, truth = statistics.values_of(statistics.histogram("mixture", SIZE), users)
    for plan in (make_plan("ss", SIZE, epsilon), make_plan("mss", SIZE, epsilon, moduli=(7, 11, 31, 53))):
        errors = np.array(
            [
                plan.estimate(plan.simulate(values, seed=run), weights="planned").frequencies - truth
                for run in range(runs)
            ]
        )
        low, high = statistics.variance_bounds(runs, 2 * SIZE + 2)
        stated = statistics.stated_variances(plan.protocol, truth, users)
        ratios = np.mean(errors**2, axis=0) / stated
        assert low < ratios.min()
        assert ratios.max() < high
        covariance = oracle.estimate_covariance(plan.protocol, truth, users)
        bound = statistics.mean_square_bound(covariance, runs, 2 * SIZE + 2)
        assert np.mean(errors**2) == pytest.approx(stated.mean(), rel=bound + 2e-3)


@pytest.mark.parametrize(
    ("name", "size", "epsilon", "runs"),
    [("mss", 1024, 1, 60), ("mss-compact", 1024, 1, 60), ("ss-compact", 1024, 3, 60), ("mss-compact", 22_000, 2, 3)],
)
def test_efficient_errors_are_within_5_per_cent_of_their_prediction(name, size, epsilon, runs):
    """Zipf(3), 10,000 users. The error of one run varies by about 1.3·√(2/k), so 4 per cent is over five deviations,
    and an efficient estimate is allowed one more for weights that are estimated themselves.
    """
    users = 10_000
    plan = make_plan(name, size, epsilon)
    values, truth = statistics.values_of(statistics.histogram("zipf", size), users)
    runs_errors = [
        np.mean((plan.estimate(plan.simulate(values, seed=run)).frequencies - truth) ** 2) for run in range(runs)
    ]
    assert np.mean(runs_errors) == pytest.approx(plan.expected_mse(users, truth), rel=0.05)


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
