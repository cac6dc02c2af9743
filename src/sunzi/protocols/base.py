"""What a protocol owes: how a client speaks and a server listens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.domain import Domain
from sunzi.errors import EstimateError, ParameterError
from sunzi.estimate import Estimate
from sunzi.frozen import Frozen
from sunzi.numerics import kernels
from sunzi.numerics.checks import real_number
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource, WordSource
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports, ReportLayout

# What randomize returns and encode and count take; each protocol's own business.
Messages = Any

_SIMULATED_WORDS = 1 << 22


class Protocol(Frozen, ABC):
    """A frequency oracle for one domain size and ε. Frozen once made; making it checks everything that its privacy
    rests on.

    Subclass it, give it a ``name`` and call :func:`sunzi.protocols.catalogue.register` to add one of your own.
    """

    name: ClassVar[str]
    domain_size: int
    epsilon: Fraction
    report_layout: ReportLayout
    tally_layout: TallyLayout

    @classmethod
    @abstractmethod
    def choose(cls, domain_size: int, epsilon: Fraction, *args: Any, **options: Any) -> Self:
        """A good instance for this setting: the planner's half. Unknown options raise TypeError."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, domain_size: int, epsilon: Fraction, parameters: Mapping[str, Any]) -> Self:
        """The instance that a plan describes, trusting nothing in it; raises PlanError."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Every integer that a client needs, as JSON."""

    @abstractmethod
    def randomize(self, values: Integers, source: WordSource) -> Messages:
        """One message a value. ε-LDP for each value if the words are uniform."""

    @abstractmethod
    def encode(self, messages: Messages) -> EncodedReports:
        """Messages as integers for the wire."""

    @abstractmethod
    def decode(self, encoded: EncodedReports) -> Messages:
        """The inverse of :meth:`encode`; raises ReportError for what no client sends."""

    @abstractmethod
    def count(self, messages: Messages) -> Counters:
        """Messages as counts, laid out as ``tally_layout`` says."""

    @property
    @abstractmethod
    def words_per_report(self) -> float:
        """Mean number of random words that a report draws."""

    def simulate(self, values: Integers, source: ReproducibleSource) -> Counters:
        """Counts with the distribution that real reports of these values would have."""
        # Compiled loops pay by the work of the whole simulation, which its portions and their blocks do not know.
        kernels.load_if_worthwhile(int(values.size * self.words_per_report))
        total = Counters.zeros(self.tally_layout.length)
        for part in self._portions(values):
            total += self.sample(part, source)
        return total

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The counts of :meth:`randomize`'s messages, from the same words; override it where there is a short cut."""
        return self.count(self.randomize(values, source))

    def _portions(self, values: Integers) -> Iterator[Integers]:
        """Pieces whose random words fit in 32 MiB."""
        step = max(1, int(_SIMULATED_WORDS / self.words_per_report))
        for start in range(0, values.size, step):
            yield values[start : start + step]

    @abstractmethod
    def estimate(self, domain: Domain, tally: Tally, *args: Any, **options: Any) -> Estimate:
        """The unbiased histogram. Options are the protocol's own; unknown ones raise TypeError."""

    @abstractmethod
    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """Mean squared error an item, about the users at hand: for light items (f → 0), or averaged over a given
        histogram's items.
        """

    @abstractmethod
    def worst_mse(self, users: int) -> float:
        """The largest mean squared error an item over all histograms, or an upper bound on it."""

    @property
    @abstractmethod
    def attackability(self) -> float:
        """Success of a Bayes-optimal attacker who sees one report, uniform prior: (1/k)·Σ_y max_x P(y|x).

        See docs/mathematics.md §4.
        """

    @abstractmethod
    def support_probabilities(self) -> list[tuple[float, float]]:
        """(p, q) of every block: how often a report supports the true point, and another given one."""


def check_users(users: int) -> None:
    """A positive number of users."""
    if real_number("users", users) < 1:
        raise ParameterError(f"users must be at least 1, got {users}")


def check_histogram(histogram: Floats, domain_size: int) -> Floats:
    """A probability vector over the domain."""
    try:
        array = np.asarray(histogram, dtype=np.float64)
    except (ValueError, TypeError):
        array = np.empty(0)
    if array.shape != (domain_size,) or not np.all(array >= 0) or not np.isclose(array.sum(), 1):
        raise ParameterError(f"histogram must be {domain_size} non-negative frequencies that sum to 1")
    return array


def check_reports(tally: Tally) -> None:
    """There is something to estimate from."""
    if tally.reports == 0:
        raise EstimateError("the tally holds no report yet, so there is nothing to estimate")
