"""Reading: the plan, which is public, and estimates, tallies and health, which are the operator's."""

from __future__ import annotations

import io
import json
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from sunzi.analysis import health
from sunzi.collector.collector import LiveEpoch, matching_labels
from sunzi.collector.refusals import documented, giving
from sunzi.collector.state import require_admin, service_of
from sunzi.collector.uploads import CollectionName
from sunzi.errors import EstimateError, ParameterError
from sunzi.estimate import Estimate, Postprocessing
from sunzi.tables.writers import HistogramTable, histogram_table, records_as

public = APIRouter(prefix="/v1/collections/{collection}", tags=["plans"])
router = APIRouter(
    prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["reading"], dependencies=[Depends(require_admin)]
)

_MOST_FOUND = 1000
_MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
}
_REFUSALS = documented(400, 401, 403, 404, 409, 501, 503)
_RECORDS = giving("application/json", "text/csv") | _REFUSALS


class Current(Enum):
    """A word in place of a number."""

    CURRENT = "current"


AnyEpoch = Annotated[
    Current | Annotated[int, Path(ge=1, le=1 << 31)], Path(description="a number, or `current`", examples=["current"])
]


def _find(request: Request, collection: str, epoch: Current | int) -> LiveEpoch:
    number = None if isinstance(epoch, Current) else epoch
    return service_of(request).collector.find(collection, number)


def described(live: LiveEpoch) -> dict[str, Any]:
    """An epoch for people and programs; times are seconds since 1970."""
    epoch, plan = live.epoch, live.plan
    return {
        "collection": epoch.collection,
        "epoch": epoch.number,
        "open": epoch.is_open,
        "reports": epoch.reports,
        "opened_at": epoch.opened_at,
        "closed_at": epoch.closed_at,
        "plan": plan.fingerprint,
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "domain_size": plan.domain.size,
        "report_bits": plan.report_bits,
        "attackability": plan.attackability,
    }


@public.get("/plan", responses=giving("application/json") | documented(404, 503), response_class=Response)
def download_current_plan(request: Request, collection: CollectionName) -> Response:
    """The plan that clients report under now, the epoch to name, and where to send to. Public: it holds no secret."""
    live = service_of(request).collector.find(collection)
    upload = f"/v1/collections/{collection}/epochs/{live.epoch.number}"
    envelope = {
        "collection": collection,
        "epoch": live.epoch.number,
        "open": live.epoch.is_open,
        "upload": upload,
        "fingerprint": live.plan.fingerprint,
        "plan": live.plan.contract.to_json(),
    }
    return Response(json.dumps(envelope, ensure_ascii=False), media_type="application/json")


@public.get(
    "/epochs/{epoch}/plan", responses=giving("application/json") | documented(404, 503), response_class=Response
)
def download_plan(request: Request, collection: CollectionName, epoch: AnyEpoch) -> Response:
    """The plan file of an epoch, in its canonical form. Public."""
    live = _find(request, collection, epoch)
    return Response(live.plan.contract.canonical, media_type="application/json")


@router.get("/status.{form}", responses=_RECORDS, response_class=Response)
def status(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """What an epoch is and how many reports it holds."""
    live = _find(request, collection, epoch)
    service_of(request).collector.refresh()
    record = described(_find(request, collection, live.epoch.number))
    content = json.dumps(record).encode() if form == "json" else records_as("csv", [record])
    return Response(content, media_type=_MEDIA[form])


@router.get("/estimate.{form}", responses=giving(*_MEDIA.values()) | _REFUSALS, response_class=Response)
def estimate(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv", "parquet", "png"],
    confidence: Annotated[float, Query(ge=0.5, le=0.999999)] = 0.95,
    top: Annotated[int | None, Query(ge=1, le=1 << 31, description="only so many, most frequent first")] = None,
    search: Annotated[str | None, Query(max_length=200, description="only labels that contain this")] = None,
    postprocess: Literal["none"] | Postprocessing = "none",
    target: Literal["reporters", "population"] = "reporters",
) -> Response:
    """The histogram with an interval for every value; what post-processing makes of it in a column of its own."""
    live = _find(request, collection, epoch)
    _, estimated = service_of(request).collector.estimate(live)
    stream = io.BytesIO()
    if form == "png":
        if search or postprocess != "none":
            raise ParameterError("a picture shows the unbiased estimate of the most frequent values; use csv or json")
        estimated.plot(top=min(top or 20, 100), confidence=confidence, target=target).savefig(
            stream, format="png", dpi=120
        )
    else:
        processed = None if postprocess == "none" else estimated.postprocess(postprocess, confidence)
        among = None if search is None else np.array(matching_labels(live.plan, search, _MOST_FOUND), dtype=np.int64)
        notes = {key: value for key, value in described(live).items() if key not in ("open", "closed_at", "reports")}
        rows = histogram_table(
            estimated, confidence=confidence, target=target, top=top, among=among, processed=processed, notes=notes
        )
        _with_verdict(rows, estimated, confidence, target).write(form, stream)
    return Response(stream.getvalue(), media_type=_MEDIA[form])


def _with_verdict(
    rows: HistogramTable, estimated: Estimate, confidence: float, target: Literal["reporters", "population"]
) -> HistogramTable:
    """Whether each value differs from 0 with all values considered at once, since rows are picked among all."""
    low, _ = estimated.interval(confidence, target=target, simultaneous=True)
    verdicts = (low[rows.indices] > 0).tolist()
    return HistogramTable(rows.indices, {**rows.columns, "above_zero": verdicts}, rows.notes)


@router.get("/tally", responses=giving("application/octet-stream") | _REFUSALS, response_class=Response)
def download_tally(request: Request, collection: CollectionName, epoch: AnyEpoch) -> Response:
    """The tally file, as `sunzi estimate` and `sunzi merge` read it."""
    live = _find(request, collection, epoch)
    content = service_of(request).collector.tally(live).to_bytes()
    name = f"{collection}-{live.epoch.number}.tally"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.get("/progress.{form}", responses=_RECORDS, response_class=Response)
def progress(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """Reports over time, a minute a row."""
    live = _find(request, collection, epoch)
    minutes = service_of(request).collector.store.progress(live.epoch.key)
    records = [{"minute": minute, "reports": reports} for minute, reports in minutes]
    content = records_as(form, records) if records or form == "json" else b"minute,reports\n"
    return Response(content, media_type=_MEDIA[form])


@router.get("/health.{form}", responses=_RECORDS, response_class=Response)
def tally_health(
    request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]
) -> Response:
    """Whether the tally looks as honest reports must look: block balance, residual of the fit."""
    live = _find(request, collection, epoch)
    tally, _ = service_of(request).collector.estimate(live)
    if not tally.reports:
        raise EstimateError("the tally holds no report yet, so there is nothing to check")
    found = health.check(live.plan, tally).to_dict()
    content = json.dumps(found).encode() if form == "json" else records_as("csv", found["tests"])
    return Response(content, media_type=_MEDIA[form])
