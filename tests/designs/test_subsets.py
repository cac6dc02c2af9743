"""All subsets of one size: codes, incidences and responses against a listing."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from design_blocks import incidence_of

from sunzi.client.errors import ParameterError, ReportError
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.wire import payload_integers


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


@pytest.mark.parametrize("overridden", ["respond", "count"])
def test_the_compiled_loop_never_bypasses_a_subclass(overridden):
    calls = []

    def recording(design, *arguments):
        calls.append(overridden)
        return getattr(Subsets, overridden)(design, *arguments)

    design = type("Recording", (Subsets,), {overridden: recording})(60, 20)
    values, response = np.arange(40_000) % 60, BlockResponse(design, Fraction(1))
    shipped = BlockResponse(Subsets(60, 20), Fraction(1))
    counted, expected = (each.sample(values, ReproducibleSource(1)).dense() for each in (response, shipped))
    assert calls
    np.testing.assert_array_equal(counted, expected)
    np.testing.assert_array_equal(
        response.randomize(values[:300], ReproducibleSource(1)), shipped.randomize(values[:300], ReproducibleSource(1))
    )


def test_bitmaps_beyond_the_arithmetic_code():
    assert Subsets(2**20 - 1, 3).code == "arithmetic"
    assert Subsets(2**20, 3).code == "bitmap"


def test_sizes_out_of_range_are_refused():
    for points, size in ((5, 5), (5, 0), (1 << 25, 3)):
        with pytest.raises(ParameterError):
            Subsets(points, size)
    with pytest.raises(ParameterError):
        Subsets(1 << 20, 3, "arithmetic")
