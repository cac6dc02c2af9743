"""Routes that open and close epochs, make tokens and subtract reports, for the operator."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field
from starlette.requests import Request

from sunzi.collector.collector import OldPlan
from sunzi.collector.refusals import RefusalError, documented
from sunzi.collector.routes import OperatorRoute, described, listed
from sunzi.collector.service import service_of
from sunzi.collector.uploads import CollectionName, EpochNumber, whole_body
from sunzi.plan import Plan

router = APIRouter(prefix="/v1/collections", tags=["administration"], route_class=OperatorRoute)

_REFUSALS = documented(400, 401, 403, 404, 408, 409, 410, 413, 503)
_PLAN_FILE = {"application/json": {"schema": {"type": "object"}}}


class TokenRequest(BaseModel):
    """The number of single-use tokens to create."""

    count: int = Field(ge=1, le=100_000)


class KeyName(BaseModel):
    """The name of an upload key."""

    key: str = Field(max_length=64)


class Subtraction(BaseModel):
    """The number of reports that were subtracted."""

    key: str
    reports: int


class TokenList(BaseModel):
    """New tokens in hexadecimal; they cannot be read again."""

    tokens: list[str]


@router.get("", responses=_REFUSALS)
def list_epochs(request: Request) -> list[dict[str, Any]]:
    """All epochs of all collections, each collection's newest first; the status of one also describes its plan."""
    epochs = sorted(service_of(request).collector.epochs(), key=lambda epoch: (epoch.collection, -epoch.number))
    return [listed(epoch) for epoch in epochs]


@router.post(
    "/{collection}/epochs",
    responses=_REFUSALS,
    openapi_extra={"requestBody": {"required": True, "description": "A plan file.", "content": _PLAN_FILE}},
)
def open_epoch(
    request: Request,
    collection: CollectionName,
    plan: Annotated[bytes, Depends(whole_body)],
    old_plan: OldPlan | None = None,
) -> dict[str, Any]:
    """Open an epoch with this plan, creating the collection if it is new. Repeating this changes nothing.

    If the collection's open epoch has another plan, `old_plan` must say what to do with it: `close` it, or `keep` it
    open for late reports.
    """
    return described(service_of(request).collector.open(collection, Plan.from_json(plan), old_plan=old_plan))


@router.post("/{collection}/epochs/{epoch}/close", responses=_REFUSALS)
def close_epoch(request: Request, collection: CollectionName, epoch: EpochNumber) -> dict[str, Any]:
    """Close an epoch for good: refuse later reports and delete its ids. Repeating this changes nothing."""
    service = service_of(request)
    closed = service.collector.close(collection, epoch)
    service.writer.settle()  # a concurrent reader may have kept the ids from being wiped
    return described(closed)


@router.post("/{collection}/epochs/{epoch}/tokens", responses=_REFUSALS)
def make_tokens(request: Request, collection: CollectionName, epoch: EpochNumber, wanted: TokenRequest) -> TokenList:
    """Create single-use upload tokens for an open epoch."""
    collector, request.state.details = service_of(request).collector, {"count": wanted.count}
    return TokenList(tokens=collector.make_tokens(collector.find(collection, epoch), wanted.count))


@router.delete("/{collection}/epochs/{epoch}/tokens", responses=_REFUSALS)
def revoke_tokens(request: Request, collection: CollectionName, epoch: EpochNumber) -> dict[str, int]:
    """Revoke all unspent tokens of an epoch; the answer has their number. Repeating this changes nothing."""
    collector = service_of(request).collector
    return {"revoked": collector.store.revoke_tokens(collector.find(collection, epoch).epoch.key)}


@router.post("/{collection}/epochs/{epoch}/subtract", responses=_REFUSALS)
def subtract_key(request: Request, collection: CollectionName, epoch: EpochNumber, wanted: KeyName) -> Subtraction:
    """Subtract all reports of a compromised upload key from an epoch, open or closed. Repeating this changes nothing.

    Later uploads with this key count again: revoke it first.
    """
    collector, request.state.details = service_of(request).collector, {"key": wanted.key}
    live = collector.find(collection, epoch)
    if wanted.key not in {each.uploader for each in collector.store.contributions(live.epoch.key)}:
        raise RefusalError(404, "UnknownKey", f"no report of this epoch was uploaded with the key {wanted.key!r}")
    return Subtraction(key=wanted.key, reports=collector.subtract(live, wanted.key))
