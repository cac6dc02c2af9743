"""Errors as HTTP responses: one status per kind of error, one JSON shape, and nothing about clients logged."""

from __future__ import annotations

import asyncio
import logging
import math

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from sunzi.client.errors import ParameterError, PlanError, ReportError, StoreError, SunziError
from sunzi.collector.collector import AnotherPlanError, ClosedEpochError, MisdirectedError, UnknownEpochError
from sunzi.collector.writer import OverloadError
from sunzi.errors import EstimateError, MissingExtraError

STATUS_BY_ERROR: list[tuple[type[SunziError], int]] = [
    (UnknownEpochError, 404),
    (ClosedEpochError, 410),
    (AnotherPlanError, 409),
    (MisdirectedError, 421),
    (OverloadError, 503),
    (StoreError, 503),
    (EstimateError, 409),
    (MissingExtraError, 501),
    (ReportError, 400),
    (PlanError, 400),
    (ParameterError, 400),
]
_RETRY_SECONDS = 2
_log = logging.getLogger(__name__)
# A delayed refusal limits how fast one connection can send invalid requests.
_REFUSAL_SECONDS = 0.02


class RefusalError(SunziError):
    """A request refused with a specific HTTP status."""

    def __init__(self, status: int, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.retry_after = status, kind, retry_after


def refusal(status: int, kind: str, message: str, retry_after: float | None = None) -> JSONResponse:
    """The response to a refused request."""
    headers = {}
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": kind, "message": message}, status_code=status, headers=headers)


async def refuse(_: Request, error: Exception) -> JSONResponse:
    """The response to a SunziError, after a short delay. Errors of the store name files and hosts: these are logged."""
    await asyncio.sleep(_REFUSAL_SECONDS)
    if isinstance(error, RefusalError):
        return refusal(error.status, error.kind, str(error), error.retry_after)
    status = next((status for kind, status in STATUS_BY_ERROR if isinstance(error, kind)), 500)
    if status >= 500 and isinstance(error, StoreError) and not isinstance(error, OverloadError):
        _log.warning("%s", error)
        return refusal(status, "StoreError", "the store is not available now; send it again later", _RETRY_SECONDS)
    return refusal(status, type(error).__name__, str(error), _RETRY_SECONDS if status == 503 else None)


async def refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    """The response to a missing or malformed parameter; it does not repeat the value."""
    assert isinstance(error, RequestValidationError)
    await asyncio.sleep(_REFUSAL_SECONDS)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return refusal(422, "Invalid", f"{where}: {first['msg']}")


async def refuse_http(_: Request, error: Exception) -> JSONResponse:
    """The response to an error of the framework, such as an unknown path or method."""
    assert isinstance(error, HTTPException)
    response = refusal(error.status_code, "HTTP", str(error.detail))
    response.headers.update(error.headers or {})
    return response


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The OpenAPI description of a route's refusals."""
    words = {
        304: "The client has it already, by its entity tag.",
        400: "The request is malformed; the message says why.",
        401: "A secret is missing or wrong.",
        403: "The request comes from another web origin, or names an unknown host.",
        404: "There is no such collection or epoch.",
        408: "The body arrived too slowly.",
        409: "The plan differs, or there is nothing to estimate yet.",
        410: "The epoch is closed, for good.",
        413: "The body is too large.",
        421: "The id belongs to another shard.",
        422: "A parameter is missing or malformed.",
        429: "This key has used up its quota for now.",
        501: "This format needs a package that the server lacks.",
        503: "The collector is overloaded or its store fails: send the same again later, under the same id.",
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    return {
        status: {"description": words[status]} | ({"content": content} if status >= 400 else {}) for status in statuses
    }


def giving(*media_types: str) -> dict[int | str, dict[str, object]]:
    """The OpenAPI description of a successful response that is not plain JSON."""
    return {200: {"description": "The requested content.", "content": {media_type: {} for media_type in media_types}}}
