"""The reconstruction attack: how often an attacker who sees reports guesses the value behind them.

The attacker is Bayes-optimal: knows the plan and the prior, reads the reports from their bytes, and names the value of
the largest posterior probability. Success with one report has a formula (:mod:`sunzi.analysis.attackability`); the
simulated attacker, who plays against the shipped client, must agree with it. Over several independent reports of one
value the log likelihoods add up, and success grows towards certainty. A client that memoises sends the same bytes
again, which add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice, repeat
from typing import Any

import numpy as np

from sunzi._typing import Floats, Integers, Progress
from sunzi.analysis.amounts import check_amount, check_seed
from sunzi.analysis.attackability import attackability, first_supports
from sunzi.analysis.evidence import Evidence, Reports, decode, evidence_of, read_reports
from sunzi.analysis.priors import Prior
from sunzi.analysis.proportions import Proportion
from sunzi.client import Client
from sunzi.errors import ParameterError
from sunzi.plan import Plan

Rounds = Iterable[Reports]
"""One round after the other; each holds one report of every user, in the same order."""

_TRIALS = 100_000
_REPEATED_TRIALS = 2_000
_WIDE_BITS = 10_000_000
_POSTERIOR_CELLS = 1 << 24
_REPORTS_AT_ONCE = 1 << 16
_BITS_AT_ONCE = 1 << 26


@dataclass(frozen=True)
class Growth:
    """Success after so many reports of one value."""

    reports: int
    success: Proportion

    def to_dict(self) -> dict[str, Any]:
        """One flat record."""
        return {"reports": self.reports, **self.success.to_dict()}


@dataclass(frozen=True)
class Attack:
    """What the attacker achieved, beside what the formula says."""

    protocol: str
    domain_size: int
    epsilon: Fraction
    prior: str
    baseline: float
    """How often the best guess without any report is right."""
    formula: float | None
    """How often the best guess from one report is right, exactly; None if there are too many messages to list."""
    success: Proportion
    """How often the simulated attacker was right, from one report."""
    repeated: tuple[Growth, ...]
    """With fresh noise in every report."""
    memoised: tuple[Growth, ...]
    """With a client that sends the same report again."""

    @property
    def agrees(self) -> bool:
        """Whether the formula lies in the interval of the simulation."""
        return self.formula is None or self.success.low <= self.formula <= self.success.high

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {
            "epsilon": str(self.epsilon),
            "success": self.success.to_dict(),
            "repeated": [growth.to_dict() for growth in self.repeated],
            "memoised": [growth.to_dict() for growth in self.memoised],
            "agrees": self.agrees,
        }


def default_trials(plan: Plan) -> int:
    """As many as take a few seconds: 100,000 where reports are short, fewer where they have hundreds of bits."""
    return max(1000, min(_TRIALS, int(_WIDE_BITS / plan.report_bits)))


def simulate(
    plan: Plan,
    *,
    trials: int | None = None,
    prior: Prior | str | Floats | None = None,
    seed: int | None = None,
    reports: Sequence[int] = (),
    confidence: float = 0.95,
    client: Client | None = None,
    progress: Progress | None = None,
) -> Attack:
    """Attack the reports of ``trials`` simulated users whose values follow the prior.

    ``reports``: also after so many reports of each user, such as (1, 2, 5, 10). ``seed`` makes clients and users
    reproducible; without it the client is the one that ships, with the operating system's randomness.
    """
    number = default_trials(plan) if trials is None else trials
    check_amount("trials", number)
    check_seed(seed)
    belief = Prior.of(plan.domain, prior)
    generator = np.random.default_rng(seed)
    speaker = plan.client(seed=seed) if client is None else client
    phases = 3 if reports else 1
    report_progress = [_phase(progress, index, phases) for index in range(3)]
    successes = 0
    for done, secrets in _portions(plan, belief.draw(number, generator)):
        evidence = read_reports(plan, speaker.report_indices(secrets))
        successes += int(np.count_nonzero(guess(evidence, belief) == secrets))
        report_progress[0](done / number)
    grown: list[tuple[Growth, ...]] = [(), ()]
    if reports:
        users = belief.draw(_repeated_trials(plan, number), generator)
        for index, rounds in enumerate((fresh_rounds(speaker, users), replayed_rounds(speaker, users))):
            grown[index] = repeated(
                plan,
                users,
                rounds,
                reports,
                prior=belief,
                confidence=confidence,
                memoised=index == 1,
                progress=report_progress[1 + index],
            )
    return Attack(
        protocol=plan.protocol.name,
        domain_size=plan.domain.size,
        epsilon=plan.epsilon,
        prior=belief.name,
        baseline=belief.best_guess,
        formula=attackability(plan, belief.chances),
        success=Proportion(successes, number, confidence),
        repeated=grown[0],
        memoised=grown[1],
    )


def _phase(progress: Progress | None, index: int, phases: int) -> Callable[[float], None]:
    """Tells the progress of one phase as that of the whole."""
    return lambda share: None if progress is None else progress((index + share) / phases)


def _portions(plan: Plan, secrets: Integers) -> Iterator[tuple[int, Integers]]:
    """Pieces whose reports fit in memory, and how many users are done with each."""
    step = max(1, min(_REPORTS_AT_ONCE, int(_BITS_AT_ONCE / plan.report_bits)))
    for start in range(0, secrets.size, step):
        part = secrets[start : start + step]
        yield start + part.size, part


def _repeated_trials(plan: Plan, trials: int) -> int:
    """The posterior of every user is kept, one number a value."""
    return max(1, min(trials, _REPEATED_TRIALS, _POSTERIOR_CELLS // plan.domain.size))


def guess(evidence: Evidence, prior: Prior) -> Integers:
    """The value of the largest posterior probability for each report.

    It is the likeliest value that the report supports, or the likeliest of all if even the odds do not lift the
    supported one above it. Among equally likely values the first in the domain's order is named.
    """
    order = prior.order
    ranked = prior.chances[order]
    first = first_supports(evidence, order[: _places(evidence, ranked)])
    with np.errstate(divide="ignore"):
        gained = np.where(first > 0, evidence.log_odds + np.log(ranked[first]), -np.inf)
    return np.where((first == 0) | (gained <= np.log(ranked[0])), order[0], order[first])


def _places(evidence: Evidence, ranked: Floats) -> int:
    """How many values are likely enough for any support to matter."""
    lifted = float(np.exp(evidence.log_odds.max(initial=0.0)))
    return max(1, int(np.count_nonzero(lifted * ranked > ranked[0] * (1 - 1e-12))))


def fresh_rounds(client: Client, values: Integers) -> Iterator[bytes]:
    """A client that adds fresh noise every time: rounds without end."""
    while True:
        yield client.report_indices(values)


def replayed_rounds(client: Client, values: Integers) -> Iterator[bytes]:
    """A client that remembers its report of a value and sends it again: rounds without end."""
    return repeat(client.report_indices(values))


def repeated(
    plan: Plan,
    values: Integers,
    rounds: Rounds,
    reports: Sequence[int],
    *,
    prior: Prior | str | Floats | None = None,
    confidence: float = 0.95,
    memoised: bool = False,
    progress: Progress | None = None,
) -> tuple[Growth, ...]:
    """Success after each of these numbers of reports, for users who hold ``values``.

    ``rounds`` may come from any client: each is a batch, or a list of single reports, one a user. An attacker who knows
    that clients are ``memoised`` counts equal reports of one user once, because a report sent again is no new evidence.
    """
    schedule = sorted(set(reports))
    if not schedule or schedule[0] < 1:
        raise ParameterError(f"numbers of reports must be at least 1, got {list(reports)}")
    belief = Prior.of(plan.domain, prior)
    with np.errstate(divide="ignore"):
        posterior = np.tile(np.log(belief.chances), (values.size, 1))
    seen: list[set[tuple[int, int]]] = [set() for _ in range(values.size if memoised else 0)]
    grown = []
    for number, sent in enumerate(islice(rounds, schedule[-1]), start=1):
        encoded = decode(plan, sent)
        if len(encoded) != values.size:
            raise ParameterError(f"a round must hold one report of each of {values.size} users, got {len(encoded)}")
        new = _unseen(encoded, seen) if memoised else np.arange(values.size)
        if new.size:
            evidence = evidence_of(plan.protocol, plan.protocol.decode(encoded)).take(new)
            posterior[new] += evidence.table(plan.domain.size) * evidence.log_odds[:, None]
        if number in schedule:
            right = int(np.count_nonzero(np.argmax(posterior, axis=1) == values))
            grown.append(Growth(number, Proportion(right, values.size, confidence)))
        if progress is not None:
            progress(number / schedule[-1])
    if len(grown) < len(schedule):
        raise ParameterError(f"success after {schedule[-1]} reports needs as many rounds")
    return tuple(grown)


def _unseen(encoded: Any, seen: list[set[tuple[int, int]]]) -> Integers:
    """The users whose report is not one that they sent before."""
    new = []
    keys = zip(encoded.selectors.tolist(), encoded.in_order(), strict=True)
    for user, (key, known) in enumerate(zip(keys, seen, strict=True)):
        if key not in known:
            known.add(key)
            new.append(user)
    return np.array(new, dtype=np.int64)
