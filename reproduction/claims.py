"""The paper's claims, each declared once, with the setting in which the paper makes it. Experiments measure a claim in
that setting and, where they go further, beyond it; all of the evidence makes one verdict for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Finding = Literal["for", "in part", "against"]
"""The finding of one experiment about a claim."""
Verdict = Literal["holds", "in part", "does not hold", "–"]
"""The verdict of all experiments together; – if none of them judges the claim."""


@dataclass(frozen=True)
class Claim:
    """A quotation, its place in the paper, and the paper's own setting: what it ran, or what it assumes. A theorem is
    about every case, so one counter-example refutes it.
    """

    words: str
    where: str
    setting: str
    theorem: bool = False

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        """``holds`` if all evidence is for it, ``does not hold`` if all is against it, or any if it is a theorem."""
        if not findings:
            return "–"
        against = [finding == "against" for finding in findings]
        if all(against) or (self.theorem and any(against)):
            return "does not hold"
        return "holds" if all(finding == "for" for finding in findings) else "in part"


_ERROR_SETTING = (
    "k = 1,024 and 22,000, 10,000 users, Zipf(3) and spike, ε = 0.5 to 5, 300 trials with their own moduli; GRR, OUE, "
    "SS, PGR and MSS with the paper's weights and ridge"
)
_LENGTH_SETTING = "k = 1,024, 10,000 users, Zipf(3), ε = 0.5 to 5, ℓ = 3, 6, 9, 12, 15 and MSS[OPT], 300 runs"
_RIDGE_SETTING = "λ = 1/ε² or smaller, 10,000 users, ε = 0.5 to 5"
_BITS_SETTING = "k = 1,024 and 22,000, ε = 0.5 to 5, 300 searches for moduli"
_SEARCH_SETTING = "k = 1,024 and 22,000, ε = 0.5 to 5, κ_max = 10, β = 20, ℓ up to 20"
_RUNTIME_SETTING = (
    "k = 22,000, 10,000 users, Zipf(3), ε = 2 to 5, 300 trials; MSS decoded by LSMR, PGR by dynamic programme"
)
_ATTACK_SETTING = (
    "k = 100 and 1,024, 10,000 users, Zipf(3) and spike, ε = 0.5 to 5; GRR, OUE, SS, PGR and MSS; an attacker who "
    "considers all values equally likely and guesses among those that a report supports"
)
_ALIGNED_SETTING = "k = K(ε) for base_k = 100 and 1,024, spike, ε = 0.5 to 5; the same protocols and attacker"
_TABLE_SETTING = "formulas for every k and ε, checked at k = 1,024, ε = 1, 3, 5, 10,000 users"

# Error

WITHIN_LIMIT = Claim(
    "MSS tracks SS and PGR within ≤ 1.3× throughout",
    "Utility comparison; “never exceeded κ ≈ 1.3 across all (k, ε) we tested” in Our Contributions; “errors close to "
    "SS and PGR” of the CDFs in Additional Results",
    _ERROR_SETTING,
)
MATCHES = Claim(
    "MSS matches the estimation accuracy of SS, PGR, and RAPPOR across realistic (k, ε) settings",
    "abstract",
    f"{_ERROR_SETTING}; OUE, “the optimized RAPPOR variant”, stands for RAPPOR",
)
GRR_WORST = Claim(
    "GRR consistently yields the highest error",
    "Utility comparison; “across all configurations, GRR maintains the highest error” in Additional Results",
    _ERROR_SETTING,
)
NEAR_OPTIMAL = Claim(
    "OUE, SS, and PGR achieve near-optimal utility across all settings, as all three match the information-theoretic "
    "MSE bound",
    "Utility comparison",
    _ERROR_SETTING,
)
SAME_TRENDS = Claim(
    "the relative ordering and behavior of all protocols remain consistent across Zipf and Spike distributions",
    "Utility comparison; “the utility trends also hold at k = 1,024” in the appendix",
    _ERROR_SETTING,
)
GRR_GAP = Claim(
    "GRR … suffers an Θ(k/e^ε) gap to the information-theoretic MSE bound",
    "Related work",
    _ERROR_SETTING,
)
STEADY = Claim(
    "with low variance across seeds and strong robustness to the underlying data distribution (Zipf or Spike)",
    "Additional Results: Utility comparison",
    _ERROR_SETTING,
)
OTHER_SETTINGS = Claim(
    "additional experiments under different data distributions, numbers of users, and broader domain sizes … further "
    "validate our findings",
    "Ablation studies, of “MSS tracks SS and PGR within ≤ 1.3×”",
    "none shown: the appendix has no k, number of users or population beyond those above",
)
DISTRIBUTION_FREE = Claim(
    "Since worst-case MSE is distribution-independent",
    "Setting",
    "Zipf(3) and spike, k = 1,024, 10,000 users",
)
ANALYTICAL_ERROR = Claim(
    "the analytical expressions closely match the empirical observations across all regimes of ε … regardless of the "
    "underlying data distribution or domain size",
    "Ablation: Analytical vs. Empirical MSE",
    "SS by Table 1's formula and MSS by the boxed equation for MSE_MSS; k = 1,024 and 22,000, 10,000 users, Zipf(3) "
    "and spike, ε = 0.5 to 5, 300 trials",
)
PRINTED_ERROR = Claim(
    "This validates the tightness and reliability of our closed-form MSE derivation for MSS",
    "Ablation: Analytical vs. Empirical MSE, of the boxed equation for MSE_MSS",
    "the boxed equation as printed; k = 1,024 and 22,000, 10,000 users, Zipf(3) and spike, ε = 0.5 to 5",
)

# Moduli

KAPPA_KEPT = Claim(
    "our modulus search keeps κ ≤ 10",
    "Our Contributions; moduli selection, Steps 1 to 3 and the deterministic fallback",
    _SEARCH_SETTING,
)
ERROR_BOUND = Claim(
    "For any frequency vector f and any moduli choice with finite κ: MSE_MSS ≤ κ·4e^ε/(n(e^ε−1)²)",
    "Theorem 3 “Worst-Case MSE of MSS”; “MSE of MSS ≤ κ · MSE of SS” in Our Contributions; Table 1",
    "every frequency vector and any moduli with finite κ",
    theorem=True,
)
KAPPA_BOUND = Claim(
    "With probability 1 over the random prime selection, κ ≤ α(ℓ+T*)/(ℓ−T*)",
    "Theorem 4 “Condition-number bound”",
    "any distinct primes of the band",
    theorem=True,
)
CONSERVATIVE = Claim(
    "the bound is sufficient but generally not tight; smaller values of ℓ frequently satisfy κ ≤ κ_max in practice",
    "Remark “Conservative bound”",
    _SEARCH_SETTING,
)
ARBITRARY = Claim(
    "it accepts arbitrary k and ε",
    "Comparison with PGR",
    "every k and ε",
)
LINEAR_SUM = Claim(
    "one can select moduli such that Σ_j m_j = O(k) (since each m_j < k and ℓ = Θ(log k))",
    "Server-side decoding, overall runtime",
    "every k",
)
MIDDLE_LENGTH = Claim(
    "the relationship between ℓ, utility (MSE), and communication cost is non-linear: in some regimes, intermediate "
    "values such as ℓ = 9 can outperform both smaller (ℓ = 3) and larger (ℓ = 12) settings",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
    _LENGTH_SETTING,
)
NOT_MONOTONE = Claim(
    "increasing ℓ does not guarantee monotonic improvements",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
    _LENGTH_SETTING,
)
OPTIMISED = Claim(
    "MSS[OPT] consistently selects a configuration that achieves near-optimal utility across all privacy budgets",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
    _LENGTH_SETTING,
)
OTHER_CRITERIA = Claim(
    "it is not guaranteed to yield optimal trade-offs across all criteria",
    "Ablation: Sensitivity to ℓ and MSS[OPT]",
    _LENGTH_SETTING,
)
SPECTRUM = Claim(
    "the tunable parameter ℓ lets practitioners navigate the full communication-accuracy spectrum",
    "Comparison with PGR",
    _LENGTH_SETTING,
)

# Ridge

UNBIASED = Claim(
    "E[f̂] = f (exact unbiasedness, λ = 0)",
    "Theorem 2 “Exact unbiasedness, λ = 0”",
    "λ = 0 and moduli of full rank",
    theorem=True,
)
BIAS_LINEAR = Claim(
    "the bias introduced is O(λ)",
    "Corollary “Asymptotic Unbiasedness, λ > 0”",
    _RIDGE_SETTING,
)
BIAS_FALLS = Claim(
    "which becomes negligible for large ε (weaker privacy). When ε is small (strong privacy), regularization bias may "
    "be more significant",
    "Corollary “Asymptotic Unbiasedness, λ > 0”",
    _RIDGE_SETTING,
)
PRACTICALLY_UNBIASED = Claim(
    "Although this introduces a small bias, the estimator remains practically unbiased",
    "Remark after the corollary",
    _RIDGE_SETTING,
)

# Bits

FEWER_BITS = Claim(
    "Across all settings, MSS consistently achieves lower communication cost than SS",
    "Communication cost",
    _BITS_SETTING,
)
HALF_THE_BITS = Claim(
    "up to one-half in high-privacy regimes",
    "Communication cost",
    _BITS_SETTING,
)
RESIDUE_BITS = Claim(
    "This design reduces the user communication cost … down to ⌈log2 ℓ⌉ + ⌈log2 m_j⌉ bits",
    "abstract and contributions",
    _BITS_SETTING,
)
TABLE_BITS = Claim(
    "communication: ⌈log2 k⌉ (GRR, PGR: fixed for a given k), k (RAPPOR), ⌈log2 C(k,ω)⌉ (SS), ⌈log2 ℓ⌉ + mean ⌈log2 "
    "C(m_j,ω_j)⌉ (MSS)",
    "Table 1; Communication cost",
    _TABLE_SETTING,
)

# Server

SPEED_UP = Claim(
    "MSS consistently outperforms PGR by large margins, achieving decoding speed-ups between 11× and 448×",
    "Server runtime",
    _RUNTIME_SETTING,
)
SLOW_GEOMETRY = Claim(
    "The runtime spike at ε = 4.5 for PGR likely arises from parameter rounding and structural constraints in its "
    "geometry",
    "Server runtime",
    _RUNTIME_SETTING,
)
FEW_ITERATIONS = Claim(
    "with well-conditioned moduli LSMR takes a constant number r of iterations",
    "abstract; Server-Side Decoding",
    "κ ≤ 10, every k",
)
TABLE_ERROR = Claim(
    "worst-case MSE: (e^ε+k−2)/(n(e^ε−1)²) for GRR, 4e^ε/(n(e^ε−1)²) for RAPPOR, SS and PGR",
    "Table 1",
    _TABLE_SETTING,
)
TABLE_SERVER = Claim(
    "server time: O(n+k) GRR, O(nk) RAPPOR, O(nω+k) SS, O(n+ke^ε log k) PGR, O(n+kℓ+Σm_j) MSS",
    "Table 1",
    _TABLE_SETTING,
)

# Attack

LOWEST_ATTACK = Claim(
    "MSS consistently achieves the lowest DRA across all ε values",
    "Attackability, and its figures under Zipf and Spike",
    _ATTACK_SETTING,
)
LOWEST_ALIGNED = Claim(
    "once this alignment is enforced … MSS continues to offer the lowest DRA across all ε",
    "Additional Results: Attackability",
    _ALIGNED_SETTING,
)
LOWEST_OF_ALL = Claim(
    "MSS achieves the lowest reconstruction-attack success rate among all evaluated LDP protocols",
    "abstract and Summary",
    _ATTACK_SETTING,
)
ANY_INPUT = Claim(
    "the robustness of MSS to data reconstruction attacks is largely independent of the input distribution",
    "Additional Results: Attackability",
    _ATTACK_SETTING,
)
GRR_ATTACK = Claim("GRR yields the highest single-message reconstruction success rate", "Related work", _ATTACK_SETTING)
HIGHER_ATTACK = Claim(
    "GRR and SS exhibit higher attackability, especially for small k", "Attackability, of MSS", _ATTACK_SETTING
)
TRUNCATED_GEOMETRY = Claim(
    "for larger budgets PGR's DRA increases sharply when k is smaller than the projective-domain size K; the "
    "truncation makes certain messages disproportionately informative",
    "Attackability",
    _ATTACK_SETTING,
)
ALIGNED_GEOMETRY = Claim(
    "Under this aligned setting, PGR no longer exhibits the high-ε spike; the phenomenon is consistent across both "
    "small and large domains (base_k = 100 and 1,024)",
    "Additional Results: Attackability, and the caption of the figure",
    _ALIGNED_SETTING,
)
SUBSETS_MATCH = Claim(
    "SS exhibits a near-perfect match between analytical and empirical DRA",
    "Ablation: Empirical vs. Analytical DRA",
    _ATTACK_SETTING,
)
UPPER_BOUND = Claim(
    "For MSS, the analytical DRA bound consistently overestimates the true attackability; it is a guaranteed-safe "
    "upper bound",
    "Ablation: Empirical vs. Analytical DRA; the boxed equation of Section “Data Reconstruction Attack on MSS”",
    _ATTACK_SETTING,
)
TABLE_ATTACK = Claim(
    "attackability (DRA) in closed form; for MSS the exact expected DRA",
    "Table 1; appendix “Expected Data Reconstruction Attack on MSS”",
    "all values equally likely; the row of PGR for k = K, as the caption says",
)
TRUNCATED_FORMULA = Claim(
    "for k < K the exact expected DRA of PGR is (1/K)(Σ_y e^ε/(k+(e^ε−1)·#A(y)) + (K−N_pref)/k)",
    "appendix “Expected Data Reconstruction Attack on PGR”, of Table 1",
    "all values equally likely; the k = 100 and 1,024 and ε = 0.5 to 5 of the figures",
)
ONE_RESIDUE = Claim(
    "Singleton subsets (ω_j = 1): E[DRA] = (1/(ℓk)) Σ_j p_j·min(m_j, k)",
    "appendix “Expected Data Reconstruction Attack on MSS”, special case (b)",
    "all values equally likely; moduli of the paper's search at k = 100 and 1,024, ε = 0.5 to 5",
)

# The mechanism

PRIVATE = Claim(
    "MSS satisfies ε-local differential privacy",
    "Theorem 1 “Privacy of MSS”",
    "every pair of values, every output and any moduli",
    theorem=True,
)
SUBSET_SIZE = Claim(
    "ω_j = ⌊m_j/(e^ε+1)⌉, the integer nearest to m_j/(e^ε+1)",
    "Algorithm 1 and the caption of Table 1",
    "moduli of the paper's search at k = 100, 1,024 and 22,000, ε = 0.5 to 5",
)
INTEGERS = Claim(
    "it … relies solely on integer arithmetic",
    "Comparison with PGR",
    "Algorithm 1 of the user and the least squares of the server",
)
