"""Simulated collections, for the experiments about error.

A trial draws the users' values, simulates the tally of their reports, estimates, and compares with the histogram of
these users. Trials of one cell have independent seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

import sunzi
from sunzi._typing import Floats, Integers
from sunzi.planning import Population

from .moduli_search import paper_search

USERS = 10_000
POPULATIONS = ("zipf:3", "spike")
"""The paper's two populations."""
EPSILONS = tuple(number / 2 for number in range(1, 11))
"""0.5, 1, …, 5."""
MODULAR = ("mss", "mss-compact")


@cache
def warm_up() -> None:
    """Load the compiled kernels once per process. Sunzi loads them by itself only for simulations of millions of
    points; with them, trials with subsets take a tenth of the time.
    """
    sunzi.make_plan("ss", 22_000, 0.5).simulate(np.zeros(600, dtype=np.int64), seed=0)


def values_of(population: str, domain_size: int, users: int, seed: Sequence[int]) -> Integers:
    """The values of the users of one trial."""
    return Population.parse(population).draw(domain_size, users, [*seed, 0])


def histogram_of(values: Integers, domain_size: int) -> Floats:
    """The histogram of these users, which the trial estimates."""
    return np.bincount(values, minlength=domain_size) / values.size


def paper_plan(domain_size: int, epsilon: float, seed: int = 0) -> sunzi.Plan:
    """``mss`` with the moduli of the paper's search."""
    return sunzi.make_plan("mss", domain_size, epsilon, moduli=paper_search(domain_size, epsilon, seed).moduli)


def quick_options(plan: sunzi.Plan) -> dict[str, Any]:
    """Options for an estimate of which only the frequencies are used."""
    return {"errors": "quick"} if plan.protocol.name in MODULAR else {}


def errors_of(
    plans: sunzi.Plan | Iterable[sunzi.Plan],
    population: str,
    users: int,
    seeds: Sequence[Sequence[int]],
    **options: Any,
) -> Iterator[Floats]:
    """f̂ − f of every trial, with one plan for all or one plan per trial."""
    warm_up()
    for plan, seed in zip(_repeated(plans, len(seeds)), seeds, strict=True):
        size = plan.domain.size
        values = values_of(population, size, users, seed)
        estimate = plan.estimate(plan.simulate(values, seed=[*seed, 1]), **{**quick_options(plan), **options})
        yield estimate.frequencies - histogram_of(values, size)


def squared_errors(
    plans: sunzi.Plan | Iterable[sunzi.Plan],
    population: str,
    users: int,
    seeds: Sequence[Sequence[int]],
    **options: Any,
) -> list[float]:
    """The mean squared error of every trial: (1/k)·‖f̂ − f‖²."""
    return [float(np.mean(error**2)) for error in errors_of(plans, population, users, seeds, **options)]


def _repeated(plans: sunzi.Plan | Iterable[sunzi.Plan], number: int) -> Iterable[sunzi.Plan]:
    return [plans] * number if isinstance(plans, sunzi.Plan) else plans
