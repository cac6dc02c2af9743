"""The route that lists the public groups of an epoch, for the operator."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from sunzi.collector.collector import LiveEpoch
from sunzi.collector.routes import RECORDS, AnyEpoch, OperatorRoute, find_live, table_response
from sunzi.collector.service import Service, service_of
from sunzi.collector.uploads import CollectionName

router = APIRouter(prefix="/v1/collections/{collection}/epochs/{epoch}", tags=["reading"], route_class=OperatorRoute)


@router.get("/groups.{form}", responses=RECORDS, response_class=Response)
def groups(request: Request, collection: CollectionName, epoch: AnyEpoch, form: Literal["json", "csv"]) -> Response:
    """All public groups that the plan declares, each with its number of reports.

    `published` says whether that is enough for estimates, which take `group=ATTRIBUTE=VALUE`.
    """
    found = _listed(service_of(request), find_live(request, collection, epoch))
    return table_response(form, found, ("group", "attribute", "value", "reports", "published"))


def _listed(service: Service, live: LiveEpoch) -> list[dict[str, Any]]:
    """The groups in the plan's order."""
    counts, published = service.collector.store.group_reports(live.epoch.key), service.publisher.groups(live)
    return [
        {
            "group": (name := f"{attribute}={value}"),
            "attribute": attribute,
            "value": value,
            "reports": counts.get(name, 0),
            "published": name in published,
        }
        for attribute, values in live.plan.groups.items()
        for value in values
    ]
