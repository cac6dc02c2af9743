"""One protocol in many simulated collections: the measurement that the experiments about error share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.planning import Population

from .experiment import Cell, Experiment, Row, Scale
from .paper_formula import printed_mse
from .table import summary
from .trials import MODULAR, POPULATIONS, USERS, histogram_of, paper_plan, quick_options, values_of, warm_up

PROTOCOLS = ("grr", "rappor", "oue", "ss", "pgr", "mss", "ss-compact", "mss-compact")
RIDGE = "mss-ridge"
"""The tallies of ``mss``, decoded with the paper's weights and ridge 1/ε²."""
LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Quantiles of a trial's error that are kept."""
_LARGEST_DENSE = 2000


class CollectingExperiment(Experiment):
    """Cells are (protocol, domain size k, ε, users, populations, trials, searches); experiments that ask for the same
    cell share it.
    """

    measurement: ClassVar[str] = "collecting"
    version: ClassVar[int] = 1

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """One row per population, and for ``mss`` one more for the paper's ridge."""
        warm_up()
        plans = _plans(cell)
        return [row for population in cell["populations"] for row in _collect(cell, plans, population, seed)]


def collecting_cell(
    protocol: str,
    domain_size: int,
    epsilon: float,
    trials: int,
    *,
    users: int = USERS,
    populations: Sequence[str] = POPULATIONS,
    searches: int = 10,
) -> Cell:
    """``searches``: how many times the paper's search is run for ``mss``; trials are divided among what it finds."""
    cost = trials * len(populations) * _seconds_a_trial(protocol, domain_size, epsilon, users)
    if protocol == "mss":
        cost += searches * 4.8 * domain_size / 22_000
    return Cell.of(
        cost,
        protocol=protocol,
        domain_size=domain_size,
        epsilon=epsilon,
        users=users,
        populations=tuple(populations),
        trials=trials,
        searches=searches if protocol == "mss" else 0,
    )


def _seconds_a_trial(protocol: str, domain_size: int, epsilon: float, users: int) -> float:
    """As measured on one core: drawing subsets takes by far the longest."""
    points = users * domain_size / (np.exp(epsilon) + 1)
    drawn = {"ss": 8e-9, "mss": 5e-9}.get(protocol, 0.0) * points
    decoding = {"mss-compact": 4e-6, "pgr": 1.5e-6, "ss-compact": 6e-7, "mss": 1e-6}.get(protocol, 1e-7) * domain_size
    return float(drawn + decoding + 5e-8 * users)


def _plans(cell: Cell) -> list[sunzi.Plan]:
    protocol, size, epsilon = cell["protocol"], cell["domain_size"], cell["epsilon"]
    if protocol == "mss":
        return [paper_plan(size, epsilon, search) for search in range(cell["searches"])]
    return [sunzi.make_plan(protocol, size, epsilon)]


def _collect(cell: Cell, plans: list[sunzi.Plan], population: str, seed: int) -> list[Row]:
    size, users = cell["domain_size"], cell["users"]
    errors: list[float] = []
    ridge: list[float] = []
    seeds = cell.seeds(seed, cell["trials"])
    for trial, words in enumerate(seeds):
        plan = plans[trial * len(plans) // len(seeds)]
        values = values_of(population, size, users, words)
        tally = plan.simulate(values, seed=[*words, 1])
        truth = histogram_of(values, size)
        errors.append(_error(plan.estimate(tally, **quick_options(plan)), truth))
        if cell["protocol"] == "mss":
            ridge.append(_error(plan.estimate(tally, weights="paper", ridge="paper", errors="quick"), truth))
    rows = [_row(cell, plans, population, errors)]
    if ridge:
        rows.append({"population": population, "method": RIDGE, **_kept(summary(ridge, quantiles=LEVELS))})
    return rows


def _error(estimate: sunzi.Estimate, truth: Floats) -> float:
    return float(np.mean((estimate.frequencies - truth) ** 2))


def _row(cell: Cell, plans: list[sunzi.Plan], population: str, errors: list[float]) -> Row:
    users, size = cell["users"], cell["domain_size"]
    chances = Population.parse(population).chances(size)
    printed = None
    if cell["protocol"] == "mss" and size <= _LARGEST_DENSE:
        printed = float(np.mean([printed_mse(plan, users, chances) for plan in plans]))
    return {
        "population": population,
        "method": cell["protocol"],
        **_kept(summary(errors, quantiles=LEVELS)),
        "predicted": _mean([plan.expected_mse(users, chances) for plan in plans]),
        "predicted_light": _mean([plan.expected_mse(users) for plan in plans]),
        "printed": None if printed is None else _short(printed),
        "bits": _mean([plan.report_bits for plan in plans]),
    }


def _mean(values: list[float]) -> float:
    return _short(float(np.mean(values)))


def _kept(row: Row) -> Row:
    """Six digits; more would be noise."""
    return {name: _short(value) if isinstance(value, float) else value for name, value in row.items()}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def trials_for(scale: Scale, domain_size: int) -> int:
    """300 as in the paper; 100 where a trial is slow, because a trial over many items is more precise."""
    if scale == "full":
        return 300 if domain_size <= 2000 else 100
    if scale == "quick":
        return 40 if domain_size <= 2000 else 4
    return 4


def is_modular(method: Any) -> bool:
    """Whether a method decodes residues."""
    return method == RIDGE or method in MODULAR
