"""The block response: one randomiser for every design (docs/mathematics.md §1).

Its threshold is certified in integers (docs/mathematics.md §7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any, Self, cast

from ..errors import ParameterError, PlanError, PrivacyError, shown
from ..randomness import WordSource, uniform_integers
from ..thresholds import FULL_BITS, parse_decimal, truth_threshold
from .design import Design

_DESIGNS = {
    "singletons": ("singletons", "Singletons"),
    "subsets": ("subsets", "Subsets"),
    "cyclotomic": ("cyclotomic", "Cyclotomic"),
    "projective": ("projective", "Projective"),
}


@dataclass(frozen=True)
class BlockResponse:
    """Report a uniform block that contains the value with probability p = T/2^b, else a uniform block that does not.

    ε-LDP: the likelihood ratio of any payload under two values is 1 or e^{±ε'} with ε' ≤ ε, checked in integers on
    creation. Draw order of one report: the truth word, then one word for each of the design's ``bounds``.
    """

    design: Design
    epsilon: Fraction
    word_bits: int = FULL_BITS
    threshold: int = field(init=False)
    """T, the largest threshold that keeps ε-LDP."""

    def __post_init__(self) -> None:
        threshold = truth_threshold(self.design.block_size, self.design.points, self.epsilon, self.word_bits)
        object.__setattr__(self, "threshold", threshold)

    @property
    def points(self) -> int:
        """The design's points."""
        return self.design.points

    @property
    def words_per_report(self) -> int:
        """Words that one report draws, rejections aside."""
        return 1 + len(self.design.bounds)

    @property
    def naming_rates(self) -> tuple[float, float]:
        """How often a report names the value's point, and any other point."""
        true = self.threshold / (1 << self.word_bits)
        return true, (self.design.block_size - true) / (self.points - 1)

    @property
    def work(self) -> int:
        """The truth word, and the design's work."""
        return 1 + self.design.work

    def make_payloads(self, values: Sequence[int], source: WordSource) -> list[int]:
        """The payload of a report of each value, from words taken row by row."""
        bounds, width, count = self.design.bounds, self.words_per_report, len(values)
        words = self._checked(source).words(count * width)
        if count == 1:
            variates = uniform_integers(words[1:], bounds, source)
            return [self.design.payload(values[0], words[0] < self.threshold, variates)]
        others = [word for place, word in enumerate(words) if place % width]
        variates = uniform_integers(others, bounds * count, source)
        return [
            self.design.payload(value, words[row * width] < self.threshold, variates[row * (width - 1) :][: width - 1])
            for row, value in enumerate(values)
        ]

    def _checked(self, source: WordSource) -> WordSource:
        if source.word_bits != self.word_bits:
            raise ParameterError(
                f"this response needs {self.word_bits}-bit words, the source returns {source.word_bits}-bit words"
            )
        return source

    def parameters(self) -> dict[str, Any]:
        """What a plan records: the design and the threshold, a decimal string because it needs 64 bits."""
        return {"design": self.design.kind, **self.design.parameters(), "threshold": str(self.threshold)}

    @classmethod
    def design_kind(cls, kind: str) -> type[Design] | None:
        """The class of designs with this name; only those that a plan names are loaded."""
        if kind not in _DESIGNS:
            return None
        module, name = _DESIGNS[kind]
        return cast("type[Design]", getattr(import_module(f".{module}", __package__), name))

    @classmethod
    def from_parameters(cls, parameters: object, epsilon: Fraction) -> Self:
        """From a plan, validating everything: the threshold must be the one derived here.

        Raises PlanError, or PrivacyError for a wrong threshold.
        """
        if not isinstance(parameters, Mapping):
            raise PlanError(f"a block response must be an object, got {shown(parameters)}")
        rest = dict(parameters)
        name, threshold = rest.pop("design", None), rest.pop("threshold", None)
        design = cls.design_kind(name) if isinstance(name, str) else None
        if design is None:
            raise PlanError(f"design must be one of {', '.join(_DESIGNS)}, got {shown(name)}")
        try:
            response = cls(design.from_parameters(rest), epsilon)
        except ParameterError as error:
            raise PlanError(str(error)) from None
        if parse_decimal(threshold, "threshold") != response.threshold:
            raise PrivacyError(
                f"threshold must be {response.threshold} for epsilon {epsilon} and this design, got {threshold}"
            )
        return response
