"""One protocol in many simulated collections: the measurement that the experiments about error share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.planning import Population

from .experiment import Cell, Experiment, Row, Scale
from .figures import name_of
from .paper_formula import printed_mse
from .table import Table, number_in, summary
from .trials import (
    MODULAR,
    POPULATIONS,
    USERS,
    histogram_of,
    linear_decoder,
    linear_error,
    paper_decoder,
    paper_plan,
    plan_of_trial,
    values_of,
    warm_up,
)

PROTOCOLS = ("grr", "rappor", "oue", "ss", "pgr", "mss", "ss-compact", "mss-compact")
PAPERS = ("grr", "oue", "ss", "pgr", "mss")
"""The protocols that the paper runs."""
LINEAR = "mss, linear decoder"
"""The tallies of ``mss``, decoded by Sunzi's fixed linear map: planned weights and no ridge."""
EFFICIENT = "mss, our decoder"
"""Some of the same tallies, decoded by Sunzi's efficient estimator."""
LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Quantiles of a trial's error that are kept."""
LARGE = 2000
"""Domains above this size are slow."""
_LEAST_EPSILON = {"ss": 1.5, "mss": 3.0}
"""Below these ε a trial with subsets of a large domain takes long: it draws up to 10^8 points."""


class CollectingExperiment(Experiment):
    """Cells are (protocol, domain size k, ε, users, populations, trials, searches); experiments that ask for the same
    cell share it.
    """

    measurement: ClassVar[str] = "collecting"
    version: ClassVar[int] = 2

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """One row per population and decoder; ``mss`` is decoded as in the paper and by Sunzi's linear map."""
        warm_up()
        plans, users = _plans(cell), cell["users"]
        chances = [Population.parse(population).chances(cell["domain_size"]) for population in cell["populations"]]
        if "tallies" in dict(cell.parameters):
            return [_efficient_row(cell, plans, population, seed) for population in cell["populations"]]
        printed: list[float | None] = [None] * len(chances)
        if cell["protocol"] == "mss":
            printed = np.mean([printed_mse(plan, users, chances) for plan in plans], axis=0).tolist()
        return [
            row
            for population, histogram, formula in zip(cell["populations"], chances, printed, strict=True)
            for row in _rows(cell, plans, population, histogram, formula, seed)
        ]


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
        cost += searches * (0.25 + 2.5 * domain_size / 22_000)
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


def efficient_cell(cell: Cell, tallies: int) -> Cell:
    """Decode some of the tallies of a cell of ``mss``, evenly spread over its trials, by the efficient estimator."""
    terms = dict(cell.parameters)
    cost = tallies * len(cell["populations"]) * (3e-6 * cell["domain_size"] + cell.cost / terms["trials"])
    return Cell.of(cost, tallies=tallies, **terms)


def _seconds_a_trial(protocol: str, domain_size: int, epsilon: float, users: int) -> float:
    """As measured on one core: drawing subsets takes by far the longest."""
    points = users * domain_size / (np.exp(epsilon) + 1)
    drawn = {"ss": 6e-9, "mss": 4e-9}.get(protocol, 0.0) * points
    decoding = {"mss-compact": 1e-6, "pgr": 5e-7, "ss-compact": 1e-7, "mss": 4e-7}.get(protocol, 1e-7) * domain_size
    return float(drawn + decoding + 5e-8 * users)


def _plans(cell: Cell) -> list[sunzi.Plan]:
    protocol, size, epsilon = cell["protocol"], cell["domain_size"], cell["epsilon"]
    if protocol != "mss":
        return [sunzi.make_plan(protocol, size, epsilon)]
    # On large domains the search finds the same moduli at all ε.
    make = plan_of_trial if size > LARGE else paper_plan
    return [make(size, epsilon, search) for search in range(cell["searches"])]


def _tallies(
    cell: Cell, plans: list[sunzi.Plan], population: str, seed: int, step: int = 1
) -> Iterator[tuple[sunzi.Plan, sunzi.Tally, Floats]]:
    """Plan, tally and true histogram of every trial, or of every ``step``-th."""
    size = cell["domain_size"]
    seeds = cell.seeds(seed, cell["trials"])
    for trial in range(0, len(seeds), step):
        plan = plans[trial * len(plans) // len(seeds)]
        values = values_of(population, size, cell["users"], seeds[trial])
        yield plan, plan.simulate(values, seed=[*seeds[trial], 1]), histogram_of(values, size)


def _error(plan: sunzi.Plan, tally: sunzi.Tally, truth: Floats, options: dict[str, Any]) -> float:
    return float(np.mean((plan.estimate(tally, **options).frequencies - truth) ** 2))


def _rows(
    cell: Cell, plans: list[sunzi.Plan], population: str, chances: Floats, printed: float | None, seed: int
) -> list[Row]:
    protocol, users = cell["protocol"], cell["users"]
    decoders = {protocol: paper_decoder(plans[0])}
    if protocol == "mss":
        decoders[LINEAR] = linear_decoder(plans[0])
    errors: dict[str, list[float]] = {method: [] for method in decoders}
    for plan, tally, truth in _tallies(cell, plans, population, seed):
        for method, options in decoders.items():
            errors[method].append(_error(plan, tally, truth, options))
    expected = {
        "predicted": _mean([linear_error(plan, users, chances) for plan in plans]),
        "predicted_light": _mean([_light_error(plan, users) for plan in plans]),
    }
    bits = _mean([plan.report_bits for plan in plans])
    return [
        {
            "population": population,
            "method": method,
            **_kept(summary(found, quantiles=LEVELS)),
            **(expected if method == LINEAR or protocol != "mss" else {}),
            "printed": _short(printed) if printed is not None and method == protocol else None,
            "bits": bits,
        }
        for method, found in errors.items()
    ]


def _efficient_row(cell: Cell, plans: list[sunzi.Plan], population: str, seed: int) -> Row:
    """The error of the efficient estimator, and that of the paper's decoder on the same tallies."""
    base = Cell(tuple(pair for pair in cell.parameters if pair[0] != "tallies"))
    step = max(1, cell["trials"] // cell["tallies"])
    errors, papers = [], []
    for plan, tally, truth in _tallies(base, plans, population, seed, step):
        errors.append(_error(plan, tally, truth, {"weights": "efficient"}))
        papers.append(_error(plan, tally, truth, paper_decoder(plan)))
    found = {"population": population, "method": EFFICIENT, **_kept(summary(errors, quantiles=LEVELS))}
    return {**found, "paper_mean": _short(float(np.mean(papers)))}


def _light_error(plan: sunzi.Plan, users: int) -> float:
    """The error of the linear decoder for an item that nobody holds, nor any item with one of its residues."""
    if plan.protocol.name in MODULAR:
        return linear_error(plan, users, np.zeros(plan.domain.size))
    ((true, false),) = plan.protocol.support_probabilities()
    return false * (1 - false) / (true - false) ** 2 / users


def amounts(table: Table) -> str:
    """The number of trials of the protocols, and where it is smaller than the paper's."""
    most = max(table.distinct("trials"))
    fewer: dict[tuple[str, int, int], list[float]] = {}
    for row in table.where(method=PROTOCOLS):
        if row["trials"] != most:
            place = (str(row["method"]), int(number_in(row, "domain_size")), int(number_in(row, "trials")))
            fewer.setdefault(place, []).append(number_in(row, "epsilon"))
    listed = "; ".join(
        f"{trials} for {name_of(method)} at k = {size:,}, ε = {min(epsilons):g}"
        + (f" to {max(epsilons):g}" if max(epsilons) > min(epsilons) else "")
        for (method, size, trials), epsilons in fewer.items()
    )
    return f"{most} trials per point" + (f", but fewer at some: {listed}." if listed else ".")


def decoders_in(table: Table) -> list[str]:
    """The decoders of ``mss`` beside the paper's own that a table has."""
    return [method for method in (LINEAR, EFFICIENT) if method in table.distinct("method")]


def _mean(values: list[float]) -> float:
    return _short(float(np.mean(values)))


def _kept(row: Row) -> Row:
    """Six digits; more would be noise."""
    return {name: _short(value) if isinstance(value, float) else value for name, value in row.items()}


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def trials_for(scale: Scale, domain_size: int, protocol: str, epsilon: float) -> int:
    """300 as in the paper; on large domains 100 for subsets at small ε, and for the protocols that the paper does not
    run.
    """
    if scale == "full":
        slow = protocol not in PAPERS or epsilon < _LEAST_EPSILON.get(protocol, 0.0)
        return 100 if domain_size > LARGE and slow else 300
    if scale == "quick":
        return 40 if domain_size <= LARGE else 4
    return 4


def tallies_for(scale: Scale, domain_size: int) -> int:
    """Tallies that the efficient estimator decodes."""
    if scale == "full":
        return 60 if domain_size <= LARGE else 20
    return 4 if scale == "quick" else 2
