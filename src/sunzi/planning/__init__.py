"""Which moduli to take: the Pareto front by the exact error, one choice from it, and the paper's own search."""

from sunzi.planning.candidates import Candidate, candidate, reference_error
from sunzi.planning.paper import PaperSearch, paper_search
from sunzi.planning.selection import choose, pareto_front

__all__ = ["Candidate", "PaperSearch", "candidate", "choose", "paper_search", "pareto_front", "reference_error"]
