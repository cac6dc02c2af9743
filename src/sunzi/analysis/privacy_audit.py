"""The audit: does the client keep the ε of its plan?

Three kinds of checks, each blind to something that another one sees:

- **the lower bound**: the client sends many reports, and the rates of its tightest event give a Clopper–Pearson lower
  bound on ε. If it exceeds the ε of the plan, the client leaks too much. A correct client raises this alarm with
  probability at most 1 − confidence;
- **the distribution**: everything else that reports show is compared with what the plan states
  (:mod:`sunzi.analysis.audit_sampling`);
- **exact checks** look below what sampling can resolve: words at the edge of a decision, and all words of a few bits
  (:mod:`sunzi.analysis.audit_words`, :mod:`sunzi.analysis.audit_enumeration`).

No audit proves privacy: it bounds ε from below only, and a client may behave differently when it is not watched.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from sunzi import wire
from sunzi._typing import Progress
from sunzi.analysis.audit_enumeration import check_enumeration
from sunzi.analysis.audit_sampling import (
    Finding,
    TightestEvent,
    bound_epsilon,
    check_distribution,
    tightest_event,
    trials_for,
)
from sunzi.analysis.audit_words import check_words
from sunzi.analysis.evidence import check_channels, read_reports
from sunzi.analysis.statistics import check_amount, check_seed, lower_limits
from sunzi.batch_client import BatchClient
from sunzi.client.errors import ParameterError
from sunzi.numerics.intervals import check_confidence
from sunzi.plan import Plan

DEFAULT_CONFIDENCE = 0.9999
SHORTFALL = 0.04
"""With ``trials_needed`` trials, the bound is smaller than ε by at most this share."""

_TRIALS, _WIDE_TRIALS = 1_000_000, 200_000
_WIDE_BITS = 100_000_000
_DISTRIBUTION_SHARE = 10
_REPORTS_AT_ONCE = 1 << 17
_BITS_AT_ONCE = 1 << 26

Verdict = Literal["consistent", "deviation", "violation"]


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    >>> import sunzi
    >>> found = audit(sunzi.make_plan("grr", 10, 1), trials=10_000, seed=1)
    >>> found.is_private, found.lower_bound < found.exact_epsilon
    (False, True)
    """

    protocol: str
    domain_size: int
    choices: int
    """How many values the audit distinguishes: all or, for numbers, the points that they are rounded to."""
    epsilon: Fraction
    exact_epsilon: float
    """The ε of the plan's integers, by formula: the plan's ε up to the rounding of thresholds."""
    event: str
    """The event whose probability differs most between values, in words."""
    pair: tuple[int, int] | None
    """The value sent and its rival are these two; None if all other values are rivals."""
    event_probability: float
    """Stated probability of the tightest event when its value is sent."""
    trials: int
    """The number of reports that the client made."""
    hits: int
    """Reports that support the value sent and not its rival."""
    misses: int
    """Reports that support the rival and not the value sent."""
    confidence: float
    lower_bound: float
    """The client's ε is at least this, at this confidence."""
    trials_needed: int
    """Trials after which the bound lies within 4 % of ε."""
    is_private: bool
    """Whether the client draws from the operating system; a seeded one can be replayed."""
    findings: tuple[Finding, ...]
    """The exact checks, and tests of the reports."""

    @property
    def verdict(self) -> Verdict:
        """``violation``: the client leaks more than ε. ``deviation``: it departs from its plan."""
        failed = [finding for finding in self.findings if not finding.passed]
        if any(finding.breaks_epsilon for finding in failed):
            return "violation"
        return "deviation" if failed else "consistent"

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
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


def audit_trials(plan: Plan) -> int:
    """A million for short reports, fewer for reports of hundreds of bits, which would take minutes."""
    if wire.is_narrow(plan.protocol.report_layout):
        return _TRIALS
    return max(10_000, min(_WIDE_TRIALS, int(_WIDE_BITS / plan.report_bits)))


def audit(
    plan: Plan,
    *,
    trials: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int | None = None,
    client: BatchClient | None = None,
    pair: tuple[int, int] | None = None,
    exact: bool = True,
    progress: Progress | None = None,
) -> Audit:
    """Audit a client against a plan.

    Parameters
    ----------
    plan: the plan that the client must keep.
    trials: number of reports for the lower bound; by default up to a million.
    confidence: of the lower bound and of all other sampled checks; 1 − confidence is the rate of false alarms.
    seed: makes the audit reproducible, including its client; without it words come from the operating system.
    client: the client to audit; by default the plan's own.
    pair: the indices of the two values of the tightest event; chosen at random by default.
    exact: also run the checks by chosen words and by enumeration, which take about a second.
    progress: called with the share of the work done.

    >>> import sunzi
    >>> found = audit(sunzi.make_plan("grr", 10, 1), trials=10_000, seed=1)
    >>> found.verdict
    'consistent'
    """
    check_confidence(confidence)
    check_channels(plan.protocol)
    number = audit_trials(plan) if trials is None else trials
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
    sample = max(2, min(number, 2 * number // _DISTRIBUTION_SHARE))
    values = event.pair or (0, plan.domain.size - 1)
    findings += check_distribution(plan, clients, values, sample, confidence, generator)
    hits, misses, bound = 0, 0, 0.0
    if all(finding.passed for finding in findings if finding.check == "readable"):
        hits, misses = _sample(plan, clients[0], event, number, generator, progress)
        share = float(lower_limits(hits, hits + misses, 1 - confidence)) if hits + misses else 0.0
        bound = bound_epsilon(hits, misses, event.rivals, share)
        findings.insert(0, _judge(plan, bound, confidence))
    return Audit(
        protocol=plan.protocol.name,
        domain_size=plan.domain.size,
        choices=len(plan.protocol.attacked_values),
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


def _clients(plan: Plan, client: BatchClient | None, seed: int | None) -> tuple[BatchClient, BatchClient]:
    """The audited client and a second one like it, to see whether the two draw the same words."""
    if client is None:
        return plan.client(seed=seed), plan.client(seed=None if seed is None else seed + 1)
    if client.plan.digest != plan.digest:
        raise ParameterError("the client's plan is not the plan that it is audited against")
    return client, type(client)(client.plan, seed=None if seed is None else seed + 1)


def _sample(
    plan: Plan,
    client: BatchClient,
    event: TightestEvent,
    trials: int,
    generator: np.random.Generator,
    progress: Progress | None,
) -> tuple[int, int]:
    """Hits and misses in ``trials`` reports."""
    step = max(1, min(_REPORTS_AT_ONCE, int(_BITS_AT_ONCE / plan.report_bits)))
    hits = misses = 0
    for start in range(0, trials, step):
        sent, rivals = event.draw(plan.protocol.attacked_values, min(step, trials - start), generator)
        counted = event.count(read_reports(plan, client.report_indices(sent)), sent, rivals)
        hits, misses = hits + counted[0], misses + counted[1]
        if progress is not None:
            progress((start + sent.size) / trials)
    return hits, misses


def _judge(plan: Plan, bound: float, confidence: float) -> Finding:
    alarm = f"a correct client raises this alarm once in {1 / (1 - confidence):,.0f} audits"
    if bound > float(plan.epsilon):
        detail = f"the lower bound {bound:.4g} exceeds epsilon {float(plan.epsilon):.4g}; {alarm}"
        return Finding("epsilon", False, detail, breaks_epsilon=True)
    return Finding("epsilon", True, f"the lower bound {bound:.4g} is within epsilon {float(plan.epsilon):.4g}")
