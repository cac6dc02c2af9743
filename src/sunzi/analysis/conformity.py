"""Whether a client's reports have the distribution that its plan states, by sampling.

A client may depart from its plan and yet leave the tightest event alone. So two values are sent many times, by two
clients, and everything that a server could count is compared with what the plan states: how often each value is
supported, how often each selector is drawn, how often two reports are equal, and that every report can be read at all.
All comparisons together raise a false alarm with probability at most 1 − confidence (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.analysis.evidence import decode, evidence_of
from sunzi.analysis.findings import Finding
from sunzi.analysis.proportions import outside
from sunzi.client import Client
from sunzi.designs.response import BlockResponse
from sunzi.errors import DomainError, ReportError, SunziError
from sunzi.plan import Plan
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularMessages, ModularProtocol
from sunzi.protocols.unary import UnaryProtocol
from sunzi.wire import EncodedReports

CHECKS = ("readable", "single reports", "support", "selectors", "freshness")
_SINGLE_REPORTS = 200


def check_conformity(
    plan: Plan, clients: Sequence[Client], pair: tuple[int, int], trials: int, confidence: float, generator: Any
) -> list[Finding]:
    """All checks, on ``trials`` reports of each of two clients."""
    alarm = (1 - confidence) / len(CHECKS)
    # Twos of equal values: reports that reuse words must meet a report of the same value to show it.
    sent = np.array(pair)[np.repeat(generator.integers(0, 2, max(1, trials // 2)), 2)]
    try:
        encoded = [decode(plan, client.report_indices(sent)) for client in clients]
        if any(len(part) != sent.size for part in encoded):
            raise ReportError(f"{sent.size} values were given, and another number of reports came out")
        messages = [plan.protocol.decode(part) for part in encoded]
    except DomainError:
        raise
    except SunziError as error:
        return [Finding("readable", False, f"the server refuses the reports: {error}")]
    found = [Finding("readable", True, f"{len(encoded) * sent.size:,} reports are what a server accepts")]
    found.append(_check_single_reports(plan, clients[0], pair, alarm))
    found.append(_check_support(plan, messages[0], sent, pair, alarm))
    if isinstance(plan.protocol, ModularProtocol):
        found.append(_check_selectors(plan.protocol, messages[0], sent, pair, alarm))
    found.append(_check_freshness(plan, encoded, alarm))
    return found


def _check_single_reports(plan: Plan, client: Client, pair: tuple[int, int], alarm: float) -> Finding:
    """Reports made one by one: their length is their layout's, and they support the value as often as they should."""
    for value in pair:
        label = plan.domain.label(value) if plan.domain.has_labels else value
        try:
            encoded = decode(plan, [client.report(label) for _ in range(_SINGLE_REPORTS)])
            evidence = evidence_of(plan.protocol, plan.protocol.decode(encoded))
        except ReportError as error:
            return Finding("single reports", False, f"a report of value {value} is refused: {error}")
        own = np.array([np.count_nonzero(evidence.supports(np.full(_SINGLE_REPORTS, value)))])
        stated = float(np.mean([true for true, _ in plan.protocol.support_probabilities()]))
        if outside(own, _SINGLE_REPORTS, stated, alarm / 2).any():
            return Finding(
                "single reports",
                False,
                f"{own[0]} of {_SINGLE_REPORTS} reports support value {value}, stated are {stated:.1%}",
            )
    return Finding("single reports", True, f"{2 * _SINGLE_REPORTS} reports made one by one are of the stated length")


def _check_support(plan: Plan, messages: Any, sent: Integers, pair: tuple[int, int], alarm: float) -> Finding:
    """How often each point is supported, given what was sent, and given whether what was sent is supported too."""
    tables = [table for value in pair for table in _support_tables(plan, messages, sent == value, value)]
    cells = sum(counts.size for counts, _, _ in tables)
    for counts, number, stated in tables:
        if number and outside(counts, number, stated, alarm / cells).any():
            worst = int(np.argmax(np.abs(counts / number - stated)))
            return Finding(
                "support",
                False,
                f"point {worst} is supported by {counts[worst] / number:.3%} of "
                f"{number:,} reports, stated are {stated[worst]:.3%}",
            )
    return Finding("support", True, f"{cells:,} rates of support are what the plan states")


Table = tuple[Integers, int, Floats]
"""Counts, out of how many, and the stated rates."""


def _support_tables(plan: Plan, messages: Any, chosen: NDArray[np.bool_], value: int) -> list[Table]:
    protocol, size = plan.protocol, plan.domain.size
    if isinstance(protocol, UnaryProtocol):
        bits = protocol.count(messages[chosen]).dense()
        rates = protocol.probabilities
        stated = np.where(np.arange(size) == value, rates.true, rates.false)
        return [(bits, int(np.count_nonzero(chosen)), stated), *_neighbours(protocol, messages[chosen], value)]
    tables = []
    for response, part in _blocks(protocol, messages, chosen):
        tables += _block_tables(response, part, value % response.design.points)
    return tables


def _neighbours(protocol: UnaryProtocol, messages: NDArray[np.uint8], value: int) -> list[Table]:
    """Bits are independent: equal neighbours as often as two bits are."""
    bits = np.unpackbits(messages, axis=1, count=protocol.domain_size, bitorder="little")
    equal = np.count_nonzero(bits[:, 1:] == bits[:, :-1], axis=0)
    rates = np.full(protocol.domain_size, protocol.probabilities.false)
    rates[value] = protocol.probabilities.true
    return [(equal, len(bits), rates[1:] * rates[:-1] + (1 - rates[1:]) * (1 - rates[:-1]))]


def _blocks(protocol: Any, messages: Any, chosen: NDArray[np.bool_]) -> list[tuple[BlockResponse, Integers]]:
    if isinstance(protocol, BlockProtocol):
        return [(protocol.response, messages[chosen])]
    found = []
    for index, response in enumerate(protocol.responses):
        found.append((response, _part(protocol, messages, index, chosen)))
    return found


def _part(protocol: ModularProtocol, messages: Any, index: int, chosen: NDArray[np.bool_]) -> Integers:
    """The messages of one selector among the chosen reports."""
    selectors = _selectors(protocol, messages)
    mine = selectors == index
    if isinstance(messages, ModularMessages):
        return messages.parts[index][chosen[mine]]
    start = sum(response.design.message_count for response in protocol.responses[:index])
    return np.asarray(messages[mine & chosen] - start)


def _selectors(protocol: ModularProtocol, messages: Any) -> Integers:
    if isinstance(messages, ModularMessages):
        return messages.selectors
    stops = np.cumsum([response.design.message_count for response in protocol.responses])
    return np.searchsorted(stops, messages, side="right").astype(np.int64)


def _block_tables(response: BlockResponse, messages: Integers, point: int) -> list[Table]:
    """Points of all blocks, of those that miss the value's own point, and of those that hold it."""
    design = response.design
    if not len(messages):
        return []
    limit = design.points
    everything = design.point_counts(design.count(messages), limit)
    stated = np.full(limit, response.probabilities.false)
    stated[point] = response.probabilities.true
    tables = [(everything, len(messages), stated)]
    is_truth = design.contains(messages, np.full(len(messages), point))
    for kind, others in ((~is_truth, design.block_size), (is_truth, design.block_size - 1)):
        part = messages[kind]
        if len(part):
            given = np.full(limit, others / (limit - 1))
            given[point] = design.block_size - others
            tables.append((design.point_counts(design.count(part), limit), len(part), given))
    return tables


def _check_selectors(
    protocol: ModularProtocol, messages: Any, sent: Integers, pair: tuple[int, int], alarm: float
) -> Finding:
    """Every modulus equally often, whatever the value."""
    selectors, number = _selectors(protocol, messages), len(protocol.responses)
    for value in pair:
        mine = selectors[sent == value]
        counts = np.bincount(mine, minlength=number)
        if mine.size and outside(counts, mine.size, 1 / number, alarm / (2 * number)).any():
            worst = int(np.argmax(np.abs(counts / mine.size - 1 / number)))
            return Finding(
                "selectors",
                False,
                f"value {value} draws modulus {protocol.moduli[worst]} in "
                f"{counts[worst] / mine.size:.2%} of its reports, stated are {1 / number:.2%}",
            )
    return Finding("selectors", True, f"{number} moduli are drawn equally often")


def _check_freshness(plan: Plan, encoded: Sequence[EncodedReports], alarm: float) -> Finding:
    """Two reports of one value are equal as often as independent ones: neighbours in a batch, and across clients."""
    stated = collision_probability(plan)
    first, *others = [list(zip(part.selectors.tolist(), part.in_order(), strict=True)) for part in encoded]
    compared = [("neighbours in a batch", first[0::2], first[1::2])]
    compared += [("two clients' reports", first, other) for other in others]
    for name, left, right in compared:
        equal = np.array([sum(one == two for one, two in zip(left, right, strict=True))])
        if outside(equal, len(left), stated, alarm / len(compared)).any():
            return Finding(
                "freshness",
                False,
                f"{equal[0] / len(left):.2%} of {name} are equal, independent ones "
                f"would be in {stated:.2%}: randomness is used twice",
            )
    return Finding("freshness", True, "no randomness is seen to be used twice")


def collision_probability(plan: Plan) -> float:
    """Σ_y P(y|x)², for every x."""
    protocol = plan.protocol
    if isinstance(protocol, BlockProtocol):
        return _block_collision(protocol.response)
    if isinstance(protocol, ModularProtocol):
        return sum(_block_collision(response) for response in protocol.responses) / len(protocol.responses) ** 2
    assert isinstance(protocol, UnaryProtocol), "evidence_of has refused all others"
    true, false = protocol.probabilities.true, protocol.probabilities.false
    rest = (false**2 + (1 - false) ** 2) ** (protocol.domain_size - 1)
    return float((true**2 + (1 - true) ** 2) * rest)


def _block_collision(response: BlockResponse) -> float:
    design, truth = response.design, response.inclusion
    containing = Fraction(design.message_count * design.block_size, design.points)
    return float(truth**2 / containing + (1 - truth) ** 2 / (design.message_count - containing))
