"""The contract suite passes for the whole catalogue and fails for protocols that break the contract."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sunzi import testing
from sunzi.client.randomness import WordSource
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import word_array
from sunzi.protocols import registry
from sunzi.protocols.base import Messages
from sunzi.protocols.block_protocols import GeneralizedRandomizedResponse
from sunzi.protocols.registry import catalogue, register

LONG = pytest.mark.long


@pytest.mark.slow
@pytest.mark.parametrize(("domain_size", "epsilon"), [pytest.param(2, 1, marks=LONG), (3, "1/2"), (20, 1), (61, 3)])
@pytest.mark.parametrize("name", catalogue())
def test_catalogue(name: str, domain_size: int, epsilon: str | int) -> None:
    testing.check_protocol(name, domain_size, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain_size", "epsilon"),
    [(2, 12), pytest.param(3, "1/100", marks=LONG), (20, "1/100"), pytest.param(20, 12, marks=LONG)],
)
@pytest.mark.parametrize("name", catalogue())
def test_catalogue_at_the_extremes(name: str, domain_size: int, epsilon: str | int) -> None:
    testing.check_protocol(name, domain_size, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["oue", "mss", "mss-compact"])
def test_large_epsilon(name: str) -> None:
    """The other protocols are then generalized randomized response, or close to it."""
    testing.check_protocol(name, 20, 12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ss", {"block_size": 4}),
        ("ss", {"code": "bitmap"}),
        ("ss-compact", {"classes": 4}),
        ("ss-compact", {"classes": 6, "points": 31}),
        ("pgr", {"order": 4}),
        ("pgr", {"order": 9}),
        ("mss", {"moduli": [5, 7, 11, 13]}),
        ("mss", {"count": 5}),
        ("mss-compact", {"moduli": [7, 13, 19]}),
        ("mss-compact", {"moduli": [29]}),
    ],
)
def test_options(name: str, options: dict[str, object]) -> None:
    testing.check_protocol(name, 20, 1, **options)


@pytest.mark.parametrize(
    "design",
    [
        Singletons(5),
        Subsets(6, 2),
        Subsets(5, 4),
        Cyclotomic(13, 4),
        Cyclotomic(13, 4, (0, 2)),
        Cyclotomic(31, 5, with_zero=True),
        Cyclotomic(2, 1),
        Projective(2, 3),
        Projective(3, 3),
        Projective(4, 3),
        Projective(5, 2),
    ],
    ids=lambda design: f"{design.kind}-{design.points}-{design.block_size}",
)
def test_designs(design: testing.Design) -> None:
    testing.check_design(design)


class Spendthrift(GeneralizedRandomizedResponse):
    """Claims ε and spends 3·ε."""

    name = "spendthrift"

    def __post_init__(self) -> None:
        claimed = self.response
        object.__setattr__(self, "response", BlockResponse(claimed.design, 3 * claimed.epsilon))
        self._claimed = claimed

    @property
    def epsilon(self) -> Fraction:
        return self._claimed.epsilon

    def parameters(self) -> dict[str, Any]:
        return {"response": self._claimed.parameters()}


class Deaf(GeneralizedRandomizedResponse):
    """Draws words and ignores them."""

    name = "deaf"

    def randomize(self, values: np.ndarray, source: WordSource) -> Messages:
        word_array(source, values.size)
        return values


@pytest.fixture(params=[Spendthrift, Deaf])
def faulty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(registry, "_PROTOCOLS", dict(registry._PROTOCOLS))
    register(request.param)
    return request.param.name


@pytest.mark.parametrize("domain_size", [3, 20, 400])
def test_faulty_protocols_are_caught(faulty: str, domain_size: int) -> None:
    complaint = {"spendthrift": "more than epsilon 1 allows", "deaf": "other words gave the same reports"}[faulty]
    with pytest.raises(AssertionError, match=complaint):
        testing.check_protocol(faulty, domain_size, 1)
