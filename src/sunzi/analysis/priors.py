"""What an attacker believes before seeing any report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.domain import Domain
from sunzi.errors import DomainError, ParameterError
from sunzi.planning.populations import Population


@dataclass(frozen=True, eq=False)
class Prior:
    """How likely the attacker takes each value to be, and a name for it."""

    name: str
    chances: Floats

    @classmethod
    def of(cls, domain: Domain, prior: Prior | str | NDArray[np.float64] | None) -> Prior:
        """A prior as it is; None or a population's name (uniform, zipf:3, spike); a file; or chances in the domain's
        order.
        """
        if isinstance(prior, Prior):
            found = prior
        elif prior is None or isinstance(prior, str):
            found = _named(domain, prior or "uniform")
        else:
            found = cls("given", np.asarray(prior, dtype=np.float64))
        chances = found.chances
        if chances.shape != (domain.size,) or not np.all(chances >= 0) or not np.isclose(chances.sum(), 1):
            raise ParameterError(f"a prior must be {domain.size} chances, none below 0, that sum to 1")
        return cls(found.name, chances / chances.sum())

    @property
    def is_uniform(self) -> bool:
        """Whether all values are equally likely."""
        return bool(np.all(self.chances == self.chances[0]))

    @property
    def order(self) -> Integers:
        """The values, likeliest first."""
        return np.argsort(-self.chances, kind="stable")

    @property
    def best_guess(self) -> float:
        """How often the best guess is right that looks at no report."""
        return float(self.chances.max())

    def draw(self, number: int, generator: np.random.Generator) -> Integers:
        """Values of so many users for whom the prior is true."""
        cumulative = np.cumsum(self.chances)
        places = generator.random(number) * cumulative[-1]
        found = np.searchsorted(cumulative, places, side="right")
        # Rounding may lead past the last value that has a chance at all.
        return np.minimum(found, np.flatnonzero(self.chances)[-1]).astype(np.int64)


def _named(domain: Domain, name: str) -> Prior:
    kind = name.partition(":")[0]
    if kind in ("uniform", "zipf", "spike"):
        return Prior(name, Population.parse(name).chances(domain.size))
    if not Path(name).is_file():
        raise ParameterError(
            f"a prior is uniform, spike, zipf, zipf:EXPONENT or a file of labels and weights; there is no file {name!r}"
        )
    return Prior(name, _read_weights(domain, Path(name)))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines that are not empty, with their numbers, without a first one whose weight is a name."""
    import csv

    with path.open(newline="", encoding="utf-8-sig") as stream:
        try:
            for number, row in enumerate(csv.reader(stream), start=1):
                if row and not (number == 1 and len(row) == 2 and not _is_number(row[1])):
                    yield number, row
        except UnicodeDecodeError as error:
            raise ParameterError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_weights(domain: Domain, path: Path) -> Floats:
    """A file of lines LABEL,WEIGHT, perhaps below a line of names; what it does not list has no chance."""
    weights = np.zeros(domain.size)
    for number, row in _rows(path):
        try:
            label, weight = row
            amount = float(weight)
            index = domain.index(label if domain.has_labels else int(label))
        except DomainError:
            raise ParameterError(f"{path}, line {number}: {row[0]!r} is no value of the plan") from None
        except ValueError:
            raise ParameterError(f"{path}, line {number}: expected VALUE,WEIGHT, got {','.join(row)!r}") from None
        if not 0 <= amount < np.inf:
            raise ParameterError(f"{path}, line {number}: a weight must not be negative nor infinite, got {weight!r}")
        weights[index] += amount
    if not weights.sum() > 0:
        raise ParameterError(f"{path} gives no value a weight above 0")
    return np.asarray(weights / weights.sum(), dtype=np.float64)
