"""Routes that answer questions about several values, epochs or groups, for the operator: sums and differences, and
ranges, quantiles, means and shares of plans of numbers and records.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from sunzi.client.errors import ParameterError
from sunzi.collector.collector import LiveEpoch
from sunzi.collector.refusals import giving
from sunzi.collector.routes import (
    MEDIA,
    RECORDS,
    REFUSALS,
    AnyEpoch,
    Current,
    GroupName,
    OperatorRoute,
    TableNames,
    document_response,
    estimated_table,
    find_published,
    listed,
    picture_response,
    table_response,
)
from sunzi.collector.service import service_of
from sunzi.collector.uploads import CollectionName
from sunzi.groups import are_disjoint
from sunzi.results.changes import CHANGE_COLUMNS, Difference, VerdictRule, difference
from sunzi.results.estimate import Estimate
from sunzi.results.queries import parse_value
from sunzi.results.record_answers import Questions
from sunzi.results.uncertainty import Target

router = APIRouter(prefix="/v1/collections/{collection}", tags=["reading"], route_class=OperatorRoute)

_MAX_VALUES = 1000
_KEPT_DIFFERENCES = 4

Confidence = Annotated[float, Query(ge=0.5, le=0.999999)]
Side = Annotated[int, Query(ge=1, le=1 << 31, description="The number of an epoch.")]


@router.get("/epochs/{epoch}/answers.{form}", responses=RECORDS, response_class=Response)
def answers(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv"],
    ranges: Annotated[Sequence[str], Query(alias="range", max_length=100, description="LOW:HIGH")] = (),
    quantiles: Annotated[Sequence[float], Query(alias="quantile", max_length=100)] = (),
    mean: bool = False,
    shares: Annotated[Sequence[str], Query(alias="share", max_length=100, description="ATTRIBUTE=VALUE")] = (),
    given: Annotated[str | None, Query(max_length=2000, description="The condition: ATTRIBUTE=VALUE.")] = None,
    independence: bool = False,
    table: TableNames = None,
    confidence: Confidence = 0.95,
    target: Target = "reporters",
    group: GroupName = None,
) -> Response:
    """Ranges, quantiles and means of an ordered plan, and shares of a plan of tables, each with its interval."""
    live, name = find_published(request, collection, epoch, group)
    asked = Questions(ranges, quantiles, mean, shares, given, independence)
    if not asked:
        raise ParameterError("request range=0:500, quantile=0.5, mean=true, share=A=B with given=C=D, or independence")
    estimated = estimated_table(request, live, name, table)
    found = [answer.record() for answer in asked.ask(estimated, confidence, target)]
    if form == "csv":
        return table_response(form, found)
    notes = _about(live, estimated, group) | {"confidence": confidence, "target": target}
    return document_response(notes | {"answers": found})


@router.get("/epochs/{epoch}/sum.{form}", responses=RECORDS, response_class=Response)
def sum_of_values(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv"],
    value: Annotated[list[str], Query(min_length=1, max_length=_MAX_VALUES, description="Each value once.")],
    confidence: Confidence = 0.95,
    target: Target = "reporters",
    group: GroupName = None,
) -> Response:
    """The total frequency of these values, with its interval."""
    about, estimated = _estimated(request, collection, epoch, group)
    answer = estimated.sum([parse_value(estimated.domain, each) for each in value], confidence, target=target)
    record = {"values": value} | answer.record(estimated.reports)
    notes = about | {"confidence": confidence, "target": target}
    if form == "json":
        return document_response(notes | record)
    return table_response(form, [record | {"values": " + ".join(value)}])


@router.get(
    "/difference.{form}",
    responses=giving(MEDIA["json"], MEDIA["csv"], MEDIA["png"]) | REFUSALS,
    response_class=Response,
)
def difference_of_epochs(
    request: Request,
    collection: CollectionName,
    form: Literal["json", "csv", "png"],
    before: Side,
    after: Side,
    top: Annotated[int, Query(ge=1, le=1 << 31, description="Only the clearest changes.")] = 20,
    search: Annotated[str | None, Query(max_length=200, description="Only labels that contain this text.")] = None,
    confidence: Confidence = 0.95,
    verdict: Annotated[
        VerdictRule, Query(description="Limit the probability of any false verdict, or the share of false ones.")
    ] = "any",
    target: Target = "population",
    before_group: GroupName = None,
    after_group: GroupName = None,
) -> Response:
    """What changed between two epochs or groups, the clearest changes first; whether anything did."""
    if before == after and not are_disjoint(before_group, after_group):
        raise ParameterError(
            f"both sides contain reports of epoch {before}; compare two epochs, or two groups of one attribute"
        )
    about_before, estimated_before = _estimated(request, collection, before, before_group)
    about_after, estimated_after = _estimated(request, collection, after, after_group)
    found = _compared(estimated_before, estimated_after, target)
    if form == "png":
        if search is not None:
            raise ParameterError("png shows the clearest changes of all values; use csv or json with search")
        return picture_response(found.plot(top=min(top, 100), confidence=confidence, verdict=verdict))
    among = None if search is None else np.array(found.domain.search(search, _MAX_VALUES), dtype=np.int64)
    rows = found.records(found.top(top, confidence, verdict, among=among))
    if form == "csv":
        return table_response(form, rows, CHANGE_COLUMNS)
    notes = {
        "collection": collection,
        "before": about_before,
        "after": about_after,
        "domain_size": found.domain.size,
        "confidence": confidence,
        "verdict": verdict,
        "target": target,
        "p_value": _p_value(found),
        "changed": int(found.changed(1 - confidence, verdict).sum()),
    }
    return document_response(notes | {"changes": rows})


def _estimated(
    request: Request, collection: str, epoch: Current | int, group: str | None
) -> tuple[dict[str, Any], Estimate]:
    """The estimate, and what it describes; refused if there are too few reports."""
    live, name = find_published(request, collection, epoch, group)
    _, estimated = service_of(request).collector.estimate(live, name)
    return _about(live, estimated, group), estimated


def _about(live: LiveEpoch, estimated: Estimate, group: str | None) -> dict[str, Any]:
    return listed(live.epoch) | {"reports": estimated.reports, "group": group}


@lru_cache(maxsize=_KEPT_DIFFERENCES)
def _compared(before: Estimate, after: Estimate, target: Target) -> Difference:
    """The difference of two estimates, which the collector caches until they change."""
    return difference(before, after, target)


@lru_cache(maxsize=_KEPT_DIFFERENCES)
def _p_value(found: Difference) -> float:
    return found.p_value()
