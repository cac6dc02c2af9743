"""What operators ask about public groups: their names in words, one group by its name, and whether two overlap."""

from __future__ import annotations

from sunzi.client.errors import ParameterError, shown
from sunzi.client.groups import DeclaredGroups, chosen_groups, listed, parse_groups


def groups_in_words(declared: DeclaredGroups) -> str:
    """The groups of a plan, for people."""
    return "; ".join(f"{attribute}: {listed(values)}" for attribute, values in declared.items()) + " (public)"


def parse_group(declared: DeclaredGroups, text: str) -> str:
    """The name of one declared group, from the text ``country=DE``."""
    chosen = parse_groups(text)
    if len(chosen) != 1:
        raise ParameterError(f"name one group, such as country=DE, got {shown(text)}")
    return chosen_groups(declared, chosen)[0]


def are_disjoint(first: str | None, second: str | None) -> bool:
    """Whether no report of one epoch can be in both: only for two values of one attribute.

    Parameters
    ----------
    first, second: names of groups such as ``country=DE``; None is all reports.

    >>> are_disjoint("country=DE", "country=FR"), are_disjoint("country=DE", "release=124"), are_disjoint(None, None)
    (True, False, False)
    """
    if first is None or second is None:
        return False
    return first != second and first.partition("=")[0] == second.partition("=")[0]
