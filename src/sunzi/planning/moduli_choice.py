"""Moduli for a plan: the Pareto front of what is possible, and one choice from it."""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from typing import Any, Literal

from sunzi._typing import Progress
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError, whole_number
from sunzi.client.protocols.modular import MOST_MODULI
from sunzi.designs.attack_limits import AttackLimit, subsets_within
from sunzi.designs.choice import subset_error
from sunzi.planning import search_cache
from sunzi.planning.moduli_candidates import Kind, ModuliCandidate, block_family, reference_error
from sunzi.planning.moduli_search import Request, search

Effort = Literal["quick", "normal", "thorough"]
ModuliObjective = Literal["error", "bits", "attackability", "decode_work", "traffic"]

ALGORITHM = 4
"""Increased when the search changes its results; cached results of another number are not used."""

EVALUATIONS: dict[str, int] = {"quick": 600, "normal": 3000, "thorough": 20_000}
"""Sets evaluated per effort; small domains, where they are cheap, get twice as many."""

MOST_ERROR_RATIO = 20.0
"""Moduli whose error is larger than this multiple of subset selection's are of no use."""

_SMALL_DOMAIN = 500


def pareto_front(
    domain_size: int,
    epsilon: Epsilon,
    kind: Kind = "mss",
    *,
    max_bits: float | None = None,
    max_attack: float | None = None,
    max_moduli: int = 64,
    effort: Effort | int = "normal",
    seconds: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> list[ModuliCandidate]:
    """Sets of moduli, none of which is beaten on all of error, mean bits, attackability and decoding work, by ascending
    error. Errors are those of equally frequent values. The same arguments give the same list, which is cached on disk.

    Parameters
    ----------
    domain_size, epsilon: of the plan.
    kind: ``"mss"`` or ``"mss-compact"``.
    max_bits, max_attack, max_moduli: limits on the mean bits per report, the attackability and the number of moduli; if
        no set keeps them the list is empty.
    effort: ``"quick"``, ``"normal"``, ``"thorough"`` or a number of evaluations.
    seconds: stop as soon as possible after this time; the result then depends on the clock and is not cached.
    seed: another seed, another search.
    progress: called with the fraction done.

    >>> [candidate.max_bits <= 8 for candidate in pareto_front(20, 1, "mss-compact", max_bits=8, effort=20)][:1]
    [True]
    """
    budget = parse_epsilon(epsilon)
    family = block_family(kind, domain_size, budget)
    request = Request(
        max_bits=_limit("max_bits", max_bits),
        max_attack=_limit("max_attack", max_attack),
        max_moduli=whole_number("max_moduli", max_moduli, 1, MOST_MODULI),
        evaluations=_evaluations(effort, domain_size),
        seed=whole_number("seed", seed, 0, 2**63),
    )
    if seconds is not None:
        return search(family, request, _limit("seconds", seconds), progress)
    key = {
        "search": "front",
        "algorithm": ALGORITHM,
        "kind": kind,
        "domain_size": domain_size,
        "epsilon": str(budget),
        **asdict(request),
    }
    candidates = _from_json(search_cache.load(key))
    if candidates is None:
        candidates = search(family, request, progress=progress)
        search_cache.store(key, [asdict(candidate) for candidate in candidates])
    elif progress is not None:
        progress(1.0)
    return candidates


def choose_moduli(
    domain_size: int,
    epsilon: Epsilon,
    kind: Kind = "mss",
    *,
    objective: ModuliObjective = "error",
    max_error_ratio: float = MOST_ERROR_RATIO,
    **options: Any,
) -> ModuliCandidate:
    """The set of moduli that is best by one objective within limits; raises ParameterError if there is none.

    Parameters
    ----------
    domain_size, epsilon, kind: as for :func:`pareto_front`.
    objective: ``"error"``, ``"bits"``, ``"attackability"``, ``"decode_work"``, or ``"traffic"``, which is error × bits:
        what all users together must send for a given accuracy.
    max_error_ratio: limit on the error relative to plain subset selection. Far below the usual attackability moduli
        exist whose error is thousands of times larger; give infinity to accept them.
    options: the limits and other options of :func:`pareto_front`.

    >>> choose_moduli(20, 1, "mss", max_bits=12, effort=20).bits <= 12
    True
    """
    candidates = pareto_front(domain_size, epsilon, kind, **options)
    reference = reference_error(domain_size, epsilon)
    limit = _limit("max_error_ratio", max_error_ratio) * reference
    allowed = [candidate for candidate in candidates if candidate.error <= limit]
    if not allowed:
        advice = "raise max_bits, max_attack or max_moduli"
        if candidates:
            reached = f"{candidates[0].error / reference:,.4g} times that of subset selection"
            advice = f"the smallest error found is {reached}, above max_error_ratio={max_error_ratio:g}"
        raise ParameterError(
            f"no moduli were found for {kind} on {domain_size} values at epsilon {epsilon} within the limits; {advice}"
            f"{_larger_blocks(domain_size, epsilon, options.get('max_attack'))}"
        )
    return min(allowed, key=lambda candidate: (_value(candidate, objective), candidate.axes))


def _value(candidate: ModuliCandidate, objective: str) -> float:
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


def _larger_blocks(domain_size: int, epsilon: Epsilon, max_attack: float | None) -> str:
    """What subset selection reaches within the limit on attackability."""
    if max_attack is None:
        return ""
    budget = parse_epsilon(epsilon)
    try:
        size = subsets_within(AttackLimit(domain_size, budget, max_attack)).block_size
    except ParameterError:
        return ""
    ratio = subset_error(domain_size, budget, size) / subset_error(domain_size, budget)
    return (
        f". Larger blocks reveal less too: make_plan('ss', …, max_attack={max_attack:g}) has blocks of {size} and "
        f"{ratio:.3g} times the error of ss"
    )


def _evaluations(effort: Effort | int, domain_size: int) -> int:
    if isinstance(effort, str):
        if effort not in EVALUATIONS:
            raise ParameterError(f"effort must be one of {list(EVALUATIONS)} or a number, got {effort!r}")
        return EVALUATIONS[effort] * (2 if domain_size <= _SMALL_DOMAIN else 1)
    return whole_number("effort", effort, 1, 10**9)


def _limit(name: str, value: float | None) -> float:
    if value is None:
        return inf
    if not value > 0:
        raise ParameterError(f"{name} must be positive, got {value}")
    return float(value)


def _from_json(entries: Any) -> list[ModuliCandidate] | None:
    """Candidates from a cache entry; None if it holds something else."""
    try:
        return [ModuliCandidate(**{**entry, "moduli": tuple(entry["moduli"])}) for entry in entries]
    except (TypeError, KeyError):
        return None
