"""Protocols of one design: which design each chooses, and plans that name another."""

from fractions import Fraction
from math import comb, log2

import numpy as np
import pytest

from sunzi.client.errors import ParameterError, PlanError
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import make_plan
from sunzi.protocols.block_protocols import (
    CompactSubsetSelection,
    GeneralizedRandomizedResponse,
    ProjectiveGeometryResponse,
    SubsetSelection,
)

ONE = Fraction(1)


@pytest.mark.parametrize(
    ("protocol", "options", "expected"),
    [
        (GeneralizedRandomizedResponse, {}, Singletons(20)),
        (SubsetSelection, {}, Subsets(20, 5)),
        (SubsetSelection, {"block_size": 3}, Subsets(20, 3)),
        (SubsetSelection, {"block_size": 1}, Singletons(20)),
        (SubsetSelection, {"block_size": 1, "code": "bitmap"}, Subsets(20, 1, "bitmap")),
        (CompactSubsetSelection, {"classes": 4, "points": 29}, Cyclotomic(29, 4, with_zero=True)),
        (ProjectiveGeometryResponse, {"order": 3}, Projective(3, 4)),
        (ProjectiveGeometryResponse, {"order": 19}, Singletons(20)),
    ],
    ids=str,
)
def test_the_chosen_design(protocol, options, expected):
    assert protocol.choose(20, ONE, **options).design == expected


@pytest.mark.parametrize("protocol", [SubsetSelection, CompactSubsetSelection, ProjectiveGeometryResponse])
def test_large_budgets_make_every_protocol_randomised_response(protocol):
    assert protocol.choose(20, Fraction(10)).design == Singletons(20)


def test_a_number_of_points_needs_classes():
    with pytest.raises(ParameterError, match="points=29 needs classes too"):
        CompactSubsetSelection.choose(20, ONE, points=29)


def test_bits_of_a_report():
    assert make_plan("grr", 1000, 1).max_report_bits == 10
    size = make_plan("ss", 1000, 1).protocol.design.block_size
    assert make_plan("ss", 1000, 1).max_report_bits == (comb(1000, size) - 1).bit_length()
    assert make_plan("ss-compact", 1000, 1).max_report_bits <= log2(1000) + 1.44 + 2
    assert make_plan("pgr", 1000, 1).max_report_bits <= log2(1000) + 2


@pytest.mark.parametrize(
    ("protocol", "design"),
    [
        (GeneralizedRandomizedResponse, Subsets(6, 2)),
        (SubsetSelection, Cyclotomic(7, 3)),
        (CompactSubsetSelection, Projective(2, 3)),
        (ProjectiveGeometryResponse, Cyclotomic(7, 3)),
    ],
)
def test_designs_of_other_protocols_are_refused(protocol, design):
    with pytest.raises(PlanError, match=f"{protocol.name} uses one of the designs"):
        protocol(5, BlockResponse(design, ONE))


def test_a_design_that_is_too_small_is_refused():
    with pytest.raises(PlanError, match="a design of 5 points cannot hold a domain of 6 values"):
        GeneralizedRandomizedResponse(6, BlockResponse(Singletons(5), ONE))


@pytest.mark.parametrize("name", ["grr", "ss", "ss-compact", "pgr"])
def test_sampling_is_randomising_and_counting(name):
    protocol = make_plan(name, 40, 1).protocol
    values = np.arange(300) % 40
    counted = protocol.count(protocol.randomize(values, ReproducibleSource(4)))
    assert protocol.sample(values, ReproducibleSource(4)) == counted
