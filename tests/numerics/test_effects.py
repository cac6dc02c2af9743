"""Tables joined from views, against dense least squares."""

from itertools import combinations

import numpy as np
import pytest

from sunzi.numerics.effects import Effects, cell_variance, effect, subsets, view_shares

SIZES = (2, 3, 4)
WEIGHTS = {(0, 1): 0.5, (1, 2): 1.5, (2,): 0.25}


def projection(view):
    """The matrix that sums the joint cells to the cells of a view."""
    cells = np.indices(SIZES).reshape(len(SIZES), -1)
    numbers = np.ravel_multi_index([cells[attribute] for attribute in view], [SIZES[attribute] for attribute in view])
    return (np.arange(np.prod([SIZES[attribute] for attribute in view]))[:, np.newaxis] == numbers).astype(float)


@pytest.fixture(scope="module")
def solved():
    return Effects(SIZES, WEIGHTS)


@pytest.fixture(scope="module")
def views():
    generator = np.random.default_rng(1)
    shapes = {view: [SIZES[attribute] for attribute in view] for view in WEIGHTS}
    return {view: generator.dirichlet(np.ones(np.prod(shape))).reshape(shape) for view, shape in shapes.items()}


def dense(views, wanted):
    """The table by a pseudo-inverse: least squares of the joint cells, as near to equal as the views allow."""
    matrix = sum(weight * projection(view).T @ projection(view) for view, weight in WEIGHTS.items())
    known = sum(weight * projection(view).T @ views[view].reshape(-1) for view, weight in WEIGHTS.items())
    joint = np.linalg.pinv(matrix) @ known
    return (projection(wanted) @ joint).reshape([SIZES[attribute] for attribute in wanted])


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1), (1, 2)])
def test_tables_are_those_of_least_squares(solved, views, wanted):
    found = solved.table(solved.combine(views), wanted)
    np.testing.assert_allclose(found, dense(views, wanted), atol=1e-12)


def test_margins_agree(solved, views):
    effects = solved.combine(views)
    margins = solved.table(effects, (0, 1)).sum(axis=0), solved.table(effects, (1, 2)).sum(axis=1)
    np.testing.assert_allclose(margins[0], margins[1], atol=1e-15)
    np.testing.assert_allclose(margins[0], solved.table(effects, (1,)), atol=1e-15)


def test_rows_say_how_queries_depend_on_views(solved, views):
    queries = np.random.default_rng(2).normal(size=(5, 12))
    found = solved.table(solved.combine(views), (1, 2)).reshape(-1)
    parts = sum(solved.rows(queries, (1, 2), view) @ views[view].reshape(-1) for view in WEIGHTS)
    np.testing.assert_allclose(parts, queries @ found - queries.mean(axis=1), atol=1e-12)


def test_effects_sum_to_0_along_each_attribute():
    table = np.random.default_rng(3).normal(size=(2, *SIZES))
    found = effect(table, (0, 1, 2), (0, 2))
    assert found.shape == (2, 2, 4)
    assert np.abs(found.sum(axis=1)).max() < 1e-12
    assert np.abs(found.sum(axis=2)).max() < 1e-12


def test_subsets_are_all_but_the_empty_one():
    assert list(subsets((1, 4, 5))) == [(1,), (4,), (5,), (1, 4), (1, 5), (4, 5), (1, 4, 5)]


def test_no_other_shares_are_better():
    variances = {view: 3.0 for number in (1, 2) for view in combinations(range(3), number)}
    wanted = [(0, 1), (2,)]

    def total(shares):
        effects = Effects(SIZES, {view: share / variances[view] for view, share in shares.items() if share})
        return sum(cell_variance(effects, table) for table in wanted)

    best = view_shares(SIZES, wanted, variances)
    assert sum(best.values()) == pytest.approx(1)
    for other in np.random.default_rng(4).dirichlet(np.full(len(variances), 0.5), 300):
        mixed = {view: 0.9 * best.get(view, 0) + 0.1 * share for view, share in zip(variances, other, strict=True)}
        assert total(best) <= total(mixed) * (1 + 1e-5)


def test_a_view_that_alone_has_some_effect_is_kept_however_rare():
    # A table of two times a thousand cells outweighs the one of two cells by far.
    sizes = (2, 1000, 2)
    found = view_shares(sizes, [(0, 1), (2,)], {(0, 1): 1e12, (2,): 1e-9})
    assert set(found) == {(0, 1), (2,)}
