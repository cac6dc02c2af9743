"""The tightest event of a protocol: the one whose probability differs by the whole factor e^ε between two values.

For two values x and x', a report's likelihood ratio is e^ε exactly if it supports x and not x', e^−ε if it supports x'
and not x, and 1 otherwise. So of all events of ratio e^ε the largest is "x in the block, x' not"; for unary encodings
"x's bit is 1, x' has 0"; for modular ones the union of these over all moduli that tell x from x'. Its mirror image
belongs to x', and is used as well: if one of the two is sent by the toss of a coin, a *hit* (supports what was sent and
not the other) is at most e^ε times as likely as a *miss* (the reverse).

A report of randomised response supports one value only, so there the events of all pairs are told apart at once: a hit
is a report of the value sent, a miss a report of any of the k−1 others, and (k−1)·P(hit) ≤ e^ε·P(miss).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.analysis.evidence import Evidence
from sunzi.designs.response import BlockResponse
from sunzi.designs.singletons import Singletons
from sunzi.errors import ParameterError
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.unary import UnaryProtocol

Booleans = NDArray[np.bool_]

_PAIRS_TRIED = 200


@dataclass(frozen=True)
class TightestEvent:
    """A pair of values, or all values of a randomised response (``pair`` None), and the stated chances of hit and miss.

    ``rivals`` is the number of values that a miss may name: P(hit)·rivals ≤ e^ε·P(miss).
    """

    pair: tuple[int, int] | None
    rivals: int
    hit: float
    miss: float

    @property
    def description(self) -> str:
        """In words."""
        return "the report is the value sent" if self.pair is None else "supports the value sent and not the other one"

    def draw(self, domain_size: int, number: int, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """So many values to send, and the rival of each."""
        if self.pair is None:
            sent = generator.integers(0, domain_size, number)
            return sent, sent
        coins = generator.integers(0, 2, number)
        values = np.array(self.pair, dtype=np.int64)
        return values[coins], values[1 - coins]

    def count(self, evidence: Evidence, sent: Integers, rivals: Integers) -> tuple[int, int]:
        """Hits and misses."""
        own = evidence.supports(sent)
        if self.pair is None:
            return int(np.count_nonzero(own)), int(np.count_nonzero(~own))
        other = evidence.supports(rivals)
        return int(np.count_nonzero(own & ~other)), int(np.count_nonzero(other & ~own))

    def exact_epsilon(self) -> float:
        """log(rivals·P(hit)/P(miss)): ε up to the rounding of thresholds."""
        return log(self.rivals * self.hit / self.miss)


def tightest_event(plan: Plan, generator: np.random.Generator, pair: tuple[int, int] | None = None) -> TightestEvent:
    """The event for a given pair of values, or for one drawn at random among those that all moduli tell apart."""
    protocol = plan.protocol
    if pair is not None:
        if len({*pair}) != 2 or not all(0 <= value < plan.domain.size for value in pair):
            raise ParameterError(f"a pair is two different values of the domain, got {pair[0]} and {pair[1]}")
        return _event_of_pair(plan, pair)
    if _names_one_value(protocol):
        truth = protocol.response.inclusion
        return TightestEvent(None, plan.domain.size - 1, float(truth), float(1 - truth))
    drawn = (generator.choice(plan.domain.size, 2, replace=False) for _ in range(_PAIRS_TRIED))
    pairs = [(0, 1), *((int(first), int(second)) for first, second in drawn)]
    events = [_event_of_pair(plan, pair) for pair in pairs]
    best = max(event.hit for event in events)
    return next(event for event in reversed(events) if event.hit == best)


def _names_one_value(protocol: Protocol) -> TypeGuard[BlockProtocol]:
    """Whether a report is one value of the domain."""
    if not isinstance(protocol, BlockProtocol) or not isinstance(protocol.design, Singletons):
        return False
    return protocol.design.points == protocol.domain_size


def _event_of_pair(plan: Plan, pair: tuple[int, int]) -> TightestEvent:
    protocol = plan.protocol
    if isinstance(protocol, UnaryProtocol):
        true, false = protocol.probabilities.true, protocol.probabilities.false
        return TightestEvent(pair, 1, true * (1 - false), false * (1 - true))
    if isinstance(protocol, BlockProtocol):
        return TightestEvent(pair, 1, *_discordant(protocol.response))
    if isinstance(protocol, ModularProtocol):
        telling = [r for r in protocol.responses if (pair[0] - pair[1]) % r.design.points]
        parts = np.array([_discordant(response) for response in telling]).sum(axis=0) / len(protocol.responses)
        return TightestEvent(pair, 1, float(parts[0]), float(parts[1]))
    raise ParameterError(f"the tightest event of {protocol.name} is not known, so it cannot be audited")


def _discordant(response: BlockResponse) -> tuple[float, float]:
    """P(x in the block, x' not) and the reverse, when x is sent: p(v−w)/(v−1) and (1−p)w/(v−1)."""
    design, truth = response.design, response.inclusion
    rest = design.points - 1
    return float(truth * (design.points - design.block_size) / rest), float((1 - truth) * design.block_size / rest)


def bound_epsilon(hits: int, misses: int, rivals: int, low_share: float) -> float:
    """log(rivals·θ/(1−θ)) for a lower limit θ on the share of hits among hits and misses; never below 0."""
    if hits + misses == 0 or low_share <= 0:
        return 0.0
    if low_share >= 1:
        return float("inf")
    return max(0.0, log(rivals) + log(low_share / (1 - low_share)))


def trials_for(event: TightestEvent, epsilon: float, quantile: float, shortfall: float = 0.04) -> int:
    """Trials after which the bound lies within ``shortfall`` below ε with probability 97.7 %.

    The logarithm of the ratio of hits to misses has variance (1/P(hit) + 1/P(miss))/n; the bound lies ``quantile`` of
    its standard deviations below, and two more are allowed for.
    """
    variance = 1 / event.hit + 1 / event.miss
    return int(np.ceil(variance * ((quantile + 2) / (shortfall * epsilon)) ** 2))
