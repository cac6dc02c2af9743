"""The routes of trends over epochs, for the operator."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sunzi.client.errors import ParameterError
from sunzi.collector.refusals import documented, giving
from sunzi.collector.routes import MEDIA, OperatorRoute, listed, picture_response, table_response
from sunzi.collector.service import service_of
from sunzi.collector.trends import CollectionTrend, TrendProgress
from sunzi.collector.uploads import CollectionName
from sunzi.results.queries import parse_value

router = APIRouter(prefix="/v1/collections/{collection}", tags=["reading"], route_class=OperatorRoute)

_SECONDS = 5.0
_MAX_VALUES = 100
_MAX_EPOCHS = 10_000
_RESPONSES = (
    giving(MEDIA["json"], MEDIA["csv"], MEDIA["png"])
    | {202: {"description": "Some epochs are not estimated yet; retry. So far, `computed` of `epochs` are."}}
    | documented(400, 401, 403, 404, 409, 501, 503)
)


@router.get("/trend.{form}", responses=_RESPONSES, response_class=Response)
def trend(
    request: Request,
    collection: CollectionName,
    form: Literal["json", "csv", "png"],
    last: Annotated[int, Query(ge=2, le=_MAX_EPOCHS, description="Only the newest epochs.")] = 365,
    top: Annotated[int, Query(ge=1, le=_MAX_VALUES, description="The number of values.")] = 10,
    sort: Annotated[
        Literal["frequent", "changed"], Query(description="Which values come first, without value and search.")
    ] = "frequent",
    value: Annotated[list[str] | None, Query(description="These values.", max_length=_MAX_VALUES)] = None,
    search: Annotated[str | None, Query(max_length=200, description="Labels that contain this text.")] = None,
    confidence: Annotated[float, Query(ge=0.5, le=0.999999)] = 0.95,
    one_in: Annotated[
        float | None, Query(ge=100, le=1e15, description="Values times epochs between two false alarms.")
    ] = None,
) -> Response:
    """Series with intervals, slopes, change points and alarms of some values over the newest epochs."""
    service = service_of(request)
    found = service.trends.get(
        collection, last, service.settings.minimum_reports, _SECONDS, closed_only=service.publisher.closed_only
    )
    if isinstance(found, TrendProgress):
        progress = {"computed": found.computed, "epochs": found.epochs}
        return JSONResponse(progress, status_code=202, headers={"Retry-After": "1"})
    if value and search is not None:
        raise ParameterError("give value or search, not both")
    chosen = _chosen(found, value, search, top, sort)
    if form == "png":
        if not chosen:
            raise ParameterError("no value is selected, so there is nothing to draw")
        return picture_response(found.trend.plot(indices=chosen, confidence=confidence, one_in=one_in))
    document = found.trend.to_dict(chosen, confidence, one_in)
    epochs = [listed(epoch) | about for epoch, about in zip(found.epochs, document["epochs"], strict=True)]
    if form == "csv":
        return _table(document, epochs)
    about = {"collection": collection, "held_back": found.held_back, "other_domain": found.other_domain}
    return JSONResponse(document | {"epochs": epochs} | about)


def _table(document: dict[str, Any], epochs: list[dict[str, Any]]) -> Response:
    """One row per value and epoch."""
    alarms = {(alarm["label"], alarm["moment"]): alarm["direction"] for alarm in document["alarms"]}
    names = ("frequency", "low", "high", "standard_error")
    rows = [
        {"label": value["label"], "epoch": epoch["epoch"], "opened_at": epoch["opened_at"], "reports": epoch["reports"]}
        | {name: value[name][place] for name in names}
        | {"alarm": alarms.get((value["label"], place))}
        for value in document["values"]
        for place, epoch in enumerate(epochs)
    ]
    return table_response("csv", rows, ("label", "epoch", "opened_at", "reports", *names, "alarm"))


def _chosen(found: CollectionTrend, values: list[str] | None, search: str | None, top: int, sort: str) -> list[int]:
    """The indices of the values to show."""
    trend = found.trend
    if values:
        return [trend.domain.exact_index(parse_value(trend.domain, each)) for each in values]
    if search is not None:
        return trend.domain.search(search, top)
    return trend.most_frequent(top) if sort == "frequent" else [row.index for row in trend.top(top)]
