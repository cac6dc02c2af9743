"""How much work it is to turn a tally into frequencies, by the route that the decoder would take.

Counted are elementary operations (an addition, a multiplication, a memory access in a loop), a transform of length N as
N·log2 N of them. What is done once a plan (the inverse of the Gram matrix, the spectra of the blocks) is not counted,
nor are standard errors. Constants differ between routes by small factors: compare orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p, log2

from scipy import fft

from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.incidence import cheapest_route
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.unary import UnaryProtocol


@dataclass(frozen=True)
class DecodeWork:
    """Elementary operations of one decoding and the route that they take."""

    operations: float
    route: str


def decode_work(protocol: Protocol, reports: int) -> DecodeWork | None:
    """The work of decoding so many reports; None for protocols and designs that this module does not know."""
    if isinstance(protocol, UnaryProtocol):
        return DecodeWork(protocol.domain_size, "counters")
    if isinstance(protocol, BlockProtocol):
        return _design_work(protocol.design, reports, protocol.domain_size)
    if isinstance(protocol, ModularProtocol):
        return _modular_work(protocol, reports)
    return None


def expected_cells(counters: int, reports: float) -> float:
    """How many of so many equally likely counters so many reports are expected to fill: M·(1 − (1−1/M)^n)."""
    return -counters * expm1(reports * log1p(-1 / counters)) if counters > 1 else min(reports, 1.0)


def _design_work(design: Design, reports: float, limit: int) -> DecodeWork | None:
    if isinstance(design, Singletons | Subsets):
        return DecodeWork(limit, "counters")
    filled = expected_cells(design.counter_count, reports)
    if isinstance(design, Cyclotomic):
        if design.additions_are_cheaper(round(filled)):
            return DecodeWork(filled * design.block_size, "additions")
        length = int(fft.next_fast_len(2 * design.points - 1, real=True))
        return DecodeWork((design.classes + 1) * length * log2(length), "transforms")
    if isinstance(design, Projective):
        route = cheapest_route(design.space, round(filled), limit)
        by_route = {
            "fourier": design.points * log2(design.points),
            "dynamic": float(limit * design.order * design.dimension),
            "direct": filled * limit / design.order,
        }
        return DecodeWork(by_route[route], route)
    return None


def _modular_work(protocol: ModularProtocol, reports: int) -> DecodeWork | None:
    """Every block by its own route, then the solve."""
    size, total, routes = protocol.domain_size, 0.0, dict[str, None]()
    for response in protocol.responses:
        block = _design_work(response.design, reports / len(protocol.responses), response.design.points)
        if block is None:
            return None
        total += block.operations
        routes[block.route] = None
    return DecodeWork(total + solve_work(size, len(protocol.responses)), f"{' or '.join(routes)}, then a solve")


def solve_work(size: int, moduli: int) -> float:
    """From residue estimates to frequencies: one tiling of the domain per block for the right side and one for the
    residual, and Fourier transforms worth four complex ones of that size.
    """
    return 2 * moduli * size + 4 * size * log2(max(size, 2))
