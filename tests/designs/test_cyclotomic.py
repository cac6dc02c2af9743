"""Unions of cyclotomic classes: counting by additions and by transforms, and parameters that are refused."""

from fractions import Fraction

import numpy as np
import pytest
from design_blocks import cyclotomic_blocks, incidence_of

from sunzi.client.errors import ParameterError, PlanError
from sunzi.designs import cyclotomic
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.numerics.counters import Counters
from sunzi.plan import Plan, make_plan
from sunzi.protocols.registry import find


@pytest.mark.parametrize(("points", "classes"), [(101, 4), (151, 6)])
def test_a_correlation_in_place_of_the_convolution_would_be_caught_here(points, classes):
    """−1 is not in H, so adding up blocks in the wrong direction changes the counts (not so for (31,5) and (37,3))."""
    incidence = incidence_of(cyclotomic_blocks(points, classes, (0,), False), points)
    reversed_blocks = [{(2 * b - x) % points for x in np.flatnonzero(row)} for b, row in with_shift(incidence, points)]
    wrong = incidence_of(reversed_blocks, points)
    assert not np.array_equal(wrong, incidence)
    design = Cyclotomic(points, classes)
    counters = Counters.of_cells(design.counter_count, np.arange(0, design.message_count, 7))
    counts = design.point_counts(counters, points)
    assert np.array_equal(counts, incidence[::7].sum(axis=0))
    assert not np.array_equal(counts, wrong[::7].sum(axis=0))


@pytest.mark.parametrize(("points", "classes"), [(31, 5), (37, 3)])
def test_these_two_could_not_catch_it(points, classes):
    incidence = incidence_of(cyclotomic_blocks(points, classes, (0,), False), points)
    reversed_blocks = [{(2 * b - x) % points for x in np.flatnonzero(row)} for b, row in with_shift(incidence, points)]
    assert np.array_equal(incidence_of(reversed_blocks, points), incidence)


def with_shift(incidence, points):
    return [(message % points, row) for message, row in enumerate(incidence)]


@pytest.mark.parametrize(("points", "classes"), [(101, 4), (151, 6), (13, 4)])
def test_adding_blocks_and_transforming_agree(points, classes, monkeypatch):
    """The two algorithms of point_counts, each forced in turn."""
    design, generator = Cyclotomic(points, classes), np.random.default_rng(43)
    incidence = incidence_of(cyclotomic_blocks(points, classes, (0,), False), points)
    for messages in (generator.integers(0, design.message_count, 50), generator.integers(0, 5, 400)):
        counters = Counters.of_cells(design.counter_count, messages)
        for additions in (True, False):
            monkeypatch.setattr(Cyclotomic, "additions_are_cheaper", lambda self, filled, way=additions: way)
            assert np.array_equal(design.point_counts(counters, points), incidence[messages].sum(axis=0))


@pytest.fixture(scope="module")
def large():
    """A prime with (m−1)/4 odd, so that −1 is not in H, large enough for algorithms that small designs skip."""
    points, classes = 100_069, 4
    assert (points - 1) // classes % 2 == 1
    g = Cyclotomic(points, classes).generator
    base = np.array([pow(g, classes * i, points) for i in range((points - 1) // classes)])
    return points, classes, [pow(g, a, points) * base % points for a in range(classes)]


@pytest.mark.parametrize("chunks", ["at once", "piecemeal"])
def test_a_large_design_by_transforms(large, chunks, monkeypatch):
    points, classes, blocks = large
    if chunks == "piecemeal":
        monkeypatch.setattr(cyclotomic, "_CHUNK_CELLS", 1)
        monkeypatch.setattr(cyclotomic, "_CACHED_SPECTRA_BYTES", 0)
        monkeypatch.setattr(cyclotomic, "_ADDED_CELLS", 30_000)
    design, generator = Cyclotomic(points, classes), np.random.default_rng(45)
    messages = generator.integers(0, design.message_count, 150)
    multiplicities = generator.integers(1, 2**32, 150)
    expected = np.zeros(points, dtype=np.int64)
    for message, times in zip(messages.tolist(), multiplicities.tolist(), strict=True):
        expected[(blocks[message // points] + message % points) % points] += times
    counters = Counters(design.counter_count, None, weigh(design.counter_count, messages, multiplicities))
    for additions in (True, False):
        monkeypatch.setattr(Cyclotomic, "additions_are_cheaper", lambda self, filled, way=additions: way)
        assert np.array_equal(design.point_counts(counters, points - 7), expected[:-7])
    values = generator.normal(size=points - 7)
    sums = design.block_sums(values)
    padded = np.concatenate([values, np.zeros(7)])
    direct = [padded[(blocks[message // points] + message % points) % points].sum() for message in messages.tolist()]
    assert np.allclose(sums[messages], direct, rtol=0, atol=1e-7)
    weights = weigh(design.counter_count, messages, multiplicities / 2**32)
    assert np.allclose(design.spread(weights, points), expected / 2**32, rtol=0, atol=1e-7)


def weigh(length, cells, weights):
    vector = np.zeros(length, dtype=weights.dtype)
    np.add.at(vector, cells, weights)
    return vector


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generator": 1}, "primitive root"),
        ({"generator": 4}, "primitive root"),
        ({"generator": 102}, "generator"),
        ({"points": 102}, "prime"),
        ({"points": 91}, "prime"),
        ({"classes": 3}, "divide"),
        ({"classes": 0}, "classes"),
        ({"union": [0, 0]}, "distinct"),
        ({"union": [4]}, "distinct"),
        ({"union": []}, "union"),
        ({"union": [True]}, "union"),
        ({"union": 0}, "union"),
        ({"with_zero": 0}, "with_zero"),
        ({"block_size": 26}, "block_size"),
        ({"union": [0, 1, 2, 3], "with_zero": True, "block_size": 101}, "leave out"),
    ],
)
def test_an_invalid_cyclotomic_design_is_refused(changes, reason):
    """With g = 1 a careless sampler would send the value almost in clear, so every client must check the design."""
    good = Cyclotomic(101, 4).parameters()
    assert Cyclotomic.from_parameters(good) == Cyclotomic(101, 4)
    with pytest.raises((PlanError, ParameterError), match=reason):
        Cyclotomic.from_parameters({**good, **changes})


@pytest.mark.slow
def test_attackability_of_a_huge_compact_plan() -> None:
    """Its 10^12 messages are never listed."""
    assert 0 < make_plan("ss-compact", 10_000_000, 12).attackability < 0.02


@pytest.mark.parametrize(
    "design",
    [
        Cyclotomic(7, 2),
        Cyclotomic(5, 4, (0, 2)),
        Cyclotomic(31, 5, (3, 1), with_zero=True),
        Cyclotomic(31, 5, (4, 0, 2)),
        Cyclotomic(101, 100, (7, 3, 50), with_zero=True),
    ],
)
def test_responses_are_the_same_without_tables(design, monkeypatch):
    generator = np.random.default_rng(1)
    variates = np.stack([generator.integers(0, bound, 3000) for bound in design.draw_bounds.tolist()], axis=1)
    arguments = generator.integers(0, design.points, 3000), generator.random(3000) < 0.5, variates.astype(np.uint64)
    with_tables = design.respond(*arguments)
    monkeypatch.setattr(cyclotomic, "_POINTS_PER_REPORT", 0)
    assert np.array_equal(design.respond(*arguments), with_tables)


@pytest.mark.parametrize("classes", [2, 67108858])
def test_one_report_of_the_largest_design_needs_no_tables(classes):
    design = Cyclotomic(67108859, classes)
    plan = Plan.from_json(plan_text("ss-compact", 2, design))
    assert plan.client().report(1)
    assert not {"_points", "_multipliers"} & set(vars(plan.protocol.response.design))


def plan_text(protocol, size, design):
    made = find(protocol)(size, BlockResponse(design, Fraction(1)))
    return Plan(made, Domain(size)).canonical
