"""Whether a tally looks like honest reports, for any values the users may hold.

Every test compares the tally with something that holds for all histograms, so an alarm means reports that the shipped
client does not make: crafted reports, a broken client, a damaged store. No alarm means little: fake clients that run
the honest client on false values, or imitate its noise, pass (docs/poisoning.md).

Guarantee: with honest reports, ``check_health`` raises an alarm with probability at most about ``significance``
(exactly for the tests on extreme counts, asymptotically for the others, which do not apply where reports are too few).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sunzi._typing import Floats
from sunzi.analysis.health_tests import (
    HealthFinding,
    bit_balance,
    block_balance,
    class_balance,
    lowest_counts,
    message_frequency,
)
from sunzi.analysis.joint_residual import fit_residual
from sunzi.analysis.residuals import CountedDesign, message_residual, unused_points
from sunzi.analysis.statistics import any_of
from sunzi.client.errors import ParameterError
from sunzi.errors import EstimateError
from sunzi.numerics import simplex
from sunzi.plan import Plan
from sunzi.protocols.joint_fit import JointFit
from sunzi.tally import Tally

DEFAULT_SIGNIFICANCE = 0.001
"""The rate of alarms on honest reports."""

_NO_SURPLUS = "there is one counter per value or point: every tally fits some histogram exactly and leaves no residual"
_NO_BALANCE = "no part of a report is independent of the value"
_NONNEGATIVE = "no frequency is estimated below 0, up to noise"


@dataclass(frozen=True)
class Health:
    """The result of all tests on one tally.

    >>> import sunzi
    >>> plan = sunzi.make_plan("ss-compact", 20, 1)
    >>> found = check_health(plan, plan.simulate([3] * 5000, seed=1))
    >>> found.reports, found.alarms
    (5000, ())
    """

    reports: int
    findings: tuple[HealthFinding, ...]
    significance: float = DEFAULT_SIGNIFICANCE
    """The rate of alarms on honest reports."""

    @property
    def p_value(self) -> float | None:
        """A bound on the probability that honest reports are at least as extreme in any test; None without a test."""
        known = [finding.p_value for finding in self.findings if finding.p_value is not None]
        return any_of(known) if known else None

    @property
    def test_significance(self) -> float:
        """At or below this p-value a single finding is an alarm: the significance, divided by the number of tests."""
        return self.significance / max(1, sum(finding.p_value is not None for finding in self.findings))

    @property
    def alarms(self) -> tuple[HealthFinding, ...]:
        """The findings that honest reports rarely produce, smallest p-value first."""
        found = [finding for finding in self.findings if (finding.p_value or 0.0) <= self.test_significance]
        found = [finding for finding in found if finding.p_value is not None]
        return tuple(sorted(found, key=lambda finding: finding.p_value or 0.0))

    @property
    def strongest(self) -> HealthFinding | None:
        """The finding with the smallest p-value."""
        known = [finding for finding in self.findings if finding.p_value is not None]
        return min(known, key=lambda finding: finding.p_value or 0.0) if known else None

    @property
    def verdict(self) -> str:
        """All findings in one line."""
        if not self.reports:
            return "no reports yet"
        if self.alarms:
            names = ", ".join(finding.name for finding in self.alarms)
            return f"some reports were not made by the honest client: {names}"
        if self.p_value is None:
            return "cannot say: no test applies to this tally"
        return "no sign of dishonest reports; false values sent through the honest client cannot be detected"

    def __getitem__(self, name: str) -> HealthFinding:
        """A finding by name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise ParameterError(f"there is no test named {name!r}; there are {[each.name for each in self.findings]}")

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON."""
        return {
            "reports": self.reports,
            "significance": self.significance,
            "p_value": self.p_value,
            "alarm": bool(self.alarms),
            "verdict": self.verdict,
            "tests": [finding.to_dict(self.test_significance) for finding in self.findings],
        }


def check_health(plan: Plan, tally: Tally, significance: float = DEFAULT_SIGNIFICANCE) -> Health:
    """Run every test that applies to the plan's protocol; takes about as long as ten decodings.

    Parameters
    ----------
    plan: the plan of the tally.
    tally: the counted reports.
    significance: the rate of alarms on honest reports.

    >>> import sunzi
    >>> plan = sunzi.make_plan("ss-compact", 20, 1)
    >>> check_health(plan, plan.simulate([3] * 5000, seed=1)).alarms
    ()
    """
    if not 0 < significance < 1:
        raise ParameterError(f"significance must lie between 0 and 1, got {significance}")
    if tally.fingerprint != plan.digest:
        plan.estimate(tally)  # raises an error that names the other plan
    if not tally.reports:
        return Health(0, (), significance)
    try:
        fit = plan.protocol.joint_fit(tally)
        findings = _check_support(plan, tally) if fit is None else _check_fit(plan, tally, fit)
    except EstimateError:
        reason = "too few reports: moduli or views without reports leave the histogram undetermined"
        balance = block_balance(tally, plan.protocol.shares)
        findings = [balance, HealthFinding("fit residual", "residual", "", reason=reason)]
    return Health(tally.reports, tuple(findings), significance)


def _check_support(plan: Plan, tally: Tally) -> list[HealthFinding]:
    """The tests of protocols with one channel."""
    protocol = plan.protocol
    if not protocol.channels:
        return [block_balance(tally, protocol.shares)]
    channel, findings = protocol.channels[0], []
    support = channel.point_counts(tally.block(0))
    if protocol.responses:
        histogram = simplex.project(protocol.linear_estimate(plan.domain, tally).frequencies)
        counted = CountedDesign(protocol.responses[0], tally.block(0), tally.reports, support, histogram)
        findings += _check_designs([counted])
    if channel.has_independent_bits:
        findings.append(bit_balance(channel, tally))
    kinds = {finding.kind for finding in findings}
    if "balance" not in kinds:
        findings.insert(0, HealthFinding("block balance", "balance", "", reason=_NO_BALANCE))
    if "residual" not in kinds:
        findings.append(HealthFinding("fit residual", "residual", "", reason=_NO_SURPLUS))
    score, chance = lowest_counts(support[: protocol.domain_size], tally.reports, channel.probabilities.false)
    return [*findings, HealthFinding("negative frequencies", "consistency", _NONNEGATIVE, score, None, chance)]


def _check_designs(parts: list[CountedDesign]) -> list[HealthFinding]:
    """The tests on the messages of one or several designs."""
    blocks = [(part.response, part.counters, part.reports) for part in parts]
    found = [class_balance(blocks), message_frequency(blocks), message_residual(parts)]
    return [*(finding for finding in found if finding is not None), *unused_points(parts)]


def _check_fit(plan: Plan, tally: Tally, fit: JointFit) -> list[HealthFinding]:
    """The tests of protocols with several channels."""
    parts = _counted_designs(plan, tally, fit)
    return [
        block_balance(tally, plan.protocol.shares),
        *_check_designs(parts),
        fit_residual(fit),
        _nonnegative(fit.item_scores, parts),
    ]


def _counted_designs(plan: Plan, tally: Tally, fit: JointFit) -> list[CountedDesign]:
    """The channels that have reports, with the support of their points."""
    used = np.flatnonzero(fit.used).tolist()
    parts = []
    for index, histogram in zip(used, fit.histograms, strict=True):
        response, counters = plan.protocol.responses[index], tally.block(index)
        support = response.point_counts(counters)
        parts.append(CountedDesign(response, counters, tally.block_reports[index], support, histogram))
    return parts


def _nonnegative(scores: Floats, parts: list[CountedDesign]) -> HealthFinding:
    """No item and no point is significantly below 0; items by their normal scores, with errors bounded from above."""
    lowest = [
        lowest_counts(part.support[: part.histogram.size], part.reports, part.response.probabilities.false)
        for part in parts
    ]
    chances = [any_of([chance for _, chance in lowest])]
    score = min(score for score, _ in lowest)
    if scores.size:
        score = float(scores.min())
        chances.append(min(1.0, scores.size * float(special.ndtr(score))))
    return HealthFinding("negative frequencies", "consistency", _NONNEGATIVE, score, None, any_of(chances))
