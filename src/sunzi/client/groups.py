"""Public groups of users: the closed lists that a plan declares, and the values that an upload names.

Groups are public. They travel and are stored as they are, and ε says nothing about them. Names are short codes without
spaces, so that they need no escaping in files, addresses and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType

from .errors import ParameterError, PlanError, shown

MOST_ATTRIBUTES = 8
MOST_VALUES = 1000
_ATTRIBUTE = re.compile("[a-z][a-z0-9_]{0,31}")
_VALUE = re.compile("[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SHOWN_VALUES = 5

DeclaredGroups = Mapping[str, tuple[str, ...]]
"""For every attribute, such as ``country``, the values that an upload may name."""


def declare_groups(groups: object) -> DeclaredGroups:
    """A read-only copy of the groups of a plan, checked; PlanError says what is wrong.

    Parameters
    ----------
    groups: for every attribute the list of its values.

    >>> dict(declare_groups({"country": ["DE", "FR"]}))
    {'country': ('DE', 'FR')}
    """
    if not isinstance(groups, Mapping) or len(groups) > MOST_ATTRIBUTES:
        raise PlanError(f"groups must be an object with at most {MOST_ATTRIBUTES} attributes, got {shown(groups)}")
    for attribute in groups:
        if not isinstance(attribute, str) or not _ATTRIBUTE.fullmatch(attribute):
            raise PlanError(
                f"a group's attribute must be 1 to 32 of a-z, 0-9 and _, starting with a letter, got {shown(attribute)}"
            )
    return MappingProxyType({attribute: _declared_values(attribute, groups[attribute]) for attribute in sorted(groups)})


def _declared_values(attribute: str, values: object) -> tuple[str, ...]:
    if isinstance(values, (str, Mapping, Set)) or not isinstance(values, Iterable):
        raise PlanError(f"the values of the group {attribute} must be a list, got {shown(values)}")
    found = tuple(values)
    if not 1 <= len(found) <= MOST_VALUES:
        raise PlanError(f"the group {attribute} must have 1 to {MOST_VALUES} values, got {len(found)}")
    for value in found:
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise PlanError(
                f"a value of group {attribute} must be 1 to 64 of A-Z, a-z, 0-9 and . _ + -, starting with a letter or "
                f"digit, got {shown(value)}"
            )
    if len(set(found)) < len(found):
        repeated = next(value for value in found if found.count(value) > 1)
        raise PlanError(f"the group {attribute} lists {repeated!r} twice")
    return found


def chosen_groups(declared: DeclaredGroups, chosen: Mapping[str, str] | None) -> tuple[str, ...]:
    """The names of groups, such as ``("country=DE", "release=124")``; ParameterError unless all are declared.

    Parameters
    ----------
    declared: the groups of the plan.
    chosen: at most one value per attribute.

    >>> chosen_groups({"country": ("DE", "FR")}, {"country": "DE"})
    ('country=DE',)
    """
    for attribute, value in (chosen or {}).items():
        if not declared:
            raise ParameterError("this plan declares no groups; send the report without groups")
        if attribute not in declared:
            known = ", ".join(declared)
            raise ParameterError(f"this plan has no group {shown(attribute)}; its groups are {known}")
        if value not in declared[attribute]:
            known = listed(declared[attribute])
            raise ParameterError(f"the group {attribute} has no value {shown(value)}; its values are {known}")
    return tuple(f"{attribute}={value}" for attribute, value in sorted((chosen or {}).items()))


def listed(values: Sequence[str]) -> str:
    """The first few values, for messages."""
    return ", ".join(values[:_SHOWN_VALUES]) + (", …" if len(values) > _SHOWN_VALUES else "")


def parse_groups(text: str) -> dict[str, str]:
    """The groups that ``country=DE,release=124`` names; ParameterError if it is malformed or names one twice.

    >>> parse_groups("country=DE,release=124")
    {'country': 'DE', 'release': '124'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        attribute, _, value = part.partition("=")
        if not _ATTRIBUTE.fullmatch(attribute) or not _VALUE.fullmatch(value):
            raise ParameterError(f"a group must be ATTRIBUTE=VALUE, such as country=DE, got {shown(part)}")
        if attribute in found:
            raise ParameterError(f"the group {attribute} is named twice; an upload names one value of it")
        found[attribute] = value
    return found
