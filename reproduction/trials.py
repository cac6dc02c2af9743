"""Simulated collections, for the experiments about error.

A trial draws the users' values, simulates the tally of their reports, estimates, and compares with the histogram of
these users. Trials of one cell have independent seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from inspect import signature
from typing import Any

import numpy as np

import sunzi
from sunzi._typing import Floats, Integers
from sunzi.planning import Population
from sunzi.protocols.modular_variance import ModularVariance

from .moduli_search import paper_search, shared_epsilon

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
    moduli = paper_search(domain_size, epsilon, seed).moduli
    return sunzi.make_plan("mss", domain_size, epsilon, moduli=moduli, code="arithmetic")


def plan_of_trial(domain_size: int, epsilon: float, seed: int) -> sunzi.Plan:
    """``mss`` with moduli of a search that several ε share; for experiments with many searches."""
    moduli = paper_search(domain_size, shared_epsilon(domain_size, epsilon), seed).moduli
    return sunzi.make_plan("mss", domain_size, epsilon, moduli=moduli, code="arithmetic")


def moduli_of(plan: sunzi.Plan) -> tuple[int, ...]:
    """The moduli of a plan for ``mss``."""
    return tuple(response.points for response in plan.protocol.responses)


def paper_decoder(plan: sunzi.Plan) -> dict[str, Any]:
    """Options for an estimate as the paper makes it: for ``mss`` its weights and its ridge, for the others the linear
    decoder.
    """
    paper = {"weights": "paper", "ridge": "paper", "errors": "quick"}
    return paper if plan.protocol.name == "mss" else linear_decoder(plan)


def linear_decoder(plan: sunzi.Plan) -> dict[str, Any]:
    """Options for the library's fixed linear map, of which only the frequencies are used."""
    options = {"weights": "planned", "errors": "quick"}
    taken = signature(plan.protocol.estimate).parameters
    return {name: value for name, value in options.items() if name in taken}


def linear_error(plan: sunzi.Plan, users: int, histogram: Floats) -> float:
    """The exact mean squared error of the linear map about these users' own histogram."""
    protocol: Any = plan.protocol
    if protocol.name not in MODULAR:
        return float(plan.worst_mse(users))  # the same for every histogram
    share = users / len(protocol.responses)
    variance = ModularVariance(
        protocol.gram, protocol.moments, protocol.planned_weights, [share] * len(protocol.responses)
    )
    return float(np.mean(variance.full(histogram) - histogram * (1 - histogram) / users))


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
        estimate = plan.estimate(plan.simulate(values, seed=[*seed, 1]), **(options or paper_decoder(plan)))
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
