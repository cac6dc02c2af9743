"""Singletons, the design of randomised response."""

import numpy as np
import pytest

from sunzi.client.designs.singletons import MOST_POINTS
from sunzi.client.errors import ParameterError, PlanError
from sunzi.designs.singletons import Singletons
from sunzi.numerics.counters import Counters


def test_a_false_answer_names_each_other_point_once():
    design = Singletons(5)
    variates = np.arange(4, dtype=np.uint64).reshape(-1, 1)
    for value in range(5):
        values = np.full(4, value)
        others = design.respond(values, np.zeros(4, dtype=bool), variates)
        assert others.tolist() == [point for point in range(5) if point != value]
        assert design.respond(values, np.ones(4, dtype=bool), variates).tolist() == [value] * 4


def test_counters_are_point_counts():
    counters = Counters.of_cells(7, np.array([0, 3, 3, 6]))
    assert Singletons(7).point_counts(counters, 7).tolist() == [1, 0, 0, 2, 0, 0, 1]
    assert Singletons(7).point_counts(counters, 4).tolist() == [1, 0, 0, 2]


@pytest.mark.parametrize("points", [1, 0, MOST_POINTS + 1])
def test_sizes_out_of_range_are_refused(points):
    with pytest.raises(ParameterError, match="between 2 and 2\\^31 points"):
        Singletons(points)
    with pytest.raises(PlanError):
        Singletons.from_parameters({"points": points})


def test_the_largest_design_lists_nothing():
    design = Singletons(MOST_POINTS)
    assert design.message_count == MOST_POINTS
    assert design.payload_bits == 31
