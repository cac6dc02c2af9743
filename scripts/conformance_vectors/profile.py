"""The minimal profile: which vectors a small client must pass (conformance/README.md)."""

from __future__ import annotations

import json

from conformance_vectors.plans import Record
from sunzi.planning.recommendation import MINIMAL

_DOMAIN_KEYS = {"size", "labels", "other"}
_NOT_MINIMAL = {"max_bits", "max_work", "groups", "label_file", "report", "batch"}


def is_minimal(name: str, record: Record) -> bool:
    """Whether a minimal client must pass a vector.

    It must refuse every plan that it does not understand, with a PlanError; only wrong thresholds of plans outside the
    profile are not its business.
    """
    if name in ("device_ids", "upload_bodies"):
        return True
    if name.startswith("bad_plan_"):
        return record["error"] == "PlanError" or is_minimal_plan(json.loads(record["text"]))
    if name.startswith(("tally_", "bad_tally_")) or {
        "max_bits",
        "max_work",
        "groups",
        "label_file",
        "report",
        "batch",
    } & set(record):
        return False
    return is_minimal_plan(record["plan"])


def is_minimal_plan(plan: Record) -> bool:
    """Whether a plan has a protocol and a domain of the profile, and no groups."""
    return plan["protocol"] in MINIMAL and set(plan["domain"]) <= _DOMAIN_KEYS and "groups" not in plan
