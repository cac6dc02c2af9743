"""How far a share of fake clients can push several targets together: the bound beside which pushes are measured.

For one target this is :func:`sunzi.planning.push_bound`. For several, the push is the sum over the targets, so that
their rows add up: a report is worth what its block collects from the summed row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sunzi._typing import Floats
from sunzi.designs.response import BlockResponse
from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.decoder_rows import Push, check_share
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.unary import UnaryProtocol


class Reach:
    """What a share of fake clients can do to the targets' summed estimate under one plan.

    ``responses`` and ``parts`` are the block responses that a report chooses from and what every point of theirs adds
    to the targets; ``push`` holds the bound and the best division over moduli.
    """

    def __init__(self, plan: Plan, targets: Sequence[int], share: float) -> None:
        size = plan.domain.size
        if not targets or len(set(targets)) != len(targets) or not all(0 <= target < size for target in targets):
            raise ParameterError(f"targets must be distinct items between 0 and {size - 1}, got {list(targets)}")
        check_share(share)
        self.plan, self.targets, self.share = plan, tuple(targets), share
        self.responses: tuple[BlockResponse, ...] = ()
        self.parts: tuple[Floats, ...] = ()
        self.push = self._push()

    def _push(self) -> Push:
        protocol = self.plan.protocol
        if isinstance(protocol, ModularProtocol):
            rows = list(protocol.decoder_rows(self.targets))
            self.responses = protocol.responses
            self.parts = tuple(np.sum(parts, axis=0) for parts in zip(*(row.parts for row in rows), strict=True))
            return replace(rows[0], parts=self.parts).push(self.share)
        if isinstance(protocol, BlockProtocol):
            wanted = np.zeros(protocol.design.points)
            wanted[list(self.targets)] = 1.0
            self.responses, self.parts = (protocol.response,), (wanted,)
            supported = round(protocol.design.best_message(wanted)[1])
        elif isinstance(protocol, UnaryProtocol):
            supported = len(self.targets)
        else:
            raise ParameterError(f"no attack is known on {protocol.name!r}")
        if len(self.targets) == 1:
            return next(protocol.decoder_rows(self.targets)).push(self.share)
        rates = protocol.probabilities
        gain = self.share * (supported - len(self.targets) * rates.false) / rates.gap
        return Push(self.targets[0], self.share, gain, gain, (self.share,))


def spread_targets(domain_size: int, number: int) -> list[int]:
    """So many items, spread evenly over the domain."""
    if not 1 <= number <= domain_size:
        raise ParameterError(f"targets must be between 1 and {domain_size} items, got {number}")
    return [(2 * index + 1) * domain_size // (2 * number) for index in range(number)]
