"""What one check of an audit found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One check: whether the client passed it and, in words, what was seen."""

    check: str
    passed: bool
    detail: str
    breaks_epsilon: bool = False
    """Whether failing it proves that the client gives away more than ε, rather than that it departs from its plan."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and tables."""
        return asdict(self)
