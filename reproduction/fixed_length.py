"""The paper's FindValidModuli for one number of moduli ℓ."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from sunzi.numerics.primes import next_prime, primes_up_to

from .conditioning import condition_number

KAPPA_MAX, BAND_WIDTH, HIGHEST_SHARE = 10.0, 20.0, 0.95


def find_valid_moduli(
    domain_size: int, epsilon: float, length: int, seed: int, *, draws: int = 200
) -> tuple[tuple[int, ...], float]:
    """Moduli drawn from the paper's band until κ ≤ 10, and their κ; if no draw has it, the draw of smallest κ."""
    generator = np.random.default_rng([seed, length])
    low = domain_size / (BAND_WIDTH * length)
    high = min(BAND_WIDTH * domain_size / length, HIGHEST_SHARE * domain_size)
    primes = primes_up_to(int(high))
    band = primes[primes >= low]
    best: tuple[tuple[int, ...], float] = ((), inf)
    for _ in range(draws):
        drawn = generator.choice(band, length, replace=False).tolist()
        moduli = tuple(sorted(_repaired(drawn, domain_size, generator)))
        # Screened against the best so far, which costs a few multiplications.
        kappa = condition_number(domain_size, epsilon, moduli, limit=max(KAPPA_MAX, best[1]))
        if kappa < best[1] or not best[0]:
            best = (moduli, kappa)
        if kappa <= KAPPA_MAX:
            break
    return best


def _repaired(moduli: list[int], domain_size: int, generator: np.random.Generator) -> list[int]:
    """Random moduli bumped to the next free prime until Π m_j ≥ k and Σ(m_j − 1) ≥ k."""
    while prod(moduli) < domain_size or sum(moduli) - len(moduli) < domain_size:
        place = int(generator.integers(len(moduli)))
        prime = next_prime(moduli[place] + 1)
        while prime in moduli:
            prime = next_prime(prime + 1)
        moduli[place] = prime
    return moduli
