"""The operator's side: collections, epochs, tokens. All of it asks for the admin token, if there is one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends
from pydantic import BaseModel, Field
from starlette.requests import Request

from sunzi.collector.reading import described
from sunzi.collector.refusals import documented
from sunzi.collector.state import require_admin, service_of
from sunzi.collector.uploads import CollectionName, EpochNumber
from sunzi.errors import PlanError
from sunzi.plan import Plan

router = APIRouter(prefix="/v1/collections", tags=["administration"], dependencies=[Depends(require_admin)])

_REFUSALS = documented(400, 401, 403, 404, 408, 409, 410, 413, 503)


class TokenRequest(BaseModel):
    """How many single-use tokens to make."""

    count: int = Field(ge=1, le=100_000)


class TokenList(BaseModel):
    """Tokens in hexadecimal; they are told once and never again."""

    tokens: list[str]


@router.get("", responses=_REFUSALS)
def list_epochs(request: Request) -> list[dict[str, Any]]:
    """Every epoch of every collection."""
    return [described(live) for live in service_of(request).collector.epochs()]


@router.post("/{collection}/epochs", responses=_REFUSALS)
def open_epoch(
    request: Request, collection: CollectionName, plan: Annotated[dict[str, Any], Body(description="a plan file")]
) -> dict[str, Any]:
    """Open an epoch under this plan, and the collection with it if it is new. The same plan again changes nothing."""
    from sunzi.contract import Contract

    try:
        made = Plan.from_contract(Contract.from_json(plan))
    except RecursionError:
        raise PlanError("this plan nests too deep") from None
    return described(service_of(request).collector.open(collection, made))


@router.post("/{collection}/epochs/{epoch}/close", responses=_REFUSALS)
def close_epoch(request: Request, collection: CollectionName, epoch: EpochNumber) -> dict[str, Any]:
    """Close an epoch for good: late reports are refused and its ids are forgotten. Closing again changes nothing."""
    service = service_of(request)
    closed = service.collector.close(collection, epoch)
    service.writer.settle()  # if somebody read meanwhile, traces of the ids are left
    return described(closed)


@router.post("/{collection}/epochs/{epoch}/tokens", responses=_REFUSALS)
def make_tokens(request: Request, collection: CollectionName, epoch: EpochNumber, wanted: TokenRequest) -> TokenList:
    """Make single-use upload tokens for an open epoch."""
    collector = service_of(request).collector
    return TokenList(tokens=collector.make_tokens(collector.find(collection, epoch), wanted.count))
