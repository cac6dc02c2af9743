"""Errors as answers: one status a kind, one JSON shape, and nothing in a log."""

from __future__ import annotations

import math

from starlette.requests import Request
from starlette.responses import JSONResponse

from sunzi.collector.collector import ClosedEpochError, MisdirectedError, UnknownEpochError
from sunzi.collector.writer import OverloadError
from sunzi.errors import (
    EstimateError,
    MissingExtraError,
    ParameterError,
    PlanError,
    ReportError,
    StoreError,
    SunziError,
)

STATUS_BY_ERROR: list[tuple[type[SunziError], int]] = [
    (UnknownEpochError, 404),
    (ClosedEpochError, 410),
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


class RefusalError(SunziError):
    """A request that is refused for a reason of HTTP's own."""

    def __init__(self, status: int, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.retry_after = status, kind, retry_after


def answer(status: int, kind: str, message: str, retry_after: float | None = None) -> JSONResponse:
    """The one shape of all refusals."""
    headers = {}
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": kind, "message": message}, status_code=status, headers=headers)


async def answer_error(_: Request, error: Exception) -> JSONResponse:
    """Any error of Sunzi's own, as an answer."""
    if isinstance(error, RefusalError):
        return answer(error.status, error.kind, str(error), error.retry_after)
    status = next((status for kind, status in STATUS_BY_ERROR if isinstance(error, kind)), 500)
    return answer(status, type(error).__name__, str(error), _RETRY_SECONDS if status == 503 else None)


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """What OpenAPI says of the refusals of a route."""
    words = {
        400: "The request is malformed; the message says what and how to mend it.",
        401: "A secret is missing or wrong.",
        403: "A page of another origin asks, or the service is called by a name that is not its own.",
        404: "There is no such collection or epoch.",
        408: "The body came too slowly.",
        409: "The plan differs, or there is nothing to estimate yet.",
        410: "The epoch is closed, for good.",
        413: "The body is too large.",
        422: "A parameter is missing or malformed.",
        421: "The id belongs to another shard.",
        429: "This key has used up its reports for the moment.",
        501: "The server lacks an optional package for this format.",
        503: "Overloaded, or the store is out of order: send the same again later, under the same id.",
    }
    schema = {"$ref": "#/components/schemas/Refusal"}
    content = {"application/json": {"schema": schema}}
    return {status: {"description": words[status], "content": content} for status in statuses}


def giving(*media_types: str) -> dict[int | str, dict[str, object]]:
    """What OpenAPI says of a good answer that is not plain JSON."""
    return {200: {"description": "As asked for.", "content": {media_type: {} for media_type in media_types}}}
