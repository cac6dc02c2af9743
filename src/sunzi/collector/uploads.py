"""Uploading: a report or a batch under an id, answered only after it is durably counted.

These two routes carry nearly all traffic, so :class:`UploadGate` answers them before the framework's own machinery, and
they read their few parameters by themselves; ``OPERATIONS`` describes them for OpenAPI.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

from fastapi import Path
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sunzi.collector.collector import ClosedEpochError, LiveEpoch, is_single
from sunzi.collector.records import Deposit, Outcome
from sunzi.collector.refusals import RefusalError, answer_error, documented
from sunzi.collector.settings import UploadKey
from sunzi.collector.state import Service, Ticket, bearer, service_of
from sunzi.errors import ReportError, SunziError

CollectionName = Annotated[
    str, Path(pattern="^[a-z0-9][a-z0-9_-]{0,63}$", description="the collection's name", examples=["default"])
]
EpochNumber = Annotated[
    int, Path(ge=1, le=1 << 31, description="the epoch, as the plan's download names it", examples=[1])
]

_PREFIX = "/v1/collections/{collection}/epochs/{epoch}"
_ADDRESS = re.compile("/v1/collections/(?P<collection>[^/]+)/epochs/(?P<epoch>[^/]+)/(?P<kind>reports|batches)")
_SMALL_BODY = 1 << 16
# Who is refused waits a moment for the answer, so that a connection cannot send rubbish as fast as it can be read.
_REFUSAL_SECONDS = 0.02
_IDENTITY, _HASH = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")


async def upload_report(request: Request) -> Response:
    """Count one report. Safe to repeat under the same id until it is acknowledged."""
    return await _upload(request, single=True)


async def upload_batch(request: Request) -> Response:
    """Count a batch, all of it or, if anything in it is wrong, nothing. Safe to repeat under the same id."""
    return await _upload(request, single=False)


class UploadGate:
    """Takes uploads to their route on the shortest way; everything else goes on to the application."""

    def __init__(self, app: ASGIApp, owner: Starlette) -> None:
        self._app, self._owner = app, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an upload, or pass it on."""
        uploading = scope["type"] == "http" and scope["method"] == "POST"
        matched = _ADDRESS.fullmatch(scope["path"]) if uploading else None
        if matched is None:
            await self._app(scope, receive, send)
            return
        scope["app"], scope["path_params"] = self._owner, matched.groupdict()
        request = Request(scope, receive)
        try:
            response = await (upload_report if matched["kind"] == "reports" else upload_batch)(request)
        except SunziError as error:
            response = await answer_error(request, error)
            await asyncio.sleep(_REFUSAL_SECONDS)
        await response(scope, receive, send)


routes = [  # for those who come with another method
    Route(_PREFIX + "/reports", upload_report, methods=["POST"]),
    Route(_PREFIX + "/batches", upload_batch, methods=["POST"]),
]


async def _addressed(request: Request, service: Service) -> LiveEpoch:
    """The epoch that an upload names; the store is asked beside the event loop, for epochs that were not met before."""
    collection, number = request.path_params["collection"], request.path_params["epoch"]
    if not (number.isascii() and number.isdigit() and len(number) <= 10):
        raise RefusalError(422, "Invalid", "epoch: must be a number, as the plan's download names it")
    known = service.collector.known(collection, int(number))
    if known is not None:
        return known
    return await service.lookups.run(service.collector.find, collection, int(number))


def _parameters(request: Request) -> dict[str, str]:
    """The query, whose values are hexadecimal digits or wrong: nothing in it needs decoding."""
    parts = request.scope["query_string"].decode("latin-1").split("&")
    return dict(part.partition("=")[::2] for part in parts)


def _parameter(parameters: dict[str, str], name: str, pattern: re.Pattern[str]) -> str:
    value = parameters.get(name, "")
    if not pattern.fullmatch(value):
        raise RefusalError(422, "Invalid", f"{name}: must match {pattern.pattern}")
    return value


async def _upload(request: Request, *, single: bool) -> Response:
    service, parameters = service_of(request), _parameters(request)
    identity = _parameter(parameters, "id", _IDENTITY)
    plan = _parameter(parameters, "plan", _HASH) if single else None
    token = _parameter(parameters, "token", _HASH) if "token" in parameters else None
    key = _authorised(request, service, token)
    live = await _addressed(request, service)
    if plan not in (None, live.plan.fingerprint):
        named = f"epoch {live.epoch.number} of {live.epoch.collection}"
        raise RefusalError(409, "WrongPlan", f"{named} has the plan {live.plan.fingerprint}")
    body = await _body(request)
    if is_single(body) != single:
        raise ReportError("a batch goes to /batches and a single report to /reports; this body is the other kind")
    deposit = await _counted(service, live, bytes.fromhex(identity), body, token)
    outcome = await _written(service, deposit, key)
    if outcome is Outcome.CLOSED:  # by another process, since this one last looked
        await service.lookups.run(service.collector.refresh)
    return _receipt(service, live, deposit, outcome)


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


async def _body(request: Request) -> bytes:
    """The whole body, unless the guard finds it too large or too slow."""
    try:
        return await request.body()
    except ClientDisconnect:
        raise RefusalError(400, "Disconnected", "the client went away before its body was complete") from None


async def _counted(service: Service, live: LiveEpoch, identity: bytes, body: bytes, token: str | None) -> Deposit:
    """Decode and count; beside the event loop where that may take long, a few at a time."""
    spent = bytes.fromhex(token) if token is not None and service.settings.single_use_tokens else None
    if live.is_quick and len(body) <= _SMALL_BODY:
        return service.collector.deposit(live, identity, body, spent)
    return await service.workroom.run(service.collector.deposit, live, identity, body, spent)


async def _written(service: Service, deposit: Deposit, key: UploadKey | None) -> Outcome:
    """What became of a deposit. Of its key's quota it takes only what was counted."""
    wait = service.quotas.take(key, deposit.reports) if key is not None else 0.0
    if wait:
        raise RefusalError(429, "QuotaExceeded", f"{key.name if key else ''} has sent enough for now", wait)
    ticket: Ticket = asyncio.get_running_loop().create_future()
    outcome = None
    try:
        service.writer.submit(deposit, ticket)
        outcome = await ticket
        return outcome
    finally:
        if key is not None and outcome is not Outcome.COUNTED:
            service.quotas.give_back(key, deposit.reports)


def _receipt(service: Service, live: LiveEpoch, deposit: Deposit, outcome: Outcome) -> Response:
    service.metrics.count_upload(live.epoch.collection, outcome.value)
    if outcome is Outcome.CLOSED:
        raise ClosedEpochError(f"epoch {live.epoch.number} of {live.epoch.collection} is closed; it takes nothing")
    if outcome is Outcome.TOKEN_REFUSED:
        raise RefusalError(401, "Unauthorized", "this token is unknown or was spent before")
    content = f'{{"outcome":"{outcome.value}","reports":{deposit.reports}}}'
    return Response(content, media_type="application/json")


def _operation(summary: str, name: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    receipt = {
        "type": "object",
        "required": ["outcome", "reports"],
        "properties": {"outcome": {"enum": ["counted", "repeated"]}, "reports": {"type": "integer", "minimum": 1}},
    }
    described = {"description": "Counted, now or before.", "content": {"application/json": {"schema": receipt}}}
    refusals = documented(400, 401, 404, 408, 409, 410, 413, 421, 422, 429, 503)
    return {
        "tags": ["uploading"],
        "summary": summary,
        "operationId": name,
        "parameters": [
            _described("collection", "path", "^[a-z0-9][a-z0-9_-]{0,63}$", "the collection's name", "default"),
            {
                **_described("epoch", "path", "", "the epoch, as the plan's download names it"),
                "schema": {"type": "integer", "minimum": 1, "maximum": 1 << 31},
                "example": 1,
            },
            _described("id", "query", f"^{_IDENTITY.pattern}$", "16 random bytes; the same when sent again", "0" * 32),
            *parameters,
            {
                **_described("token", "query", f"^{_HASH.pattern}$", "a single-use token, where they are asked for"),
                "required": False,
            },
        ],
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {"200": described, **{str(status): refusal for status, refusal in refusals.items()}},
    }


def _described(name: str, place: str, pattern: str, meaning: str, example: str | None = None) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    made = {"name": name, "in": place, "required": True, "description": meaning, "schema": schema}
    return made if example is None else {**made, "example": example}


OPERATIONS = {
    _PREFIX + "/reports": {
        "post": _operation(
            "Count one report",
            "upload_report",
            _described("plan", "query", f"^{_HASH.pattern}$", "the fingerprint of the plan"),
        )
    },
    _PREFIX + "/batches": {"post": _operation("Count a batch", "upload_batch")},
}
"""The two routes as OpenAPI describes them."""
