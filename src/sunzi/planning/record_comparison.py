"""Compare plans of numbers and records with alternative methods, over several ε and numbers of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Any

from sunzi._typing import Progress
from sunzi.client.epsilon import Epsilon, parse_epsilon
from sunzi.formatting import percent_of_three_digits
from sunzi.plan import Plan
from sunzi.protocols.base import PlannedError, check_users

OURS = "this plan"
AVERAGE = "all tables, on average"
METHODS_HEADER = ("question", "method", "error", "users needed")


@dataclass(frozen=True)
class MethodRow:
    """How accurately a method answers a question, if all values are equally frequent.

    >>> import sunzi
    >>> rows = compare_records(lambda epsilon: sunzi.make_ordered(0, 5120, 256, epsilon), [2], [100_000])
    >>> first = next(rows)
    >>> first.question, first.method, first.variance == first.our_variance
    ('a range, on average', 'this plan', True)
    """

    question: str
    method: str
    epsilon: Fraction
    users: int
    variance: float
    """The variance of the answer about the users."""
    our_variance: float
    """The plan's variance for the same question."""

    @property
    def is_ours(self) -> bool:
        """Whether this is the plan itself."""
        return self.method == OURS

    @property
    def standard_error(self) -> float:
        """The square root of the variance."""
        return self.variance**0.5

    @property
    def users_needed(self) -> int:
        """The number of users at which the method has the same error as the plan."""
        return round(self.users * self.variance / self.our_variance)

    def cells(self) -> list[str]:
        """Texts below :data:`METHODS_HEADER`."""
        error = f"± {percent_of_three_digits(self.standard_error)}"
        return [self.question, self.method, error, f"{self.users_needed:,}"]

    def columns(self) -> dict[str, Any]:
        """Values by column name; ready for a data frame."""
        return {
            "question": self.question,
            "method": self.method,
            "epsilon": float(self.epsilon),
            "users": self.users,
            "standard_error": self.standard_error,
            "users_needed": self.users_needed,
        }


def best_first(rows: Sequence[MethodRow]) -> list[MethodRow]:
    """Group the methods by question and sort them by error; questions and settings stay in order."""
    places: dict[tuple[Fraction, int, str], int] = {}
    for row in rows:
        places.setdefault((row.epsilon, row.users, row.question), len(places))
    return sorted(rows, key=lambda row: (places[row.epsilon, row.users, row.question], row.variance))


def compare_records(
    make: Callable[[Fraction], Plan],
    epsilons: Sequence[Epsilon],
    users: Sequence[int],
    wanted: Sequence[Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Iterator[MethodRow]:
    """Yield a row for every ε, number of users, question and method, the plan itself first.

    All errors come from formulas (docs/mathematics.md §16). The square wave with EM has none, since its bias depends on
    the data: docs/records.md has measurements.

    Parameters
    ----------
    make: makes the plan for an ε.
    epsilons, users: the values to combine.
    wanted: for a plan of tables, the tables to compare; by default those that the plan has views of.
    progress: called with the fraction done.

    >>> import sunzi
    >>> rows = compare_records(lambda epsilon: sunzi.make_ordered(0, 5120, 256, epsilon), [2], [100_000])
    >>> [row.method for row in sorted(rows, key=lambda row: row.variance) if row.question == "a range, on average"]
    ['this plan', 'HaarHRR', 'hierarchical Hadamard', 'one histogram of all']
    """
    for number in users:
        check_users(number)
    budgets = [parse_epsilon(epsilon) for epsilon in epsilons]
    for done, epsilon in enumerate(budgets, start=1):
        plan = make(epsilon)
        for number in users:
            errors = plan.protocol.planned_errors(plan.domain, number, wanted)
            for error in [*errors, *_average(errors if wanted else [])]:
                for method, variance in {OURS: error.variance, **error.alternatives}.items():
                    yield MethodRow(error.question, method, epsilon, number, variance, error.variance)
        if progress is not None:
            progress(done / len(budgets))


def _average(errors: Sequence[PlannedError]) -> list[PlannedError]:
    """The mean variance over all tables, which a plan minimises; nothing for fewer than two tables."""
    if len(errors) < 2:
        return []
    methods = {name: fmean(error.alternatives[name] for error in errors) for name in errors[0].alternatives}
    return [PlannedError(AVERAGE, fmean(error.variance for error in errors), methods)]
