"""Poisoning, measured: honest and fake reports in one tally, how far the estimate moves, and whether a test shows it.

Fake reports come from :mod:`sunzi.analysis.fake_reports`, travel as bytes and are counted by ``plan.tally``. The *push*
is the targets' summed estimate (of a number, the mean) with the fake reports minus the one without, on the same honest
reports. Its bound is that of :class:`PoisoningReach`; the alarms are those of :func:`check_health`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from sunzi._typing import Progress
from sunzi.analysis.fake_reports import ATTACKS, FakeClients, PoisoningReach, as_bytes
from sunzi.analysis.health import DEFAULT_SIGNIFICANCE, Health, check_health
from sunzi.analysis.statistics import check_amount, check_seed
from sunzi.client.errors import ParameterError
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.plan import Plan
from sunzi.planning.populations import UNIFORM, Population
from sunzi.tally import Tally

HONEST = "none"
"""The name of the row without fake clients: its alarms are false."""

DEFAULT_RUNS = 10


@dataclass(frozen=True)
class Trial:
    """One simulated collection with fake clients."""

    push: float
    health: Health


@dataclass(frozen=True)
class Poisoning:
    """The effect of one attack in several simulated collections.

    >>> import sunzi
    >>> study = PoisoningStudy(sunzi.make_plan("grr", 10, 1), users=1000, targets=(0,), runs=2)
    >>> result = study.run("input", 0.1)
    >>> result.attack, result.push > 0
    ('input', True)
    """

    attack: str
    share: float
    """The share of fake clients."""
    targets: tuple[int, ...]
    """The indices of the pushed values."""
    pushed: str
    """What the fake clients push, in words."""
    users: int
    """The number of all clients, honest and fake."""
    bound: float
    """No attack by this share of clients pushes the targets' summed frequency further, in expectation."""
    trials: tuple[Trial, ...]
    """The result of each simulated collection."""

    @property
    def push(self) -> float:
        """The mean push."""
        return float(np.mean([trial.push for trial in self.trials]))

    @property
    def push_error(self) -> float:
        """The standard error of the mean push."""
        return float(np.std([trial.push for trial in self.trials], ddof=1)) / sqrt(len(self.trials))

    @property
    def detected(self) -> float:
        """The share of collections with an alarm."""
        return float(np.mean([bool(trial.health.alarms) for trial in self.trials]))

    @property
    def typical(self) -> Health:
        """The health of the collection with the median p-value."""
        ordered = sorted(
            (trial.health for trial in self.trials),
            key=lambda health: 1.0 if health.p_value is None else health.p_value,
        )
        return ordered[(len(ordered) - 1) // 2]

    def row(self) -> dict[str, Any]:
        """Columns by name; test, statistic and p-value are those of the typical collection's strongest finding."""
        oddest = self.typical.strongest
        return {
            "attack": self.attack,
            "share": self.share,
            "targets": len(self.targets),
            "pushed": self.pushed,
            "users": self.users,
            "runs": len(self.trials),
            "bound": self.bound,
            "push": self.push,
            "push_error": self.push_error,
            "detected": self.detected,
            "p_value": self.typical.p_value,
            "test": None if oddest is None else oddest.name,
            "statistic": None if oddest is None else oddest.statistic,
            "test_p_value": None if oddest is None else oddest.p_value,
        }


@dataclass(frozen=True)
class PoisoningStudy:
    """Attacks on one plan in simulated collections of ``users`` clients, ``runs`` for each attack and share.

    The same seed gives the same numbers for an attack and share, independently of what else is studied.

    >>> import sunzi
    >>> study = PoisoningStudy(sunzi.make_plan("grr", 10, 1), users=1000, targets=(0,), runs=2)
    >>> study.honest().share, study.run("input", 0.1).share
    (0.0, 0.1)
    """

    plan: Plan
    users: int
    targets: tuple[int, ...]
    """The indices of the values to push."""
    runs: int = DEFAULT_RUNS
    seed: int = 1
    population: Population = UNIFORM
    """How the values of honest users are distributed."""
    significance: float = DEFAULT_SIGNIFICANCE
    """The rate of false alarms of the health check."""

    def __post_init__(self) -> None:
        """A standard error needs two runs; an attack needs a fake and an honest client."""
        check_amount("runs", self.runs, least=2)
        check_amount("users", self.users, least=2)
        check_seed(self.seed)

    def honest(self) -> Poisoning:
        """Nobody lies: the push is 0 and every alarm is false."""
        trials = [
            Trial(0.0, check_health(self.plan, self._honest(self.users, run), self.significance))
            for run in range(self.runs)
        ]
        return Poisoning(HONEST, 0.0, self.targets, self._pushed, self.users, 0.0, tuple(trials))

    @property
    def _pushed(self) -> str:
        return self.plan.protocol.pushed(self.plan.domain, self.targets)

    def run(self, attack: str, share: float) -> Poisoning:
        """One attack by a share of all users."""
        fake_count = self._fake_clients(share)
        reach = PoisoningReach(self.plan, self.targets, share)
        trials = []
        for run in range(self.runs):
            honest = self._honest(self.users - fake_count, run)
            fakes = FakeClients(reach, self._seed(run, zlib.crc32(attack.encode()), fake_count))
            fake = self.plan.tally(as_bytes(self.plan, fakes.messages(attack, fake_count)))
            both = honest + fake
            pushed = self._targets_of(both) - self._targets_of(honest)
            trials.append(Trial(pushed, check_health(self.plan, both, self.significance)))
        return Poisoning(attack, share, self.targets, self._pushed, self.users, reach.push.bound, tuple(trials))

    def _fake_clients(self, share: float) -> int:
        fake_count = round(share * self.users)
        if not 0 < fake_count < self.users:
            whole = f"{share:g} of {self.users:,} users is {fake_count} fake clients"
            raise ParameterError(f"a share of {whole}; at least 1 fake and 1 honest client are needed")
        return fake_count

    def _honest(self, users: int, run: int) -> Tally:
        values = self.population.draw(self.plan.domain.size, users, self._seed(run, 0, users))
        counters = self.plan.protocol.simulate(values, ReproducibleSource(self._seed(run, 1, users)))
        return Tally(self.plan.digest, self.plan.protocol.tally_layout, users, counters)

    def _targets_of(self, tally: Tally) -> float:
        protocol = self.plan.protocol
        return float(protocol.target_row(self.targets) @ protocol.linear_estimate(self.plan.domain, tally).frequencies)

    def _seed(self, run: int, *purpose: int) -> list[int]:
        return [self.seed, run, *purpose]


def study_poisoning(
    plan: Plan,
    shares: Sequence[float],
    attacks: Sequence[str] = tuple(ATTACKS),
    targets: int = 1,
    users: int = 100_000,
    runs: int = DEFAULT_RUNS,
    seed: int = 1,
    population: Population = UNIFORM,
    significance: float = DEFAULT_SIGNIFICANCE,
    progress: Progress | None = None,
) -> Iterator[Poisoning]:
    """Simulate every attack at every share; yields the honest row first, then each result as soon as it is known.

    Parameters
    ----------
    plan: the plan under attack.
    shares: shares of fake clients among all clients.
    attacks: names of attacks: maximal-gain, input, random, balanced, noiseless; all by default.
    targets: number of targets, spread evenly over the domain: values, bins of one range, or cells of one table; of a
        number the one target is the mean.
    users: clients per collection, fake ones included.
    runs: simulated collections for each attack and share.
    seed: the same seed gives the same numbers.
    population: how the honest values are distributed.
    significance: rate of false alarms of the health check.
    progress: called with the share of the work done.

    >>> import sunzi
    >>> rows = list(study_poisoning(sunzi.make_plan("grr", 10, 1), [0.1], ["input"], users=1000, runs=2))
    >>> [row.attack for row in rows]
    ['none', 'input']
    """
    unknown = next((attack for attack in attacks if attack not in ATTACKS), None)
    if unknown is not None:
        raise ParameterError(f"attack must be one of {', '.join(ATTACKS)}; got {unknown!r}")
    chosen = tuple(plan.protocol.targets(targets))
    setting = PoisoningStudy(plan, users, chosen, runs, seed, population, significance)
    total = 1 + len(attacks) * len(shares)
    yield setting.honest()
    for done, (attack, share) in enumerate([(attack, share) for attack in attacks for share in shares], start=1):
        if progress is not None:
            progress(done / total)
        yield setting.run(attack, share)
