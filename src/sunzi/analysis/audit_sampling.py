"""The audit by sampling: the tightest event of a protocol, and whether reports have the stated distribution.

For two values x and x', a report's likelihood ratio is e^ε exactly if it supports x and not x', e^−ε if it supports x'
and not x, and 1 otherwise. So of all events of ratio e^ε the largest is "supports x and not x'". Its mirror image
belongs to x' and is used as well: if one of the two values is sent by the toss of a coin, a *hit* (supports the value
sent and not the other) is at most e^ε times as likely as a *miss* (the reverse).

A report of randomised response supports one value only, so there all pairs are covered at once: a hit is a report of
the value sent, a miss a report of any of the k−1 others, and (k−1)·P(hit) ≤ e^ε·P(miss).

A client may depart from its plan and yet leave the tightest event alone. So two clients send two values many times, and
everything that a server could count is compared with what the plan states: how often each value is supported, how often
each selector is drawn, how often two reports are equal, and that every report can be read at all. All comparisons
together raise a false alarm with probability at most 1 − confidence (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.analysis.evidence import Booleans, Evidence, check_channels, decode
from sunzi.analysis.statistics import outside
from sunzi.batch_client import BatchClient
from sunzi.client.errors import DomainError, ParameterError, ReportError, SunziError
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel
from sunzi.wire import EncodedReports

SAMPLING_CHECKS = ("readable", "single reports", "support", "selectors", "freshness")
_PAIRS_TRIED = 200
_SINGLE_REPORTS = 200


@dataclass(frozen=True)
class Finding:
    """The result of one check of an audit."""

    check: str
    passed: bool
    detail: str
    breaks_epsilon: bool = False
    """Whether failing the check proves that the client leaks more than ε, rather than that it departs from its plan."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)


# --- the tightest event


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
        """The event in words."""
        return "the report is the value sent" if self.pair is None else "supports the value sent and not the other one"

    def draw(self, choices: Sequence[int], number: int, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """``number`` values to send, out of these choices, and the rival of each."""
        if self.pair is None:
            sent = np.asarray(choices, dtype=np.int64)[generator.integers(0, len(choices), number)]
            return sent, sent
        coins = generator.integers(0, 2, number)
        values = np.array(self.pair, dtype=np.int64)
        return values[coins], values[1 - coins]

    def count(self, evidence: Evidence, sent: Integers, rivals: Integers) -> tuple[int, int]:
        """The numbers of hits and misses."""
        own = evidence.supports(sent)
        if self.pair is None:
            return int(np.count_nonzero(own)), int(np.count_nonzero(~own))
        other = evidence.supports(rivals)
        return int(np.count_nonzero(own & ~other)), int(np.count_nonzero(other & ~own))

    def exact_epsilon(self) -> float:
        """log(rivals·P(hit)/P(miss)): ε up to the rounding of thresholds."""
        return log(self.rivals * self.hit / self.miss)


def tightest_event(plan: Plan, generator: np.random.Generator, pair: tuple[int, int] | None = None) -> TightestEvent:
    """The event for a given pair of values, or for a random pair that most channels distinguish."""
    check_channels(plan.protocol)
    choices = plan.protocol.attacked_values
    if pair is not None:
        if len({*pair}) != 2 or not all(0 <= value < plan.domain.size for value in pair):
            raise ParameterError(f"a pair must be two different values of the domain, got {pair[0]} and {pair[1]}")
        if not all(value in choices for value in pair):
            named = ", ".join(map(plan.domain.shown, choices))
            raise ParameterError(f"a pair must be two numbers that are not rounded by chance: choose two of {named}")
        return _event_of_pair(plan, pair)
    responses = plan.protocol.responses
    if len(responses) == 1 and responses[0].design.block_size == 1 and responses[0].points == len(choices):
        truth = responses[0].inclusion
        return TightestEvent(None, len(choices) - 1, float(truth), float(1 - truth))
    drawn = [generator.choice(len(choices), 2, replace=False).tolist() for _ in range(_PAIRS_TRIED)]
    pairs = [(choices[first], choices[second]) for first, second in [[0, 1], *drawn]]
    events = [_event_of_pair(plan, pair) for pair in pairs]
    best = max(event.hit for event in events)
    return next(event for event in reversed(events) if event.hit == best)


def _event_of_pair(plan: Plan, pair: tuple[int, int]) -> TightestEvent:
    """Over all channels that distinguish the two values."""
    protocol, values = plan.protocol, np.array(pair)
    hit = miss = 0.0
    for index, (channel, share) in enumerate(zip(protocol.channels, protocol.shares.tolist(), strict=True)):
        if np.unique(protocol.points_of(index, values)).size == 2:
            own, other = channel.discordance
            hit, miss = hit + share * own, miss + share * other
    return TightestEvent(pair, 1, hit, miss)


def bound_epsilon(hits: int, misses: int, rivals: int, low_share: float) -> float:
    """log(rivals·θ/(1−θ)) for a lower limit θ on the share of hits among hits and misses; never below 0."""
    if hits + misses == 0 or low_share <= 0:
        return 0.0
    if low_share >= 1:
        return float("inf")
    return max(0.0, log(rivals) + log(low_share / (1 - low_share)))


def trials_for(event: TightestEvent, epsilon: float, quantile: float, shortfall: float = 0.04) -> int:
    """Trials after which the bound lies within ``shortfall`` below ε with probability 97.7 %.

    The logarithm of the ratio of hits to misses has variance (1/P(hit) + 1/P(miss))/n; the bound lies ``quantile``
    standard deviations below it, plus two more as a margin.
    """
    variance = 1 / event.hit + 1 / event.miss
    return int(np.ceil(variance * ((quantile + 2) / (shortfall * epsilon)) ** 2))


# --- the distribution of reports


def check_distribution(
    plan: Plan, clients: Sequence[BatchClient], pair: tuple[int, int], trials: int, confidence: float, generator: Any
) -> list[Finding]:
    """All checks, on ``trials`` reports of each of two clients."""
    alarm = (1 - confidence) / len(SAMPLING_CHECKS)
    # Equal values in pairs: reports that reuse words must meet a report of the same value to show it.
    sent = np.array(pair)[np.repeat(generator.integers(0, 2, max(1, trials // 2)), 2)]
    try:
        encoded = [decode(plan, client.report_indices(sent)) for client in clients]
        for part in encoded:
            if len(part) != sent.size:
                raise ReportError(f"expected {sent.size} reports, got {len(part)}")
        messages = [plan.protocol.decode(part) for part in encoded]
    except DomainError:
        raise
    except SunziError as error:
        return [Finding("readable", False, f"the server refuses the reports: {error}")]
    found = [Finding("readable", True, f"the server accepts all {len(encoded) * sent.size:,} reports")]
    found.append(_check_single_reports(plan, clients[0], pair, alarm))
    selectors, parts = plan.protocol.split(messages[0])
    found.append(_check_support(plan.protocol, selectors, parts, sent, pair, alarm))
    if len(plan.protocol.channels) > 1:
        found.append(_check_selectors(plan.protocol, selectors, sent, pair, alarm))
    found.append(_check_freshness(plan, encoded, alarm))
    return found


def _check_single_reports(plan: Plan, client: BatchClient, pair: tuple[int, int], alarm: float) -> Finding:
    """Single reports have the length of their layout, and support the value as often as stated."""
    for value in pair:
        example = plan.domain.example(value)
        try:
            encoded = decode(plan, [client.report(example) for _ in range(_SINGLE_REPORTS)])
            evidence = Evidence.of(plan.protocol, plan.protocol.decode(encoded))
        except ReportError as error:
            return Finding("single reports", False, f"a report of value {value} is refused: {error}")
        own = np.array([np.count_nonzero(evidence.supports(np.full(_SINGLE_REPORTS, value)))])
        stated = float(plan.protocol.shares @ [channel.probabilities.true for channel in plan.protocol.channels])
        if outside(own, _SINGLE_REPORTS, stated, alarm / 2).any():
            return Finding(
                "single reports",
                False,
                f"{own[0]} of {_SINGLE_REPORTS} reports support value {value}, the plan states {stated:.1%}",
            )
    return Finding("single reports", True, f"{2 * _SINGLE_REPORTS} single reports have the stated length")


Table = tuple[Integers, int, Floats]
"""Counts, the number of reports, and the stated rates."""


def _check_support(
    protocol: Protocol, selectors: Integers, parts: Sequence[Any], sent: Integers, pair: Any, alarm: float
) -> Finding:
    """How often each point is supported, given the value sent, and given whether that value is supported too."""
    tables: list[Table] = []
    for value in pair:
        for index, (channel, part) in enumerate(zip(protocol.channels, parts, strict=True)):
            chosen = part[sent[selectors == index] == value]
            tables += _support_tables(channel, chosen, int(protocol.points_of(index, np.array([value]))[0]))
    cells = sum(counts.size for counts, _, _ in tables)
    for counts, number, stated in tables:
        if number and outside(counts, number, stated, alarm / cells).any():
            worst = int(np.argmax(np.abs(counts / number - stated)))
            return Finding(
                "support",
                False,
                f"point {worst} is supported by {counts[worst] / number:.3%} of "
                f"{number:,} reports, the plan states {stated[worst]:.3%}",
            )
    return Finding("support", True, f"{cells:,} support rates match the plan")


def _support_tables(channel: Channel, messages: Any, point: int) -> list[Table]:
    """Points supported by all messages, by those that miss the value's own point, and by those that support it."""
    if not len(messages):
        return []
    stated = np.full(channel.points, channel.probabilities.false)
    stated[point] = channel.probabilities.true
    tables = [(channel.point_counts(channel.count(messages)), len(messages), stated)]
    own = channel.supports(messages, np.full(len(messages), point))
    for supported in (False, True):
        part = messages[own == supported]
        if len(part):
            given = np.full(channel.points, channel.other_rate(supported))
            given[point] = float(supported)
            tables.append((channel.point_counts(channel.count(part)), len(part), given))
    if channel.has_independent_bits:
        tables.append(_neighbours(channel.support_table(messages), stated))
    return tables


def _neighbours(bits: Booleans, rates: Floats) -> Table:
    """Independent bits: neighbours are equal as often as two independent bits are."""
    equal = np.count_nonzero(bits[:, 1:] == bits[:, :-1], axis=0)
    return equal, len(bits), rates[1:] * rates[:-1] + (1 - rates[1:]) * (1 - rates[:-1])


def _check_selectors(
    protocol: Protocol, selectors: Integers, sent: Integers, pair: tuple[int, int], alarm: float
) -> Finding:
    """Every channel as often as its share says, for both values."""
    number, shares = len(protocol.channels), protocol.shares
    for value in pair:
        mine = selectors[sent == value]
        counts = np.bincount(mine, minlength=number)
        if mine.size and outside(counts, mine.size, shares, alarm / (2 * number)).any():
            worst = int(np.argmax(np.abs(counts / mine.size - shares)))
            return Finding(
                "selectors",
                False,
                f"value {value} draws channel {worst}, on {protocol.channels[worst].points} points, in "
                f"{counts[worst] / mine.size:.2%} of its reports, the plan states {shares[worst]:.2%}",
            )
    return Finding("selectors", True, f"{number} channels are drawn as often as the plan states")


def _check_freshness(plan: Plan, encoded: Sequence[EncodedReports], alarm: float) -> Finding:
    """Reports of one value are equal as often as independent ones: neighbours in a batch, and across clients."""
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
    return Finding("freshness", True, "no sign that randomness is used twice")


def collision_probability(plan: Plan) -> float:
    """Σ_y P(y|x)², the same for every x that is not rounded."""
    collisions = [channel.collision_probability for channel in plan.protocol.channels]
    return float(plan.protocol.shares**2 @ collisions)
