"""The route that says what readers of an epoch's published results can learn."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from sunzi.collector.routes import REFUSALS, AnyEpoch, OperatorRoute, find_live
from sunzi.collector.service import service_of
from sunzi.collector.uploads import CollectionName

router = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["reading"], route_class=OperatorRoute)


@router.get("/guarantee.json", responses=REFUSALS)
def guarantee(request: Request, collection: CollectionName, epoch: AnyEpoch) -> dict[str, Any]:
    """What someone who sees only the published results can learn about one person: `batch_guarantee`, with its
    conditions, and the same as texts in `facts`.

    `batch_guarantee` is null if none is claimed; `no_batch_guarantee` then says why. A guarantee of a batch never holds
    against the operator, who can see each report.
    """
    found = service_of(request).publisher.publication(find_live(request, collection, epoch))
    facts = [] if found.guarantee is None else found.guarantee.facts()
    return found.to_dict() | {"facts": [{"name": name, "text": text} for name, text in facts]}
