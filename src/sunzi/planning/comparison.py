"""Protocols side by side over many settings, by formula or by simulation. The same seed gives the same figures, except
times, independently of which other settings and protocols are compared.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from sunzi._typing import Progress
from sunzi.batch import check_delta
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.client.errors import ParameterError, SunziError
from sunzi.domains.labels import Domain
from sunzi.plan import Plan, make_plan
from sunzi.planning.axes import BATCH_COLUMNS, Axes, check_reference, evaluate
from sunzi.planning.populations import UNIFORM, Population, ReferenceHistogram
from sunzi.planning.recommendation import residue_note
from sunzi.protocols.base import check_users
from sunzi.protocols.registry import find


@dataclass(frozen=True)
class Setting:
    """One combination to compare protocols at.

    >>> from fractions import Fraction
    >>> setting_grid([64], epsilons=["1/2"], users=[10_000]) == [Setting(64, Fraction(1, 2), 10_000)]
    True
    """

    domain_size: int
    epsilon: Fraction
    users: int


@dataclass(frozen=True)
class Trials:
    """Simulated collections of one population: their number, seed and population.

    >>> row = next(compare(setting_grid([8], [1], [1000]), ["grr"], Trials(number=5, seed=1)))
    >>> row.trials.number
    5
    """

    number: int
    seed: int = 1
    population: Population = UNIFORM

    def __post_init__(self) -> None:
        """A standard error needs two trials."""
        if self.number < 2:
            raise ParameterError(f"a simulation needs at least 2 trials to measure their spread, got {self.number}")
        if self.seed < 0:
            raise ParameterError(f"the seed must not be negative, got {self.seed}")


@dataclass(frozen=True)
class Simulated:
    """The measurements of the trials."""

    mse: float
    """Mean over trials and items of the squared error, about the users of each trial."""
    mse_error: float
    """Standard error of that mean."""
    expected_mse: float
    """The formula's value for this population."""
    report_seconds: float
    """Median time to randomise and count the reports of one trial."""
    decode_seconds: float
    """Median time to turn the tally into frequencies."""


@dataclass(frozen=True)
class ComparisonRow:
    """One protocol at one setting.

    >>> row = next(compare(setting_grid([64], [1], [1000]), ["grr"]))
    >>> row.protocol, row.axes.bits
    ('grr', 6.0)
    """

    protocol: str
    setting: Setting
    axes: Axes | None
    trials: Trials | None = None
    simulated: Simulated | None = None
    note: str = ""
    """Why there are no numbers, or a caveat about them."""

    def columns(self) -> dict[str, Any]:
        """Values by column name, with the same columns in every row of a comparison; ready for a data frame."""
        setting = self.setting
        columns: dict[str, Any] = {
            "protocol": self.protocol,
            "domain_size": setting.domain_size,
            "epsilon": float(setting.epsilon),
            "users": setting.users,
        }
        figures = {} if self.axes is None else self.axes.to_dict()
        columns |= {name: figures.get(name) for name in AXES_COLUMNS}
        if self.trials is not None:
            columns |= {
                "population": str(self.trials.population),
                "trials": self.trials.number,
                "seed": self.trials.seed,
            }
            columns |= {name: getattr(self.simulated, name, None) for name in SIMULATED_COLUMNS}
        return columns | {"note": self.note}


AXES_COLUMNS = (
    "flat_error",
    "skewed_error",
    "standard_error",
    "largest_error",
    "detectable_share",
    "bits",
    "max_bits",
    "client_words",
    "tally_counters",
    "tally_bytes",
    "work",
    "read_work",
    "decode_work",
    "decode_route",
    "attackability",
    "push",
    "efficiency",
    *BATCH_COLUMNS.values(),
)
SIMULATED_COLUMNS = ("mse", "mse_error", "expected_mse", "report_seconds", "decode_seconds")


def setting_grid(domain_sizes: Sequence[int], epsilons: Sequence[Epsilon], users: Sequence[int]) -> list[Setting]:
    """All combinations of domain sizes, ε and numbers of users.

    Parameters
    ----------
    domain_sizes, epsilons, users: the values to combine.

    >>> len(setting_grid([64, 1024], epsilons=["1/2", 1, 2], users=[10_000]))
    6
    """
    for size in domain_sizes:
        Domain(size)
    for number in users:
        check_users(number)
    budgets = [parse_epsilon(epsilon) for epsilon in epsilons]
    return [Setting(*values) for values in product(domain_sizes, budgets, users)]


def compare(
    settings: Sequence[Setting],
    protocols: Sequence[str],
    trials: Trials | None = None,
    progress: Progress | None = None,
    histogram: ReferenceHistogram = "flat",
    *,
    delta: float | None = None,
) -> Iterator[ComparisonRow]:
    """Yield a row for every protocol at every setting; if a protocol refuses a setting, its row says why.

    Parameters
    ----------
    settings: for example from :func:`setting_grid`.
    protocols: names from the catalogue.
    trials: also simulate this many collections and measure their errors; without it all figures are formulas.
    progress: called with the fraction done.
    histogram: ``"flat"``, or ``"skewed"`` to compute the errors for skewed values too.
    delta: also compute what a batch of all reports reveals, with this δ.

    >>> [row.columns()["bits"] for row in compare(setting_grid([64], [1], [1000]), ["grr", "oue"])]
    [6.0, 64.0]
    """
    check_reference(histogram)
    if delta is not None:
        check_delta(delta)
    for name in protocols:
        find(name)
    done, total = 0, len(settings) * len(protocols)
    for name in protocols:
        plans: dict[tuple[int, Fraction], Plan] = {}
        for setting in settings:
            yield _row(name, setting, trials, plans, partial(evaluate, histogram=histogram, delta=delta))
            done += 1
            if progress is not None:
                progress(done / total)


def _row(
    name: str,
    point: Setting,
    trials: Trials | None,
    plans: dict[tuple[int, Fraction], Plan],
    figures: Callable[[Plan, int], Axes],
) -> ComparisonRow:
    terms = (point.domain_size, point.epsilon)
    try:
        if terms not in plans:
            plans.clear()  # a large plan takes much memory, and settings come in order
            plans[terms] = make_plan(name, point.domain_size, point.epsilon)
        plan = plans[terms]
        axes = figures(plan, point.users)
        simulated = None if trials is None else simulate(plan, point.users, trials)
    except SunziError as error:
        return ComparisonRow(name, point, None, trials, None, str(error))
    return ComparisonRow(name, point, axes, trials, simulated, residue_note(plan))


def simulate(plan: Plan, users: int, trials: Trials) -> Simulated:
    """Repeat one collection with fresh users and fresh randomness."""
    size = plan.domain.size
    errors, reporting, decoding = [], [], []
    for trial in range(trials.number):
        values = trials.population.draw(size, users, [trials.seed, trial, size, users])
        truth = np.bincount(values, minlength=size) / users
        start = time.perf_counter()
        tally = plan.simulate(values, seed=_seed(plan, users, trials.seed, trial))
        counted = time.perf_counter()
        frequencies = plan.estimate(tally).frequencies
        decoding.append(time.perf_counter() - counted)
        reporting.append(counted - start)
        errors.append(float(np.mean((frequencies - truth) ** 2)))
    return Simulated(
        mse=float(np.mean(errors)),
        mse_error=float(np.std(errors, ddof=1)) / sqrt(trials.number),
        expected_mse=plan.expected_mse(users, trials.population.chances(size)),
        report_seconds=float(np.median(reporting)),
        decode_seconds=float(np.median(decoding)),
    )


def _seed(plan: Plan, users: int, seed: int, trial: int) -> list[int]:
    """Different for every protocol, setting and trial; the same in every comparison."""
    epsilon = plan.epsilon
    name = zlib.crc32(plan.protocol.name.encode())
    return [seed, trial, plan.domain.size, users, epsilon.numerator, epsilon.denominator, name]
