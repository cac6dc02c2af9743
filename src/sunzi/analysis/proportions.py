"""Exact confidence limits for a proportion (Clopper and Pearson 1934)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special  # its distributions cost half a second to import, its special functions nothing

from sunzi._typing import Floats, Integers
from sunzi.errors import ParameterError
from sunzi.numerics.intervals import check_confidence


def lower_limits(successes: Integers | int, trials: Integers | int, alarm: float) -> Floats:
    """The true proportion is below the limit with probability at most ``alarm``, whatever it is."""
    hits, number = np.asarray(successes), np.asarray(trials)
    return np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), number - hits + 1, alarm), 0.0)


def upper_limits(successes: Integers | int, trials: Integers | int, alarm: float) -> Floats:
    """The true proportion is above the limit with probability at most ``alarm``, whatever it is."""
    hits, number = np.asarray(successes), np.asarray(trials)
    return np.where(hits < number, special.betainccinv(hits + 1, np.maximum(number - hits, 1), alarm), 1.0)


@dataclass(frozen=True)
class Proportion:
    """Successes out of trials, with an interval that covers the true proportion with at least this confidence."""

    successes: int
    trials: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not 0 <= self.successes <= self.trials or self.trials < 1:
            raise ParameterError(
                f"a proportion needs 1 trial or more, and 0 to all successes; got {self.successes} of {self.trials}"
            )

    @property
    def rate(self) -> float:
        """The share of successes."""
        return self.successes / self.trials

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return float(lower_limits(self.successes, self.trials, (1 - self.confidence) / 2))

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return float(upper_limits(self.successes, self.trials, (1 - self.confidence) / 2))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON and tables."""
        return {
            "trials": self.trials,
            "successes": self.successes,
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
        }


def outside(successes: Integers, trials: Integers | int, stated: Floats | float, alarm: float) -> NDArray[np.bool_]:
    """Which counts contradict their stated proportions; each with a false-alarm rate of at most ``alarm``."""
    low = lower_limits(successes, trials, alarm / 2)
    high = upper_limits(successes, trials, alarm / 2)
    return (stated < low) | (stated > high)
