"""One contract suite over the whole catalogue."""

import pytest

from sunzi import testing
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.protocols.catalogue import catalogue


@pytest.mark.parametrize("epsilon", ["1/2", 1, 3])
@pytest.mark.parametrize("domain_size", [2, 3, 20, 61])
@pytest.mark.parametrize("name", catalogue())
def test_catalogue(name: str, domain_size: int, epsilon: str | int) -> None:
    testing.check_protocol(name, domain_size, epsilon)


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
