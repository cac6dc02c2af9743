"""Uploads: a report or a batch under an id, acknowledged only after it is durably counted.

These two routes carry nearly all traffic. :class:`UploadGate` calls them directly, which halves the time per request;
requests that it does not recognise take FastAPI's way, which validates their parameters.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sunzi.client.device.uploads import Upload
from sunzi.client.errors import ParameterError, ReportError, SunziError
from sunzi.client.reports import is_batch
from sunzi.collector.collector import ClosedEpochError, LiveEpoch
from sunzi.collector.epochs import Deposit, Outcome
from sunzi.collector.limits import SMALL_BODY
from sunzi.collector.refusals import RefusalError, documented, refuse
from sunzi.collector.service import Service, Ticket, bearer, service_of
from sunzi.collector.settings import Settings, UploadKey
from sunzi.collector.writer import OverloadError
from sunzi.wire import declared_reports

CollectionName = Annotated[
    str, Path(pattern="^[a-z0-9][a-z0-9_-]{0,63}$", description="The collection's name.", examples=["default"])
]
EpochNumber = Annotated[
    int, Path(ge=1, le=1 << 31, description="The epoch's number, as in the plan download.", examples=[1])
]
Fingerprint = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="The plan's fingerprint.")]
_PATH = re.compile("/v1/collections/(?P<collection>[^/]+)/epochs/(?P<epoch>[0-9]{1,10})/(?P<kind>reports|batches)")
_QUERY = re.compile("plan=([0-9a-f]{64})")
_QUICK_BODY = 1 << 12
_COMMIT_SECONDS = 30.0
_BODY = {
    "description": "A line with the id, 16 bytes in hexadecimal and the same for every attempt; if the collector "
    "requires a single-use token, a space and the token on the same line; if it names public groups that the plan "
    "declares, a space and the groups, such as country=DE,release=124; then the report or the batch.",
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}


class Receipt(BaseModel):
    """The acknowledgement of an upload."""

    outcome: Literal["counted", "repeated"]
    reports: int = Field(ge=1)


router = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["uploading"])
_ROUTE: dict[str, Any] = {
    "response_model": Receipt,
    "response_description": "Counted, now or earlier.",
    "responses": documented(400, 401, 404, 408, 409, 410, 413, 421, 422, 429, 503),
    "openapi_extra": {"requestBody": _BODY},
}


@router.post("/reports", summary="Count one report", **_ROUTE)
async def upload_report(
    request: Request, collection: CollectionName, epoch: EpochNumber, plan: Fingerprint
) -> Response:
    """Count one report. Repeat it under the same id until it is acknowledged."""
    return await _upload(request, collection, epoch, plan)


@router.post("/batches", summary="Count a batch", **_ROUTE)
async def upload_batch(request: Request, collection: CollectionName, epoch: EpochNumber) -> Response:
    """Count all reports of a batch, or none if any is malformed. Repeat it under the same id until acknowledged."""
    return await _upload(request, collection, epoch)


class UploadGate:
    """Calls the upload routes directly for requests in the usual form; all others go to the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        path = _PATH.fullmatch(scope["path"]) if is_post else None
        query = scope["query_string"].decode("latin-1") if path else ""
        named = _QUERY.fullmatch(query)
        if path is None or (named is None if path["kind"] == "reports" else bool(query)):
            await self._app(scope, receive, send)
            return
        request, plan = Request(scope, receive), None if named is None else named[1]
        try:
            response = await _upload(request, path["collection"], int(path["epoch"]), plan)
        except SunziError as error:
            response = await refuse(request, error)
        await response(scope, receive, send)


async def _upload(request: Request, collection: str, number: int, plan: str | None = None) -> Response:
    """Count an upload: a single report if it names its plan, else a batch."""
    service = service_of(request)
    key = _authorised(request, service)
    if set(request.query_params) - {"plan"}:
        raise ParameterError(
            "only plan=FINGERPRINT belongs in the address; send the id, the token and groups in the body"
        )
    live = service.collector.known(collection, number)
    if live is None:  # ask the store, in another thread
        live = await service.lookups.run(service.collector.find_open, collection, number)
    if plan not in (None, live.plan.fingerprint):
        named = f"epoch {live.epoch.number} of {live.epoch.collection}"
        raise RefusalError(409, "WrongPlan", f"{named} has the plan {live.plan.fingerprint}")
    upload = Upload.from_bytes(await whole_body(request))
    if is_batch(upload.content) != (plan is None):
        raise ReportError("send batches to /batches and single reports to /reports; this body is of the other kind")
    if service.settings.single_use_tokens and upload.token is None:
        raise RefusalError(401, "Unauthorized", "this collector requires a single-use token, after the id in the body")
    _refuse_too_many(service.settings, key, declared_reports(upload.content))
    deposit = await _decoded(service, live, upload, key)
    _refuse_too_many(service.settings, key, deposit.reports)  # several batches may follow each other
    outcome = await _committed(service, deposit)
    if outcome is Outcome.CLOSED:  # by another process
        await service.lookups.run(service.collector.refresh)
    return _receipt(service, live, deposit, outcome)


def _authorised(request: Request, service: Service) -> UploadKey | None:
    """The upload key, if keys are required. Raises if the key is unknown."""
    settings = service.settings
    if not settings.upload_keys:
        return None
    key = settings.upload_key(bearer(request))
    if key is None:
        raise RefusalError(401, "Unauthorized", "send an upload key, as Authorization: Bearer KEY")
    return key


async def whole_body(request: Request) -> bytes:
    """The complete body, within the limits of LimitedBody."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise RefusalError(400, "Disconnected", "the client disconnected before its body was complete") from None


async def _decoded(service: Service, live: LiveEpoch, upload: Upload, key: UploadKey | None) -> Deposit:
    """Decode and count a report or batch; in another thread if that can take long."""
    token = upload.token if service.settings.single_use_tokens else None
    arguments = (live, upload.identity, upload.content, token, key, upload.groups)
    if len(upload.content) > SMALL_BODY:  # in a separate queue, which does not delay small uploads
        return await service.large_decoding.run(service.collector.deposit, *arguments)
    # While a thread decodes, the event loop waits for the interpreter at every system call, which costs more than
    # decoding a report here.
    is_quick = live.is_quick or not is_batch(upload.content)
    if is_quick and len(upload.content) <= _QUICK_BODY:
        return service.collector.deposit(*arguments)
    return await service.decoding.run(service.collector.deposit, *arguments)


def _refuse_too_many(settings: Settings, key: UploadKey | None, reports: int) -> None:
    """Refuse a batch with more reports than could ever be counted at once."""
    if settings.single_use_tokens and reports > 1:
        raise ReportError(
            f"a single-use token is worth one report, and this batch holds {reports}; send single reports, "
            "each with its own token"
        )
    most = settings.batch_reports if key is None else min(settings.batch_reports, key.reports_per_minute)
    if reports > most:
        raise RefusalError(
            413, "TooLarge", f"a batch may hold at most {most} reports here, and this one holds {reports}"
        )


async def _committed(service: Service, deposit: Deposit) -> Outcome:
    """The outcome of a deposit."""
    ticket: Ticket = asyncio.get_running_loop().create_future()
    service.writer.submit(deposit, ticket)
    try:
        return await asyncio.wait_for(ticket, _COMMIT_SECONDS)
    except TimeoutError:  # it may be counted later, under the same id
        raise OverloadError("the store does not answer; send it again later") from None


def _receipt(service: Service, live: LiveEpoch, deposit: Deposit, outcome: Outcome) -> Response:
    service.metrics.count_upload(live.epoch.collection, outcome.value)
    if outcome is Outcome.CLOSED:
        raise ClosedEpochError(f"epoch {live.epoch.number} of {live.epoch.collection} is closed")
    if outcome is Outcome.TOKEN_REFUSED:
        raise RefusalError(401, "Unauthorized", "this token is unknown or already spent")
    if outcome is Outcome.OVER_QUOTA:
        # After this long, at least so many reports are left again.
        wait = 60 * deposit.reports / (deposit.reports_per_minute or 1)
        raise RefusalError(429, "QuotaExceeded", f"less than this is left of the quota of {deposit.uploader}", wait)
    content = f'{{"outcome":"{outcome.value}","reports":{deposit.reports}}}'
    return Response(content, media_type="application/json")
