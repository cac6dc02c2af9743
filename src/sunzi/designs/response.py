"""The block response: one randomiser for every design (docs/mathematics.md §1).

Its threshold is certified in integers (docs/mathematics.md §7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs import response as client
from sunzi.client.errors import ParameterError
from sunzi.client.randomness import WordSource
from sunzi.client.reports import byte_length
from sunzi.client.thresholds import FULL_BITS, exponential_below
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import Words, uniform_below, word_array
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.wire import Payloads, payload_integers

_WORDS_AT_ONCE = 1 << 19
_FEW_DRAWS = 16

_KINDS: dict[str, type[Design]] = {design.kind: design for design in (Singletons, Subsets, Cyclotomic, Projective)}


def register_design(design: type[Design]) -> None:
    """Let plans name a design of your own.

    Parameters
    ----------
    design: a subclass of :class:`Design` whose ``kind`` no other design has.

    >>> register_design(Singletons)  # registering a design again changes nothing
    """
    known = _KINDS.setdefault(design.kind, design)
    if known is not design:
        raise ParameterError(f"a design named {design.kind!r} exists already: {known.__module__}.{known.__qualname__}")


@dataclass(frozen=True)
class BlockResponse(client.BlockResponse):
    """Report a uniform block that contains the value with probability p = T/2^b, else a uniform block that does not.

    ε-LDP: the likelihood ratio of any message under two values is 1 or e^{±ε'} with ε' ≤ ε, checked in integers on
    creation. Draw order of one report: the truth word, then one word for each of the design's ``draw_bounds``.

    >>> from fractions import Fraction
    >>> response = BlockResponse(Singletons(points=10), epsilon=Fraction(1))
    >>> response.words_per_report, round(response.probabilities.true, 3)
    (2, 0.232)
    """

    design: Design

    @classmethod
    def design_kind(cls, kind: str) -> type[Design] | None:
        """The class of designs with this name, registered ones included."""
        return _KINDS.get(kind)

    @cached_property
    def probabilities(self) -> SupportProbabilities:
        """How often a report supports the value's point, and another given point."""
        design = self.design
        return SupportProbabilities.of_block_response(self.threshold, design.block_size, design.points, self.word_bits)

    def randomize(self, values: Integers, source: WordSource) -> Integers:
        """One message per value, from words taken row by row."""
        messages: Integers = self._collect(values, source, lambda messages: messages)
        return messages

    def payloads(self, values: Integers, source: WordSource) -> Payloads:
        """The encoded messages of :meth:`randomize`, from the same words; faster than encoding them afterwards."""
        if not values.size:
            rows = np.empty((0, byte_length(self.design.payload_bits)), dtype=np.uint8)
            return rows if self.design.payload_limit is None else np.empty(0, dtype=np.uint64)
        made: Payloads = self._collect(values, source, self.design.encode)
        return made

    def _collect(self, values: Integers, source: WordSource, action: Callable[[Integers], Any]) -> Any:
        """The results of an action on the messages of all values, in their order."""
        pieces = [(rows, action(messages)) for rows, messages in self._pieces(values, source)]
        if len(pieces) == 1:
            return pieces[0][1]
        results = np.concatenate([result for _, result in pieces])
        ordered = np.empty_like(results)
        ordered[np.concatenate([rows for rows, _ in pieces])] = results
        return ordered

    def _pieces(self, values: Integers, source: WordSource) -> Iterator[tuple[Integers, Integers]]:
        """Rows and their messages. Long messages come in pieces that fit the processor's cache; pieces with a rejected
        word come last and together, since the words that replace it follow all others.
        """
        is_short = self.design.draw_count <= _FEW_DRAWS
        step = max(1, values.size if is_short else _WORDS_AT_ONCE // self.words_per_report)
        rows_left, words_left = [], []
        for start in range(0, max(1, values.size), step):
            rows = np.arange(start, min(start + step, values.size))
            words = self._words(rows.size, source)
            made = self._respond_words(words, values[rows])
            if made is None:
                rows_left.append(rows)
                words_left.append(words)
            else:
                yield rows, made
        if rows_left:
            rows = np.concatenate(rows_left)
            words = words_left[0] if len(words_left) == 1 else np.concatenate(words_left)
            yield rows, self._respond(words, values[rows], source)

    def _respond_words(self, words: Words, values: Integers) -> Integers | None:
        return self.design.respond_words(words, values, self.threshold) if self.word_bits == FULL_BITS else None

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The counts of :meth:`randomize`'s messages, from the same words; skips the messages where possible."""
        words = self._words(values.size, source)
        counted = self.design.count_words(words, values, self.threshold) if self.word_bits == FULL_BITS else None
        return self.design.count(self._respond(words, values, source)) if counted is None else counted

    def _words(self, rows: int, source: WordSource) -> Words:
        return word_array(self._checked(source), rows * self.words_per_report).reshape(rows, self.words_per_report)

    def _respond(self, words: Words, values: Integers, source: WordSource) -> Integers:
        truth = words[:, 0] < np.uint64(self.threshold)
        variates = uniform_below(words[:, 1:], self.design.draw_bounds, source)
        return self.design.respond(values, truth, variates)

    @cached_property
    def odds(self) -> float:
        """E/2^96, the certified lower bound on e^ε."""
        return float(Fraction(exponential_below(self.epsilon), 1 << 96))

    @property
    def inclusion(self) -> Fraction:
        """p as the exact fraction T/2^b."""
        return Fraction(self.threshold, 1 << self.word_bits)

    def message_probabilities(self) -> tuple[Fraction, Fraction]:
        """The exact probability of one message whose block contains the value, and of one whose block misses it."""
        design = self.design
        containing = Fraction(design.message_count * design.block_size, design.points)
        return self.inclusion / containing, (1 - self.inclusion) / (design.message_count - containing)

    def best_guess_sum(self, limit: int) -> float:
        """Σ_y max_{x < limit} P(y|x): k times the success of the Bayes-optimal attacker under a uniform prior
        (docs/mathematics.md §4).
        """
        missing = self.design.missing_messages(limit) if limit < self.design.points else 0
        if not missing:  # the number of messages cancels; for subsets it can have a million digits
            return float(self.inclusion * self.design.points / self.design.block_size)
        inside, outside = self.message_probabilities()
        return float(inside * (self.design.message_count - missing) + outside * missing)

    # --- as a channel (see sunzi.protocols.channel)

    @property
    def has_independent_bits(self) -> bool:
        """False: blocks have a fixed size."""
        return False

    @property
    def word_bounds(self) -> tuple[int, ...]:
        """The truth word, then the design's integers."""
        return (0, *self.design.draw_bounds.tolist())

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The threshold T of the truth word."""
        return (self.threshold,)

    @property
    def likelihood_ratio(self) -> Fraction:
        """The largest ratio, p(v−w)/((1−p)w)."""
        others = self.design.points - self.design.block_size
        return self.inclusion * others / ((1 - self.inclusion) * self.design.block_size)

    @property
    def unsupported_factor(self) -> float:
        """(1−p)v/(v−w), relative to all messages being equally likely."""
        points = self.design.points
        return float((1 - self.inclusion) * points / (points - self.design.block_size))

    def first_support_shares(self, points: Integers) -> Floats | None:
        """The design's shares."""
        return self.design.first_support_shares(points)

    @property
    def discordance(self) -> tuple[float, float]:
        """p(v−w)/(v−1) and (1−p)w/(v−1)."""
        points, size = self.design.points, self.design.block_size
        return float(self.inclusion * (points - size) / (points - 1)), float((1 - self.inclusion) * size / (points - 1))

    def other_rate(self, supported: bool) -> float:
        """(w−1)/(v−1) if the value is supported, else w/(v−1)."""
        return (self.design.block_size - int(supported)) / (self.design.points - 1)

    @property
    def collision_probability(self) -> float:
        """p²/M₁ + (1−p)²/M₀, M₁ messages containing the value and M₀ missing it."""
        containing = Fraction(self.design.message_count * self.design.block_size, self.design.points)
        missing = self.design.message_count - containing
        return float(self.inclusion**2 / containing + (1 - self.inclusion) ** 2 / missing)

    def payload_probabilities(self, point: int) -> dict[int, Fraction]:
        """By :meth:`message_probabilities`."""
        inside, outside = self.message_probabilities()
        messages = self.design.every_message()
        contained = self.design.contains(messages, np.full(len(messages), point))
        payloads = payload_integers(self.design.encode(messages))
        return {payload: inside if member else outside for payload, member in zip(payloads, contained, strict=True)}

    def blanket(self, odds: float, points: tuple[int, int, int] | None) -> Blanket:
        """What a batch of reports hides (:class:`sunzi.numerics.blanket.Blanket`).

        Parameters
        ----------
        odds: at least the likelihood ratio of this response, and that of all others that a report may use.
        points: the points of two values and of a third one, which must differ; None if there are only two.
        """
        third = self.design.third_share(points) if points and len(set(points)) == 3 else None
        return Blanket.of_block(self.design.points, self.design.block_size, odds, third)

    def supports(self, messages: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether the block contains the point."""
        return self.design.contains(messages, points)

    def support_table(self, messages: Integers) -> NDArray[np.bool_]:
        """The incidence of these blocks."""
        return self.design.incidence(messages)

    def count(self, messages: Integers) -> Counters:
        """The design's counters."""
        return self.design.count(messages)

    def point_counts(self, counters: Counters) -> Integers:
        """How many blocks contain each point."""
        return self.design.point_counts(counters, self.design.points)

    def largest_gain(self, values: Floats) -> float:
        """max_B Σ_a values[a]·(1_B[a] − q)/Δ over all blocks B: what the best report adds to a weighted estimate."""
        rates = self.probabilities
        return (self.design.best_message(values)[1] - rates.false * float(values.sum())) / rates.gap
