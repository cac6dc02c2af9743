"""The protocols, by name: built in, registered by :func:`register`, or installed by another package.

A package offers a protocol as an entry point of the group ``sunzi.protocols``, whose name is the protocol's name. It is
loaded when that name is first needed, so importing Sunzi costs nothing more.
"""

from __future__ import annotations

import re

from sunzi.client.errors import ParameterError, UnknownProtocolError, shown
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_protocols import (
    CompactSubsetSelection,
    GeneralizedRandomizedResponse,
    ProjectiveGeometryResponse,
    SubsetSelection,
)
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularSubsetSelection
from sunzi.protocols.ordered_views import OrderedViews
from sunzi.protocols.prefix_views import PrefixViews
from sunzi.protocols.rounding import RoundedNumbers
from sunzi.protocols.table_views import TableViews
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor

ENTRY_POINTS = "sunzi.protocols"
"""The group of entry points by which other packages offer protocols."""

_PROTOCOLS: dict[str, type[Protocol]] = {
    protocol.name: protocol
    for protocol in (
        GeneralizedRandomizedResponse,
        SubsetSelection,
        CompactSubsetSelection,
        ProjectiveGeometryResponse,
        Rappor,
        OptimalUnaryEncoding,
        ModularSubsetSelection,
        CompactModularSubsetSelection,
    )
}

# Plans of these have their own constructors, since they do not estimate a histogram of single values.
_VIEWS: dict[str, type[Protocol]] = {
    protocol.name: protocol for protocol in (OrderedViews, PrefixViews, RoundedNumbers, TableViews)
}


_BUILT_IN = frozenset([*_PROTOCOLS.values(), *_VIEWS.values()])


def is_built_in(protocol: Protocol) -> bool:
    """Whether the protocol is one of Sunzi's own, not a subclass that may randomise in another way."""
    return type(protocol) in _BUILT_IN


def catalogue() -> tuple[str, ...]:
    """The names of all protocols, registered ones last; those of other packages once they were used.

    >>> catalogue()[:3]
    ('grr', 'ss', 'ss-compact')
    """
    return tuple(_PROTOCOLS)


def find(name: object) -> type[Protocol]:
    """The protocol class of a name; UnknownProtocolError if there is none."""
    if not isinstance(name, str):
        raise ParameterError(f"protocol must be one of {', '.join(_PROTOCOLS)}; got {shown(name)}")
    return _PROTOCOLS.get(name) or _VIEWS.get(name) or _load(name)


def _load(name: str) -> type[Protocol]:
    """Load and register the protocol that an installed package offers under this name."""
    if re.match(r"rs[+-]?fd", name.casefold()):
        raise UnknownProtocolError(
            "RS+FD keeps epsilon only between records that differ in one attribute (docs/mathematics.md §14 enumerates "
            "it), so there is no such plan; plan tables with make_tables, or sunzi plan --tables"
        )
    from importlib.metadata import entry_points

    offered = entry_points(group=ENTRY_POINTS)
    found = next((entry for entry in offered if entry.name == name), None)
    if found is None:
        known = dict.fromkeys([*_PROTOCOLS, *(entry.name for entry in offered)])
        raise UnknownProtocolError(
            f"protocol must be one of {', '.join(known)}; got {shown(name)}; if another package provides it, install "
            f"that package, with an entry point of the group {ENTRY_POINTS}"
        )
    try:
        protocol = found.load()
    except Exception as error:  # any error of a package that is not ours
        raise ParameterError(f"the protocol {name!r} ({found.value}) cannot be loaded: {error!r}") from error
    if not (isinstance(protocol, type) and issubclass(protocol, Protocol) and protocol.name == name):
        raise ParameterError(f"the entry point {name!r} ({found.value}) is not a Protocol class of that name")
    return register(protocol)


def register(protocol: type[Protocol]) -> type[Protocol]:
    """Add your own protocol; usable as a class decorator.

    Parameters
    ----------
    protocol: a subclass of :class:`Protocol` whose ``name`` no other protocol has.

    >>> register(GeneralizedRandomizedResponse).name  # registering a protocol again changes nothing
    'grr'
    """
    known = _PROTOCOLS.setdefault(protocol.name, protocol)
    if known is not protocol:
        raise ParameterError(
            f"a protocol named {protocol.name!r} exists already: {known.__module__}.{known.__qualname__}"
        )
    return protocol
