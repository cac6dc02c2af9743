"""Whether a tally looks as honest reports must look, whatever the users hold.

Every test compares the tally with something that holds for all histograms at once, so that an alarm means reports that
the shipped client does not make: crafted ones, a broken client, a damaged store. No alarm means little: fake clients
that run the honest client on false values, or that imitate its noise, pass (docs/poisoning.md).

Guarantee: with honest reports, ``check`` raises an alarm with probability at most about ``significance`` (exactly for
the tests on extreme counts, asymptotically for the others, which stay silent where reports are too few for that).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sunzi.analysis.balance import (
    bit_balance,
    block_balance,
    class_balance,
    lowest_counts,
    message_frequency,
)
from sunzi.analysis.design_residuals import CountedDesign, message_residual, unused_points
from sunzi.analysis.health_finding import HealthFinding
from sunzi.analysis.residue_residual import ResidueResidual, residue_residual
from sunzi.analysis.tails import any_of
from sunzi.errors import EstimateError, ParameterError
from sunzi.numerics import simplex
from sunzi.plan import Plan
from sunzi.protocols.block_response import BlockProtocol
from sunzi.protocols.modular import ModularProtocol
from sunzi.protocols.modular_estimation import ModularDecoder
from sunzi.protocols.support import SupportProtocol
from sunzi.protocols.unary import UnaryProtocol
from sunzi.tally import Tally

LEVEL = 0.001
"""How often a check of honest reports may raise an alarm."""

_NO_SURPLUS = "this plan has one counter a value: every tally fits some histogram exactly and leaves no residual"
_NO_BALANCE = "no part of a report is independent of the value, so there is nothing to balance"
_NONNEGATIVE = "no frequency is estimated below 0, but for noise"


@dataclass(frozen=True)
class Health:
    """The findings on one tally."""

    reports: int
    findings: tuple[HealthFinding, ...]
    significance: float = LEVEL

    @property
    def p_value(self) -> float | None:
        """A bound on the chance that honest reports look at least as odd in any test; None if no test could speak."""
        spoken = [finding.p_value for finding in self.findings if finding.p_value is not None]
        return any_of(spoken) if spoken else None

    @property
    def test_level(self) -> float:
        """At or below this p-value a single finding is an alarm: the significance, shared by all tests that spoke."""
        return self.significance / max(1, sum(finding.p_value is not None for finding in self.findings))

    @property
    def alarms(self) -> tuple[HealthFinding, ...]:
        """The findings that honest reports would hardly give, the oddest first."""
        odd = [finding for finding in self.findings if (finding.p_value or 0.0) <= self.test_level]
        odd = [finding for finding in odd if finding.p_value is not None]
        return tuple(sorted(odd, key=lambda finding: finding.p_value or 0.0))

    @property
    def strongest(self) -> HealthFinding | None:
        """The finding with the smallest p-value."""
        spoken = [finding for finding in self.findings if finding.p_value is not None]
        return min(spoken, key=lambda finding: finding.p_value or 0.0) if spoken else None

    @property
    def verdict(self) -> str:
        """One line about the whole."""
        if not self.reports:
            return "no reports yet"
        if self.alarms:
            names = ", ".join(finding.name for finding in self.alarms)
            return f"some reports were not made by the honest client: {names}"
        if self.p_value is None:
            return "cannot say: no test applies to this tally"
        return "nothing that honest reports could not show; fake values honestly reported would not show either"

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
            "tests": [finding.to_dict(self.test_level) for finding in self.findings],
        }


def check(plan: Plan, tally: Tally, significance: float = LEVEL) -> Health:
    """Every test that this plan's protocol admits, on a tally alone; takes the time of about ten decodings."""
    if not 0 < significance < 1:
        raise ParameterError(f"significance must lie between 0 and 1, got {significance}")
    if tally.fingerprint != plan.contract.fingerprint:
        plan.estimate(tally)  # says which plan it belongs to
    if not tally.reports:
        return Health(0, (), significance)
    protocol = plan.protocol
    if isinstance(protocol, ModularProtocol):
        findings = _check_modular(plan, protocol, tally)
    elif isinstance(protocol, SupportProtocol):
        findings = _check_support(plan, protocol, tally)
    else:
        findings = []
    return Health(tally.reports, tuple(findings), significance)


def _check_support(plan: Plan, protocol: SupportProtocol, tally: Tally) -> list[HealthFinding]:
    findings: list[HealthFinding] = []
    if isinstance(protocol, BlockProtocol):
        response = protocol.response
        support = response.design.point_counts(tally.block(0), response.design.points)
        histogram = simplex.project(plan.estimate(tally).frequencies)
        counted = CountedDesign(response, tally.block(0), tally.reports, support, histogram)
        findings += _check_designs([counted])
        findings += unused_points(counted, protocol.domain_size)
    else:
        support = protocol.support_counts(tally)
    if isinstance(protocol, UnaryProtocol):
        findings.append(bit_balance(protocol, tally))
    kinds = {finding.kind for finding in findings}
    if "balance" not in kinds:
        findings.insert(0, HealthFinding("block balance", "balance", "", reason=_NO_BALANCE))
    if "residual" not in kinds:
        findings.append(HealthFinding("fit residual", "residual", "", reason=_NO_SURPLUS))
    lowest = support[: protocol.domain_size]
    score, chance = lowest_counts(lowest, tally.reports, protocol.probabilities.false)
    return [*findings, HealthFinding("negative frequencies", "consistency", _NONNEGATIVE, score, None, chance)]


def _check_designs(parts: list[CountedDesign]) -> list[HealthFinding]:
    """What the messages of one or several designs must satisfy."""
    blocks = [(part.response, part.counters, part.reports) for part in parts]
    found = [class_balance(blocks), message_frequency(blocks), message_residual(parts)]
    return [finding for finding in found if finding is not None]


def _check_modular(plan: Plan, protocol: ModularProtocol, tally: Tally) -> list[HealthFinding]:
    findings = [block_balance(tally)]
    try:
        decoder = ModularDecoder(protocol, tally, "planned", 0.0, "quick")
    except EstimateError:
        reason = "too few reports: moduli without any report leave the histogram undetermined"
        return [*findings, HealthFinding("fit residual", "residual", "", reason=reason)]
    estimate = decoder.estimate(plan.domain)
    residual = ResidueResidual(decoder, estimate.frequencies)
    parts = _counted_designs(protocol, tally, residual)
    scores = estimate.frequencies / np.maximum(estimate.standard_errors(), np.finfo(np.float64).tiny)
    lowest = [lowest_counts(part.support, part.reports, part.response.probabilities.false)[1] for part in parts]
    return [
        *findings,
        *_check_designs(parts),
        residue_residual(residual),
        _nonnegative(float(scores.min()), scores.size, lowest),
    ]


def _counted_designs(protocol: ModularProtocol, tally: Tally, residual: ResidueResidual) -> list[CountedDesign]:
    """The blocks that have reports, with the support counts behind the residue estimates."""
    used = [index for index, reports in enumerate(tally.block_reports) if reports]
    parts = []
    for index, estimates, histogram in zip(used, residual.residues, residual.histograms, strict=True):
        response, reports = protocol.responses[index], tally.block_reports[index]
        rates = response.probabilities
        support = np.rint((estimates * rates.gap + rates.false) * reports).astype(np.int64)
        parts.append(CountedDesign(response, tally.block(index), reports, support, histogram))
    return parts


def _nonnegative(score: float, items: int, residues: list[float]) -> HealthFinding:
    """No item and no residue is significantly below 0; items by their normal scores, with errors bounded from above."""
    item = min(1.0, items * float(special.ndtr(score)))
    return HealthFinding(
        "negative frequencies", "consistency", _NONNEGATIVE, score, None, any_of([item, any_of(residues)])
    )
