"""The block response: exact probabilities, the certified threshold, and plans that state another one."""

from fractions import Fraction

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, PlanError, PrivacyError
from sunzi.client.thresholds import parse_decimal
from sunzi.designs import response as response_module
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse, register_design
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics import kernels
from sunzi.numerics.randomness import ReproducibleSource

DESIGNS = [Singletons(7), Subsets(6, 2), Cyclotomic(13, 4), Projective(3, 3)]


@pytest.fixture(params=DESIGNS, ids=lambda design: design.kind)
def response(request):
    return BlockResponse(request.param, Fraction(1))


def test_the_best_guess_is_the_likeliest_value_of_every_message(response):
    for limit in (2, response.points - 1, response.points):
        tables = [response.payload_probabilities(point) for point in range(limit)]
        best = sum(max(table[payload] for table in tables) for payload in tables[0])
        assert response.best_guess_sum(limit) == pytest.approx(float(best))


def test_samples_are_the_counts_of_the_messages(response):
    values = np.arange(500) % response.points
    messages = response.randomize(values, ReproducibleSource(3))
    assert response.sample(values, ReproducibleSource(3)) == response.count(messages)


def test_a_plan_must_state_the_threshold_derived_here(response):
    stated = response.parameters()
    assert BlockResponse.from_parameters(stated, Fraction(1)) == response
    for step in (-1, 1):
        wrong = stated | {"threshold": str(response.threshold + step)}
        with pytest.raises(PrivacyError, match=f"threshold must be {response.threshold} "):
            BlockResponse.from_parameters(wrong, Fraction(1))
    with pytest.raises(PlanError, match="design must be one of"):
        BlockResponse.from_parameters(stated | {"design": "magic"}, Fraction(1))


@pytest.mark.parametrize("text", ["", "01", "+1", " 1", "1_0", "\u0662", "1" * 41, 5, None])
def test_integers_of_plans_have_one_spelling(text):
    with pytest.raises(PlanError, match="threshold must be a string of decimal digits"):
        parse_decimal(text, "threshold")


def test_two_designs_of_one_name_are_refused():
    class Impostor(Singletons):
        pass

    with pytest.raises(ParameterError, match="a design named 'singletons' exists already"):
        register_design(Impostor)


class Words(ReproducibleSource):
    """A stream with a rejected word, 0, at some places."""

    def __init__(self, zeros):
        super().__init__(5)
        self._zeros, self._taken = zeros, 0

    def array(self, count):
        words = super().array(count) | np.uint64(1)  # never 0 by itself
        for zero in self._zeros:
            if self._taken <= zero < self._taken + count:
                words[zero - self._taken] = 0
        self._taken += count
        return words


@pytest.mark.slow
@pytest.mark.parametrize("zeros", [(), (2,), (2, 700, 701, 1400), (5, 1491, 1492)])
def test_pieces_of_subsets_take_the_same_words(zeros, monkeypatch):
    """Compiled, in pieces with rejected words in some, encoded on the way: the same messages as all rows at once."""
    compiled = kernels.load()
    if compiled is None:
        pytest.skip("numba is not installed, or SUNZI_NO_NUMBA is set")
    block = BlockResponse(Subsets(700, 80), Fraction(1))
    assert block.design.draw_count > response_module._FEW_DRAWS
    values = np.arange(70) * 9
    monkeypatch.setattr(response_module, "_WORDS_AT_ONCE", 10 * block.words_per_report)
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
