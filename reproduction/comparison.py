"""The table of schemes: bits, error, server time and attack, by the paper's formulas and measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import ceil, comb, exp, log2
from typing import TYPE_CHECKING, Any

import numpy as np

import sunzi
from sunzi._typing import Floats
from sunzi.testing import ReproducibleSource

from . import claims
from .attackers import success_rate
from .experiment import Cell, Evidence, Experiment, Row, Scale, finding
from .figures import common_legend, head, is_narrow, name_of, panels
from .moduli_search import paper_search
from .table import Table, number_in, summary
from .trials import USERS, linear_error, paper_decoder, paper_plan, squared_errors, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POPULATIONS = ("spike", "uniform")
"""The two extremes of the error: one value held by all users, and all values held equally often."""
IN_TABLE = ("grr", "rappor", "ss", "pgr", "mss")
"""The rows of the paper's table."""
_TIMED = 5


class Comparison(Experiment):
    """Every scheme of the table, and Sunzi's."""

    name = "comparison"
    title = "The schemes side by side"
    reproduces = "Table 1, “Comparison of single-message LDP frequency-estimation schemes”"

    def cells(self, scale: Scale) -> list[Cell]:
        """k = 1,024, three ε."""
        epsilons = {"tiny": (1.0, 5.0), "quick": (1.0, 3.0, 5.0), "full": (1.0, 3.0, 5.0)}[scale]
        size, users, trials = {"tiny": (100, 500, 4), "quick": (1024, USERS, 20), "full": (1024, USERS, 300)}[scale]
        return [
            Cell.of(trials / 50, protocol=name, k=size, epsilon=epsilon, users=users, trials=trials, **_decoder(name))
            for epsilon in epsilons
            for name in sunzi.catalogue()
        ]

    def measure(self, cell: Cell, seed: int) -> list[Row]:
        """Reports of the shipped client for their length, simulated collections for the error and the attack."""
        name, size, epsilon, users = cell["protocol"], cell["k"], cell["epsilon"], cell["users"]
        plan = paper_plan(size, epsilon) if name == "mss" else sunzi.make_plan(name, size, epsilon)
        seeds = cell.seeds(seed, cell["trials"])
        errors = {each: summary(squared_errors(plan, each, users, seeds)) for each in POPULATIONS}
        worst = max(POPULATIONS, key=lambda each: number_in(errors[each], "mean"))
        attacks = summary([success_rate(plan, values_of("uniform", size, users, each), each) for each in seeds])
        counting, decoding = _server_times(plan, values_of("uniform", size, users, seeds[0]), seeds[0])
        lengths = [8 * len(report) for report in plan.client(seed=seeds[0][0]).reports(np.arange(200) % size)]
        kappa = paper_search(size, epsilon).kappa if name == "mss" else 1.0
        return [
            {
                "bits": plan.report_bits,
                "bits_formula": formula_bits(plan),
                "bits_sent": float(np.mean(lengths)),
                "mse": errors[worst]["mean"],
                "mse_error": errors[worst]["standard_error"],
                "mse_at": worst,
                "mse_formula": formula_error(name, size, epsilon, users, kappa),
                "mse_planned": linear_error(plan, users, _histogram(worst, size)),
                "mse_bound": plan.worst_mse(users),
                "counting": counting,
                "decoding": decoding,
                "dra": attacks["mean"],
                "dra_error": attacks["standard_error"],
                "dra_formula": formula_attack(plan),
                "dra_exact": plan.attackability,
            }
        ]

    def draw(self, table: Table) -> Figure:
        """One panel per axis: bars are measured, diamonds are the paper's formula."""
        epsilons, names = table.distinct("epsilon"), table.distinct("protocol")
        figure, axes = panels(
            1, 4, "Bars are measured, diamonds the paper's formulas where it has one", width=3.4, height=4.2
        )
        titles = (
            ("bits", "bits of a report"),
            ("mse", "largest MSE"),
            ("server", "server, ms"),
            ("dra", "DRA, all values alike"),
        )
        height = 0.8 / len(epsilons)
        for panel, (column, title) in zip(axes[0], titles, strict=True):
            for place, epsilon in enumerate(epsilons):
                rows = [table.where(protocol=name, epsilon=epsilon).rows[0] for name in names]
                at = np.arange(len(names)) + (place - (len(epsilons) - 1) / 2) * height
                colour = ("#56B4E9", "#E69F00", "#009E73")[place % 3]
                panel.barh(at, [_shown(row, column) for row in rows], height, color=colour, label=f"ε = {epsilon:g}")
                marked = [
                    (y, number_in(row, f"{column}_formula"))
                    for y, row in zip(at, rows, strict=True)
                    if row.get(f"{column}_formula")
                ]
                if marked:
                    panel.plot([x for _, x in marked], [y for y, _ in marked], "kD", markersize=3.5)
            labels = [name_of(name) if panel is axes[0][0] or is_narrow() else "" for name in names]
            panel.set_yticks(np.arange(len(names)), labels)
            panel.invert_yaxis()
            head(panel, title, "", "")
            panel.set_xscale("log")
        common_legend(figure)
        return figure

    def evidence(self, table: Table) -> Sequence[Evidence]:
        """One piece per column."""
        return [self._bits(table), self._errors(table), self._bound(table), self._server(table), self._attack(table)]

    def _bits(self, table: Table) -> Evidence:
        part = table.where(protocol=IN_TABLE)
        wrong = sorted({name_of(str(row["protocol"])) for row in part if row["bits"] != row["bits_formula"]})
        differences = [
            f"{name_of(str(row['protocol']))} {row['bits']:g} instead of {row['bits_formula']:g} at ε = "
            f"{row['epsilon']:g}"
            for row in part
            if row["bits"] != row["bits_formula"]
        ]
        return Evidence(
            claim=claims.TABLE_BITS,
            measured=f"right for all but {', '.join(wrong)}: {'; '.join(differences)}" if wrong else "right for all",
            finding=finding(1 - len(differences) / len(part)),
            why="PGR reports one of the K ≥ k hyperplanes of a geometry. Reports are padded to whole bytes, which "
            "adds up to 7 bits when they are sent one by one.",
        )

    def _errors(self, table: Table) -> Evidence:
        part = table.where(protocol=[name for name in IN_TABLE if name != "mss"])
        ratios = {
            (row["protocol"], row["epsilon"]): number_in(row, "mse") / number_in(row, "mse_formula") for row in part
        }
        above = {point: ratio for point, ratio in ratios.items() if ratio > 1.1}
        low, high, last = min(ratios.values()), max(ratios.values()), max(table.distinct("epsilon"))
        others = table.where(protocol=[name for name in table.distinct("protocol") if name != "mss"])
        distance = np.abs(others.column("mse") - others.column("mse_planned")) / others.column("mse_error")
        listed = ", ".join(
            f"{name_of(str(name))} {ratio:.2f} (ε = {epsilon:g})" for (name, epsilon), ratio in above.items()
        )
        unary = table.where(protocol="oue").column("mse") / table.where(protocol="ss").column("mse_formula")
        row = table.where(protocol="grr", epsilon=last).rows[0]
        held = number_in(row, "mse_planned") / number_in(row, "mse_formula") - 1
        return Evidence(
            claim=claims.TABLE_ERROR,
            measured=(
                f"measured over formula {low:.2f} to {high:.2f}; above 1.1: {listed or 'none'}; OUE, which the paper "
                f"runs for RAPPOR, {unary.min():.2f} to {unary.max():.2f}"
            ),
            finding=finding(1 - len(above) / len(ratios)),
            beyond=f"all {len(others)} rows but those of MSS are within {distance.max():.1f} standard errors of what "
            "the library expects",
            beyond_finding=finding(float((distance < 4.5).mean())),
            why=(
                f"The formulas are for values that nobody holds; other values vary more at high ε, by {held:.0%} for "
                f"GRR at ε = {last:g}. RAPPOR's formula belongs to another protocol: symmetric encoding has "
                "e^{ε/2}/(n(e^{ε/2}−1)²), and the stated formula is that of OUE (erratum 9 of docs/paper-notes.md)."
            ),
        )

    def _bound(self, table: Table) -> Evidence:
        part = table.where(protocol="mss")
        shares = part.column("mse") / part.column("mse_formula")
        subsets = [number_in(row, "mse") / table.number("mse", protocol="ss", epsilon=row["epsilon"]) for row in part]
        return Evidence(
            claim=claims.ERROR_BOUND,
            measured=f"with moduli of the paper's search {shares.min():.2f} to {shares.max():.2f} of the bound; "
            f"{min(subsets):.2f} to {max(subsets):.2f} times the error of SS",
            finding=finding(float((shares <= 1).mean())),
            why=(
                "It holds for these moduli by a wide margin. It is not a theorem: for ill-conditioned moduli the error "
                "grows like κ² and exceeds the bound (erratum 4 of docs/paper-notes.md)."
            ),
        )

    def _server(self, table: Table) -> Evidence:
        part = table.where(protocol=("ss", "mss"))
        counting = {(row["protocol"], row["epsilon"]): number_in(row, "counting") for row in part}
        first, *_, last = table.distinct("epsilon")
        growth = counting["mss", first] / counting["mss", last]
        total = {
            name: _shown(table.where(protocol=name, epsilon=first).rows[0], "server")
            for name in table.distinct("protocol")
        }
        return Evidence(
            claim=claims.TABLE_SERVER,
            measured=(
                f"ms at ε = {first:g}: "
                + ", ".join(f"{name_of(name)} {value:.1f}" for name, value in total.items())
                + f"; counting at ε = {first:g} takes {growth:.0f} times as long as at ε = {last:g} for MSS, "
                f"{counting['ss', first] / counting['ss', last]:.0f} times for SS"
            ),
            finding="in part" if growth > 2 else "for",
            why=(
                "A report of MSS contains w_J residues, and counting them all takes O(Σ w_J), as for SS. The table "
                "includes this cost only for SS, and omits the r iterations (erratum 10 of docs/paper-notes.md). The "
                "other rows describe a straightforward server."
            ),
        )

    def _attack(self, table: Table) -> Evidence:
        """The row of PGR is judged on its own domains by ``geometry``; here the domain is truncated."""
        ratios = {
            (str(row["protocol"]), row["epsilon"]): number_in(row, "dra_formula") / number_in(row, "dra_exact")
            for row in table.where(protocol=IN_TABLE)
        }
        whole = [ratio for (name, _), ratio in ratios.items() if name != "pgr"]
        truncated = {epsilon: ratio for (name, epsilon), ratio in ratios.items() if name == "pgr"}
        distance = np.abs(table.column("dra") - table.column("dra_exact")) / table.column("dra_error")
        return Evidence(
            claim=claims.TABLE_ATTACK,
            measured=f"GRR, RAPPOR, SS and MSS, formula over exact: {min(whole):.4f} to {max(whole):.4f}; the exact "
            f"figures of all {len(table)} rows are within {distance.max():.1f} standard errors of the measured ones",
            finding=finding(float(np.mean(np.abs(np.array(whole) - 1) <= 0.002))),
            beyond="PGR on a truncated domain, formula over exact: "
            + ", ".join(f"{ratio:.2f} (ε = {epsilon:g})" for epsilon, ratio in truncated.items()),
            beyond_finding=finding(float(np.mean(np.abs(np.array(list(truncated.values())) - 1) <= 0.002))),
            why="The row of PGR applies to k = K, as the caption says, and is far too low where K is much larger than "
            "k; the appendix has another formula for k < K (`exact`).",
        )

    def notes(self, table: Table) -> Sequence[str]:
        """The setting."""
        row = table.rows[0]
        return (
            f"k = {row['k']:,}, {row['users']:,} users. The error is the larger one of two populations: all users "
            "with the same value, and all values equally frequent. The attack is on equally frequent values. Server "
            f"time is processor time from messages to frequencies, the median of {_TIMED}; other programs may have "
            "run at the same time. MSS has moduli of the paper's search and is decoded with the paper's weights and "
            "ridge.",
        )


def _decoder(protocol: str) -> dict[str, str]:
    return {"decoder": "paper"} if protocol == "mss" else {}


def _server_times(plan: sunzi.Plan, values: Any, seed: Sequence[int]) -> tuple[float, float]:
    """Median milliseconds of counting messages and of decoding the tally, warm."""
    messages = plan.protocol.randomize(values, ReproducibleSource([*seed, 4]))
    counting, decoding = [], []
    for _ in range(_TIMED + 1):
        started = time.process_time()
        counters = plan.protocol.count(messages)
        counted = time.process_time()
        tally = sunzi.Tally(plan.digest, plan.protocol.tally_layout, values.size, counters)
        plan.estimate(tally, **paper_decoder(plan)).frequencies  # noqa: B018 - computed on access
        counting.append(1e3 * (counted - started))
        decoding.append(1e3 * (time.process_time() - counted))
    return float(np.median(counting[1:])), float(np.median(decoding[1:]))


def _histogram(population: str, size: int) -> Floats:
    return np.full(size, 1 / size) if population == "uniform" else np.eye(1, size)[0]


def formula_bits(plan: sunzi.Plan) -> float | None:
    """Table 1, communication."""
    protocol: Any = plan.protocol
    size = plan.domain.size
    if protocol.name in ("grr", "pgr"):
        return float(ceil(log2(size)))
    if protocol.name == "rappor":
        return float(size)
    if protocol.name == "ss":
        return float(ceil(log2(comb(size, protocol.design.block_size))))
    if protocol.name == "mss":
        designs = [response.design for response in protocol.responses]
        subsets = [ceil(log2(comb(design.points, design.block_size))) for design in designs]
        return float(ceil(log2(len(designs))) + np.mean(subsets))
    return None


def formula_error(name: str, size: int, epsilon: float, users: int, kappa: float = 1.0) -> float | None:
    """Table 1, worst-case MSE."""
    if name == "grr":
        return (exp(epsilon) + size - 2) / (users * (exp(epsilon) - 1) ** 2)
    return kappa * 4 * exp(epsilon) / (users * (exp(epsilon) - 1) ** 2) if name in IN_TABLE else None


def formula_attack(plan: sunzi.Plan) -> float | None:
    """Table 1, DRA."""
    protocol: Any = plan.protocol
    size, odds = plan.domain.size, exp(plan.epsilon)
    if protocol.name == "rappor":
        root = exp(plan.epsilon / 2)
        return float((root - (root / (root + 1)) ** (size - 1) * (root - 1)) / size)
    if protocol.name == "mss":
        terms = [(response.design.points, response.design.block_size) for response in protocol.responses]
        return float(np.mean([points * odds / (chosen * odds + points - chosen) for points, chosen in terms]) / size)
    if protocol.name in IN_TABLE:
        design = protocol.design
        return float(odds / (design.points + (odds - 1) * design.block_size))
    return None


def _shown(row: Row, column: str) -> float:
    if column == "server":
        return number_in(row, "counting") + number_in(row, "decoding")
    return number_in(row, column)


EXPERIMENT = Comparison()
