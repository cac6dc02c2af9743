"""What an attacker believes before seeing a report, and how often the best guess after one report is right.

Attackability is Σ_y max_x π(x)·P(y|x), the success rate of the Bayes-optimal attacker (docs/mathematics.md §4). P(y|x)
takes two values for each report y, so the best guess is either the likeliest value of all or the likeliest one that y
supports. With the values in the order of their prior probabilities, all that matters of a report is the place of the
first value that it supports: each channel knows the share of reports for every place.

A channel sees points: residues, or cells of a view. The probability of a point is that of its likeliest value, since
that is the one to guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.analysis.evidence import check_channels
from sunzi.client.errors import DomainError, ParameterError
from sunzi.domains.labels import Domain
from sunzi.plan import Plan
from sunzi.planning.populations import Population
from sunzi.protocols.base import Protocol
from sunzi.protocols.channel import Channel
from sunzi.results.queries import parse_value

MOST_VALUES = 1 << 24


@dataclass(frozen=True, eq=False)
class Prior:
    """The attacker's prior probability of every value it chooses among (:attr:`Protocol.attacked_values`).

    >>> import sunzi
    >>> prior = Prior.of(sunzi.make_plan("grr", 4, 1).domain, "zipf:1")
    >>> prior.chances.round(2).tolist()
    [0.48, 0.24, 0.16, 0.12]
    """

    name: str
    """Such as "uniform" or "zipf:1"."""
    chances: Floats
    """By the index of the value."""

    @classmethod
    def of(cls, domain: Domain, prior: Prior | str | Floats | None, values: Sequence[int] | None = None) -> Prior:
        """Make a prior.

        Parameters
        ----------
        domain: the domain of the plan.
        prior: a prior; None or "uniform", "zipf", "zipf:EXPONENT", "spike"; the path of a CSV file of labels and
            weights; or one probability per value, in the domain's order.
        values: the indices of the values that the attacker chooses among; by default all.
        """
        chosen = range(domain.size) if values is None else values
        if len(chosen) > MOST_VALUES:
            raise ParameterError(
                f"there are {len(chosen):,} values, too many to attack one by one (at most {MOST_VALUES:,}); the "
                "plan's attackability is the success rate if all are equally likely"
            )
        if isinstance(prior, Prior):
            found = prior
        elif prior is None or isinstance(prior, str):
            found = _named(domain, prior or "uniform", chosen)
        else:
            found = cls("given", np.asarray(prior, dtype=np.float64))
        chances = found.chances
        if chances.shape != (len(chosen),) or not np.all(chances >= 0) or not np.isclose(chances.sum(), 1):
            raise ParameterError(f"a prior must be {len(chosen)} non-negative probabilities that sum to 1")
        return cls(found.name, chances / chances.sum())

    @property
    def order(self) -> Integers:
        """The places of the values, likeliest first."""
        return np.argsort(-self.chances, kind="stable")

    @property
    def best_guess(self) -> float:
        """Success rate of the best guess without a report."""
        return float(self.chances.max())

    def draw(self, number: int, generator: np.random.Generator) -> Integers:
        """The places of the values of ``number`` users, drawn from the prior."""
        cumulative = np.cumsum(self.chances)
        places = generator.random(number) * cumulative[-1]
        found = np.searchsorted(cumulative, places, side="right")
        # Rounding may lead past the last value of positive probability.
        return np.minimum(found, np.flatnonzero(self.chances)[-1]).astype(np.int64)


def _named(domain: Domain, name: str, values: Sequence[int]) -> Prior:
    kind = name.partition(":")[0]
    if kind in ("uniform", "zipf", "spike"):
        return Prior(name, Population.parse(name).chances(len(values)))
    if not Path(name).is_file():
        raise ParameterError(
            f"a prior is uniform, spike, zipf, zipf:EXPONENT or a file of labels and weights; there is no file {name!r}"
        )
    return Prior(name, _read_weights(domain, Path(name), values))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The non-empty lines with their numbers, without a header."""
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


def _read_weights(domain: Domain, path: Path, values: Sequence[int]) -> Floats:
    """Read lines LABEL,WEIGHT, perhaps below a header; values that are not listed get probability 0."""
    weights = np.zeros(len(values))
    for number, row in _rows(path):
        try:
            label, weight = row
            amount = float(weight)
            index = domain.exact_index(int(label) if domain.is_indices else parse_value(domain, label))
        except DomainError:
            raise ParameterError(f"{path}, line {number}: {row[0]!r} is not a value of the plan") from None
        except ValueError:
            raise ParameterError(f"{path}, line {number}: expected VALUE,WEIGHT, got {','.join(row)!r}") from None
        if not 0 <= amount < np.inf:
            raise ParameterError(f"{path}, line {number}: a weight must be finite and not negative, got {weight!r}")
        if index not in values:
            points = ", ".join(map(domain.shown, values))
            raise ParameterError(f"{path}, line {number}: {row[0]!r} would be rounded by chance; name one of {points}")
        weights[values.index(index)] += amount
    if not weights.sum() > 0:
        raise ParameterError(f"{path} gives no value a weight above 0")
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def attackability(plan: Plan, chances: Floats) -> float | None:
    """Bayes-optimal success rate from one report when the prior is correct; exact.

    Parameters
    ----------
    plan: the plan of the reports.
    chances: the prior probability of every value of :attr:`Protocol.attacked_values`.

    Returns None if a large compact design has too many messages to list.

    >>> import sunzi
    >>> plan = sunzi.make_plan("grr", 4, 1)
    >>> round(attackability(plan, Prior.of(plan.domain, "zipf:1").chances), 3)
    0.51
    """
    protocol = plan.protocol
    if np.all(chances == chances[0]):
        return protocol.attackability
    check_channels(protocol)
    order = np.argsort(-chances, kind="stable")
    values = np.asarray(protocol.attacked_values, dtype=np.int64)[order]
    total = 0.0
    for index, (channel, share) in enumerate(zip(protocol.channels, protocol.shares.tolist(), strict=True)):
        points, places = ranked_points(protocol, index, values)
        success = _channel_success(channel, points, chances[order][places])
        if success is None:
            return None
        total += share * success
    return total


def ranked_points(protocol: Protocol, channel: int, values: Integers) -> tuple[Integers, Integers]:
    """The points of a channel in the order of their first values, and the places of these values."""
    points, first = np.unique(protocol.points_of(channel, values), return_index=True)
    order = np.argsort(first)
    return points[order], first[order]


def _channel_success(channel: Channel, points: Integers, ranked: Floats) -> float | None:
    """Σ_i (share of reports whose first support is i)·max(π_0, odds·π_i), times the factor of unsupported points.

    ``ranked`` is the probability of the likeliest value of each point, likeliest points first.
    """
    odds = float(channel.likelihood_ratio)
    # Past the place where even a supported value is less likely than the first one, the guess is the first one.
    places = max(1, int(np.count_nonzero(odds * ranked > ranked[0])))
    shares = channel.first_support_shares(points[:places])
    if shares is None:
        return None
    gained = np.maximum(ranked[0], odds * ranked[:places])
    return channel.unsupported_factor * float(shares @ gained + (1 - shares.sum()) * ranked[0])
