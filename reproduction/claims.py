"""The paper's claims, each declared once. Experiments give evidence for or against them, and all of the evidence makes
one verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Finding = Literal["for", "in part", "against"]
"""The finding of one experiment about a claim."""
Verdict = Literal["holds", "in part", "does not hold"]
"""The verdict of all experiments together."""


@dataclass(frozen=True)
class Claim:
    """A quotation and its place in the paper. A theorem is about every case, so one counter-example refutes it."""

    words: str
    where: str
    theorem: bool = False

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        """``holds`` if all evidence is for it, ``does not hold`` if all is against it, or any if it is a theorem."""
        against = [finding == "against" for finding in findings]
        if all(against) or (self.theorem and any(against)):
            return "does not hold"
        return "holds" if all(finding == "for" for finding in findings) else "in part"


# Error

WITHIN_LIMIT = Claim(
    "MSS tracks SS and PGR within ≤ 1.3× throughout",
    "Utility comparison; “never exceeded κ ≈ 1.3 across all (k, ε) we tested” in Our Contributions; “errors close to "
    "SS and PGR” of the CDFs in Additional Results",
)
MATCHES = Claim(
    "MSS matches the estimation accuracy of SS, PGR, and RAPPOR across realistic (k, ε) settings", "abstract"
)
GRR_WORST = Claim(
    "GRR consistently yields the highest error",
    "Utility comparison; “across all configurations, GRR maintains the highest error” in Additional Results",
)
NEAR_OPTIMAL = Claim(
    "OUE, SS, and PGR achieve near-optimal utility across all settings, as all three match the information-theoretic "
    "MSE bound",
    "Utility comparison",
)
SAME_TRENDS = Claim(
    "the relative ordering and behavior of all protocols remain consistent across Zipf and Spike distributions",
    "Utility comparison; “the utility trends also hold at k = 1,024” in the appendix",
)
GRR_GAP = Claim("GRR … suffers an Θ(k/e^ε) gap to the information-theoretic MSE bound", "Related work")
STEADY = Claim(
    "with low variance across seeds and strong robustness to the underlying data distribution (Zipf or Spike)",
    "Additional Results: Utility comparison",
)
OTHER_SETTINGS = Claim(
    "additional experiments under different data distributions, numbers of users, and broader domain sizes … further "
    "validate our findings",
    "Ablation studies, of “MSS tracks SS and PGR within ≤ 1.3×”",
)
DISTRIBUTION_FREE = Claim("Since worst-case MSE is distribution-independent", "Setting")
ANALYTICAL_ERROR = Claim(
    "the analytical expressions closely match the empirical observations across all regimes of ε … regardless of the "
    "underlying data distribution or domain size",
    "Ablation: Analytical vs. Empirical MSE",
)
PRINTED_ERROR = Claim(
    "This validates the tightness and reliability of our closed-form MSE derivation for MSS",
    "Ablation: Analytical vs. Empirical MSE, of the boxed equation for MSE_MSS",
)

# Moduli

KAPPA_KEPT = Claim(
    "our modulus search keeps κ ≤ 10",
    "Our Contributions; moduli selection, Steps 1 to 3 and the deterministic fallback",
)
ERROR_BOUND = Claim(
    "For any frequency vector f and any moduli choice with finite κ: MSE_MSS ≤ κ·4e^ε/(n(e^ε−1)²)",
    "Theorem 3 “Worst-Case MSE of MSS”; “MSE of MSS ≤ κ · MSE of SS” in Our Contributions; Table 1",
    theorem=True,
)
KAPPA_BOUND = Claim(
    "With probability 1 over the random prime selection, κ ≤ α(ℓ+T*)/(ℓ−T*)",
    "Theorem 4 “Condition-number bound”",
    theorem=True,
)
CONSERVATIVE = Claim(
    "the bound is sufficient but generally not tight; smaller values of ℓ frequently satisfy κ ≤ κ_max in practice",
    "Remark “Conservative bound”",
)
ARBITRARY = Claim("it accepts arbitrary k and ε", "Comparison with PGR")
LINEAR_SUM = Claim(
    "one can select moduli such that Σ_j m_j = O(k) (since each m_j < k and ℓ = Θ(log k))",
    "Server-side decoding, overall runtime",
)
MIDDLE_LENGTH = Claim(
    "the relationship between ℓ, utility (MSE), and communication cost is non-linear: in some regimes, intermediate "
    "values such as ℓ = 9 can outperform both smaller (ℓ = 3) and larger (ℓ = 12) settings",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
)
NOT_MONOTONE = Claim(
    "increasing ℓ does not guarantee monotonic improvements", "Ablation: Sensitivity to ℓ and MSS[OPT]"
)
OPTIMISED = Claim(
    "MSS[OPT] consistently selects a configuration that achieves near-optimal utility across all privacy budgets",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
)
OTHER_CRITERIA = Claim(
    "it is not guaranteed to yield optimal trade-offs across all criteria", "Ablation: Sensitivity to ℓ and MSS[OPT]"
)
SPECTRUM = Claim(
    "the tunable parameter ℓ lets practitioners navigate the full communication-accuracy spectrum",
    "Comparison with PGR",
)

# Ridge

UNBIASED = Claim("E[f̂] = f (exact unbiasedness, λ = 0)", "Theorem 2 “Exact unbiasedness, λ = 0”", theorem=True)
BIAS_LINEAR = Claim("the bias introduced is O(λ)", "Corollary “Asymptotic Unbiasedness, λ > 0”")
BIAS_FALLS = Claim(
    "which becomes negligible for large ε (weaker privacy). When ε is small (strong privacy), regularization bias may "
    "be more significant",
    "Corollary “Asymptotic Unbiasedness, λ > 0”",
)
PRACTICALLY_UNBIASED = Claim(
    "Although this introduces a small bias, the estimator remains practically unbiased", "Remark after the corollary"
)

# Bits

FEWER_BITS = Claim(
    "Across all settings, MSS consistently achieves lower communication cost than SS", "Communication cost"
)
HALF_THE_BITS = Claim("up to one-half in high-privacy regimes", "Communication cost")
RESIDUE_BITS = Claim(
    "This design reduces the user communication cost … down to ⌈log2 ℓ⌉ + ⌈log2 m_j⌉ bits",
    "abstract and contributions",
)
TABLE_BITS = Claim(
    "communication: ⌈log2 k⌉ (GRR, PGR: fixed for a given k), k (RAPPOR), ⌈log2 C(k,ω)⌉ (SS), ⌈log2 ℓ⌉ + mean ⌈log2 "
    "C(m_j,ω_j)⌉ (MSS)",
    "Table 1; Communication cost",
)

# Server

SPEED_UP = Claim(
    "MSS consistently outperforms PGR by large margins, achieving decoding speed-ups between 11× and 448×",
    "Server runtime",
)
SLOW_GEOMETRY = Claim(
    "The runtime spike at ε = 4.5 for PGR likely arises from parameter rounding and structural constraints in its "
    "geometry",
    "Server runtime",
)
FEW_ITERATIONS = Claim(
    "with well-conditioned moduli LSMR takes a constant number r of iterations", "abstract; Server-Side Decoding"
)
TABLE_ERROR = Claim("worst-case MSE: (e^ε+k−2)/(n(e^ε−1)²) for GRR, 4e^ε/(n(e^ε−1)²) for RAPPOR, SS and PGR", "Table 1")
TABLE_SERVER = Claim(
    "server time: O(n+k) GRR, O(nk) RAPPOR, O(nω+k) SS, O(n+ke^ε log k) PGR, O(n+kℓ+Σm_j) MSS", "Table 1"
)

# Attack

LOWEST_ATTACK = Claim(
    "MSS consistently achieves the lowest DRA across all ε values",
    "Attackability, and its figures under Zipf and Spike; “MSS continues to offer the lowest DRA across all ε” on "
    "aligned domains in Additional Results",
)
LOWEST_OF_ALL = Claim(
    "MSS achieves the lowest reconstruction-attack success rate among all evaluated LDP protocols",
    "abstract and summary; Table 1 lists RAPPOR's DRA, the experiments leave it out",
)
ANY_INPUT = Claim(
    "DRA is the probability that an adversary with full knowledge of the protocol and prior distribution correctly "
    "guesses x; the robustness of MSS is largely independent of the input distribution",
    "introduction; Additional Results: Attackability",
)
GRR_ATTACK = Claim(
    "GRR yields the highest single-message reconstruction success rate; GRR and SS exhibit higher attackability, "
    "especially for small k",
    "Related work; Attackability",
)
TRUNCATED_GEOMETRY = Claim(
    "for larger budgets PGR's DRA increases sharply when k is smaller than the projective-domain size K; the "
    "truncation makes certain messages disproportionately informative",
    "Attackability",
)
ALIGNED_GEOMETRY = Claim(
    "Under this aligned setting, PGR no longer exhibits the high-ε spike; the phenomenon is consistent across both "
    "small and large domains (base_k = 100 and 1,024)",
    "Additional Results: Attackability, and the caption of the figure",
)
SUBSETS_MATCH = Claim(
    "SS exhibits a near-perfect match between analytical and empirical DRA", "Ablation: Empirical vs. Analytical DRA"
)
UPPER_BOUND = Claim(
    "For MSS, the analytical DRA bound consistently overestimates the true attackability; it is a guaranteed-safe "
    "upper bound",
    "Ablation: Empirical vs. Analytical DRA; the boxed equation of Section “Data Reconstruction Attack on MSS”",
)
TABLE_ATTACK = Claim(
    "attackability (DRA) in closed form; for MSS the exact expected DRA",
    "Table 1; appendix “Expected Data Reconstruction Attack on MSS”",
)
