"""Routes that find and count the texts of open plans, for the operator."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from sunzi.collector.collector import LiveEpoch
from sunzi.collector.discoveries import GivenTexts, Use
from sunzi.collector.refusals import documented
from sunzi.collector.routes import (
    RECORDS,
    AnyEpoch,
    Current,
    GroupName,
    OperatorRoute,
    document_response,
    find_published,
    histogram_response,
    listed,
    table_response,
)
from sunzi.collector.service import service_of
from sunzi.collector.uploads import CollectionName, whole_body
from sunzi.errors import EstimateError
from sunzi.results.discovery import Discovery, FoundText
from sunzi.tables.writers import histogram_table

router = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["reading"], route_class=OperatorRoute)

_ONE_LOOK = (
    "false_share and the intervals are valid for one look at one tally. Looking repeatedly at a growing tally and "
    "choosing the moment inflates the number of false positives: close the epoch, then look once."
)
_LIST = {
    "description": "Texts in UTF-8, one per line.",
    "required": True,
    "content": {"text/plain": {"schema": {"type": "string", "minLength": 1}}},
}

FalseShare = Annotated[float, Query(ge=1e-9, le=0.5, description="The maximum false discovery rate.")]
Top = Annotated[int, Query(ge=1, le=10_000, description="Only the most frequent texts.")]


@router.get("/discover.{form}", responses=RECORDS, response_class=Response)
async def discover(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv"],
    false_share: FalseShare = 0.05,
    top: Top = 500,
    group: GroupName = None,
) -> Response:
    """The frequent texts of an open plan, with intervals that account for the search, and how frequent a text must be
    to be found.
    """

    def find() -> Response:
        live, name = _find_open(request, collection, epoch, group)
        return _found(request, live, name, form, false_share, top, None)

    return await service_of(request).searching.run(find)


@router.post(
    "/discover.{form}",
    responses=RECORDS | documented(408, 413),
    response_class=Response,
    openapi_extra={"requestBody": _LIST},
)
async def discover_with_list(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv"],
    content: Annotated[bytes, Depends(whole_body)],
    use: Annotated[
        Use,
        Query(
            description="`candidates`: look for these texts only. `prior`: public texts of the same kind, to guide "
            "the search. `count`: estimate all of them, without a search."
        ),
    ] = "candidates",
    false_share: FalseShare = 0.05,
    top: Top = 500,
    confidence: Annotated[float, Query(ge=0.5, le=0.999999, description="With `use=count`.")] = 0.95,
    group: GroupName = None,
) -> Response:
    """As GET, with the help of a list; or the estimates of the texts of a list, frequent or not."""
    given = GivenTexts(use, content)
    request.state.details = {"use": use, "bytes": len(content)}

    def find() -> Response:
        live, name = _find_open(request, collection, epoch, group)
        if use == "count":
            return _estimates_of_list(request, live, name, form, given, confidence)
        return _found(request, live, name, form, false_share, top, given)

    return await service_of(request).searching.run(find)


def _find_open(request: Request, collection: str, epoch: Current | int, group: str | None) -> tuple[LiveEpoch, str]:
    """As find_published, for open plans only."""
    live, name = find_published(request, collection, epoch, group)
    if not live.plan.domain.is_open:
        raise EstimateError("this plan has a list of values, so there is nothing to find; read …/estimate.json")
    return live, name


def _found(
    request: Request, live: LiveEpoch, group: str, form: str, false_share: float, top: int, given: GivenTexts | None
) -> Response:
    service = service_of(request)
    found = service.discoveries.find(live.plan, service.collector.tally(live, group), false_share, given)
    rows = found.records()[:top]
    if form == "csv":
        return table_response(form, rows, tuple(FoundText.__annotations__))
    document = _about(request, live, group) | found.to_dict() | _detection(live, found) | {"note": _ONE_LOOK}
    return document_response(document | {"found": rows})


def _detection(live: LiveEpoch, found: Discovery) -> dict[str, Any]:
    """How many texts were accepted, and how frequent texts must be at this number of reports."""
    thresholds = live.plan.thresholds(found.reports, false_share=found.false_share)
    return {"accepted": len(found), "thresholds": [asdict(each) for each in thresholds]}


def _estimates_of_list(
    request: Request, live: LiveEpoch, group: str, form: str, given: GivenTexts, confidence: float
) -> Response:
    service = service_of(request)
    estimated = service.discoveries.count(live.plan, service.collector.tally(live, group), given)
    notes = _about(request, live, group)
    return histogram_response(form, histogram_table(estimated, confidence=confidence, notes=notes))


def _about(request: Request, live: LiveEpoch, group: str) -> dict[str, Any]:
    published = service_of(request).publisher.publication(live).to_dict()
    epoch = {key: value for key, value in listed(live.epoch).items() if key != "reports"}
    return epoch | {"plan": live.plan.fingerprint, "group": group or None} | published
