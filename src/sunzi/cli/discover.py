"""``sunzi discover``: find the frequent texts of an open plan, or count the texts of a list."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import TABLES, add_confidence, check_order, check_paths, input_name, read_tally
from sunzi.cli.queries import check_plan_file
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.sources import add_source, check_source, read_epoch
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.errors import ParameterError, TallyError
from sunzi.formatting import counted, decimals_for, percent, percent_of_three_digits, printable, shortened

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.results.discovery import Discovery
    from sunzi.tally import Tally

_LONGEST_LABEL = 60
_SHOWN = 50


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``discover`` to the command line."""
    description = (
        "Find the frequent texts of a plan made by 'sunzi plan --open'. Some reports propose texts, and others count "
        "them, so that frequencies and intervals hold whatever the search did. A text that was found may be private "
        "all the same, such as a name; look before you publish."
    )
    parser = commands.add_parser("discover", description=description)
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="plan file")
    parser.add_argument("tally", metavar="TALLY", nargs="?", help="tally file, or - for standard input")
    add_source(parser)
    parser.add_argument(
        "--prior",
        metavar="FILE",
        help="public texts of the same kind, one per line, frequent ones repeated; they guide the search and bias "
        "nothing",
    )
    parser.add_argument("--candidates", metavar="FILE", help="look for these texts only, one per line")
    parser.add_argument(
        "--count", metavar="FILE", help="estimate all texts of this file, one per line, frequent or not; no search"
    )
    parser.add_argument(
        "--false-share",
        metavar="Q",
        type=float,
        default=0.05,
        help="largest expected share of texts that nobody has among those found (default: %(default)s)",
    )
    add_confidence(parser, meaning="confidence level of the intervals with --count")
    add_output(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Search or count, then write or print the texts."""
    check_output(arguments, TABLES)
    plan, tally = _read(arguments)
    if arguments.count is not None:
        if arguments.prior is not None or arguments.candidates is not None:
            raise ParameterError("--count estimates a list without a search; leave --prior and --candidates out")
        deliver(arguments, _counted(arguments, plan, tally))
        return 0
    found = plan.discover(
        tally, prior=arguments.prior, candidates=arguments.candidates, false_share=arguments.false_share
    )
    result = Result(
        table=partial(_print, found),
        document=lambda: {"plan": plan.fingerprint, **found.to_dict()},
        rows=found.records,
    )
    deliver(arguments, result)
    return 0


def _read(arguments: argparse.Namespace) -> tuple[Plan, Tally]:
    from sunzi.plan import load_plan

    given = [path for path in (arguments.plan, arguments.tally) if path is not None]
    if len(given) != (0 if arguments.source else 2):
        raise ParameterError(f"give a plan and a tally, or --from without them; got {given or 'neither'}")
    check_source(arguments)
    if arguments.source:
        plan, tally, _ = read_epoch(arguments.source, arguments.collection, arguments.epoch, None, None)
        return plan, tally
    check_order("discover", given[0], given[1:])
    check_paths(given)
    plan, tally = load_plan(check_plan_file(arguments.plan)), read_tally(arguments.tally)
    if tally.fingerprint != plan.contract.fingerprint:
        raise TallyError(f"{input_name(arguments.tally)} is a tally of another plan than {arguments.plan}")
    return plan, tally


def _counted(arguments: argparse.Namespace, plan: Plan, tally: Tally) -> Result:
    from sunzi.tables.writers import histogram_table

    estimate = plan.estimate(tally, labels=arguments.count)
    table = histogram_table(estimate, confidence=arguments.confidence)

    def rows() -> list[dict[str, Any]]:
        return [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]

    return Result(
        table=lambda: _print_rows(rows(), f"{100 * arguments.confidence:g} % interval", estimate.reports),
        document=lambda: {"plan": plan.fingerprint, "reports": estimate.reports, "counted": rows()},
        rows=rows,
    )


def _print(found: Discovery) -> None:
    if found.rows:
        _print_rows(found.records(), "interval", found.reports)
    else:
        say(f"{counted(found.reports, 'report')}: no text was found.")
    say()
    threshold = percent_of_three_digits(found.threshold)
    say_wrapped(
        f"{counted(found.candidates, 'text')} proposed and counted by other reports, {len(found):,} accepted: at most "
        f"{percent(found.false_share)} of them are expected to be false, and 5 % of the intervals to miss. A proposed "
        f"text is accepted from about {threshold} on."
    )


def _print_rows(rows: list[dict[str, Any]], interval: str, reports: int) -> None:
    decimals = decimals_for((row["high"] - row["low"]) / 4 for row in rows)
    cells = [
        [
            shortened(printable(row["label"]), _LONGEST_LABEL) or "(empty text)",
            percent(row["frequency"], decimals),
            f"{percent(row['low'], decimals)} to {percent(row['high'], decimals)}",
            f"{row['frequency'] * reports:,.0f}",
        ]
        for row in rows[:_SHOWN]
    ]
    say(counted(reports, "report"))
    say()
    print_table(["text", "estimate", interval, "users"], cells)
    if len(rows) > _SHOWN:
        say(f"{_SHOWN} of {counted(len(rows), 'text')}; -o FILE.csv writes all.")
