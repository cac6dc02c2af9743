"""The reconstruction attack: how often an attacker who sees reports guesses the value behind them.

The attacker is Bayes-optimal: it knows the plan and the prior, reads reports from their bytes, and names the value of
largest posterior probability. :func:`sunzi.analysis.attackability` gives its success with one report by formula; the
simulated attacker, who plays against the shipped client, must agree. Over several independent reports of one value the
log likelihoods add up, and success grows towards certainty. A client that memoises sends the same bytes again, which
adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice, repeat
from typing import Any

import numpy as np

from sunzi._typing import Floats, Integers, Progress
from sunzi.analysis.evidence import Evidence, Reports, check_channels, decode, first_supports, read_reports
from sunzi.analysis.priors import Prior, attackability, ranked_points
from sunzi.analysis.statistics import Proportion, check_amount, check_seed
from sunzi.batch_client import BatchClient
from sunzi.client.errors import ParameterError
from sunzi.plan import Plan

Rounds = Iterable[Reports]
"""Rounds in order; each holds one report of every user, always in the same order of users."""

_TRIALS = 100_000
_REPEATED_TRIALS = 2_000
_WIDE_BITS = 10_000_000
_POSTERIOR_CELLS = 1 << 24
_REPORTS_AT_ONCE = 1 << 16
_BITS_AT_ONCE = 1 << 26


@dataclass(frozen=True)
class AttackGrowth:
    """Success rate after a number of reports of one value.

    >>> import sunzi
    >>> attack = simulate_attack(sunzi.make_plan("grr", 4, 3), trials=500, seed=1, reports=[1, 5])
    >>> [growth.reports for growth in attack.repeated]
    [1, 5]
    """

    reports: int
    success: Proportion

    def to_dict(self) -> dict[str, Any]:
        """The figures as one flat record."""
        return {"reports": self.reports, **self.success.to_dict()}


@dataclass(frozen=True)
class Attack:
    """The attacker's success rates, simulated and by formula.

    >>> import sunzi
    >>> attack = simulate_attack(sunzi.make_plan("grr", 10, 1), trials=1000, seed=2)
    >>> attack.success.low < attack.formula < attack.success.high
    True
    """

    protocol: str
    domain_size: int
    choices: int
    """How many values the attacker chooses among."""
    guessed: str
    """What the attacker guesses, in words."""
    epsilon: Fraction
    prior: str
    """The name of the attacker's prior, such as "uniform" or "zipf:1"."""
    baseline: float
    """Success rate of the best guess without a report."""
    formula: float | None
    """Exact success rate from one report; None if there are too many messages to list."""
    success: Proportion
    """Simulated success rate from one report."""
    repeated: tuple[AttackGrowth, ...]
    """The attacker's success with fresh noise in every report."""
    memoised: tuple[AttackGrowth, ...]
    """The attacker's success if the client repeats its first report."""

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


def attack_trials(plan: Plan) -> int:
    """A number that takes a few seconds: 100,000 for short reports, fewer for reports of hundreds of bits."""
    return max(1000, min(_TRIALS, int(_WIDE_BITS / plan.report_bits)))


def simulate_attack(
    plan: Plan,
    *,
    trials: int | None = None,
    prior: Prior | str | Floats | None = None,
    seed: int | None = None,
    reports: Sequence[int] = (),
    confidence: float = 0.95,
    client: BatchClient | None = None,
    progress: Progress | None = None,
) -> Attack:
    """Attack the reports of simulated users whose values follow the prior.

    Parameters
    ----------
    plan: the plan under attack.
    trials: number of users; by default as many as take a few seconds.
    prior: what the attacker believes, see :meth:`Prior.of`; uniform by default.
    seed: makes clients and users reproducible; without it the client uses the operating system's randomness.
    reports: also attack after these numbers of reports per user, such as (1, 2, 5, 10).
    confidence: of the intervals around success rates.
    client: the client to attack; by default the plan's own.
    progress: called with the share of the work done.

    >>> import sunzi
    >>> attack = simulate_attack(sunzi.make_plan("grr", 10, 1), trials=1000, seed=2)
    >>> attack.agrees
    True
    """
    number = attack_trials(plan) if trials is None else trials
    check_amount("trials", number)
    check_seed(seed)
    check_channels(plan.protocol)
    values = plan.protocol.attacked_values
    belief = Prior.of(plan.domain, prior, values)
    candidates = np.asarray(values, dtype=np.int64)
    generator = np.random.default_rng(seed)
    speaker = plan.client(seed=seed) if client is None else client
    phases = 3 if reports else 1
    report_progress = [_phase(progress, index, phases) for index in range(3)]
    successes = 0
    for done, secrets in _portions(plan, candidates[belief.draw(number, generator)]):
        evidence = read_reports(plan, speaker.report_indices(secrets))
        successes += int(np.count_nonzero(guess(evidence, belief, candidates) == secrets))
        report_progress[0](done / number)
    grown: list[tuple[AttackGrowth, ...]] = [(), ()]
    if reports:
        # Fewer users, since the posterior of each is kept: one number per value.
        most = max(1, min(number, _REPEATED_TRIALS, _POSTERIOR_CELLS // len(values)))
        users = candidates[belief.draw(most, generator)]
        for index, rounds in enumerate((fresh_rounds(speaker, users), replayed_rounds(speaker, users))):
            grown[index] = attack_growth(
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
        choices=len(values),
        guessed=plan.protocol.guessed,
        epsilon=plan.epsilon,
        prior=belief.name,
        baseline=belief.best_guess,
        formula=attackability(plan, belief.chances),
        success=Proportion(successes, number, confidence),
        repeated=grown[0],
        memoised=grown[1],
    )


def _phase(progress: Progress | None, index: int, phases: int) -> Callable[[float], None]:
    """Reports the progress of one phase as progress of the whole."""
    return lambda share: None if progress is None else progress((index + share) / phases)


def _portions(plan: Plan, secrets: Integers) -> Iterator[tuple[int, Integers]]:
    """Chunks whose reports fit in memory, and how many users are done after each."""
    step = max(1, min(_REPORTS_AT_ONCE, int(_BITS_AT_ONCE / plan.report_bits)))
    for start in range(0, secrets.size, step):
        part = secrets[start : start + step]
        yield start + part.size, part


def guess(evidence: Evidence, prior: Prior, values: Integers) -> Integers:
    """The value of largest posterior probability for each report, out of these, whose prior it is.

    It is the likeliest value that the report supports, or the likeliest of all if even the odds do not lift the
    supported one above it. Ties go to the first value in the domain's order.
    """
    order = prior.order
    ranked = prior.chances[order]
    found = np.full(len(evidence), values[order[0]])
    for rows, index, messages in evidence.groups():
        channel = evidence.protocol.channels[index]
        points, places = ranked_points(evidence.protocol, index, values[order])
        lifted = float(channel.likelihood_ratio) * ranked[places] > ranked[0]
        number = max(1, int(np.count_nonzero(lifted)))  # only these are likely enough for support to matter
        first = first_supports(channel, messages, points[:number])
        found[rows] = np.where(first > 0, values[order[places[first]]], values[order[0]])
    return found


def fresh_rounds(client: BatchClient, values: Integers) -> Iterator[bytes]:
    """Endless rounds of a client that adds fresh noise every time."""
    while True:
        yield client.report_indices(values)


def replayed_rounds(client: BatchClient, values: Integers) -> Iterator[bytes]:
    """Endless rounds of a client that repeats its first report of a value."""
    return repeat(client.report_indices(values))


def attack_growth(
    plan: Plan,
    values: Integers,
    rounds: Rounds,
    reports: Sequence[int],
    *,
    prior: Prior | str | Floats | None = None,
    confidence: float = 0.95,
    memoised: bool = False,
    progress: Progress | None = None,
) -> tuple[AttackGrowth, ...]:
    """How the attacker's success grows with the number of reports per user.

    Parameters
    ----------
    plan: the plan of the reports.
    values: the index of every user's value.
    rounds: one batch per round, or a list of single reports, with one report per user; from any client.
    reports: after which numbers of reports to measure success.
    prior: what the attacker believes, see :meth:`Prior.of`; uniform by default.
    confidence: of the intervals around success rates.
    memoised: whether the attacker knows that clients repeat their reports, and counts equal ones of a user once.
    progress: called with the share of the work done.

    >>> import numpy as np, sunzi
    >>> plan, values = sunzi.make_plan("grr", 4, 3), np.arange(4)
    >>> client = plan.client(seed=1)
    >>> rounds = [client.report_indices(values) for _ in range(5)]
    >>> [growth.reports for growth in attack_growth(plan, values, rounds, [1, 5])]
    [1, 5]
    """
    schedule = sorted(set(reports))
    if not schedule or schedule[0] < 1:
        raise ParameterError(f"numbers of reports must be at least 1, got {list(reports)}")
    choices = plan.protocol.attacked_values
    belief, candidates = Prior.of(plan.domain, prior, choices), np.asarray(choices, dtype=np.int64)
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
            evidence = Evidence.of(plan.protocol, plan.protocol.decode(encoded)).take(new)
            posterior[new] += evidence.table(candidates) * evidence.log_odds[:, None]
        if number in schedule:
            right = int(np.count_nonzero(candidates[np.argmax(posterior, axis=1)] == values))
            grown.append(AttackGrowth(number, Proportion(right, values.size, confidence)))
        if progress is not None:
            progress(number / schedule[-1])
    if len(grown) < len(schedule):
        raise ParameterError(f"success after {schedule[-1]} reports needs {schedule[-1]} rounds")
    return tuple(grown)


def _unseen(encoded: Any, seen: list[set[tuple[int, int]]]) -> Integers:
    """The users whose report differs from all their earlier ones."""
    new = []
    keys = zip(encoded.selectors.tolist(), encoded.in_order(), strict=True)
    for user, (key, known) in enumerate(zip(keys, seen, strict=True)):
        if key not in known:
            known.add(key)
            new.append(user)
    return np.array(new, dtype=np.int64)
