"""``sunzi poison``: how far fake clients move the estimate under a plan, and whether the tally shows them."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.numbers import decimals_for, parse_integer, parse_numbers, percent
from sunzi.cli.outputs import add_format, show
from sunzi.cli.terminal import ProgressBar, say, styled, table
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.analysis.poisoning import Poisoning
    from sunzi.plan import Plan

_ALL, _NONE = "all", "none"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``poison`` to the command line."""
    description = (
        "Simulate collections in which a share of all clients is fake and wants some values to look frequent. Fake "
        "reports are valid ones: they are encoded, checked and counted like honest ones. For every attack: the bound "
        "that no attack by that share exceeds, the push that was measured, and how often the tally's health tests "
        "raised an alarm. The first row has no fake clients, so that its alarms are false. Attacks: maximal-gain (the "
        "report that pushes the targets most), input (the honest client run on the targets), random (any valid "
        "report), balanced (maximal gain spread evenly, so that no balance is disturbed) and noiseless (what the "
        "honest client sends when it tells the truth)."
    )
    parser = commands.add_parser("poison", description=description, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", help="a plan file")
    parser.add_argument(
        "--share", metavar="SHARES", default="0.01,0.05", help="fake clients among all (default: %(default)s)"
    )
    parser.add_argument("--targets", metavar="R", default="1", help="values to push (default: %(default)s)")
    parser.add_argument("--users", metavar="N", default="100000", help="clients in all (default: %(default)s)")
    parser.add_argument(
        "--attacks",
        metavar="NAMES",
        default=_ALL,
        help="names with commas between them, or none, for the false alarms alone (default: %(default)s)",
    )
    parser.add_argument("--runs", metavar="R", default="10", help="collections for each row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default: %(default)s)")
    parser.add_argument(
        "--population",
        default="uniform",
        help="what honest users hold: uniform, spike (all the same value) or zipf:EXPONENT (default: %(default)s)",
    )
    parser.add_argument(
        "--significance",
        type=float,
        default=0.001,
        help="how often honest reports may raise an alarm (default: %(default)s)",
    )
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, then print one row an attack and share."""
    from sunzi.analysis.poisoning import study
    from sunzi.plan import load_plan
    from sunzi.planning import Population

    plan = load_plan(arguments.plan)
    with ProgressBar() as bar:
        rows = list(
            study(
                plan,
                [float(share) for share in parse_numbers(arguments.share, "--share")],
                _attacks(arguments.attacks),
                targets=parse_integer(arguments.targets, "--targets"),
                users=parse_integer(arguments.users, "--users"),
                runs=parse_integer(arguments.runs, "--runs"),
                seed=arguments.seed,
                population=Population.parse(arguments.population),
                significance=arguments.significance,
                progress=bar.show,
            )
        )
    show(
        arguments.format,
        table=partial(_print_table, rows, arguments.significance),
        document=partial(_document, plan, arguments, rows),
        rows=lambda: [row.row() for row in rows],
    )
    return 0


def _attacks(text: str) -> list[str]:
    from sunzi.analysis.crafting import ATTACKS

    if text in (_ALL, _NONE):
        return list(ATTACKS) if text == _ALL else []
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = next((name for name in names if name not in ATTACKS), None)
    if unknown is not None:
        raise ParameterError(f"--attacks must be all, none, or some of {', '.join(ATTACKS)}; got {unknown!r}")
    return names


def _print_table(rows: list[Poisoning], significance: float) -> None:
    header = ["attack", "share", "targets", "bound", "push", "detected", "p-value", "strongest test"]
    lines = table(header, [_cells(row) for row in rows])
    say(styled(lines[0], "bold", sys.stdout))
    for line in lines[1:]:
        say(line)
    first = rows[0]
    note = (
        f"{len(first.trials)} collections of {first.users:,} clients per row; detected: those with an alarm at "
        f"significance {significance:g}; p-value and test: of the collection with the median p-value"
    )
    say(styled(note, "dim", sys.stdout))


def _cells(row: Poisoning) -> list[str]:
    values = row.row()
    is_honest = not row.share
    p_value = values["p_value"]
    statistic = values["statistic"]
    decimals = decimals_for([row.push_error])
    return [
        values["attack"],
        f"{100 * row.share:g} %",
        str(values["targets"]),
        "-" if is_honest else percent(row.bound),
        "-" if is_honest else f"{percent(row.push, decimals)} ± {percent(row.push_error, decimals)}",
        f"{100 * row.detected:.0f} %",
        "-" if p_value is None else f"{p_value:.2g}" if p_value > 1e-99 else "< 1e-99",
        "-" if statistic is None else f"{values['test']} {statistic:,.4g}",
    ]


def _document(plan: Plan, arguments: argparse.Namespace, rows: list[Poisoning]) -> dict[str, Any]:
    """The rows with their setting, and of each row's typical collection all that its tests found."""
    return {
        "plan": plan.fingerprint,
        "protocol": plan.protocol.name,
        "domain_size": plan.domain.size,
        "epsilon": str(plan.epsilon),
        "population": arguments.population,
        "seed": arguments.seed,
        "significance": arguments.significance,
        "target_labels": [plan.domain.shown(target) for target in rows[0].targets],
        "attacks": [row.row() | {"health": row.typical.to_dict()} for row in rows],
    }
