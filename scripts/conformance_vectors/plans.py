"""Valid plans, and plans to corrupt. Designs are given, never chosen by a planner."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sunzi.client.strict_json import canonical_json
from sunzi.client.thresholds import optimal_unary_thresholds, symmetric_unary_thresholds, truth_threshold
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.domains.labels import Domain
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.domains.texts import OpenDomain

Record = dict[str, Any]
View = tuple[int | list[int] | Record, int]
"""The level, the attributes or the prefix, and the share out of 2^32."""

VIEW_MAPS = {"ordered": "level", "tables": "attributes", "prefixes": "prefix"}
"""What plans call the map of a view."""


def parameters_of(
    protocol: str, epsilon: Fraction, designs: Sequence[Design], views: Sequence[View] = (), sizes: Sequence[int] = ()
) -> Record:
    """A plan's parameters with the thresholds that match them."""
    if protocol in ("rappor", "oue"):
        derive = symmetric_unary_thresholds if protocol == "rappor" else optimal_unary_thresholds
        true, false = derive(epsilon)
        return {"true_threshold": str(true), "false_threshold": str(false)}
    responses = [BlockResponse(design, epsilon).parameters() for design in designs]
    if protocol in VIEW_MAPS:
        listed = [
            {VIEW_MAPS[protocol]: view, "share": share, "response": response}
            for (view, share), response in zip(views, responses, strict=True)
        ]
        return {"sizes": list(sizes), "views": listed} if protocol == "tables" else {"views": listed}
    return {"responses": responses} if protocol.startswith("mss") else {"response": responses[0]}


def prefix(digits: int, base: int, modulus: int, role: str = "search") -> Record:
    """The map of a view of texts."""
    return {"digits": digits, "base": base, "modulus": modulus, "role": role}


def plan_json(protocol: str, domain: Domain, epsilon: str, *designs: Design, views: Sequence[View] = ()) -> Record:
    """A valid plan as a fresh JSON value that callers may change."""
    parameters = parameters_of(protocol, Fraction(epsilon), designs, views, domain.sizes)
    loaded: Record = json.loads(canonical_json(terms(protocol, domain, epsilon, parameters)))
    return loaded


def terms(protocol: str, domain: Domain, epsilon: str, parameters: Record) -> Record:
    """A plan."""
    start = {"format": "sunzi-plan", "version": 1, "protocol": protocol, "epsilon": epsilon}
    return {**start, "domain": domain.to_json(), "parameters": parameters}


def spoilt(plan: Record, path: str, value: Any) -> Record:
    """The plan with one entry replaced, or removed if ``value`` is ``...``; the path is written with slashes."""
    copy: Any = json.loads(json.dumps(plan))
    *parents, last = (int(step) if step.isdigit() else step for step in path.split("/"))
    target = copy
    for step in parents:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    result: Record = copy
    return result


def threshold_for(block_size: int, points: int, epsilon: str) -> str:
    """The correct threshold, in the form that plans use."""
    return str(truth_threshold(block_size, points, Fraction(epsilon)))


def response_with(response: Record, epsilon: str, block_size: int, points: int, /, **changes: Any) -> Record:
    """A response with other changes, and with the threshold that matches its sizes."""
    return {**response, **changes, "threshold": threshold_for(block_size, points, epsilon)}


GRR = plan_json("grr", Domain(5), "1", Singletons(5))
LABELS = plan_json("grr", Domain(["a", "b", "c"], other="c"), "1", Singletons(3))
SS = plan_json("ss", Domain(10), "1", Subsets(10, 3))
COMPACT = plan_json("ss-compact", Domain(13), "1", Cyclotomic(13, 4))
PGR = plan_json("pgr", Domain(21), "1", Projective(4, 3, (1, 1, 1)))
PGR_PRIME = plan_json("pgr", Domain(13), "1", Projective(3, 3))
OUE = plan_json("oue", Domain(4), "1")
RAPPOR = plan_json("rappor", Domain(4), "1")
MSS = plan_json("mss", Domain(10), "1", Singletons(3), Subsets(5, 1), Subsets(7, 2))
MSS_COMPACT = plan_json("mss-compact", Domain(8), "1", Cyclotomic(5, 2), Cyclotomic(7, 3))
ORDERED = plan_json(
    "ordered",
    OrderedDomain(0, 5000, 8, unit="ms"),
    "1",
    Singletons(2),
    Cyclotomic(5, 2),
    Cyclotomic(11, 5),
    views=[(1, 1 << 31), (2, (1 << 30) + 1), (3, (1 << 30) - 1)],
)
NUMBER = plan_json("number", OrderedDomain(0, 5000, 1 << 20, unit="ms"), "4", Singletons(5))
SURVEY = RecordDomain({"version": ["1", "2", "3"], "crashed": Domain(["no", "yes"], other="no"), "day": Domain(7)})
TABLES = plan_json(
    "tables",
    SURVEY,
    "2",
    Singletons(3),
    Cyclotomic(7, 3),
    Cyclotomic(43, 6),
    views=[([0], 1 << 30), ([0, 1], 1), ([0, 1, 2], 3 * (1 << 30) - 1)],
)
PREFIXES = plan_json(
    "prefixes",
    OpenDomain(["ab", "a", "b", "?"], longest=3),
    "1",
    Singletons(13),
    Cyclotomic(13, 4),
    Projective(3, 3),
    views=[
        (prefix(2, 6, 13), 1 << 31),
        (prefix(4, 7, 11), (1 << 30) + 1),
        (prefix(4, 5, 7, "count"), (1 << 30) - 1),
    ],
)
