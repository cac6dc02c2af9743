"""The explicit list of protocols, by name."""

from __future__ import annotations

from sunzi.errors import ParameterError
from sunzi.numerics.checks import shown
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_response import (
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
    """The names of all protocols, the registered ones last."""
    return tuple(_PROTOCOLS)


def find(name: object) -> type[Protocol]:
    """The protocol of a name."""
    if not isinstance(name, str) or name not in _PROTOCOLS:
        raise ParameterError(f"protocol must be one of {', '.join(_PROTOCOLS)}; got {shown(name)}")
    return _PROTOCOLS[name]


def register(protocol: type[Protocol]) -> type[Protocol]:
    """Add a protocol of your own under its ``name``, which must be new; usable as a class decorator."""
    known = _PROTOCOLS.setdefault(protocol.name, protocol)
    if known is not protocol:
        raise ParameterError(
            f"a protocol named {protocol.name!r} exists already: {known.__module__}.{known.__qualname__}"
        )
    return protocol
