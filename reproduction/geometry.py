"""The geometry-aligned ablation: all protocols on the domain size of PGR's projective geometry."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.numerics.primes import primes_up_to

from . import claims
from .attackers import success_chance
from .dra import rise_finding
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding
from .figures import common_legend, curve, head, name_of, panels, style
from .table import Table, summary
from .trials import EPSILONS, USERS, paper_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROTOCOLS = ("grr", "oue", "ss", "pgr", "mss")
_RIVALS = ("oue", "ss", "pgr")
"""The rivals of MSS; GRR is above them everywhere."""
BASES = (100, 1024)
ALIGNED, TRUNCATED = "aligned", "truncated"


class Geometry(Experiment):
    """Attackability on k = K(ε) and, for comparison, on the base size itself."""

    name = "geometry"
    title = "Attackability on PGR's own domains"
    reproduces = "the figure “Geometry-aligned ablation for PGR”, base_k = 100 and 1,024"
    version = 3

    def cells(self, scale: Scale) -> list[Cell]:
        """Each base, aligned and not."""
        epsilons = {"full": EPSILONS, "quick": (0.5, 1.5, 3.0, 4.0, 5.0), "tiny": (1.0, 2.0)}[scale]
        bases = (20,) if scale == "tiny" else BASES
        trials, searches = {"full": (300, 10), "quick": (20, 1), "tiny": (3, 1)}[scale]
        return [
            Cell.of(
                trials * 0.008 + searches * 3e-4 * size * (protocol == "mss"),
                base=base,
                domain=domain,
                domain_size=size,
                epsilon=epsilon,
                protocol=protocol,
                users=USERS,
                trials=trials,
                searches=searches if protocol == "mss" else 1,
            )
            for base in bases
            for domain in (ALIGNED, TRUNCATED)
            for epsilon in epsilons
            for size in [projective_size(base, epsilon) if domain == ALIGNED else base]
            for protocol in _PROTOCOLS
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """The formula for equally likely values; the paper's attacker on users who all hold the first value, and on
        users who are spread over the others.
        """
        size, users = cell["domain_size"], cell["users"]
        plans = [_plan(cell["protocol"], size, cell["epsilon"], search) for search in range(cell["searches"])]
        spike = np.zeros(users, dtype=np.int64)
        spread = np.linspace(1, size - 1, users).round().astype(np.int64)
        seeds = cell.seeds(seed, cell["trials"])
        first, others = (
            summary(
                [success_chance(plans[place % len(plans)], held, [*each, kind]) for place, each in enumerate(seeds)]
            )
            for kind, held in enumerate((spike, spread))
        )
        return [
            {
                **first,
                "others": others["mean"],
                "others_error": others["standard_error"],
                "formula": float(np.mean([plan.attackability for plan in plans])),
            }
        ]

    def draw(self, table: Table) -> Figure:
        """Aligned, aligned and relative to SS, and truncated; one column per base."""
        bases = table.distinct("base")
        figure, axes = panels(3, len(bases), height=2.9)
        for place, base in enumerate(bases):
            aligned, truncated = (table.where(domain=domain, base=base) for domain in (ALIGNED, TRUNCATED))
            plain = aligned.where(protocol="ss").column("formula")
            _draw_panel(axes[0, place], aligned, np.ones_like(plain))
            _draw_panel(axes[1, place], aligned.where(protocol=_PROTOCOLS[1:]), plain)
            _draw_panel(axes[2, place], truncated, np.ones_like(plain))
            head(axes[0, place], f"k = K(ε), base {base:,}", "ε", "success of the best guess", logarithmic=True)
            head(axes[1, place], "… relative to SS, without GRR", "ε", "success / that of SS")
            head(axes[2, place], f"k = {base:,}", "ε", "success of the best guess", logarithmic=True)
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """No spike once aligned; and which protocol is lowest."""
        return [_no_spike(table), _truncated(table), _lowest(table), _table_row(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """The two attackers."""
        sizes = {
            base: "; ".join(
                f"{size:,}"
                for size in table.where(base=base, domain=ALIGNED, protocol="pgr").column("domain_size").astype(int)
            )
            for base in table.distinct("base")
        }
        trials, users, searches = (max(table.distinct(name)) for name in ("trials", "users", "searches"))
        listed = ", ".join(f"base {base:,}: K(ε) = {text}" for base, text in sizes.items())
        return (
            "Lines: the exact success probability of the best guess from one report if all values are equally likely. "
            "Small filled markers: the paper's attacker against users who all hold the first value (spike), who "
            f"guesses uniformly among the values that the report supports: {trials} collections per point, with "
            f"{users:,} users each; `mss` has moduli of {searches} of the paper's searches, shared by the collections "
            f"(the paper searches in every trial). {listed}. The domain grows with K(ε), which by itself changes every "
            "protocol's attackability from one ε to the next.",
        )


def projective_size(base: int, epsilon: float) -> int:
    """K = (q^t − 1)/(q − 1) ≥ base with q the prime power nearest to e^ε + 1 and the smallest such t."""
    return projective_points(_prime_powers(epsilon)[0], base)


def _prime_powers(epsilon: float) -> list[int]:
    """Prime powers, the nearest to e^ε + 1 first."""
    wanted = exp(epsilon) + 1
    most = int(2 * wanted) + 2
    powers = (prime**degree for prime in primes_up_to(most).tolist() for degree in range(1, most.bit_length()))
    return sorted((power for power in powers if power <= most), key=lambda power: (abs(power - wanted), power))


def projective_points(order: int, base: int) -> int:
    """The points of the smallest geometry over a field of this order with at least ``base`` points."""
    points, power = 1, 1
    while points < base:
        power *= order
        points += power
    return points


def _plan(protocol: str, size: int, epsilon: float, search: int) -> sunzi.Plan:
    return paper_plan(size, epsilon, search) if protocol == "mss" else sunzi.make_plan(protocol, size, epsilon)


def _draw_panel(axes: Any, part: Table, unit: Floats) -> None:
    """Lines for equally likely values; small markers for the spike."""
    for protocol in part.distinct("protocol"):
        rows = part.where(protocol=protocol)
        across, look = rows.column("epsilon"), style(protocol)
        curve(axes, across, rows.column("formula") / unit, name_of(protocol), **look)
        small = {**look, "linestyle": "none", "markersize": 2.5, "markerfacecolor": None}
        axes.plot(across, rows.column("mean") / unit, **small)


def _relative(table: Table, protocol: str, column: str = "formula", **where: object) -> Floats:
    """Relative to the formula of SS, which is exact for every population."""
    return np.asarray(
        table.where(protocol=protocol, **where).column(column) / table.where(protocol="ss", **where).column("formula")
    )


def _no_spike(table: Table) -> Evidence:
    aligned = {base: _relative(table.where(base=base), "pgr", domain=ALIGNED) for base in table.distinct("base")}
    spike = {base: _relative(table.where(base=base), "pgr", "mean", domain=ALIGNED) for base in table.distinct("base")}
    text = "; ".join(
        f"base {base:,}: {values.min():.3f} to {values.max():.3f} times the attackability of SS"
        for base, values in spike.items()
    )
    formula = np.concatenate(list(aligned.values()))
    return Evidence(
        claim=claims.ALIGNED_GEOMETRY,
        measured=f"PGR on k = K(ε), {text}",
        finding=finding(float((np.concatenate(list(spike.values())) < 1.3).mean())),
        beyond=f"over equally frequent values, by formula, {formula.min():.3f} to {formula.max():.3f} times",
        beyond_finding=finding(float((formula < 1.3).mean())),
        why="With k = K both are untruncated designs: e^ε/(w·e^ε+v−w) with nearly the same w, for every base. The "
        "remaining difference comes from rounding e^ε+1 to a prime power.",
    )


def _truncated(table: Table) -> Evidence:
    part = table.where(domain=TRUNCATED)
    plain, mine = part.where(protocol="ss").column("formula"), part.where(protocol="pgr")
    equal, spike, others = (mine.column(name) / plain for name in ("formula", "mean", "others"))
    worst = mine.rows[int(np.argmax(spike))]
    return Evidence(
        claim=claims.TRUNCATED_GEOMETRY,
        measured=f"on k = base, against the attackability of SS: {spike.min():.2f} to {spike.max():.1f} times if "
        f"everybody holds the first value (the highest at k = {worst['base']:,}, ε = {worst['epsilon']})",
        finding=rise_finding(float(spike.max())),
        beyond=f"{others.min():.2f} to {others.max():.2f} times if users are spread over the other values, "
        f"{equal.min():.2f} to {equal.max():.2f} times by formula if all values are equally likely",
        beyond_finding=rise_finding(float(max(equal.max(), others.max()))),
        why="After truncation, some messages contain few of the k values. This reveals the first value, which Spike "
        "gives to all users and Zipf(3) to 83 %; the other values are as safe as with SS. So the rise is real for "
        "that value, but does not concern PGR's average user. The paper's formula for k < K assumes that all messages "
        "are equally likely, which is wrong; the exact one is (P0/k)(e^ε·N⁺+N⁰).",
    )


def _lowest(table: Table) -> Evidence:
    """MSS is the lowest against the spike where no other is below it by more than two standard errors."""
    part = table.where(domain=ALIGNED)
    mine, rivals = part.where(protocol="mss"), [part.where(protocol=name) for name in _RIVALS]
    exact = mine.column("formula") / np.min([rival.column("formula") for rival in rivals], axis=0)
    means = np.array([rival.column("mean") for rival in rivals])
    best, places = np.argmin(means, axis=0), np.arange(len(mine))
    spike = mine.column("mean") / means[best, places]
    errors = np.array([rival.column("standard_error") for rival in rivals])[best, places]
    noise = 2 * np.hypot(mine.column("standard_error"), errors)
    clear = mine.column("mean") < means[best, places] - noise
    lost = mine.column("mean") > means[best, places] + noise
    return Evidence(
        claim=claims.LOWEST_ALIGNED,
        measured=f"against the best of {', '.join(name.upper() for name in _RIVALS)}, MSS has {spike.min():.3f} to "
        f"{spike.max():.3f} times its attackability, lower by more than 2 standard errors at {int(clear.sum())} of "
        f"{len(mine)} points and higher at {int(lost.sum())}",
        finding=finding(float((~lost).mean())),
        beyond=f"over equally frequent values, by formula, {exact.min():.3f} to {exact.max():.3f} times; lower at "
        f"{(exact < 1).sum()} points",
        beyond_finding=finding(float((exact <= 1).mean())),
        why="Where blocks contain many residues, MSS nearly equals SS: (1/(ℓk))Σ m_j·e^ε/(ω_j·e^ε+m_j−ω_j) does not "
        "depend on m_j beyond rounding of ω_j. It is clearly lower at large ε on small domains. Against the spike MSS "
        "does better there than for equally likely values: the first value shares its residue with ⌈k/m_j⌉ values, "
        "the most that any does.",
    )


def _table_row(table: Table) -> Evidence:
    """Table 1's formula for PGR, on the domains of its caption."""
    rows = table.where(protocol="pgr", domain=ALIGNED)
    ratio = np.array([closed_form(*setting) for setting in zip(*_settings(rows), strict=True)]) / rows.column("formula")
    return Evidence(
        claim=claims.TABLE_ATTACK,
        measured=f"PGR on k = K(ε), formula over exact at {len(rows)} points: {ratio.min():.4f} to {ratio.max():.4f}",
        finding=finding(float((np.abs(ratio - 1) < 1e-6).mean())),
        why="On its own domain every hyperplane has equally many points, and e^ε/(K+(e^ε−1)c_set) is exact.",
    )


def _settings(rows: Table) -> tuple[list[int], list[float]]:
    return rows.column("domain_size").astype(int).tolist(), rows.column("epsilon").tolist()


def closed_form(points: int, epsilon: float) -> float:
    """Table 1's e^ε/(K+(e^ε−1)c_set) for K points, where c_set = (K − 1)/q of them are in a hyperplane."""
    return exp(epsilon) / (points + (exp(epsilon) - 1) * (points - 1) / _prime_powers(epsilon)[0])


EXPERIMENT = Geometry()
