"""One thing that honest reports must satisfy, and how far a tally is from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["balance", "residual", "consistency"]


@dataclass(frozen=True)
class HealthFinding:
    """One test on a tally. Honest reports of any histogram give a p-value that is uniform or larger.

    ``p_value`` is None where the test cannot speak; ``reason`` then says why.
    """

    name: str
    kind: Kind
    expected: str
    """What honest reports satisfy, in plain words."""
    statistic: float | None = None
    degrees_of_freedom: float | None = None
    p_value: float | None = None
    reason: str = ""

    @property
    def figures(self) -> str:
        """The numbers in one line."""
        if self.p_value is None or self.statistic is None:
            return self.reason
        freedom = "" if self.degrees_of_freedom is None else f" on {self.degrees_of_freedom:,.0f} degrees of freedom"
        return f"{self.statistic:,.4g}{freedom}, {chance_in_words(self.p_value)}"

    def verdict(self, significance: float) -> str:
        """One line: whether it holds, and the numbers."""
        if self.p_value is None:
            return f"{self.name}: cannot say, {self.reason}"
        holds = "as honest reports have it" if self.p_value > significance else "NOT as honest reports have it"
        return f"{self.name}: {holds} ({self.figures})"

    def to_dict(self, significance: float) -> dict[str, Any]:
        """Everything as JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "expected": self.expected,
            "statistic": self.statistic,
            "degrees_of_freedom": self.degrees_of_freedom,
            "p_value": self.p_value,
            "alarm": self.p_value is not None and self.p_value <= significance,
            "verdict": self.verdict(significance),
        }


def chance_in_words(p_value: float) -> str:
    """``p = 0.021``, or ``p < 1e-99``."""
    return f"p = {p_value:.2g}" if p_value > 1e-99 else "p < 1e-99"
