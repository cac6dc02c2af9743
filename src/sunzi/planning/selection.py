"""Moduli for a plan: the Pareto front of what is possible, and one choice from it."""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from typing import Any, Literal

from sunzi.errors import ParameterError
from sunzi.numerics.thresholds import parse_epsilon
from sunzi.plan import Epsilon
from sunzi.planning import cache
from sunzi.planning.blocks import Histogram, Kind, block_family
from sunzi.planning.candidates import Candidate, reference_error
from sunzi.planning.ladder import Request
from sunzi.planning.search import Progress, search
from sunzi.protocols.moduli import MOST_MODULI

Effort = Literal["quick", "normal", "thorough"]
Objective = Literal["error", "bits", "attackability", "decode_work", "traffic"]

ALGORITHM = 2
"""Counts changes of the search that change its results: kept results of another number are not used."""

EVALUATIONS: dict[str, int] = {"quick": 600, "normal": 3000, "thorough": 20_000}
"""Of sets for a thousand values; small domains, where they are cheap, get twice as many."""

_SMALL_DOMAIN = 500


def pareto_front(
    domain_size: int,
    epsilon: Epsilon,
    kind: Kind = "mss",
    *,
    max_bits: float | None = None,
    max_attack: float | None = None,
    max_moduli: int = 64,
    histogram: Histogram = "light",
    effort: Effort | int = "normal",
    seconds: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[Candidate]:
    """Sets of moduli of which none is beaten on all of error, mean bits, attackability and decoding work, by ascending
    error.

    ``max_bits`` (mean bits of a report), ``max_attack`` and ``max_moduli`` limit what is searched; where nothing keeps
    to the limits the list is empty. ``histogram`` "flat" plans for equally frequent values instead of light items: take
    it where ε is large and the domain small. ``effort`` is a name or a number of evaluations. The same arguments give
    the same list, and it is kept in the cache, unless ``seconds`` is given, after which the search stops as soon as it
    can. ``progress`` is told the number of steps done and of all steps.
    """
    budget = parse_epsilon(epsilon)
    family = block_family(kind, domain_size, budget, histogram)
    request = Request(
        max_bits=_limit("max_bits", max_bits),
        max_attack=_limit("max_attack", max_attack),
        max_moduli=_count("max_moduli", max_moduli, MOST_MODULI),
        evaluations=_evaluations(effort, domain_size),
        seed=_count("seed", seed, 2**63, least=0),
    )
    if seconds is not None:
        return search(family, request, _limit("seconds", seconds), progress)
    key = {
        "search": "front",
        "algorithm": ALGORITHM,
        "kind": kind,
        "domain_size": domain_size,
        "epsilon": str(budget),
        "histogram": histogram,
        **asdict(request),
    }
    candidates = _from_json(cache.load(key))
    if candidates is None:
        candidates = search(family, request, progress=progress)
        cache.store(key, [asdict(candidate) for candidate in candidates])
    elif progress is not None:
        progress(1, 1)
    return candidates


def choose(
    domain_size: int,
    epsilon: Epsilon,
    kind: Kind = "mss",
    *,
    objective: Objective = "error",
    max_error_ratio: float | None = None,
    histogram: Histogram = "light",
    **options: Any,
) -> Candidate:
    """The candidate that is best by one objective within limits; ``options`` are those of :func:`pareto_front`.

    ``max_error_ratio`` limits the error relative to plain subset selection. The objective "traffic" is error × bits:
    what all users together must send for a given accuracy.
    """
    candidates = pareto_front(domain_size, epsilon, kind, histogram=histogram, **options)
    reference = reference_error(domain_size, epsilon, histogram=histogram)
    limit = _limit("max_error_ratio", max_error_ratio) * reference
    allowed = [candidate for candidate in candidates if candidate.error <= limit]
    if not allowed:
        raise ParameterError(
            f"no moduli were found for {kind} on {domain_size} values at epsilon {epsilon} within the limits; "
            f"{_nearest(candidates, limit)}"
        )
    return min(allowed, key=lambda candidate: (_value(candidate, objective), candidate.axes))


def _value(candidate: Candidate, objective: str) -> float:
    values = {
        "error": candidate.error,
        "bits": candidate.bits,
        "attackability": candidate.attackability,
        "decode_work": candidate.decode_work,
        "traffic": candidate.error * candidate.bits,
    }
    if objective not in values:
        raise ParameterError(f"objective must be one of {sorted(values)}, got {objective!r}")
    return values[objective]


def _nearest(candidates: list[Candidate], limit: float) -> str:
    if not candidates:
        return "raise max_bits, max_attack or max_moduli"
    return f"the smallest error found is {candidates[0].error / limit:.3f} times what max_error_ratio allows"


def _evaluations(effort: Effort | int, domain_size: int) -> int:
    if isinstance(effort, str):
        if effort not in EVALUATIONS:
            raise ParameterError(f"effort must be one of {list(EVALUATIONS)} or a number, got {effort!r}")
        return EVALUATIONS[effort] * (2 if domain_size <= _SMALL_DOMAIN else 1)
    return _count("effort", effort, 10**9)


def _limit(name: str, value: float | None) -> float:
    if value is None:
        return inf
    if not value > 0:
        raise ParameterError(f"{name} must be positive, got {value}")
    return float(value)


def _count(name: str, value: int, most: int, least: int = 1) -> int:
    if not least <= value <= most or value != int(value):
        raise ParameterError(f"{name} must be a whole number between {least} and {most}, got {value!r}")
    return int(value)


def _from_json(entries: Any) -> list[Candidate] | None:
    """Candidates as they were kept; None if they are not."""
    try:
        return [Candidate(**{**entry, "moduli": tuple(entry["moduli"])}) for entry in entries]
    except (TypeError, KeyError):
        return None
