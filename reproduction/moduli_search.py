"""The paper's search for moduli as published (ChooseModuli and FindValidModuli), with the paper's statements about the
result next to the true values.

For every ℓ up to ``most_moduli`` primes are drawn from a band around k/ℓ until a set has a condition number of at most
``kappa_max``; of these sets, one per ℓ, the one of smallest exact error wins. Theorem 4's bound on κ does not hold in
general (docs/mathematics.md §6), so trust ``kappa``, not ``kappa_bound``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, exp, inf, log, prod
from typing import Any

import numpy as np

from sunzi._typing import Integers, Progress
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError
from sunzi.designs.choice import optimal_block_size
from sunzi.numerics.primes import next_prime, primes_up_to
from sunzi.numerics.toeplitz import ToeplitzGram
from sunzi.planning import search_cache
from sunzi.protocols.modular_variance import BlockMoments

from .conditioning import condition_number, paper_weight

MOST_MODULI, KAPPA_MAX, BAND_WIDTH, TRIALS = 20, 10.0, 20.0, 1000
ALGORITHM = 1
"""Incremented when results change; cached results with another number are not used."""

_HIGHEST_SHARE = 0.95


@dataclass(frozen=True)
class PaperSearch:
    """The result of the paper's search, and the paper's statements about it."""

    moduli: tuple[int, ...]
    error: float
    """Exact variance, for one report, of an item that shares no residue with any user's value, with the weights that
    are best for such items: trace(T⁻¹)/k.
    """
    kappa: float
    """cond(A_w)."""
    kappa_bound: float
    """Theorem 4's α(ℓ+T*)/(ℓ−T*), infinite where ℓ ≤ T*."""
    l_theory: float
    """The ℓ from which Theorem 4 promises κ ≤ κ_max; infinite where α ≥ κ_max."""
    t_star: float
    """T* = ⌈ln k/ln(k/(βℓ))⌉ at the ℓ found; infinite where the band reaches down to 1."""
    alpha: float
    """The paper's bound (β+e^ε)/(1/β+e^ε) on the ratio of two weights."""
    alpha_true: float
    """The largest weight over the smallest."""
    used_fallback: bool
    """Whether the moduli are the deterministic ones, because no draw reached κ_max for their ℓ."""
    trials: int
    """Total number of draws."""


def paper_search(
    domain_size: int,
    epsilon: Epsilon,
    seed: int = 0,
    *,
    most_moduli: int = MOST_MODULI,
    kappa_max: float = KAPPA_MAX,
    beta: float = BAND_WIDTH,
    trials: int = TRIALS,
    progress: Progress | None = None,
) -> PaperSearch:
    """ChooseModuli(k, ε, ℓ_max, κ_max, β, #trials) of the paper's appendix; the same seed gives the same result, which
    is cached.

    The full condition number is computed for every draw, except where a few Lanczos steps already prove that it exceeds
    κ_max. ``progress`` is called with the fraction of the ℓ that are done.
    """
    budget = parse_epsilon(epsilon)
    _check(domain_size, most_moduli, kappa_max, beta, trials)
    key = {
        "search": "paper",
        "algorithm": ALGORITHM,
        "domain_size": domain_size,
        "epsilon": str(budget),
        "seed": seed,
        "parameters": [most_moduli, kappa_max, beta, trials],
    }
    found = _from_json(search_cache.load(key))
    if found is None:
        finder = _Finder(domain_size, budget, kappa_max, beta, trials, np.random.default_rng(seed))
        found = _choose(finder, most_moduli, progress)
        search_cache.store(key, asdict(found))
    elif progress is not None:
        progress(1.0)
    return found


def shared_epsilon(domain_size: int, epsilon: float) -> float:
    """The ε at which a trial's moduli are searched. The result depends on ε only through the ratio of the blocks'
    weights, so one search serves all ε at k = 22,000 and those up to 2 at k = 1,024; ``bits`` checks that.
    """
    if domain_size == 22_000:
        return 2.5
    return 1.0 if domain_size == 1024 and epsilon <= 2 else epsilon


def search_for_trial(domain_size: int, epsilon: float, seed: int) -> PaperSearch:
    """The search of one trial: a shared one, with all values at this ε, if its moduli keep κ ≤ 10 there."""
    shared = shared_epsilon(domain_size, epsilon)
    found = paper_search(domain_size, shared, seed)
    if shared == epsilon:
        return found
    budget = parse_epsilon(epsilon)
    kappa = condition_number(domain_size, budget, found.moduli)
    if kappa > KAPPA_MAX:
        return paper_search(domain_size, epsilon, seed)
    finder = _Finder(domain_size, budget, KAPPA_MAX, BAND_WIDTH, TRIALS, np.random.default_rng(seed), found.trials)
    error = _light_error(domain_size, found.moduli, budget)
    return _describe(finder, _Valid(found.moduli, kappa, found.used_fallback), error)


def _from_json(entry: Any) -> PaperSearch | None:
    """A result from a cache entry; None if it holds something else."""
    try:
        return PaperSearch(**{**entry, "moduli": tuple(entry["moduli"])})
    except (TypeError, KeyError):
        return None


def _choose(finder: _Finder, most_moduli: int, progress: Progress | None) -> PaperSearch:
    found = []
    for count in range(2, most_moduli + 1):
        valid = finder.find(count)
        if valid is not None:
            found.append((_light_error(finder.domain_size, valid.moduli, finder.epsilon), valid))
        if progress is not None:
            progress((count - 1) / (most_moduli - 1))
    if not found:
        raise ParameterError(
            f"the paper's search found no moduli for {finder.domain_size} values with a condition number of at most "
            f"{finder.kappa_max:g}; raise kappa_max, or use sunzi.planning.choose_moduli"
        )
    error, best = min(found, key=lambda pair: pair[0])
    return _describe(finder, best, error)


def _check(domain_size: int, most_moduli: int, kappa_max: float, beta: float, trials: int) -> None:
    for name, value, least in (
        ("domain_size", domain_size, 2),
        ("most_moduli", most_moduli, 2),
        ("kappa_max", kappa_max, 1),
        ("trials", trials, 0),
    ):
        if not value >= least:
            raise ParameterError(f"{name} must be at least {least}, got {value}")
    if not beta > 1:
        raise ParameterError(f"beta must be above 1, got {beta}")


def find_valid_moduli(
    domain_size: int, epsilon: float, length: int, seed: int, *, draws: int = 200
) -> tuple[tuple[int, ...], float]:
    """FindValidModuli for one number of moduli: draws until κ ≤ 10, and their κ; if no draw has it, the smallest κ."""
    generator = np.random.default_rng([seed, length])
    band = _band(domain_size, length, BAND_WIDTH)
    best: tuple[tuple[int, ...], float] = ((), inf)
    for _ in range(draws):
        moduli = _draw(band, length, domain_size, generator)
        # Screened against the best so far, which costs only a few multiplications.
        kappa = condition_number(domain_size, epsilon, moduli, limit=max(KAPPA_MAX, best[1]))
        if kappa < best[1] or not best[0]:
            best = (moduli, kappa)
        if kappa <= KAPPA_MAX:
            break
    return best


def light_error(domain_size: int, epsilon: Epsilon, moduli: Sequence[int]) -> float:
    """The exact variance, for one report, of an item that nobody holds, nor any item with one of its residues."""
    return _light_error(domain_size, tuple(moduli), parse_epsilon(epsilon))


def light_reference(domain_size: int, epsilon: Epsilon) -> float:
    """The variance, for one report of subset selection, of an item that nobody holds."""
    budget = parse_epsilon(epsilon)
    return BlockMoments.at(domain_size, optimal_block_size(domain_size, budget), budget).light


def _light_error(domain_size: int, moduli: tuple[int, ...], epsilon: Fraction) -> float:
    sizes = ((modulus, optimal_block_size(modulus, epsilon)) for modulus in moduli)
    weights = np.array([1 / (len(moduli) * BlockMoments.at(*size, epsilon).light) for size in sizes])
    return ToeplitzGram(domain_size, moduli, weights).inverse_trace() / domain_size


@dataclass(frozen=True)
class _Valid:
    moduli: tuple[int, ...]
    kappa: float
    from_fallback: bool


@dataclass
class _Finder:
    """FindValidModuli, and its number of draws so far."""

    domain_size: int
    epsilon: Fraction
    kappa_max: float
    beta: float
    trials: int
    generator: np.random.Generator
    drawn: int = 0

    def find(self, count: int) -> _Valid | None:
        """The first draw with κ ≤ κ_max, else the deterministic moduli if they have it, else None."""
        band = _band(self.domain_size, count, self.beta)
        for _ in range(self.trials if band.size >= count else 0):
            self.drawn += 1
            moduli = _draw(band, count, self.domain_size, self.generator)
            kappa = self._kappa(moduli)
            if kappa <= self.kappa_max:
                return _Valid(moduli, kappa, from_fallback=False)
        moduli = tuple(sorted(self._fallback(count)))
        kappa = self._kappa(moduli)
        return _Valid(moduli, kappa, from_fallback=True) if kappa <= self.kappa_max else None

    def _fallback(self, count: int) -> list[int]:
        """The first ℓ primes from ⌈k^(1/ℓ)⌉ on, bumped from left to right until the set is valid."""
        moduli: list[int] = []
        prime = _root_ceiling(self.domain_size, count)
        for _ in range(count):
            prime = next_prime(prime)
            moduli.append(prime)
            prime += 1
        index = 0
        while not _is_valid(moduli, self.domain_size):
            moduli[index] = _next_free_prime(moduli, index)
            index = (index + 1) % count
        return moduli

    def _kappa(self, moduli: tuple[int, ...]) -> float:
        return condition_number(self.domain_size, self.epsilon, moduli, limit=self.kappa_max)


def _band(domain_size: int, count: int, beta: float) -> Integers:
    """All primes in [k/(βℓ), min(βk/ℓ, 0.95·k)]."""
    primes = primes_up_to(int(min(beta * domain_size / count, _HIGHEST_SHARE * domain_size)))
    return primes[primes >= domain_size / (beta * count)]


def _draw(band: Integers, count: int, domain_size: int, generator: np.random.Generator) -> tuple[int, ...]:
    """Distinct primes of the band, random ones of which are raised to the next prime until the set is valid."""
    moduli: list[int] = generator.choice(band, count, replace=False).tolist()
    while not _is_valid(moduli, domain_size):
        index = int(generator.integers(count))
        moduli[index] = _next_free_prime(moduli, index)
    return tuple(sorted(moduli))


def _is_valid(moduli: list[int], domain_size: int) -> bool:
    """Coverage, Π m_j ≥ k, and rank, Σ(m_j − 1) ≥ k."""
    return prod(moduli) >= domain_size and sum(moduli) - len(moduli) >= domain_size


def _next_free_prime(moduli: list[int], index: int) -> int:
    """The next prime above a modulus that is not among the others: moduli must stay coprime."""
    prime = next_prime(moduli[index] + 1)
    while prime in moduli:
        prime = next_prime(prime + 1)
    return prime


def _root_ceiling(number: int, degree: int) -> int:
    """⌈number^(1/degree)⌉, in integers."""
    root = max(1, round(number ** (1 / degree)) - 1)
    while root**degree < number:
        root += 1
    return root


def _describe(finder: _Finder, best: _Valid, error: float) -> PaperSearch:
    """Theorem 4's values at the ℓ found, next to the true ones."""
    size, count, odds = finder.domain_size, len(best.moduli), exp(finder.epsilon)
    lowest = size / (finder.beta * count)
    t_star = float(ceil(log(size) / log(lowest))) if lowest > 1 else inf
    alpha = (finder.beta + odds) / (1 / finder.beta + odds)
    allowed = finder.kappa_max / alpha
    weights = [paper_weight(modulus, finder.epsilon) for modulus in best.moduli]
    return PaperSearch(
        moduli=best.moduli,
        error=error,
        kappa=best.kappa,
        kappa_bound=alpha * (count + t_star) / (count - t_star) if count > t_star else inf,
        l_theory=(1 + allowed) / (allowed - 1) * t_star if allowed > 1 else inf,
        t_star=t_star,
        alpha=alpha,
        alpha_true=max(weights) / min(weights),
        used_fallback=best.from_fallback,
        trials=finder.drawn,
    )
