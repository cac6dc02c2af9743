"""``sunzi poison``: how much fake clients change the estimate under a plan, and whether they are detected."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_plan, add_simulation
from sunzi.cli.numbers import parse_numbers
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import ProgressBar, print_table, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import decimals_for, percent

if TYPE_CHECKING:
    from sunzi.analysis import Poisoning
    from sunzi.plan import Plan

_ALL, _NONE = "all", "none"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``poison``, and add its arguments."""
    parser.description = (
        "Simulate collections in which some clients are fake and make target values look frequent, or raise the mean "
        "of a number. Their reports are valid: they are encoded, checked and counted like honest ones. For each "
        "attack, prints an upper bound on the push (what is added to the frequency of the targets, or to the mean), "
        "the measured push, and how often the health tests raised an alarm. The first row has no fake clients, so its "
        "alarms are false. Attacks: maximal-gain (the reports that push the targets most), input (the honest client "
        "run on the targets), random (random valid reports), balanced (maximal gain spread evenly, so that the "
        "counters stay balanced) and noiseless (the honest client's reports without noise). Prints a table on a "
        "terminal, CSV in a pipe."
    )
    add_plan(parser)
    parser.add_argument(
        "--share",
        metavar="SHARES",
        default="0.01,0.05",
        help="fraction of clients that are fake; a number or a list (default: %(default)s)",
    )
    parser.add_argument(
        "--targets",
        metavar="R",
        type=int,
        default="1",
        help="number of values to push, of bins of one range, or of cells of one table (default: %(default)s)",
    )
    parser.add_argument(
        "--users", metavar="N", type=int, default="100000", help="total number of clients (default: %(default)s)"
    )
    parser.add_argument(
        "--attacks",
        metavar="NAMES",
        default=_ALL,
        help="comma-separated names, all, or none to measure only false alarms (default: %(default)s)",
    )
    parser.add_argument(
        "--runs", metavar="R", type=int, default="10", help="simulated collections per row (default: %(default)s)"
    )
    add_simulation(parser, population="uniform")
    parser.add_argument(
        "--significance",
        metavar="P",
        type=float,
        default=0.001,
        help="false-alarm probability of the health tests (default: %(default)s)",
    )
    add_output(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, then print one row per attack and fraction."""
    from sunzi.analysis import study_poisoning
    from sunzi.plan import load_plan
    from sunzi.planning import Population

    check_output(arguments)
    plan = load_plan(arguments.plan)
    with ProgressBar() as bar:
        rows = list(
            study_poisoning(
                plan,
                [float(share) for share in parse_numbers(arguments.share, "--share")],
                _attacks(arguments.attacks),
                targets=arguments.targets,
                users=arguments.users,
                runs=arguments.runs,
                seed=arguments.seed,
                population=Population.parse(arguments.population),
                significance=arguments.significance,
                progress=bar.show,
            )
        )
    deliver(
        arguments,
        Result(
            table=partial(_print_table, rows, arguments.significance),
            document=partial(_document, plan, arguments, rows),
            rows=lambda: [row.row() for row in rows],
        ),
    )
    return 0


def _attacks(text: str) -> list[str]:
    from sunzi.analysis.fake_reports import ATTACKS

    if text in (_ALL, _NONE):
        return list(ATTACKS) if text == _ALL else []
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = next((name for name in names if name not in ATTACKS), None)
    if unknown is not None:
        raise ParameterError(f"--attacks must be all, none, or names among {', '.join(ATTACKS)}; got {unknown!r}")
    return names


def _print_table(rows: list[Poisoning], significance: float) -> None:
    header = ["attack", "fake", "targets", "bound", "push", "detected", "p-value", "strongest test"]
    print_table(header, [_cells(row) for row in rows])
    first = rows[0]
    note = (
        f"push: the change of {first.pushed}; {len(first.trials)} collections of {first.users:,} clients per row; "
        f"detected: collections with an alarm at significance {significance:g}; p-value and strongest test: from the "
        "collection with the median p-value"
    )
    say_wrapped(note, "dim")


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
    """Return the rows with their setting, and all health tests of the collection with the median p-value."""
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
