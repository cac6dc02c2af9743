"""The effect of the ridge: the bias that it adds, and the error that it saves."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from sunzi._typing import Floats

from . import claims
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding, finding_of
from .figures import common_legend, curve, head, panels, style
from .table import Table
from .trials import EPSILONS, USERS, histogram_of, paper_plan, values_of, warm_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MULTIPLES = (0.0, 0.25, 1.0, 4.0, 16.0)
"""Of the paper's λ = 1/ε²; 0 is no ridge."""
_NEGLIGIBLE = 0.2
"""A bias of fewer standard deviations of the estimate; a 95 % interval that ignores it covers 94.5 %."""
_FEW_USERS = 1000
"""λ does not depend on the number of users, but the weights that it is added to do."""


class Ridge(Experiment):
    """One population, many trials, all ridges on the same tallies."""

    name = "ridge"
    title = "The bias of the ridge"
    reproduces = "the corollary “Asymptotic Unbiasedness, λ > 0” and the theorem “Exact unbiasedness, λ = 0”"

    def cells(self, scale: Scale) -> list[Cell]:
        """k = 1,024, where every item's bias is measured well."""
        epsilons = {"full": EPSILONS, "quick": (0.5, 1.0, 2.0, 3.0, 5.0), "tiny": (0.5, 2.0)}[scale]
        trials = {"full": 300, "quick": 60, "tiny": 6}[scale]
        size = 64 if scale == "tiny" else 1024
        return [
            Cell.of(0.04 * trials, domain_size=size, epsilon=epsilon, users=users, population="zipf:3", trials=trials)
            for users in (USERS, _FEW_USERS)
            for epsilon in epsilons
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """The same users in all trials, so that the mean error is the bias."""
        warm_up()
        size, epsilon = cell["domain_size"], cell["epsilon"]
        plan = paper_plan(size, epsilon)
        seeds = cell.seeds(seed, cell["trials"])
        values = values_of(cell["population"], size, cell["users"], seeds[0])
        truth = histogram_of(values, size)
        found: dict[float, list[Floats]] = {multiple: [] for multiple in MULTIPLES}
        for words in seeds:
            tally = plan.simulate(values, seed=[*words, 1])
            for multiple in MULTIPLES:
                ridge = multiple / epsilon**2
                estimate = plan.estimate(tally, weights="paper", ridge=ridge, errors="quick")
                found[multiple].append(estimate.frequencies - truth)
        plain = np.array(found[0.0])
        return [_row(multiple, np.array(errors), plain, truth) for multiple, errors in found.items()]

    def draw(self, table: Table) -> Figure:
        """Bias of the most frequent item, its size relative to the noise, and the error."""
        return _picture(table)

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Unbiased without, biased with."""
        return [_unbiased(table), _proportional(table), _negligible(table), _practically(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """The ridge lowers the error of light items."""
        one = _of(table, 1.0).column("mean") / _of(table, 0.0).column("mean")
        return (
            "All trials have the same users, so the mean error of an item over trials is its bias. The bias of a "
            "ridge is the mean difference from the unbiased estimate of the same tally. Tallies are decoded with the "
            "paper's weights and λ = 0, ¼, 1, 4 and 16 times the paper's 1/ε², for the paper's 10,000 users and for "
            f"1,000. With 10,000 the paper's λ changes the mean squared error by {one.min() - 1:+.1%} to "
            f"{one.max() - 1:+.1%}: shrinking to 0 helps for the many items that nobody holds and hurts for the "
            "frequent ones. Sunzi decodes without a ridge, because a biased estimate has no valid confidence interval.",
        )


def _of(table: Table, multiple: float, users: int = USERS) -> Table:
    return table.where(multiple=multiple, users=users)


def _row(multiple: float, errors: Floats, plain: Floats, truth: Floats) -> Row:
    """The error; and the bias of the most frequent item, for a ridge as the mean difference to the unbiased estimate
    from the same tally, which is the same on average and has less noise.
    """
    trials = errors.shape[0]
    top = int(np.argmax(truth))
    shift = (errors - plain if multiple else errors)[:, top]
    scores = errors.mean(axis=0) / (errors.std(axis=0, ddof=1) / sqrt(trials))
    squares = (errors**2).mean(axis=1)
    return {
        "multiple": multiple,
        "mean": float(squares.mean()),
        "standard_error": float(squares.std(ddof=1) / sqrt(trials)),
        "top_frequency": float(truth[top]),
        "top_bias": float(shift.mean()),
        "top_bias_error": float(shift.std(ddof=1) / sqrt(trials)),
        "top_deviation": float(errors[:, top].std(ddof=1)),
        "mean_square_score": float((scores**2).mean()),
    }


def _picture(table: Table) -> Figure:
    figure, axes = panels(1, 3, width=4.2)
    base = _of(table, 0.0).column("mean")
    for place, multiple in enumerate(table.distinct("multiple")):
        rows = _of(table, multiple)
        across, look = rows.column("epsilon"), style("", place)
        label = "no ridge" if multiple == 0 else f"λ = {multiple:g}/ε²"
        frequency = rows.column("top_frequency")
        spread = rows.column("top_bias_error") / frequency
        curve(axes[0, 0], across, rows.column("top_bias") / frequency, label, spread=spread, **look)
        curve(axes[0, 2], across, rows.column("mean") / base, label, **look)
    for place, users in enumerate((_FEW_USERS, USERS)):
        rows = _of(table, 1.0, users)
        curve(axes[0, 1], rows.column("epsilon"), _in_deviations(rows), f"{users:,} users", **style("", 5 + place))
    head(axes[0, 0], "bias of the most frequent item, 10,000 users", "ε", "bias / frequency")
    head(axes[0, 1], "… beside its noise, λ = 1/ε²", "ε", "|bias| / standard deviation", logarithmic=True)
    head(axes[0, 2], "mean squared error, 10,000 users", "ε", "relative to no ridge")
    common_legend(figure)
    return figure


def _in_deviations(rows: Table) -> Floats:
    """The bias of the most frequent item in standard deviations of its estimate."""
    return np.asarray(np.abs(rows.column("top_bias")) / rows.column("top_deviation"))


def _unbiased(table: Table) -> Evidence:
    rows = table.where(multiple=0.0)
    scores, items = rows.column("top_bias") / rows.column("top_bias_error"), rows.column("mean_square_score")
    return Evidence(
        claim=claims.UNBIASED,
        measured=f"the most frequent item's mean error is {np.abs(scores).max():.1f} standard errors at most; over all "
        f"items the mean square is {items.min():.2f} to {items.max():.2f} (1 if unbiased)",
        finding="for" if np.abs(scores).max() < 4 else "against",
        why="The estimate is a linear map of unbiased residue estimates. n_j must be the number of reports in a "
        "block, not the paper's Σ_a c_j[a], which is ω_j times too large.",
    )


def _proportional(table: Table) -> Evidence:
    one, four, sixteen = (_of(table, multiple).column("top_bias") for multiple in (1.0, 4.0, 16.0))
    # Differences, since all ridges share the noise of the unbiased estimate that they are compared with.
    ratios = (sixteen - four) / (four - one)
    return Evidence(
        claim=claims.BIAS_LINEAR,
        measured="from λ = 4/ε² to 16/ε² the bias of the most frequent item grows "
        f"{ratios.min():.2f} to {ratios.max():.2f} times as much as from 1/ε² to 4/ε² (4 if proportional)",
        finding=finding(float(((ratios > 3) & (ratios < 4.5)).mean())),
        why="The bias is −λ(T+λI)⁻¹f: proportional to λ while λ is small compared with the eigenvalues of T, which "
        "grow with n.",
    )


def _negligible(table: Table) -> Evidence:
    rows = _of(table, 1.0)
    share, epsilons = _in_deviations(rows), rows.column("epsilon")
    places = sorted({0, len(share) // 4, len(share) // 2, len(share) - 1})
    return Evidence(
        claim=claims.BIAS_FALLS,
        measured="bias of the most frequent item in standard deviations of its estimate, 10,000 users: "
        + ", ".join(f"{share[place]:.1g} at ε = {epsilons[place]:g}" for place in places),
        finding=finding_of(share[0] > share[-1], share[-1] < 0.25),
        why="λ falls as 1/ε² and the weights grow as (e^ε−1)²/e^ε, so the bias relative to f falls fast.",
    )


def _practically(table: Table) -> Evidence:
    texts, shares = [], []
    for users in (USERS, _FEW_USERS):
        rows = _of(table, 1.0, users)
        relative = -rows.column("top_bias") / rows.column("top_frequency")
        shares.append(_in_deviations(rows))
        texts.append(
            f"with {users:,} users the most frequent item is estimated up to {relative.max():.1%} too low, and by up "
            f"to {shares[-1].max():.2f} standard deviations of its estimate"
        )
    return Evidence(
        claim=claims.PRACTICALLY_UNBIASED,
        measured=texts[0],
        finding=finding(float((shares[0] < _NEGLIGIBLE).mean())),
        beyond=texts[1],
        beyond_finding=finding(float((shares[1] < _NEGLIGIBLE).mean())),
        why="λ = 1/ε² is added to weights of about n(e^ε−1)²/(4ℓe^ε) per block. It is small compared with them for "
        "10,000 users and ε ≥ 0.5, but not for fewer users or smaller ε. A 95 % interval that ignores a bias of one "
        "standard deviation covers 83 %. With κ ≤ 10 it is not needed for stability.",
    )


EXPERIMENT = Ridge()
