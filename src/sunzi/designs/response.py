"""The block response: one randomiser for every design (docs/mathematics.md §1).

Its threshold is certified in integers (docs/mathematics.md §7).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sunzi._typing import Integers
from sunzi.designs.base import Design
from sunzi.designs.cyclotomic import Cyclotomic
from sunzi.designs.projective import Projective
from sunzi.designs.singletons import Singletons
from sunzi.designs.subsets import Subsets
from sunzi.errors import ParameterError, PlanError, PrivacyError
from sunzi.frozen import Frozen
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import FULL_BITS, Words, WordSource, uniform_below
from sunzi.numerics.thresholds import SupportProbabilities, check_truth_threshold, exponential_below, truth_threshold

_KINDS: dict[str, type[Design]] = {design.kind: design for design in (Singletons, Subsets, Cyclotomic, Projective)}


def register_design(design: type[Design]) -> None:
    """Let plans name a design of your own. Its kind must be new."""
    known = _KINDS.setdefault(design.kind, design)
    if known is not design:
        raise ParameterError(f"a design named {design.kind!r} exists already: {known.__module__}.{known.__qualname__}")


class BlockResponse(Frozen):
    """Report a uniform block that contains the value with probability p = T/2^b, else a uniform block that does not.

    ε-LDP: the likelihood ratio of any message under two values is 1 or e^{±ε'} with ε' ≤ ε, checked in integers when
    the response is made. Draw order of one report: the truth word, then one word for each of the design's
    ``draw_bounds``.
    """

    def __init__(
        self, design: Design, epsilon: Fraction, threshold: int | None = None, word_bits: int = FULL_BITS
    ) -> None:
        self.design = design
        self.epsilon = epsilon
        self.word_bits = word_bits
        derived = truth_threshold(design.block_size, design.points, epsilon, word_bits)
        self.threshold = derived if threshold is None else threshold
        check_truth_threshold(self.threshold, design.block_size, design.points, epsilon, word_bits)
        if self.threshold != derived:
            raise PrivacyError(f"threshold must be {derived} for epsilon {epsilon} and this design, got {threshold}")
        self.probabilities = SupportProbabilities.of_block_response(
            self.threshold, design.block_size, design.points, word_bits
        )

    @property
    def words_per_report(self) -> int:
        """Words that one report draws, rejections aside."""
        return 1 + self.design.draw_count

    def randomize(self, values: Integers, source: WordSource) -> Integers:
        """One message a value, from words taken row by row."""
        return self._respond(self._words(values.size, source), values, source)

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The counts of :meth:`randomize`'s messages, from the same words, without making the messages where that is
        possible.
        """
        words = self._words(values.size, source)
        counted = self.design.count_words(words, values, self.threshold) if self.word_bits == FULL_BITS else None
        return self.design.count(self._respond(words, values, source)) if counted is None else counted

    def _words(self, rows: int, source: WordSource) -> Words:
        if source.word_bits != self.word_bits:
            raise ParameterError(
                f"this response needs words of {self.word_bits} bits, the source gives {source.word_bits}"
            )
        return source.words(rows * self.words_per_report).reshape(rows, self.words_per_report)

    def _respond(self, words: Words, values: Integers, source: WordSource) -> Integers:
        truth = words[:, 0] < np.uint64(self.threshold)
        variates = uniform_below(words[:, 1:], self.design.draw_bounds, source)
        return self.design.respond(values, truth, variates)

    @cached_property
    def odds(self) -> float:
        """E/2^96, the certified stand-in for e^ε."""
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

    def parameters(self) -> dict[str, Any]:
        """What a plan records: the design and the threshold, a decimal string because it needs 64 bits."""
        return {"design": self.design.kind, **self.design.parameters(), "threshold": str(self.threshold)}

    @classmethod
    def from_parameters(cls, parameters: object, epsilon: Fraction) -> BlockResponse:
        """From a plan, trusting nothing: the design is checked, and the threshold must be the one derived here."""
        if not isinstance(parameters, Mapping):
            raise PlanError(f"a block response must be an object, got {parameters!r}")
        rest = dict(parameters)
        kind, threshold = rest.pop("design", None), rest.pop("threshold", None)
        if not isinstance(kind, str) or kind not in _KINDS:
            raise PlanError(f"design must be one of {sorted(_KINDS)}, got {kind!r}")
        try:
            return cls(_KINDS[kind].from_parameters(rest), epsilon, parse_decimal(threshold, "threshold"))
        except ParameterError as error:
            raise PlanError(str(error)) from None


def parse_decimal(text: object, name: str) -> int:
    """A large integer as a plan writes it: a string of decimal digits without leading zeros."""
    if (
        not isinstance(text, str)
        or not text.isascii()
        or not text.isdigit()
        or (text != "0" and text.startswith("0"))
        or len(text) > 40
    ):
        raise PlanError(f"{name} must be a string of decimal digits, got {text!r}")
    return int(text)
