"""Strict JSON: what a plan may contain, its canonical form, and how its keys are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import PlanError, shown

_LARGEST_NUMBER = (1 << 53) - 1
_DEEPEST = 16


def parse_json(data: bytes) -> object:
    """Strict JSON: UTF-8, no duplicate keys, no NaN."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise PlanError(f"a key occurs twice among {shown([key for key, _ in pairs])}")
        return found

    def refuse(constant: str) -> object:
        raise PlanError(f"{constant} is not JSON")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except PlanError:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a number of thousands of digits
        raise PlanError(f"not JSON: {error}") from None


def canonical_json(value: object) -> bytes:
    """RFC 8785 for values without fractions: sorted ASCII keys, no spaces, shortest escapes, integers below 2^53."""
    _check(value, _DEEPEST)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _check(value: object, depth: int) -> None:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise PlanError(f"text must be valid Unicode, got {shown(value)}") from None
    elif depth == 0:
        raise PlanError(f"a plan nests at most {_DEEPEST} levels deep")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not (isinstance(key, str) and key.isascii()):
                raise PlanError(f"a key must be ASCII text, got {shown(key)}")
            _check(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth - 1)
    elif type(value) is int:
        if abs(value) > _LARGEST_NUMBER:
            raise PlanError(f"integers of 2^53 and more are written as decimal strings, got {shown(value)}")
    elif not isinstance(value, bool):
        raise PlanError(f"a plan holds text, whole numbers, true, false, lists and objects; got {shown(value)}")


def keys_of(name: str, value: object, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, Any]:
    """An object with these keys; PlanError for any other key, since a client must not ignore what it does not
    understand.

    Parameters
    ----------
    name: what the object is, such as "a range".
    value: what a plan has there.
    required, optional: the keys.
    """
    if not isinstance(value, Mapping):
        raise PlanError(f"{name} must be an object, got {shown(value)}")
    unknown, missing = set(value) - {*required, *optional}, set(required) - set(value)
    if unknown or missing:
        may = f", and may have {', '.join(optional)}" if optional else ""
        raise PlanError(
            f"{name} must have exactly {', '.join(required)}{may}; unknown: {shown(sorted(unknown))}, "
            f"missing: {sorted(missing)}"
        )
    return value


def only_parameters(parameters: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise PlanError unless the keys of ``parameters`` are exactly ``names``.

    A client must not ignore what it does not understand.

    Parameters
    ----------
    parameters: the parameters of a plan.
    names: the keys that must be there.

    >>> only_parameters({"points": 7}, ["points"])
    """
    keys_of("parameters", parameters, names)


def integer_parameter(parameters: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Read an integer from the parameters of a plan; PlanError if it is missing or out of range.

    Parameters
    ----------
    parameters, name: the parameters, and the key to read.
    low, high: the smallest and the largest integer allowed.

    >>> integer_parameter({"points": 7}, "points", 2, 100)
    7
    """
    value = parameters.get(name)
    if type(value) is not int:
        raise PlanError(f"{name} must be a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise PlanError(f"{name} must lie between {low} and {high}, got {value}")
    return value


def integer_list(name: str, value: object, most: int) -> list[int]:
    """A list of integers, not longer than this; PlanError if it is anything else."""
    if not isinstance(value, list) or len(value) > most or not all(type(each) is int for each in value):
        raise PlanError(f"{name} must be a list of whole numbers, at most {most}, got {shown(value)}")
    return value
