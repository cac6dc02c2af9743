"""The audit by chosen words: fed with chosen 64-bit words, the client must send what integer arithmetic gives.

Sampling cannot see a fault of one part in 2^64. But a client is a function of its words, so it can be given the words
at which its decision must change: the last word below a threshold and the first above, the first and the last word of a
drawn integer, and words that must be rejected. The expected report is computed here in Python integers from the plan
alone: the thresholds, Lemire's rule, the shares of views and the order of draws in docs/format.md. The block for given
integers comes from the plan's design, which enumeration checks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from sunzi.analysis.audit_sampling import Finding
from sunzi.analysis.evidence import decode
from sunzi.batch_client import BatchClient
from sunzi.client.errors import RandomnessError, SunziError
from sunzi.client.randomness import WordSource
from sunzi.client.thresholds import FULL_BITS, truth_threshold
from sunzi.designs.response import BlockResponse
from sunzi.numerics.randomness import ScriptedSource
from sunzi.plan import Plan
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel, FirstWord
from sunzi.wire import payload_integers

ScriptedClient = Callable[[WordSource], BatchClient]
Report = tuple[int, int]
Script = list[int]

_WORDS = 1 << FULL_BITS
_COLUMNS_PROBED = 6
_BLOCKS_PROBED = 3
_BITS_PROBED = 8
_OUTCOMES_PROBED = 16
_ANY_SCRIPTS = 40


def check_words(plan: Plan, client: ScriptedClient, seed: int = 0) -> list[Finding]:
    """The certificates of the thresholds, and the client's reports from chosen words."""
    generator = np.random.default_rng(seed)
    cases = 0
    for value, script in _scripts(plan.protocol, generator):
        due, used = expected_report(plan.protocol, value, script)
        cases += 1
        # The report of a device, and a batch of one, which the operator's side makes.
        for batch in (False, True):
            sent = scripted_report(plan, client, value, script, batch=batch)
            if sent != (due, used):
                return [_certify(plan), Finding("words", False, _difference(value, sent, due, used))]
    return [_certify(plan), Finding("words", True, f"{cases:,} chosen word sequences give the expected reports")]


def _difference(value: int, sent: tuple[Report, int] | str, due: Report, used: int) -> str:
    if isinstance(sent, str):
        return f"value {value}, chosen words: no report but {sent}"
    if sent[0] == due:
        return f"value {value}, chosen words: {sent[1]} words were taken, expected {used}"
    return f"value {value}, chosen words: the report differs from the expected one"


def scripted_report(
    plan: Plan, client: ScriptedClient, value: int, script: Script, *, batch: bool = False
) -> tuple[Report, int] | str:
    """The report as integers and the words it took, or what went wrong; by itself or as a batch of one."""
    source = ScriptedSource(np.array(script, dtype=np.uint64))
    try:
        audited, example = client(source), plan.domain.example(value)
        encoded = decode(plan, audited.reports([example]) if batch else [audited.report(example)])
    except RandomnessError:
        return "a request for more words"
    except SunziError as error:
        return str(error)
    return (int(encoded.selectors[0]), int(encoded.in_order()[0])), len(script) - source.remaining


def _certify(plan: Plan) -> Finding:
    """The likelihood ratio of every channel is at most e^ε, bounded by exact fractions; for block responses, a slightly
    larger threshold would exceed it.
    """
    below = _exponential(plan.epsilon)
    above = below * (1 + Fraction(1, 1 << 90))
    for channel in plan.protocol.channels:
        if channel.likelihood_ratio > below:
            detail = f"the thresholds of the channel on {channel.points} points leak more than epsilon"
            return Finding("thresholds", False, detail, True)
    for response in plan.protocol.responses:
        design, threshold = response.design, response.threshold
        gain, loss = design.points - design.block_size, design.block_size
        if (threshold + 2) * gain <= above * loss * (_WORDS - threshold - 2):
            return Finding("thresholds", False, f"threshold {threshold} is far below the certified threshold")
    return Finding("thresholds", True, "every threshold keeps the likelihood ratio within e^epsilon, in integers")


def _exponential(epsilon: Fraction) -> Fraction:
    """A partial sum of the series of e^ε: less than e^ε by under one part in 2^100."""
    term, total, index = Fraction(1), Fraction(0), 0
    while term > total / (1 << 110) or index <= epsilon:
        total += term
        index += 1
        term = term * epsilon / index
    return total


# --- the expected report


class _Queue:
    """Words in their order."""

    def __init__(self, words: Script) -> None:
        self._words = words
        self.used = 0

    def next(self) -> int:
        self.used += 1
        return self._words[self.used - 1]

    def drawn(self, first: FirstWord | None) -> int:
        """The integer that the first word gives, or the first one that is not rejected; 0 if there is no such word."""
        outcome = 0 if first is None else first.outcome(self.next(), FULL_BITS)
        return self.drawn(first) if outcome is None else outcome

    def below(self, bounds: Sequence[int]) -> list[int]:
        """One integer below each bound; rejected words are replaced, in order, after all other words are taken."""
        words = [self.next() for _ in bounds]
        while rejected := [i for i, s in enumerate(bounds) if words[i] * s % _WORDS < _WORDS % s]:
            for index in rejected:
                words[index] = self.next()
        return [word * bound >> FULL_BITS for word, bound in zip(words, bounds, strict=True)]


def expected_report(protocol: Protocol, value: int, script: Script) -> tuple[Report, int]:
    """(selector, payload) of the report, and how many words it takes."""
    queue = _Queue(script)
    index, point = protocol.place(queue.drawn(protocol.first_word), value)
    if protocol.responses:
        payload = _block_payload(protocol.responses[index], point, queue)
    else:
        payload = _bits_payload(protocol.channels[index], point, queue)
    return protocol.wire_report(index, payload), queue.used


def _bits_payload(channel: Channel, point: int, queue: _Queue) -> int:
    true, false = channel.thresholds
    bits = [queue.next() < (true if place == point else false) for place in range(channel.points)]
    return sum(1 << place for place, bit in enumerate(bits) if bit)


def _block_payload(response: BlockResponse, point: int, queue: _Queue) -> int:
    design = response.design
    truth_word = queue.next()
    variates = queue.below([int(bound) for bound in design.draw_bounds])
    is_truth = truth_word < truth_threshold(design.block_size, design.points, response.epsilon)
    rows: Any = np.array([point]), np.array([is_truth]), np.array([variates], dtype=np.uint64)
    return payload_integers(design.encode(design.respond(*rows)))[0]


# --- which words


def _scripts(protocol: Protocol, generator: np.random.Generator) -> Iterator[tuple[int, Script]]:
    """Values and scripts; each script ends with spare words, to replace rejected ones."""
    values = [0, protocol.domain_size - 1, *generator.integers(0, protocol.domain_size, 3).tolist()]
    for turn, script in enumerate(_scripts_of(protocol, values, generator)):
        yield script if isinstance(script, tuple) else (values[turn % len(values)], script)


def _scripts_of(protocol: Protocol, values: list[int], generator: np.random.Generator) -> Iterator[Any]:
    first = protocol.first_word
    if not protocol.responses:
        yield from _bit_scripts(protocol.channels[0], values, generator)
    elif first is None:
        yield from _block_scripts(protocol.responses[0], generator)
    else:
        longest = max(response.words_per_report for response in protocol.responses)
        for outcome in _some(first.outcomes, _OUTCOMES_PROBED, generator):
            for word in _clipped([0, 1, _WORDS - 1, *first.edges(outcome, FULL_BITS)]):
                yield [word, *_random(longest + 20, generator)]
        for value in values:  # where the value's point changes
            for word in _clipped(first.edges(_turn(protocol, first, value), FULL_BITS)):
                yield value, [word, *_random(longest + 20, generator)]
        for outcome in _some(first.outcomes, _BLOCKS_PROBED, generator):
            middle, response = first.middle(outcome, FULL_BITS), protocol.responses[protocol.place(outcome, 0)[0]]
            for script in _block_scripts(response, generator):
                yield [middle, *script]


def _turn(protocol: Protocol, first: FirstWord, value: int) -> int:
    """The first integer that leads the value to another place than 0 does, or the last one."""
    start = protocol.place(0, value)
    return bisect_left(range(first.outcomes - 1), True, key=lambda drawn: protocol.place(drawn, value) != start)


def _block_scripts(response: BlockResponse, generator: np.random.Generator) -> Iterator[Script]:
    design = response.design
    threshold = truth_threshold(design.block_size, design.points, response.epsilon)
    bounds = [int(bound) for bound in design.draw_bounds]
    length = 1 + len(bounds) + 20
    for truth_word in (0, threshold - 1, threshold, threshold + 1, _WORDS - 1):
        for _ in range(3):
            yield [truth_word, *_random(length, generator)]
    for _ in range(_ANY_SCRIPTS):
        yield _random(1 + length, generator)
    for column in _some(len(bounds), _COLUMNS_PROBED, generator):
        for truth_word, word in product((0, _WORDS - 1), _edges(bounds[column], generator, 3)):
            script = [truth_word, *_random(length, generator)]
            script[1 + column] = word
            yield script


def _bit_scripts(channel: Channel, values: list[int], generator: np.random.Generator) -> Iterator[tuple[int, Script]]:
    size, thresholds = channel.points, channel.thresholds
    for value in values:
        for place in {value, *_some(size, _BITS_PROBED, generator)}:
            for threshold, offset in product(thresholds, (-1, 0)):
                script = _random(size, generator)
                script[place] = threshold + offset
                yield value, script


def _edges(bound: int, generator: np.random.Generator, number: int) -> list[int]:
    """The first and the last word of some integers below the bound, their neighbours, and rejected words."""
    words = [0, 1, _WORDS - 1]
    for integer in _some(bound, number, generator):
        first, stop = -(-integer * _WORDS // bound), -(-(integer + 1) * _WORDS // bound)
        words += [first, first + 1, stop - 1]
    return _clipped(words)


def _clipped(words: list[int]) -> list[int]:
    return [min(word, _WORDS - 1) for word in words]


def _some(number: int, most: int, generator: np.random.Generator) -> list[int]:
    """All indices, or the first, the last and some between."""
    if number <= most:
        return list(range(number))
    between = generator.integers(1, number - 1, max(0, most - 2)).tolist()
    return sorted({0, number - 1, *between})


def _random(number: int, generator: np.random.Generator) -> Script:
    return generator.integers(0, _WORDS - 1, number, dtype=np.uint64, endpoint=True).tolist()
