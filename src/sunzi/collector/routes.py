"""Routes of plans, which are public, and of estimates, tallies and metrics, which are for the operator."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sunzi.analysis import Health, check_health
from sunzi.client.errors import ParameterError
from sunzi.collector.cacheable import IMMUTABLE, REVALIDATED, Cacheable
from sunzi.collector.collector import Collector, LiveEpoch
from sunzi.collector.epochs import Epoch
from sunzi.collector.refusals import RefusalError, documented, giving
from sunzi.collector.service import bearer, require_admin, service_of
from sunzi.collector.uploads import CollectionName, EpochNumber, whole_body
from sunzi.groups import parse_group
from sunzi.results.estimate import Estimate
from sunzi.results.histogram import Postprocessing
from sunzi.results.record_answers import comma_list
from sunzi.tables.writers import HistogramTable, histogram_table, records_as

_MAX_FOUND = 1000
_TWO_SIDED_95 = 1.96  # standard errors on each side of a 95 % interval
_KEPT_PLANS = 16
_SMALL_BODY = 1 << 12
MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
}
REFUSALS = documented(400, 401, 403, 404, 409, 501, 503)
_PLAN_RESPONSES = giving("application/json") | documented(304, 404, 503)
RECORDS = giving("application/json", "text/csv") | REFUSALS


# The page polls these every few seconds, and they reveal only the number of reports.
_UNAUDITED = ("status", "progress", "groups", "guarantee", "list_epochs", "metrics")


class OperatorRoute(APIRoute):
    """A route that requires the admin token before it reads a body.

    FastAPI would read and parse the body first, on the event loop. The bodies that it parses are small.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check the token and the body, then handle the request."""
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            try:
                await require_admin(request)
            except RefusalError as error:
                await run_in_threadpool(_audit_refusal, request, self.path_format, error.status)
                raise
            if self.body_field is not None and len(await whole_body(request)) > _SMALL_BODY:
                raise RefusalError(413, "TooLarge", f"a body of this route may have at most {_SMALL_BODY} bytes")
            response = await handle(request)
            if self.name not in _UNAUDITED:
                await run_in_threadpool(_audit, request, self.name, response.status_code)
            return response

        return checked


def _audit(request: Request, action: str, status: int) -> None:
    """Write a line to the audit log; a route adds details in ``request.state.details``."""
    service = service_of(request)
    token = None if service.settings.admin_token is None else bearer(request)
    details = {**request.path_params, **getattr(request.state, "details", {})}
    service.audit.write(token, action, status, details)


def _audit_refusal(request: Request, route: str, status: int) -> None:
    service, secret = service_of(request), bearer(request)
    key = None if secret is None else service.settings.upload_key(secret)
    service.audit.write_refusal(status, request.method, route, None if key is None else key.name)


plans = APIRouter(prefix="/v1/collections/{collection}", tags=["plans"])
reading = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["reading"], route_class=OperatorRoute)
operation = APIRouter(tags=["operation"])
monitoring = APIRouter(tags=["operation"], route_class=OperatorRoute)
ROUTERS = (plans, reading, operation, monitoring)


class Current(Enum):
    """``current`` in place of an epoch's number."""

    CURRENT = "current"


GroupName = Annotated[
    str | None,
    Query(max_length=128, description="Only reports of this public group, ATTRIBUTE=VALUE.", examples=["country=DE"]),
]
TableNames = Annotated[
    str | None, Query(max_length=2000, description="Of a plan of tables: attributes, with commas between them.")
]
AnyEpoch = Annotated[
    Current | Annotated[int, Path(ge=1, le=1 << 31)],
    Path(description="The epoch's number, or `current`.", examples=["current"]),
]


def find_live(request: Request, collection: str, epoch: Current | int) -> LiveEpoch:
    """The epoch that a route names."""
    number = None if isinstance(epoch, Current) else epoch
    return service_of(request).collector.find(collection, number)


def find_published(request: Request, collection: str, epoch: Current | int, group: str | None) -> tuple[LiveEpoch, str]:
    """An epoch and the name of a group, "" for all; raises RefusalError if nothing is published about it."""
    live = find_live(request, collection, epoch)
    name = "" if group is None else parse_group(live.plan.groups, group)
    service_of(request).publisher.check(live, name)
    return live, name


def listed(epoch: Epoch) -> dict[str, Any]:
    """An epoch as JSON, without its plan; times are seconds since 1970."""
    return {
        "collection": epoch.collection,
        "epoch": epoch.number,
        "open": epoch.is_open,
        "reports": epoch.reports,
        "opened_at": epoch.opened_at,
        "closed_at": epoch.closed_at,
    }


def described(live: LiveEpoch) -> dict[str, Any]:
    """An epoch as JSON, with a summary of its plan."""
    plan = live.plan
    return listed(live.epoch) | {
        "plan": plan.fingerprint,
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "domain_size": plan.domain.size,
        "values": plan.protocol.values_in_words(plan.domain),
        "report_bits": plan.report_bits,
        "attackability": plan.attackability,
        "guessed": plan.protocol.guessed,
        "choices": len(plan.protocol.attacked_values),
    }


@plans.get("/plan", responses=_PLAN_RESPONSES, response_class=Response)
async def download_current_plan(request: Request, collection: CollectionName) -> Response:
    """The plan of the newest open epoch, that epoch's number, and where to upload. Public; can be revalidated."""
    service = service_of(request)
    content = await service.plans.run(_current_plan, service.collector, collection)
    return content.response(request, REVALIDATED)


def _current_plan(collector: Collector, collection: str) -> Cacheable:
    epoch = collector.find_epoch(collection)
    return _envelope(collection, epoch.number, epoch.is_open, collector.plan_file(epoch))


@lru_cache(maxsize=_KEPT_PLANS)
def _envelope(collection: str, epoch: int, is_open: bool, plan: bytes) -> Cacheable:
    fingerprint, address = hashlib.sha256(plan).hexdigest(), f"/v1/collections/{collection}/epochs/{epoch}"
    envelope = {
        "collection": collection,
        "epoch": epoch,
        "open": is_open,
        "upload": address,
        "fingerprint": fingerprint,
        "plan_file": f"{address}/plan/{fingerprint}",
    }
    return Cacheable.of(json.dumps(envelope).encode()[:-1] + b', "plan": ' + plan + b"}")


@plans.get("/epochs/{epoch}/plan", responses=_PLAN_RESPONSES, response_class=Response)
async def download_plan(request: Request, collection: CollectionName, epoch: AnyEpoch) -> Response:
    """An epoch's plan file, in canonical form. Public; can be revalidated."""
    _, content = await _found_plan(request, collection, None if isinstance(epoch, Current) else epoch)
    return content.response(request, REVALIDATED)


@plans.get("/epochs/{epoch}/plan/{fingerprint}", responses=_PLAN_RESPONSES, response_class=Response)
async def download_plan_by_fingerprint(
    request: Request,
    collection: CollectionName,
    epoch: EpochNumber,
    fingerprint: Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="The plan's fingerprint.")],
) -> Response:
    """An epoch's plan file under an address that names its content. Public; never changes."""
    found, content = await _found_plan(request, collection, epoch)
    if fingerprint != found:
        raise RefusalError(404, "UnknownPlan", f"epoch {epoch} of {collection} has another plan")
    return content.response(request, IMMUTABLE)


async def _found_plan(request: Request, collection: str, number: int | None) -> tuple[str, Cacheable]:
    """The fingerprint of an epoch's plan and its file."""
    service = service_of(request)

    def find() -> tuple[str, Cacheable]:
        return _plan_file(service.collector.plan_file(service.collector.find_epoch(collection, number)))

    return await service.plans.run(find)


@lru_cache(maxsize=_KEPT_PLANS)
def _plan_file(plan: bytes) -> tuple[str, Cacheable]:
    return hashlib.sha256(plan).hexdigest(), Cacheable.of(plan)


@reading.get("/status.{form}", responses=RECORDS, response_class=Response)
def status(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """An epoch's state and its number of reports."""
    live = find_live(request, collection, epoch)
    service_of(request).collector.refresh()
    record = described(find_live(request, collection, live.epoch.number))
    return document_response(record) if form == "json" else table_response(form, [record])


@reading.get("/estimate.{form}", responses=giving(*MEDIA.values()) | REFUSALS, response_class=Response)
def estimate(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv", "parquet", "png"],
    confidence: Annotated[float, Query(ge=0.5, le=0.999999)] = 0.95,
    top: Annotated[int | None, Query(ge=1, le=1 << 31, description="Only the most frequent values.")] = None,
    search: Annotated[str | None, Query(max_length=200, description="Only labels that contain this text.")] = None,
    postprocess: Literal["none"] | Postprocessing = "none",
    target: Literal["reporters", "population"] = "reporters",
    group: GroupName = None,
    table: TableNames = None,
) -> Response:
    """The histogram with an interval per value; post-processed frequencies are in a separate column."""
    live, name = find_published(request, collection, epoch, group)
    estimated = estimated_table(request, live, name, table)
    if form == "png":
        if search or postprocess != "none":
            raise ParameterError("png shows the unbiased estimate only; use csv or json with search or postprocess")
        return picture_response(estimated.plot(top=min(top or 20, 100), confidence=confidence, target=target))
    processed = None if postprocess == "none" else estimated.postprocess(postprocess, confidence)
    among = None if search is None else np.array(estimated.domain.search(search, _MAX_FOUND), dtype=np.int64)
    notes = {key: value for key, value in described(live).items() if key not in ("open", "closed_at", "reports")}
    notes |= {"group": name} if name else {}
    notes |= service_of(request).publisher.publication(live).to_dict()
    rows = histogram_table(
        estimated, confidence=confidence, target=target, top=top, among=among, processed=processed, notes=notes
    )
    return histogram_response(form, _with_verdict(rows, estimated, confidence, target))


def document_response(document: Mapping[str, Any]) -> Response:
    """A JSON object."""
    return Response(json.dumps(document), media_type=MEDIA["json"])


def table_response(form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Response:
    """Rows as CSV or JSON; ``columns`` names their keys where there may be none."""
    return Response(records_as(form, rows, columns), media_type=MEDIA[form])


def picture_response(figure: Any) -> Response:
    """A matplotlib figure as PNG."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    return Response(stream.getvalue(), media_type=MEDIA["png"])


def histogram_response(form: str, rows: HistogramTable) -> Response:
    """A histogram as CSV, JSON or Parquet."""
    stream = io.BytesIO()
    rows.write(form, stream)
    return Response(stream.getvalue(), media_type=MEDIA[form])


def estimated_table(request: Request, live: LiveEpoch, group: str, table: str | None) -> Estimate:
    """The estimate of an epoch or group, of the named table if there is one."""
    tally, estimated = service_of(request).collector.estimate(live, group)
    return estimated if table is None else live.plan.estimate(tally, table=comma_list(table))


def _with_verdict(
    rows: HistogramTable, estimated: Estimate, confidence: float, target: Literal["reporters", "population"]
) -> HistogramTable:
    """Add a column: is the value above 0, by an interval that holds for all values simultaneously?"""
    low, _ = estimated.interval(confidence, target=target, simultaneous=True)
    verdicts = (low[rows.indices] > 0).tolist()
    return HistogramTable(rows.indices, {**rows.columns, "above_zero": verdicts}, rows.notes)


@reading.get("/tally", responses=giving("application/octet-stream") | REFUSALS, response_class=Response)
def download_tally(request: Request, collection: CollectionName, epoch: AnyEpoch, group: GroupName = None) -> Response:
    """The tally file, for `sunzi estimate` and `sunzi merge`."""
    live, name = find_published(request, collection, epoch, group)
    content = service_of(request).collector.tally(live, name).to_bytes()
    file = "-".join([collection, str(live.epoch.number), *([name] if name else [])])
    headers = {"Content-Disposition": f'attachment; filename="{file}.tally"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


@reading.get("/progress.{form}", responses=RECORDS, response_class=Response)
def progress(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """Reports per minute."""
    live = find_live(request, collection, epoch)
    minutes = service_of(request).collector.store.progress(live.epoch.key)
    records = [{"minute": minute, "reports": reports} for minute, reports in minutes]
    return table_response(form, records, ("minute", "reports"))


@reading.get("/keys.{form}", responses=RECORDS, response_class=Response)
def keys(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """The number of reports of each upload key; "" stands for uploads without a key."""
    live = find_live(request, collection, epoch)
    records = [
        {"key": each.uploader, "reports": each.reports, "subtracted_at": each.subtracted_at}
        for each in service_of(request).collector.store.contributions(live.epoch.key)
    ]
    return table_response(form, records, ("key", "reports", "subtracted_at"))


@reading.get("/health.{form}", responses=RECORDS, response_class=Response)
def tally_health(
    request: Request,
    collection: CollectionName,
    epoch: AnyEpoch,
    form: Literal["json", "csv"],
    group: GroupName = None,
) -> Response:
    """Consistency tests of the tally: block balance, residual of the fit."""
    live, name = find_published(request, collection, epoch, group)
    collector = service_of(request).collector
    if live.plan.domain.is_open:  # there is no estimate of all values
        tally, estimated = collector.tally(live, name), None
    else:
        tally, estimated = collector.estimate(live, name)
    found = _with_power(check_health(live.plan, tally), estimated)
    return document_response(found) if form == "json" else table_response(form, found["tests"])


def _with_power(health: Health, estimated: Estimate | None) -> dict[str, Any]:
    """The findings as JSON. ``too_few`` means that there are too few reports for "no alarm" to mean anything."""
    found = health.to_dict()
    missing = next((each.reason for each in health.findings if each.reason.startswith("too few")), "")
    if estimated is not None and 2 * _TWO_SIDED_95 * float(estimated.standard_errors().max()) > 1:
        missing = "too few reports: some intervals are wider than 100 %"
    found["too_few"] = bool(missing) and not found["alarm"]
    if found["too_few"]:
        found["verdict"] = missing
    return found


@operation.get("/health")
async def liveness() -> dict[str, str]:
    """Respond while the process is running."""
    return {"status": "live"}


@operation.get("/ready", responses=giving("application/json") | documented(503))
def readiness(request: Request) -> Response:
    """Reports can be counted: the writer runs without failures, and the store accepts writes."""
    service_of(request).readiness.check()
    return JSONResponse({"status": "ready"})


@monitoring.get("/metrics", responses=giving("text/plain") | documented(401, 403), response_class=Response)
def metrics(request: Request) -> Response:
    """The metrics in the Prometheus text format."""
    return Response(service_of(request).metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")
