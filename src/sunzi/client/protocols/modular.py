"""ModularSubsetSelection: one random residue of the value, through a block response (docs/mathematics.md §3).

``mss`` is the paper's protocol, with all subsets as blocks; ``mss-compact`` uses cyclotomic blocks and sends one short
integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

from ..designs.primes import is_prime
from ..designs.response import BlockResponse
from ..errors import PlanError, shown
from ..randomness import WordSource, uniform_integers
from ..strict_json import only_parameters
from .selection import JointMessages, SelectingProtocol

MOST_MODULI = 256
MOST_LISTED_POINTS = 1 << 24


@dataclass(frozen=True)
class ModularProtocol(SelectingProtocol):
    """ℓ block responses, one per modulus; a report uses one of them, drawn uniformly, on the value's residue, with the
    whole ε.
    """

    designs: ClassVar[frozenset[str]]

    domain_size: int
    responses: tuple[BlockResponse, ...] = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "responses", tuple(self.responses))
        domain_size, responses = self.domain_size, self.responses
        if not 1 <= len(responses) <= MOST_MODULI:
            raise PlanError(f"{self.name} needs between 1 and {MOST_MODULI} moduli, got {len(responses)}")
        composite = next((modulus for modulus in self.moduli if not is_prime(modulus)), None)
        if composite is not None:
            raise PlanError(f"moduli must be prime, got {composite}")
        if len(set(self.moduli)) != len(self.moduli):
            raise PlanError(f"moduli must be distinct, got {list(self.moduli)}")
        if sum(self.moduli) - len(self.moduli) < domain_size - 1:
            raise PlanError(
                f"the moduli minus one must add up to at least {domain_size - 1} to distinguish {domain_size} values, "
                f"got {sum(self.moduli) - len(self.moduli)}; add moduli or take larger ones"
            )
        check_affordable(response.points for response in responses if response.design.kind == "subsets")
        if len({response.epsilon for response in responses}) != 1:
            raise PlanError("all block responses of a plan must have the same epsilon")
        for response in responses:
            if response.design.kind not in self.designs:
                raise PlanError(f"{self.name} uses the designs {sorted(self.designs)}, got {response.design.kind!r}")

    @cached_property
    def moduli(self) -> tuple[int, ...]:
        """The moduli m_j in order."""
        return tuple(response.points for response in self.responses)

    def select(self, count: int, source: WordSource) -> list[int]:
        """Each modulus is equally likely."""
        return uniform_integers(source.words(count), [len(self.responses)] * count, source)

    def point_of(self, selector: int, index: Any) -> int:
        """The residue."""
        return int(index % self.moduli[selector])

    def parameters(self) -> dict[str, Any]:
        """The responses in order."""
        return {"responses": [response.parameters() for response in self.responses]}

    @classmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """Read the responses from a plan."""
        only_parameters(parameters, ["responses"])
        responses = parameters["responses"]
        if not isinstance(responses, list) or len(responses) > MOST_MODULI:
            raise PlanError(f"responses must be a list of at most {MOST_MODULI} block responses")
        # Before anything is built from them; malformed responses are refused next.
        listed = (each for each in responses if isinstance(each, dict) and each.get("design") == "subsets")
        check_affordable(points for each in listed if type(points := each.get("points")) is int)
        made = (cls.response_kind.from_parameters(response, epsilon) for response in responses)
        return cls(domain_size, tuple(made))


def check_affordable(subset_points: Iterable[int]) -> None:
    """Raise PlanError if the subsets of a plan have more points than a device can afford (docs/format.md, 2.4)."""
    total = sum(subset_points)
    if total > MOST_LISTED_POINTS:
        raise PlanError(
            f"the subsets of a plan must have at most {MOST_LISTED_POINTS} points in total, got {shown(total)}; "
            "use mss-compact"
        )


@dataclass(frozen=True)
class ModularSubsetSelection(ModularProtocol):
    """MSS as in the paper: subsets of residues, with a selector."""

    name = "mss"
    designs = frozenset({"subsets", "singletons"})


@dataclass(frozen=True)
class CompactModularSubsetSelection(JointMessages, ModularProtocol):
    """Compact MSS: cyclotomic blocks. A payload is one integer below Σ_j e_j·m_j."""

    name = "mss-compact"
    designs = frozenset({"cyclotomic", "singletons"})
