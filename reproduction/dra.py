"""How often an attacker who sees one report guesses the value behind it, for every protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sunzi
from sunzi.analysis import attackability, simulate_attack
from sunzi.planning import Population

from . import claims
from .attackers import boxed_rate, expected_rate, success_rate
from .claims import Finding
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding
from .figures import common_legend, curve, head, name_of, name_of_population, panels, style
from .table import Table, number_in, summary
from .trials import EPSILONS, POPULATIONS, USERS, paper_plan, values_of

PAPERS = ("grr", "ss", "pgr", "oue", "mss")
"""The protocols that the paper attacks."""
SIZES = (100, 1024)
_FORMULAS_ONLY = {"ss", "mss"}
_ALIKE = 0.1
"""Attacks whose success differs by less, relatively, are largely the same."""
_EPS = 1e-12


def attack_cells(scale: Scale, protocols: Sequence[str]) -> list[Cell]:
    """Every protocol, both domains, both populations; shared with the experiment on analytical DRA."""
    sizes = SIZES if scale != "tiny" else SIZES[:1]
    epsilons = {"tiny": (1.0, 5.0), "quick": (1.0, 2.0, 3.0, 4.0, 5.0), "full": EPSILONS}[scale]
    users, trials, searches = {"tiny": (2000, 5, 1), "quick": (USERS, 30, 3), "full": (USERS, 300, 30)}[scale]
    return [
        Cell.of(
            trials / 200,
            protocol=protocol,
            k=size,
            epsilon=epsilon,
            population=population,
            users=users,
            trials=trials,
            searches=searches if protocol == "mss" else 1,
        )
        for size in sizes
        for population in POPULATIONS
        for protocol in protocols
        for epsilon in epsilons
    ]


def measure_attack(cell: Cell, seed: int) -> list[Row]:
    """The paper's attacker on every trial's users; the formulas; and the best attacker, who knows the population."""
    size, epsilon = cell["k"], cell["epsilon"]
    plans = [_plan(cell["protocol"], size, epsilon, search) for search in range(cell["searches"])]
    seeds = cell.seeds(seed, cell["trials"])
    rates = [
        success_rate(plans[place % len(plans)], values_of(cell["population"], size, cell["users"], each), each)
        for place, each in enumerate(seeds)
    ]
    chances = Population.parse(cell["population"]).chances(size)
    best = simulate_attack(plans[0], trials=2000, prior=cell["population"], seed=seeds[0][0])
    row: Row = {
        **summary(rates),
        "uniform": float(np.mean([plan.attackability for plan in plans])),
        "best": float(np.mean([attackability(plan, chances) or np.nan for plan in plans])),
        "best_measured": best.success.rate,
        "without_report": best.baseline,
    }
    if cell["protocol"] in _FORMULAS_ONLY:
        row["expected"] = float(np.mean([expected_rate(plan, chances) for plan in plans]))
    if cell["protocol"] == "mss":
        row["boxed"] = float(np.mean([boxed_rate(plan) for plan in plans]))
    return [row]


def _plan(protocol: str, size: int, epsilon: float, search: int) -> sunzi.Plan:
    return paper_plan(size, epsilon, search) if protocol == "mss" else sunzi.make_plan(protocol, size, epsilon)


class Reconstruction(Experiment):
    """Figure "DRA"."""

    name = "dra"
    title = "The reconstruction attack on one report"
    reproduces = "the figures on empirical DRA under Zipf (main text) and Spike (appendix)"
    measurement = "attack"

    def cells(self, scale: Scale) -> list[Cell]:
        """All protocols, including those that the paper omits."""
        return attack_cells(scale, sunzi.catalogue())

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """See :func:`measure_attack`."""
        return measure_attack(cell, seed)

    def draw(self, table: Table) -> Figure:
        """Two rows of panels for the paper's attacker, one for the best."""
        sizes, populations = table.distinct("k"), table.distinct("population")
        figure, axes = panels(len(populations) + 1, len(sizes), "Share of users whose value is guessed from one report")
        for column, size in enumerate(sizes):
            for row, population in enumerate(populations):
                part = table.where(k=size, population=population)
                _curves(axes[row, column], part, "mean", spread=True)
                title = f"{name_of_population(population)}, k = {size:,}: the paper's attacker"
                head(axes[row, column], title, "ε", "DRA", logarithmic=True)
            part = table.where(k=size, population="zipf:3")
            _curves(axes[-1, column], part, "best", spread=False)
            head(axes[-1, column], f"Zipf(3), k = {size:,}: an attacker who knows the population", "ε", "DRA")
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """Which protocol is lowest and which highest; whether the population matters; and PGR's exception."""
        return [_lowest(table), _all_lowest(table), _any_input(table), _grr(table), _higher(table), _geometry(table)]

    def notes(self, table: Table) -> Sequence[str]:
        """Describe the measurement."""
        users = table.distinct("users")[-1]
        return (
            f"{users:,} users per trial. MSS uses moduli of the paper's own search, {max(table.distinct('searches'))} "
            "searches per point, shared by the trials (the paper searches in every trial). The paper's attacker "
            "guesses at random among the values that a report supports, or among all values if it supports none. For "
            "subsets and bits, success is drawn from the exact distribution of the support; for the other protocols, "
            "it is measured on reports of the shipped client.",
            "The attacker who knows the population is the Bayes-optimal attacker of `sunzi.analysis.attack`; the "
            "curves are exact formulas, and the column best_measured is the success against 2,000 reports in bytes.",
        )


def _lowest(table: Table) -> Evidence:
    exact = np.array([number_in(row, "expected") / _lowest_formula(table, row) for row in table.where(protocol="mss")])
    text, judged = _lowest_of_five(table)
    return Evidence(
        claim=claims.LOWEST_ATTACK,
        measured=f"{text}; by exact formulas it is {exact.min():.3f} to {exact.max():.3f} times the lowest of GRR, SS "
        f"and OUE; {_margins(table)}",
        finding=judged,
        why="By formula, the attacker's success on MSS and SS is nearly the same unless ε is high for the domain: both "
        "supports contain about k/(e^ε+1) values. Where e^ε is near k, the best subset of SS is a single value, but a "
        "residue still stands for several values. There MSS reveals less, at the cost of a larger error. Another part "
        "of the gap comes from the populations: both put nearly all users on value 0, whose residue is among those "
        "shared by most values.",
    )


def _lowest_of_five(table: Table) -> tuple[str, Finding]:
    """Among the protocols that the paper evaluates."""
    clear, equal, lost = compare(table, [name for name in PAPERS if name != "mss"])
    total = clear + equal + lost
    text = (
        f"among the paper's five protocols MSS is lowest by more than 2 standard errors at {clear} of {total} points, "
        f"within them of the lowest at {equal}, and clearly above another at {lost}{_winners(table)}"
    )
    return text, lowest_finding(clear, equal, lost)


def lowest_finding(clear: int, equal: int, lost: int) -> Finding:
    """MSS is among the lowest where no other is clearly below it; ties alone do not make it the lowest."""
    return "against" if lost and not clear else finding((clear + equal) / (clear + equal + lost))


def _all_lowest(table: Table) -> Evidence:
    text, judged = _lowest_of_five(table)
    clear, equal, lost = compare(table, ["rappor"])
    total = clear + equal + lost
    low, high = _range(table, "mss", "rappor")
    return Evidence(
        claim=claims.LOWEST_OF_ALL,
        measured=text,
        finding=judged,
        beyond=f"RAPPOR, which the paper does not evaluate, is clearly below MSS at {lost} of {total} points and "
        f"clearly above at {clear}; the DRA of MSS is {low:.2f} to {high:.2f} times that of RAPPOR",
        beyond_finding=lowest_finding(clear, equal, lost),
        why="RAPPOR flips each bit with the budget ε/2 and supports about k/(e^{ε/2}+1) values, far more than "
        "k/(e^ε+1). Its error is larger. The abstract and Table 1 name RAPPOR, the experiments run OUE instead.",
    )


def _any_input(table: Table) -> Evidence:
    """The paper's attacker succeeds as often under Zipf as under spike."""
    rows = table.where(protocol="mss")
    zipf, spike = (rows.where(population=name) for name in POPULATIONS)
    ratio = zipf.column("mean") / spike.column("mean")
    noise = np.hypot(*(np.nan_to_num(part.column("standard_error") / part.column("mean")) for part in (zipf, spike)))
    alike = np.abs(ratio - 1) <= _ALIKE + 2 * noise
    known = zipf.column("best")
    without = zipf.column("without_report")
    size, epsilon = min(table.distinct("k")), max(table.distinct("epsilon"))
    part = table.where(population="zipf:3", k=size, epsilon=epsilon)
    shown = ", ".join(f"{name_of(name)} {part.number('best', protocol=name):.1%}" for name in (*PAPERS, "rappor"))
    return Evidence(
        claim=claims.ANY_INPUT,
        measured=f"the DRA of MSS under Zipf(3) is {ratio.min():.3f} to {ratio.max():.3f} times that under spike; "
        f"within 10 % at {int(alike.sum())} of {alike.size} points",
        finding=finding(float(alike.mean())),
        beyond="not judged: the attacker of the introduction knows the population, and guesses right more often the "
        f"more skewed it is, with every protocol and even without a report ({without.min():.1%} under Zipf(3)). He "
        f"succeeds on MSS in {known.min():.1%} to {known.max():.1%} of all cases; at k = {size}, ε = {epsilon:g}: "
        f"{shown}",
        why="The attacker of the experiments assumes that all values are equally likely and guesses at random among "
        "the supported ones, so only the number of supported values matters, which is nearly the same for all values. "
        "A support of many values does not protect once the prior distinguishes them.",
    )


def _grr(table: Table) -> Evidence:
    """Against all others, PGR included; the average over values is ours."""
    others = [name for name in PAPERS if name != "grr"]
    rows, beaten = table.where(protocol="grr"), []
    for row in rows:
        here = Table([row, *table.where(protocol=others, **_point(row))])
        beaten.append([name for name in others if compare(here, [name], mine="grr")[0]])
    highest = sum(not names for names in beaten)
    pgr = sum("pgr" in names for names in beaten)
    rest = sum(names not in ([], ["pgr"]) for names in beaten)
    average = [
        number_in(row, "uniform")
        >= max(table.number("uniform", protocol=name, **_point(row)) for name in others) - _EPS
        for row in rows
    ]
    return Evidence(
        claim=claims.GRR_ATTACK,
        measured=f"GRR is the highest at {highest} of {len(rows)} points; PGR is clearly above it at {pgr}, another "
        f"protocol at {rest}",
        finding=finding(highest / len(rows)),
        beyond=f"averaged over equally frequent values, by formula, GRR is the highest at {sum(average)} of "
        f"{len(average)} points",
        beyond_finding=finding(float(np.mean(average))),
        why="A single value is the smallest possible support. PGR is above it where its geometry is much larger than "
        "the domain: its reports then often support value 0 alone, which Zipf and spike give to nearly all users. "
        "Averaged over the domain this does not happen.",
    )


def _higher(table: Table) -> Evidence:
    """Both above MSS, and the more so the smaller k is."""
    above = {name: compare(table, [name]) for name in ("grr", "ss")}
    sizes = table.distinct("k")
    margins = {
        name: [float(np.mean([its / mine for mine, its in _pairs(table.where(k=size), "mss", name)])) for size in sizes]
        for name in above
    }
    text = "; ".join(
        f"{name_of(name)} is clearly above MSS at {clear} of {clear + equal + lost} points, clearly below at {lost}, "
        + ", ".join(
            f"{margin:.2f} times on average at k = {size:,}" for size, margin in zip(sizes, margins[name], strict=True)
        )
        for name, (clear, equal, lost) in above.items()
    )
    shares = [(clear + equal) / (clear + equal + lost) for clear, equal, lost in above.values()]
    falling = [margin[0] >= margin[-1] for margin in margins.values()]
    return Evidence(
        claim=claims.HIGHER_ATTACK,
        measured=text,
        finding=finding(float(np.mean([*shares, *falling]))),
        why="At small ε the subsets of SS and MSS support equally many values. At large ε on a small domain a subset "
        "of SS is a single value, and a residue still stands for several.",
    )


def _geometry(table: Table) -> Evidence:
    rise, average = 0.0, 0.0
    where = ""
    for row in table.where(protocol="pgr"):
        base = table.number("mean", protocol="ss", **_point(row))
        ratio = number_in(row, "mean") / base
        if ratio > rise:
            place = name_of_population(str(row["population"]))
            rise, where = ratio, f"{place}, k = {row['k']:,}, ε = {row['epsilon']:g}"
            average = number_in(row, "uniform") / base
    return Evidence(
        claim=claims.TRUNCATED_GEOMETRY,
        measured=f"PGR reaches {rise:.1f} times the DRA of SS ({where})",
        finding=rise_finding(rise),
        beyond=f"there, over equally frequent values, {average:.2f} times",
        beyond_finding=rise_finding(average),
        why="The rise is real, but it concerns value 0. In the usual numbering value 0 is the point (0, …, 0, 1), and "
        "most hyperplanes through it contain no other point below k where k is far below K, so a truthful report "
        "identifies it. Zipf and Spike put nearly all users there. Averaged over the domain, PGR reveals about as much "
        "as SS; with shuffled labels, a frequent value would have the average risk.",
    )


def rise_finding(ratio: float) -> Finding:
    """Of PGR's attackability in relation to that of SS: whether it rises sharply."""
    return "for" if ratio > 1.5 else "against"


def compare(table: Table, others: Sequence[str], mine: str = "mss") -> tuple[int, int, int]:
    """At how many points ``mine`` is clearly below the lowest of the others, within two standard errors, clearly
    above.
    """
    clear = equal = lost = 0
    for row in table.where(protocol=mine):
        rivals = [table.where(protocol=name, **_point(row)).rows[0] for name in others]
        best = min(rivals, key=lambda rival: number_in(rival, "mean"))
        difference = number_in(row, "mean") - number_in(best, "mean")
        noise = 2 * np.hypot(number_in(row, "standard_error"), number_in(best, "standard_error"))
        clear, equal, lost = (
            clear + (difference < -noise),
            equal + (abs(difference) <= noise),
            lost + (difference > noise),
        )
    return clear, equal, lost


def _point(row: Row) -> Row:
    return {name: row[name] for name in ("k", "epsilon", "population")}


def _lowest_formula(table: Table, row: Row) -> float:
    """GRR, SS and OUE treat all values alike, so their formulas hold for every population."""
    return min(table.number("uniform", protocol=name, **_point(row)) for name in ("grr", "ss", "oue"))


def _winners(table: Table) -> str:
    """Which protocols are clearly below MSS, and where."""
    found = []
    for row in table.where(protocol="mss"):
        for name in PAPERS:
            one = Table([row, *table.where(protocol=name, **_point(row))])
            if name != "mss" and compare(one, [name])[2]:
                place = name_of_population(str(row["population"]))
                found.append(f"{name_of(name)} at k = {row['k']:,}, ε = {row['epsilon']:g}, {place}")
    return f" ({'; '.join(found)})" if found else ""


def _pairs(table: Table, one: str, other: str) -> list[tuple[float, float]]:
    return [
        (
            number_in(row, "mean"),
            table.number("mean", protocol=other, k=row["k"], epsilon=row["epsilon"], population=row["population"]),
        )
        for row in table.where(protocol=one)
    ]


def _range(table: Table, one: str, other: str) -> tuple[float, float]:
    ratios = [mine / its for mine, its in _pairs(table, one, other)]
    return min(ratios), max(ratios)


def _margins(table: Table) -> str:
    """MSS against SS, at low and at high ε."""
    parts = []
    for size in table.distinct("k"):
        low, high = (_range(table.where(k=size, epsilon=each), "mss", "ss") for each in _ends(table))
        parts.append(
            f"k = {size:,}: {low[0]:.2f}–{low[1]:.2f} times SS at the lowest ε, {high[0]:.2f}–{high[1]:.2f} at the "
            "highest"
        )
    return "; ".join(parts)


def _ends(table: Table) -> tuple[float, float]:
    epsilons = table.distinct("epsilon")
    return epsilons[0], epsilons[-1]


def _curves(axes: Axes, part: Table, column: str, *, spread: bool) -> None:
    for name in part.distinct("protocol"):
        mine = part.where(protocol=name)
        errors = mine.column("standard_error") if spread else None
        curve(axes, mine.column("epsilon"), mine.column(column), name_of(name), spread=errors, **style(name))


EXPERIMENT = Reconstruction()
