"""The protocols, by name."""

from __future__ import annotations

from sunzi.errors import ParameterError
from sunzi.numerics.checks import shown
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_protocols import (
    CompactSubsetSelection,
    GeneralizedRandomizedResponse,
    ProjectiveGeometryResponse,
    SubsetSelection,
)
from sunzi.protocols.modular import CompactModularSubsetSelection, ModularSubsetSelection
from sunzi.protocols.unary import OptimalUnaryEncoding, Rappor

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


def catalogue() -> tuple[str, ...]:
    """The names of all protocols, registered ones last.

    >>> catalogue()[:3]
    ('grr', 'ss', 'ss-compact')
    """
    return tuple(_PROTOCOLS)


def find(name: object) -> type[Protocol]:
    """The protocol class of a name; ParameterError if there is none."""
    if not isinstance(name, str) or name not in _PROTOCOLS:
        raise ParameterError(f"protocol must be one of {', '.join(_PROTOCOLS)}; got {shown(name)}")
    return _PROTOCOLS[name]


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
