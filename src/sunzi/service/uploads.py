"""Uploading: a report or a batch under an id, answered only after it is durably counted."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from sunzi.collection.collector import ClosedEpochError, LiveEpoch, is_single
from sunzi.collection.records import Deposit, Outcome
from sunzi.errors import ReportError
from sunzi.service.refusals import RefusalError, documented
from sunzi.service.settings import UploadKey
from sunzi.service.state import Service, Ticket, bearer, service_of

router = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["uploading"])

CollectionName = Annotated[
    str, Path(pattern="^[a-z0-9][a-z0-9_-]{0,63}$", description="the collection's name", examples=["default"])
]
EpochNumber = Annotated[
    int, Path(ge=1, le=1 << 31, description="the epoch, as the plan's download names it", examples=[1])
]
Identity = Annotated[
    str, Query(pattern="^[0-9a-f]{32}$", description="16 random bytes in hexadecimal; the same when sent again")
]
Fingerprint = Annotated[str, Query(pattern="^[0-9a-f]{64}$", description="the fingerprint of the plan")]
Token = Annotated[
    str | None, Query(pattern="^[0-9a-f]{64}$", description="a single-use token, where the service asks for one")
]

_SMALL_BODY = 1 << 16
_REFUSALS = documented(400, 401, 404, 408, 409, 410, 413, 421, 429, 503)
_BINARY_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class Receipt(BaseModel):
    """What became of an upload: ``counted``, or ``repeated`` if its id was counted before."""

    outcome: str
    reports: int


@router.post("/reports", responses=_REFUSALS, openapi_extra=_BINARY_BODY, response_model=Receipt)
async def upload_report(
    request: Request,
    collection: CollectionName,
    epoch: EpochNumber,
    id: Identity,
    plan: Fingerprint,
    token: Token = None,
) -> Response:
    """Count one report. Safe to repeat under the same id until it is acknowledged."""
    service = service_of(request)
    live = service.collector.find(collection, epoch)
    if plan != live.plan.fingerprint:
        raise RefusalError(409, "WrongPlan", f"epoch {epoch} of {collection} has the plan {live.plan.fingerprint}")
    return await _upload(request, service, live, id, token, single=True)


@router.post("/batches", responses=_REFUSALS, openapi_extra=_BINARY_BODY, response_model=Receipt)
async def upload_batch(
    request: Request, collection: CollectionName, epoch: EpochNumber, id: Identity, token: Token = None
) -> Response:
    """Count a batch, all of it or, if anything in it is wrong, nothing. Safe to repeat under the same id."""
    service = service_of(request)
    return await _upload(request, service, service.collector.find(collection, epoch), id, token, single=False)


async def _upload(
    request: Request, service: Service, live: LiveEpoch, identity: str, token: str | None, *, single: bool
) -> Response:
    key = _authorised(request, service, token)
    body = await _body(request, service)
    if is_single(body) != single:
        raise ReportError("a batch goes to /batches and a single report to /reports; this body is the other kind")
    deposit = await _counted(service, live, bytes.fromhex(identity), body, token)
    wait = service.quotas.take(key, deposit.reports) if key is not None else 0.0
    if wait:
        raise RefusalError(429, "QuotaExceeded", f"{key.name if key else ''} has sent enough for now", wait)
    ticket: Ticket = asyncio.get_running_loop().create_future()
    service.writer.submit(deposit, ticket)
    return _receipt(service, live, deposit, await ticket)


def _authorised(request: Request, service: Service, token: str | None) -> UploadKey | None:
    """Who uploads, where keys are asked for; whether there is a token at all, where those are."""
    settings = service.settings
    if settings.single_use_tokens and token is None:
        raise RefusalError(401, "Unauthorized", "this collector asks for a single-use token in every upload")
    if not settings.upload_keys:
        return None
    key = settings.upload_key(bearer(request))
    if key is None:
        raise RefusalError(401, "Unauthorized", "this needs an upload key, as Authorization: Bearer KEY")
    return key


async def _body(request: Request, service: Service) -> bytes:
    """The whole body, unless it is too large or too slow."""
    limit = service.settings.body_bytes
    too_large = RefusalError(413, "TooLarge", f"a body may have at most {limit} bytes; send smaller batches")
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(service.settings.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise RefusalError(408, "TooSlow", "the body did not arrive in time; send it again") from None
    except ClientDisconnect:
        raise RefusalError(400, "Disconnected", "the client went away before its body was complete") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _counted(service: Service, live: LiveEpoch, identity: bytes, body: bytes, token: str | None) -> Deposit:
    """Decode and count; beside the event loop where that may take long, a few at a time."""
    spent = bytes.fromhex(token) if token is not None and service.settings.single_use_tokens else None
    if live.is_quick and len(body) <= _SMALL_BODY:
        return service.collector.deposit(live, identity, body, spent)
    return await service.workroom.run(service.collector.deposit, live, identity, body, spent)


def _receipt(service: Service, live: LiveEpoch, deposit: Deposit, outcome: Outcome) -> Response:
    service.metrics.uploads.labels(live.epoch.collection, outcome.value).inc()
    if outcome is Outcome.CLOSED:
        service.collector.refresh()
        raise ClosedEpochError(f"epoch {live.epoch.number} of {live.epoch.collection} is closed; it takes nothing")
    if outcome is Outcome.TOKEN_REFUSED:
        raise RefusalError(401, "Unauthorized", "this token is unknown or was spent before")
    content = f'{{"outcome":"{outcome.value}","reports":{deposit.reports}}}'
    return Response(content, media_type="application/json")
