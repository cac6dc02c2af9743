"""Which moduli to take: the Pareto front by the exact error, one choice from it, and the paper's own search."""

from sunzi.numerics.primes import next_prime, primes_up_to
from sunzi.planning.candidates import Candidate, candidate, reference_error
from sunzi.planning.conditioning import condition_number
from sunzi.planning.paper import PaperSearch, paper_search
from sunzi.planning.selection import choose, pareto_front

__all__ = [
    "Candidate",
    "PaperSearch",
    "candidate",
    "choose",
    "condition_number",
    "next_prime",
    "paper_search",
    "pareto_front",
    "primes_up_to",
    "reference_error",
]
