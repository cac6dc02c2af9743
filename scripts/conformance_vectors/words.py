"""Words at edges: 0, 2^64 − 1, a threshold and the word before it, and words on either side of rejection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from sunzi.client.errors import ReportError
from sunzi.client.reports import byte_length
from sunzi.designs.base import Design
from sunzi.designs.response import BlockResponse
from sunzi.designs.subsets import Subsets
from sunzi.numerics.randomness import ArraySource, Words
from sunzi.plan import Plan
from sunzi.protocols.rounding import RoundedNumbers
from sunzi.protocols.views import ViewsProtocol

LARGEST_WORD = (1 << 64) - 1


def surplus(bound: int) -> int:
    """2^64 mod s: words whose low half is below it are rejected."""
    return (1 << 64) % bound


def word_with_low(bound: int, low: int) -> int:
    """A word x with x·s ≡ low modulo 2^64; ``low`` must be a multiple of the power of two in s."""
    zeros = (bound & -bound).bit_length() - 1
    return (low >> zeros) * pow(bound >> zeros, -1, 1 << 64) % (1 << (64 - zeros))


def last_rejected(bound: int) -> int:
    """The rejected word with the largest low half; 0 if no word is ever rejected."""
    return word_with_low(bound, surplus(bound) - (bound & -bound)) if surplus(bound) else 0


def first_accepted(bound: int) -> int:
    """The accepted word with the smallest low half."""
    return word_with_low(bound, surplus(bound))


def word_for(bound: int, variate: int) -> int:
    """The smallest accepted word that gives this variate."""
    word = -(-(variate << 64) // bound)
    while word * bound % (1 << 64) < surplus(bound):
        word += 1
    return word


class Script(ArraySource):
    """Returns given words first, then those of a stream, and records all words it returned."""

    def __init__(self, prefix: Iterable[int], stream: ArraySource) -> None:
        self._prefix = list(prefix)
        self._stream = stream
        self.taken: list[int] = []

    def array(self, count: int) -> Words:
        """Return the next ``count`` words."""
        first, self._prefix = self._prefix[:count], self._prefix[count:]
        words = first + self._stream.array(count - len(first)).tolist()
        self.taken += words
        return np.array(words, dtype=np.uint64)


class Awkward(ArraySource):
    """A stream in which about every third word is an edge of this plan."""

    def __init__(self, stream: ArraySource, plan: Plan) -> None:
        self._stream = stream
        self._pool = [0, 0, 0, LARGEST_WORD]
        for bound in sorted(bounds_of(plan)):
            self._pool += [last_rejected(bound), first_accepted(bound)]
        for threshold in sorted(thresholds_of(plan)):
            self._pool += [threshold - 1, threshold]
        if isinstance(plan.protocol, ViewsProtocol):
            ends = np.cumsum([view.share for view in plan.protocol.views[:-1]], dtype=np.uint64).tolist()
            self._pool += [word for end in ends for word in ((end << 32) - 1, end << 32)]

    def array(self, count: int) -> Words:
        """Return the next ``count`` words."""
        words, choice = self._stream.array(count), self._stream.array(count)
        for position, chosen in enumerate(choice.tolist()):
            if chosen % 3 == 0:
                words[position] = self._pool[chosen // 3 % len(self._pool)]
        return words


def responses_of(plan: Plan) -> list[BlockResponse]:
    """The block responses of a plan; empty for unary encodings."""
    return [plan.protocol.response] if isinstance(plan.protocol, RoundedNumbers) else list(plan.protocol.responses)


def bounds_of(plan: Plan) -> set[int]:
    """All bounds of uniform integers that this plan draws."""
    responses = responses_of(plan)
    bounds = {int(bound) for response in responses for bound in response.design.draw_bounds}
    if isinstance(plan.protocol, RoundedNumbers):
        bounds.add(plan.domain.size - 1)
    return bounds | {len(responses)} if responses else bounds


def thresholds_of(plan: Plan) -> set[int]:
    """All thresholds of this plan."""
    parameters = plan.protocol.parameters()
    if "true_threshold" in parameters:
        return {int(parameters["true_threshold"]), int(parameters["false_threshold"])}
    return {response.threshold for response in responses_of(plan)}


def crafted_prefixes(plan: Plan, index: int) -> Iterator[list[int]]:
    """Words for one report of the value ``index``: every edge, then words of the stream."""
    responses = responses_of(plan)
    if not responses:
        yield from unary_prefixes(plan, index)
        return
    for number in range(EDGE_ROWS):
        j = number % len(responses)
        bounds = [int(bound) for bound in responses[j].design.draw_bounds]
        yield first_words(plan, index, number, j) + edge_rows(responses[j].threshold, bounds)[number]
    if "response" in plan.protocol.parameters() and plan.protocol.parameters()["response"].get("code") == "arithmetic":
        for eighths in range(1, 8):
            yield words_of_subset(responses[0], index, carrying_subset(responses[0].design, eighths))


def payload_of(word: int, bits: int) -> NDArray[np.uint8]:
    """One row of bytes: the bits of the word from the highest on, and the last byte as a number."""
    last_bits = 1 + (bits - 1) % 8
    data = (word >> last_bits).to_bytes(byte_length(bits) - 1, "big")
    return np.array([[*data, word % (1 << last_bits)]], dtype=np.uint8)


def carrying_subset(design: Design, eighths: int) -> list[int]:
    """The subset whose interval contains this many eighths of all words: a carry runs through most of its bytes."""
    word = eighths << design.payload_bits >> 3
    while True:  # the word, or the one before it, is the first one in that interval
        try:
            return [int(point) for point in design.decode(payload_of(word, design.payload_bits))[0]]
        except ReportError:
            word -= 1


def words_of_subset(response: BlockResponse, index: int, subset: list[int]) -> list[int]:
    """The words with which the value ``index`` reports this subset."""
    design = response.design
    assert isinstance(design, Subsets), "only these have the arithmetic code"
    truth = index in subset
    others = [point for point in range(design.points) if point != index]
    wanted = [point for point in subset if point != index]
    if truth:  # the value replaces the first of the chosen points
        wanted = [next(point for point in others if point not in subset), *wanted]
    variates = [0]
    for place, point in enumerate(wanted):
        at = others.index(point)
        variates.append(at - place)
        others[place], others[at] = others[at], others[place]
    words, rest = [response.threshold - 1 if truth else response.threshold], iter(variates)
    for share in design.shares:
        joint = 0
        for limit in share:
            joint = joint * limit + next(rest)
        words.append(word_for(prod(share), joint))
    return words


def selector_words(count: int, j: int) -> list[int]:
    """A rejected word, if there is one, and one that selects j."""
    return ([last_rejected(count)] if surplus(count) else []) + [word_for(count, j)]


def first_words(plan: Plan, index: int, number: int, j: int) -> list[int]:
    """The words before the block response j: of a selector, or of a rounding at one of its edges."""
    if isinstance(plan.protocol, ViewsProtocol):
        start = sum(view.share for view in plan.protocol.views[:j])
        # The first and the last word that draw this view.
        return [start << 32] if number % 2 else [(start + plan.protocol.views[j].share << 32) - 1]
    if isinstance(plan.protocol, RoundedNumbers):
        steps = plan.domain.size - 1
        rest = index * (plan.protocol.grid_points - 1) % steps
        drawn = rest if number % 2 else max(rest - 1, 0)  # down, up
        return ([last_rejected(steps)] if surplus(steps) else []) + [word_for(steps, drawn)]
    return [] if "response" in plan.protocol.parameters() else selector_words(len(plan.protocol.responses), j)


EDGE_ROWS = 6


def edge_rows(threshold: int, bounds: list[int]) -> list[list[int]]:
    """The truth word and one word per bound, at every edge; the third row is rejected in the second round too."""
    rejected = [last_rejected(bound) for bound in bounds]
    again = [last_rejected(bound) for bound in bounds if surplus(bound)]
    return [
        [0] * (1 + len(bounds)),
        [LARGEST_WORD] * (1 + len(bounds)),
        [threshold - 1, *rejected, *again],
        [threshold, *map(first_accepted, bounds)],
        [threshold - 1, *(word_for(bound, 0) for bound in bounds)],
        [threshold, *(word_for(bound, bound - 1) for bound in bounds)],
    ]


def unary_prefixes(plan: Plan, index: int) -> Iterator[list[int]]:
    """All ones, all zeros, and both sides of both thresholds."""
    true = int(plan.protocol.parameters()["true_threshold"])
    false = int(plan.protocol.parameters()["false_threshold"])
    size = plan.domain.size
    yield [0] * size
    yield [LARGEST_WORD] * size
    yield [true - 1 if position == index else false for position in range(size)]
    yield [true if position == index else false - 1 for position in range(size)]
