"""What every design promises, against blocks that are built from its definition."""

import numpy as np
import pytest
from design_blocks import cyclotomic_blocks, incidence_of, projective_blocks

from sunzi.client.errors import PlanError
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.numerics.counters import Counters

CYCLOTOMIC = [
    (2, 1, (0,), False),
    (3, 2, (0,), False),
    (3, 1, (0,), False),
    (5, 4, (0, 2), False),
    (7, 6, (3, 0), True),
    (13, 4, (0,), False),
    (13, 4, (0,), True),
    (13, 6, (1, 4, 2), False),
    (31, 5, (0,), False),
    (31, 5, (0,), True),
    (31, 5, (0, 1), False),
    (31, 5, (4, 1), True),
    (37, 3, (0,), False),
    (37, 3, (0,), True),
    (101, 4, (0,), False),
    (101, 4, (0,), True),
    (101, 4, (2, 3), False),
    (151, 6, (0,), False),
    (151, 6, (0,), True),
    (151, 6, (0, 1, 5), False),
]
ORDERS = [(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 3), (5, 3), (8, 2), (8, 3), (9, 2), (9, 3)]


def cases():
    for points in (2, 3, 7):
        yield f"singletons {points}", lambda v=points: (Singletons(v), [{x} for x in range(v)])
    for parameters in CYCLOTOMIC:
        yield f"cyclotomic {parameters}", lambda p=parameters: (Cyclotomic(*p), cyclotomic_blocks(*p))
    for order, dimension in ORDERS:
        yield f"projective {order}, {dimension}", lambda q=order, t=dimension: projective_case(q, t)


def projective_case(order, dimension):
    design = Projective(order, dimension)
    return design, projective_blocks(order, dimension, design.polynomial)


CASES = dict(cases())


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    """A design and the incidence matrix from its definition."""
    design, blocks = CASES[request.param]()
    assert len(blocks) == design.message_count
    return design, incidence_of(blocks, design.points)


def test_it_is_a_two_design(case):
    """Blocks of w points, each point in b·w/v of them, each pair in b·w(w−1)/(v(v−1))."""
    design, incidence = case
    points, size, messages = design.points, design.block_size, design.message_count
    assert 1 <= size < points
    assert np.all(incidence.sum(axis=1) == size)
    pairs = incidence.T @ incidence
    assert np.all(np.diagonal(pairs) * points == messages * size)
    others = pairs[~np.eye(points, dtype=bool)]
    assert np.all(others * points * (points - 1) == messages * size * (size - 1))


def test_contains_is_membership(case):
    design, incidence = case
    messages, points = (grid.reshape(-1) for grid in np.indices(incidence.shape))
    assert np.array_equal(design.contains(messages, points), incidence.reshape(-1).astype(bool))


def limits(design):
    return sorted({1, 2, design.points // 2 + 1, design.points - 1, design.points} - {0})


def test_point_counts_count_reported_blocks(case):
    """Few reports, many reports, heavy repetition and no report, for every way of adding them up."""
    design, incidence = case
    generator = np.random.default_rng(41)
    samples = [
        generator.integers(0, design.message_count, number) for number in (0, 1, 5, 300, 20 * design.message_count)
    ]
    samples.append(np.full(1000, design.message_count - 1))
    for messages in samples:
        counters = Counters.of_cells(design.counter_count, messages)
        assert design.count(messages) == counters
        expected = incidence[messages].sum(axis=0)
        for limit in limits(design):
            assert np.array_equal(design.point_counts(counters, limit), expected[:limit])


def test_each_single_message_counts_its_own_block(case):
    design, incidence = case
    for message in range(0, design.message_count, 1 + design.message_count // 40):
        counters = Counters.of_cells(design.counter_count, np.array([message]))
        assert np.array_equal(design.point_counts(counters, design.points), incidence[message])


def test_block_sums_and_spread_are_the_matrix_and_its_transpose(case):
    design, incidence = case
    generator = np.random.default_rng(42)
    weights = generator.normal(size=design.message_count)
    for limit in limits(design):
        values = generator.normal(size=limit)
        assert np.allclose(design.block_sums(values), incidence[:, :limit] @ values, rtol=0, atol=1e-9)
        assert np.allclose(design.spread(weights, limit), weights @ incidence[:, :limit], rtol=0, atol=1e-9)


def test_missing_messages_are_those_without_a_point_of_the_domain(case):
    design, incidence = case
    for limit in range(1, design.points + 1):
        assert design.missing_messages(limit) == np.count_nonzero(incidence[:, :limit].sum(axis=1) == 0)


def test_responses_are_bijections_from_variates(case):
    """For each value and branch, the variates together name every block of that branch equally often."""
    design, incidence = case
    sizes = [int(bound) for bound in design.draw_bounds]
    grid = np.stack([axis.reshape(-1) for axis in np.indices(sizes)], axis=1).astype(np.uint64)
    for value in range(0, design.points, 1 + design.points // 12):
        for truth in (True, False):
            messages = design.respond(np.full(len(grid), value), np.full(len(grid), truth), grid)
            counts = np.bincount(messages, minlength=design.message_count)
            right = incidence[:, value] == truth
            assert not counts[~right].any()
            assert np.all(counts[right] * np.count_nonzero(right) == len(grid))


def test_parameters_restore_the_design(case):
    design, _ = case
    restored = type(design).from_parameters(design.parameters())
    assert restored == design
    assert (restored.points, restored.block_size) == (design.points, design.block_size)
    with pytest.raises(PlanError):
        type(design).from_parameters({**design.parameters(), "comment": 1})
