"""Histograms to plan for, and simulated populations: which values the users of a simulated collection hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError
from sunzi.numerics.bits import SPLITMIX_STEP, mix_bits

_DEFAULT_EXPONENT = 1.0
_MOST_VALUES = 1 << 24

ReferenceHistogram = Literal["flat", "skewed"]
"""The frequencies that a plan is judged by: all values equally frequent, or :func:`skewed_histogram`."""

_SKEWED_EXPONENT = 1.1


def skewed_histogram(domain_size: int) -> Floats:
    """Zipf's law with exponent 1.1, in a fixed order of the values that looks random: frequent values are not adjacent,
    as is typical of real domains.

    Parameters
    ----------
    domain_size: the number of values.

    >>> skewed_histogram(4).round(2).tolist()
    [0.15, 0.24, 0.5, 0.11]
    """
    order = np.argsort(mix_bits(np.arange(1, domain_size + 1, dtype=np.uint64) * SPLITMIX_STEP), kind="stable")
    frequencies = np.empty(domain_size)
    frequencies[order] = Population("zipf", _SKEWED_EXPONENT).chances(domain_size)
    return frequencies


@dataclass(frozen=True)
class Population:
    """The distribution of the values of simulated users.

    Parameters
    ----------
    kind: ``"uniform"``, all values equally likely; ``"spike"``, everyone holds the first value; or ``"zipf"``, the
        i-th value (i = 1, 2, …) has a probability proportional to 1/i^exponent.
    exponent: of ``"zipf"``.

    >>> Population.parse("zipf:3").draw(100, users=4, seed=1).size
    4
    """

    kind: str
    exponent: float = _DEFAULT_EXPONENT

    @classmethod
    def parse(cls, text: str) -> Population:
        """``uniform``, ``spike``, ``zipf`` or ``zipf:3``."""
        kind, colon, exponent = text.partition(":")
        if kind not in ("uniform", "spike", "zipf") or (colon and kind != "zipf"):
            raise ParameterError(f"population must be uniform, spike, zipf or zipf:EXPONENT, got {text!r}")
        try:
            number = float(exponent) if colon else _DEFAULT_EXPONENT
        except ValueError:
            number = inf
        if not 0 <= number < 100:
            raise ParameterError(f"zipf's exponent must be a number from 0 to 100, got {exponent!r}")
        return cls(kind, number)

    def chances(self, domain_size: int) -> Floats:
        """The probability of each value."""
        if self.kind == "spike":
            return np.concatenate([np.ones(1), np.zeros(domain_size - 1)])
        power = self.exponent if self.kind == "zipf" else 0.0
        weights = np.arange(1, domain_size + 1, dtype=np.float64) ** -power
        return weights / weights.sum()

    def draw(self, domain_size: int, users: int, seed: int | list[int]) -> Integers:
        """The values of ``users`` users, the same for the same seed."""
        if self.kind == "spike":
            return np.zeros(users, dtype=np.int64)
        if self.kind == "uniform" and domain_size > _MOST_VALUES:
            return np.random.default_rng(seed).integers(0, domain_size, users)
        if domain_size > _MOST_VALUES:
            raise ParameterError(f"there are {domain_size:,} values, too many for {self}; take a uniform population")
        cumulative = np.cumsum(self.chances(domain_size))
        places = np.random.default_rng(seed).random(users) * cumulative[-1]
        return np.minimum(np.searchsorted(cumulative, places, side="right"), domain_size - 1).astype(np.int64)

    def __str__(self) -> str:
        """The text that :meth:`parse` reads."""
        return f"zipf:{self.exponent:g}" if self.kind == "zipf" else self.kind


UNIFORM = Population("uniform")
