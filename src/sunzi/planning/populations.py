"""Simulated populations: who holds what in a simulated collection."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.errors import ParameterError

_DEFAULT_EXPONENT = 1.0


@dataclass(frozen=True)
class Population:
    """How likely a simulated user is to hold each value.

    ``uniform``: all are equally likely. ``spike``: everybody holds the first. ``zipf``: the i-th value (i = 1, 2, …)
    has a chance proportional to 1/i^exponent.
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
        """How likely each value is."""
        if self.kind == "spike":
            return np.concatenate([np.ones(1), np.zeros(domain_size - 1)])
        power = self.exponent if self.kind == "zipf" else 0.0
        weights = np.arange(1, domain_size + 1, dtype=np.float64) ** -power
        return weights / weights.sum()

    def draw(self, domain_size: int, users: int, seed: int | list[int]) -> Integers:
        """The values of so many users."""
        if self.kind == "spike":
            return np.zeros(users, dtype=np.int64)
        cumulative = np.cumsum(self.chances(domain_size))
        places = np.random.default_rng(seed).random(users) * cumulative[-1]
        return np.minimum(np.searchsorted(cumulative, places, side="right"), domain_size - 1).astype(np.int64)

    def __str__(self) -> str:
        """What :meth:`parse` reads."""
        return f"zipf:{self.exponent:g}" if self.kind == "zipf" else self.kind


UNIFORM = Population("uniform")
