"""The audit: does the shipped client keep the ε of its plan?

Three kinds of checks, each blind to something that another one sees:

- **sampling** bounds ε from below: the client sends many reports, and the rates of its tightest event
  (:mod:`sunzi.analysis.events`) give a Clopper–Pearson lower bound on ε. If it exceeds the ε of the plan, the client
  gives away too much. A right client raises this alarm with probability at most 1 − confidence;
- **conformity** compares all else that reports show with what the plan states (:mod:`sunzi.analysis.conformity`);
- **exact** checks look below what sampling can resolve: words at the very edge of a decision, and all words of a few
  bits (:mod:`sunzi.analysis.words`, :mod:`sunzi.analysis.enumeration`).

No audit proves privacy: a lower bound on ε is one, and a client may behave differently when it is not watched.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from sunzi._typing import Progress
from sunzi.analysis.amounts import check_amount, check_seed
from sunzi.analysis.conformity import check_conformity
from sunzi.analysis.enumeration import check_enumeration
from sunzi.analysis.events import TightestEvent, bound_epsilon, tightest_event, trials_for
from sunzi.analysis.evidence import read_reports
from sunzi.analysis.findings import Finding
from sunzi.analysis.proportions import lower_limits
from sunzi.analysis.words import check_words
from sunzi.client import Client
from sunzi.errors import ParameterError
from sunzi.numerics.intervals import check_confidence
from sunzi.plan import Plan

LEVEL = 0.9999
SHORTFALL = 0.04
"""The bound comes so close to ε, in proportion, if there are as many trials as it asks for."""
LIKELY_EVENT = 0.1

_TRIALS, _WIDE_TRIALS = 1_000_000, 200_000
_WIDE_BITS = 100_000_000
_CONFORMITY_SHARE = 10
_REPORTS_AT_ONCE = 1 << 17
_BITS_AT_ONCE = 1 << 26

Verdict = Literal["consistent", "deviation", "violation"]


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    protocol: str
    domain_size: int
    epsilon: Fraction
    exact_epsilon: float
    """What the integers of the plan give away, by formula: ε up to the rounding of thresholds."""
    event: str
    pair: tuple[int, int] | None
    event_probability: float
    """Stated probability of the tightest event when its value is sent."""
    trials: int
    hits: int
    misses: int
    confidence: float
    lower_bound: float
    """ε is at least this, at this confidence, if what the client sends is what it was seen to send."""
    trials_needed: int
    """Trials after which the bound would lie within 4 % of ε."""
    is_private: bool
    """Whether the audited client drew from the operating system; a seeded one can be replayed."""
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """``violation``: more than ε is given away. ``deviation``: the client departs from its plan."""
        failed = [finding for finding in self.findings if not finding.passed]
        if any(finding.breaks_epsilon for finding in failed):
            return "violation"
        return "deviation" if failed else "consistent"

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return self.verdict == "consistent"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return (
            {"verdict": self.verdict}
            | asdict(self)
            | {
                "epsilon": str(self.epsilon),
                "findings": [finding.to_dict() for finding in self.findings],
            }
        )


def default_trials(plan: Plan) -> int:
    """A million where reports are short, fewer where they have hundreds of bits and would take minutes."""
    if plan.protocol.report_layout.is_narrow:
        return _TRIALS
    return max(10_000, min(_WIDE_TRIALS, int(_WIDE_BITS / plan.report_bits)))


def audit(
    plan: Plan,
    *,
    trials: int | None = None,
    confidence: float = LEVEL,
    seed: int | None = None,
    client: Client | None = None,
    pair: tuple[int, int] | None = None,
    exact: bool = True,
    progress: Progress | None = None,
) -> Audit:
    """Audit the client that ships, or another one, against this plan.

    ``seed`` makes the audit reproducible, its client included; without it words come from the operating system.
    ``pair`` fixes the two values of the tightest event. ``exact`` runs the checks by chosen words and by enumeration,
    which take about a second.
    """
    check_confidence(confidence)
    number = default_trials(plan) if trials is None else trials
    check_amount("trials", number)
    check_seed(seed)
    generator = np.random.default_rng(seed)
    event = tightest_event(plan, generator, pair)
    clients = _clients(plan, client, seed)
    findings: list[Finding] = []
    if exact:
        findings += check_words(plan, lambda source: type(clients[0])(clients[0].plan, source=source), seed or 0)
        enumerated = check_enumeration(plan, clients[0])
        findings += [] if enumerated is None else [enumerated]
    sample = max(2, min(number, 2 * number // _CONFORMITY_SHARE))
    values = event.pair or (0, plan.domain.size - 1)
    findings += check_conformity(plan, clients, values, sample, confidence, generator)
    hits, misses, bound = 0, 0, 0.0
    if all(finding.passed for finding in findings if finding.check == "readable"):
        hits, misses = _sample(plan, clients[0], event, number, generator, progress)
        share = float(lower_limits(hits, hits + misses, 1 - confidence)) if hits + misses else 0.0
        bound = bound_epsilon(hits, misses, event.rivals, share)
        findings.insert(0, _judge(plan, bound, confidence))
    return Audit(
        protocol=plan.protocol.name,
        domain_size=plan.domain.size,
        epsilon=plan.epsilon,
        exact_epsilon=event.exact_epsilon(),
        event=event.description,
        pair=event.pair,
        event_probability=event.hit,
        trials=number,
        hits=hits,
        misses=misses,
        confidence=confidence,
        lower_bound=bound,
        trials_needed=trials_for(event, float(plan.epsilon), NormalDist().inv_cdf(confidence), SHORTFALL),
        is_private=clients[0].is_private,
        findings=tuple(findings),
    )


def _clients(plan: Plan, client: Client | None, seed: int | None) -> tuple[Client, Client]:
    """The audited client and a second one like it, to see whether the two draw the same words."""
    if client is None:
        return plan.client(seed=seed), plan.client(seed=None if seed is None else seed + 1)
    if client.plan.contract.fingerprint != plan.contract.fingerprint:
        raise ParameterError("this client speaks under another plan than the one that it is audited against")
    return client, type(client)(client.plan, seed=None if seed is None else seed + 1)


def _sample(
    plan: Plan,
    client: Client,
    event: TightestEvent,
    trials: int,
    generator: np.random.Generator,
    progress: Progress | None,
) -> tuple[int, int]:
    """Hits and misses among so many reports."""
    step = max(1, min(_REPORTS_AT_ONCE, int(_BITS_AT_ONCE / plan.report_bits)))
    hits = misses = 0
    for start in range(0, trials, step):
        sent, rivals = event.draw(plan.domain.size, min(step, trials - start), generator)
        counted = event.count(read_reports(plan, client.report_indices(sent)), sent, rivals)
        hits, misses = hits + counted[0], misses + counted[1]
        if progress is not None:
            progress((start + sent.size) / trials)
    return hits, misses


def _judge(plan: Plan, bound: float, confidence: float) -> Finding:
    alarm = f"a right client raises this alarm once in {1 / (1 - confidence):,.0f} audits"
    if bound > float(plan.epsilon):
        detail = f"the lower bound {bound:.4g} exceeds epsilon {float(plan.epsilon):.4g}; {alarm}"
        return Finding("epsilon", False, detail, breaks_epsilon=True)
    return Finding("epsilon", True, f"the lower bound {bound:.4g} is within epsilon {float(plan.epsilon):.4g}")
