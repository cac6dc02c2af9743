"""Designs against their definitions: blocks are built from scratch and compared with the design's results."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from sunzi.designs import cyclotomic, projective, response
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective, choose_projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.errors import ParameterError, PlanError, ReportError
from sunzi.numerics import kernels
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan
from sunzi.wire import payload_integers

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


def primitive_root(prime):
    """The smallest primitive root: its powers are all of 1 … m−1."""
    return next(g for g in range(1, prime) if len({pow(g, i, prime) for i in range(prime - 1)}) == prime - 1)


def cyclotomic_blocks(points, classes, union, with_zero):
    """g^a·D + b in the order of the messages a·m + b."""
    g = primitive_root(points)
    base = {pow(g, c + classes * i, points) for c in union for i in range((points - 1) // classes)}
    base |= {0} if with_zero else set()
    scales = [pow(g, a, points) for a in range(classes)]
    return [{(scale * d + b) % points for d in base} for scale in scales for b in range(points)]


def field_product(left, right, prime, polynomial):
    """The product of two elements of GF(p^d), given as integers with their base-p digits."""
    degree = len(polynomial) - 1
    digits = [[number // prime**place % prime for place in range(degree)] for number in (left, right)]
    total = [0] * (2 * degree)
    for (i, one), (j, two) in product(enumerate(digits[0]), enumerate(digits[1])):
        total[i + j] += one * two
    for top in range(2 * degree - 1, degree - 1, -1):
        factor = total[top]
        for place, coefficient in enumerate(polynomial):
            total[top - degree + place] -= factor * coefficient
    return sum(total[place] % prime * prime**place for place in range(degree))


def projective_blocks(order, dimension, polynomial):
    """For every hyperplane y the numbers of the points x with ⟨x, y⟩ = 0, in the documented numbering."""
    degree = len(polynomial) - 1
    prime = round(order ** (1 / degree))
    assert prime**degree == order
    times = [[field_product(a, b, prime, polynomial) for b in range(order)] for a in range(order)]
    digits = [[a // prime**place % prime for place in range(degree)] for a in range(order)]
    vectors = []
    for free in range(dimension):  # leading zeros, a one, then the free coordinates in lexicographic order
        head = (0,) * (dimension - 1 - free) + (1,)
        vectors += [head + tail for tail in product(range(order), repeat=free)]

    def on(x, y):
        terms = [digits[times[a][b]] for a, b in zip(x, y, strict=True)]
        return all(sum(column) % prime == 0 for column in zip(*terms, strict=True))

    return [{number for number, x in enumerate(vectors) if on(x, y)} for y in vectors]


def incidence_of(blocks, points):
    matrix = np.zeros((len(blocks), points), dtype=np.int64)
    for row, block in enumerate(blocks):
        matrix[row, list(block)] = 1
    return matrix


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


@pytest.mark.parametrize(("points", "size"), [(2, 1), (4, 3), (5, 2), (7, 3), (8, 4)])
@pytest.mark.parametrize("code", ["arithmetic", "bitmap"])
def test_subsets(points, size, code):
    """All C(v,w) subsets once each; a 2-design; codes are bijections; counts are incidences; N⁰ by hand."""
    design = Subsets(points, size, code)
    subsets = np.array(list(combinations(range(points), size)))
    assert design.message_count == len(subsets)
    rows = design.encode(subsets)
    payloads = payload_integers(rows)
    assert len(set(payloads)) == len(subsets)
    assert all(0 <= payload < 1 << design.payload_bits for payload in payloads)
    if code == "bitmap":
        assert payloads == [sum(1 << int(point) for point in subset) for subset in subsets]
    assert np.array_equal(design.decode(rows), subsets)
    assert np.array_equal(design.every_message(), subsets)
    others = sorted(set(range(1 << design.payload_bits)) - set(payloads))
    for other in others:
        with pytest.raises(ReportError):
            design.decode(np.array([list(other.to_bytes(rows.shape[1], "little"))], dtype=np.uint8))
        with pytest.raises(ReportError):
            design.count_payloads(np.array([list(other.to_bytes(rows.shape[1], "little"))], dtype=np.uint8))
    assert np.array_equal(design.count_payloads(rows).dense(), design.count(subsets).dense())
    incidence = incidence_of([set(subset.tolist()) for subset in subsets], points)
    pairs = incidence.T @ incidence
    assert np.all(np.diagonal(pairs) * points == len(subsets) * size)
    others = pairs[~np.eye(points, dtype=bool)]
    assert np.all(others * points * (points - 1) == len(subsets) * size * (size - 1))
    for point in range(points):
        assert np.array_equal(design.contains(subsets, np.full(len(subsets), point)), incidence[:, point] == 1)
    drawn = np.random.default_rng(44).integers(0, len(subsets), 60)
    counters = design.count(subsets[drawn])
    for limit in range(1, points + 1):
        assert np.array_equal(design.point_counts(counters, limit), incidence[drawn].sum(axis=0)[:limit])
        assert design.missing_messages(limit) == np.count_nonzero(incidence[:, :limit].sum(axis=1) == 0)


@pytest.mark.parametrize(("points", "size"), [(4, 3), (5, 2), (6, 3)])
def test_responses_of_subsets_are_uniform(points, size):
    design = Subsets(points, size)
    grid = np.stack([axis.reshape(-1) for axis in np.indices([int(bound) for bound in design.draw_bounds])], axis=1)
    for value in range(points):
        for truth in (True, False):
            rows = design.respond(np.full(len(grid), value), np.full(len(grid), truth), grid.astype(np.uint64))
            drawn = Counter(payload_integers(design.encode(rows)))
            payloads = payload_integers(design.encode(design.every_message()))
            right = np.any(design.every_message() == value, axis=1) == truth
            assert set(drawn) == {payload for payload, is_right in zip(payloads, right, strict=True) if is_right}
            assert len(set(drawn.values())) == 1


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
    with pytest.raises(PlanError, match=reason):
        Cyclotomic.from_parameters({**good, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"order": 6},
        {"order": 1},
        {"order": 1 << 21},
        {"polynomial": [1, 0, 1]},
        {"polynomial": [1, 1]},
        {"polynomial": [1, 1, 2]},
        {"polynomial": [1, 1, 0]},
        {"polynomial": [True, 1, 1]},
        {"polynomial": "1,1,1"},
        {"dimension": 1},
        {"dimension": 40},
        {"dimension": 2.0},
    ],
)
def test_an_invalid_projective_design_is_refused(changes):
    """x² + 1 = (x + 1)² over GF(2): not a field, so not a geometry."""
    good = Projective(4, 3).parameters()
    assert good["polynomial"] == [1, 1, 1]
    with pytest.raises(PlanError):
        Projective.from_parameters({**good, **changes})


def test_sizes_out_of_range_are_refused():
    with pytest.raises(ParameterError):
        Singletons(1)
    with pytest.raises(ParameterError):
        Subsets(5, 5)
    with pytest.raises(ParameterError):
        Subsets(5, 0)
    with pytest.raises(ParameterError):
        Subsets(1 << 25, 3)
    with pytest.raises(ParameterError):
        Subsets(1 << 20, 3, "arithmetic")


def test_the_chosen_geometry_holds_the_domain_and_is_the_smallest():
    for size in (2, 7, 8, 100, 10_000):
        for epsilon in ("1/10", "1", "3"):
            design = choose_projective(size, Fraction(epsilon))
            smaller = (design.order ** (design.dimension - 1) - 1) // (design.order - 1)
            assert smaller < size <= design.points or design.dimension == 2


def test_attackability_of_a_huge_compact_plan() -> None:
    """Its 10^12 messages are never listed."""
    assert 0 < make_plan("ss-compact", 10_000_000, 12).attackability < 0.02


@pytest.mark.parametrize("route", ["fourier", "dynamic", "direct"])
def test_hyperplanes_are_counted_the_same_by_every_route(route, monkeypatch):
    design = Projective(3, 4)
    counters = Counters.of_cells(design.points, np.random.default_rng(3).integers(design.points, size=200))
    taken, way = [], projective.incidence_counts
    monkeypatch.setattr(projective, "incidence_counts", lambda *given: taken.append(given[-1]) or way(*given))
    np.testing.assert_array_equal(design.point_counts(counters, 30, route), design.point_counts(counters, 30))
    assert taken == [route, None]


def test_an_unknown_route_is_refused():
    with pytest.raises(ParameterError, match="fourier, dynamic, direct, got sideways"):
        Projective(3, 3).point_counts(Counters.of_cells(13, np.arange(5)), 13, "sideways")


@pytest.mark.parametrize("size", [8, 100, 1024])
def test_compact_blocks_of_a_requested_size(size):
    """Blocks of few points have exactly the requested size, others within 1 % or as near as any union of classes."""
    for block_size in {2, 3, 4, 5, 10, size // 4, size // 2}:
        if block_size < size:
            design = make_plan("ss-compact", size, 5, block_size=block_size).protocol.design
            assert size <= design.points <= 1.05 * size + 10
            assert abs(design.block_size - block_size) <= 0.02 * block_size
            assert design.message_count <= design.points**2
    assert make_plan("ss-compact", size, 5, block_size=1).protocol.design == Singletons(size)
    with pytest.raises(ParameterError, match="block_size"):
        make_plan("ss-compact", size, 5, block_size=size)
    with pytest.raises(ParameterError, match="not both"):
        make_plan("ss-compact", size, 5, block_size=3, classes=4)


class Words(ReproducibleSource):
    """A stream with a rejected word, 0, at some places."""

    def __init__(self, zeros):
        super().__init__(5)
        self._zeros, self._taken = zeros, 0

    def words(self, count):
        words = super().words(count) | np.uint64(1)  # never 0 by itself
        for zero in self._zeros:
            if self._taken <= zero < self._taken + count:
                words[zero - self._taken] = 0
        self._taken += count
        return words


@pytest.mark.parametrize("zeros", [(), (2,), (2, 700, 701, 1400), (5, 1491, 1492)])
def test_pieces_of_subsets_take_the_same_words(zeros, monkeypatch):
    """Compiled, in pieces with rejected words in some, encoded on the way: the same messages as all rows at once."""
    compiled = kernels.load()
    if compiled is None:
        pytest.skip("numba is not installed, or SUNZI_NO_NUMBA is set")
    block = BlockResponse(Subsets(700, 80), Fraction(1))
    assert block.design.draw_count > response._FEW_DRAWS
    values = np.arange(70) * 9
    monkeypatch.setattr(response, "_WORDS_AT_ONCE", 10 * block.words_per_report)
    monkeypatch.setattr(kernels, "load_if_worthwhile", lambda seconds: None)
    expected = block.randomize(values, Words(zeros))
    payloads = block.payloads(values, Words(zeros))
    assert np.array_equal(payloads, block.design.encode(expected))
    monkeypatch.setattr(kernels, "load_if_worthwhile", lambda seconds: compiled)
    assert np.array_equal(block.randomize(values, Words(zeros)), expected)
    assert np.array_equal(block.payloads(values, Words(zeros)), payloads)
    assert np.array_equal(block.sample(values, Words(zeros)).dense(), block.design.count(expected).dense())


@pytest.mark.parametrize("design", [Subsets(30, 4), Subsets(30, 4, "bitmap"), Singletons(7)])
def test_no_values_have_no_payloads(design):
    none = BlockResponse(design, Fraction(1)).payloads(np.empty(0, dtype=np.int64), ReproducibleSource(1))
    assert none.shape == design.encode(design.every_message()[:0]).shape
    assert none.dtype == design.encode(design.every_message()[:0]).dtype


def test_bitmaps_beyond_the_arithmetic_code():
    assert Subsets(2**20 - 1, 3).code == "arithmetic"
    assert Subsets(2**20, 3).code == "bitmap"
