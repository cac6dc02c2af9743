"""``sunzi aggregation``: the parameters of a DAP task for a plan."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from sunzi.cli.files import add_plan
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import say, say_facts, say_wrapped

if TYPE_CHECKING:
    from sunzi.aggregation import AggregationTask

_NOTE = (
    "A measurement is the tally of one report: its 1s or, where there is exactly one, its index. A batch below the "
    "minimum must not be released. The servers cannot tell which clients are honest. Turn the result into a tally "
    "with sunzi tally --counts-of."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``aggregation``, and add its arguments."""
    parser.description = (
        "Print the parameters of a DAP task that sums the reports of a plan, so that no server sees any report: the "
        "VDAF, its length and chunk length, the minimum batch size and the bytes of a report (docs/aggregation.md). "
        "Prints a table on a terminal, CSV in a pipe."
    )
    add_plan(parser)
    parser.add_argument(
        "--min-batch",
        metavar="N",
        type=int,
        required=True,
        help="number of honest reports in a batch that your guarantee for it assumes",
    )
    parser.add_argument(
        "--honest",
        metavar="SHARE",
        type=float,
        default="1",
        help="assumed share of honest clients; the minimum batch is divided by it (default: %(default)s)",
    )
    add_output(parser)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compute the parameters and print them."""
    from sunzi.aggregation import aggregation_task
    from sunzi.plan import load_plan

    check_output(arguments)
    task = aggregation_task(load_plan(arguments.plan), arguments.min_batch, arguments.honest)
    deliver(arguments, Result(partial(_print_task, task), task.to_dict, lambda: [task.to_dict()]))
    return 0


def _print_task(task: AggregationTask) -> None:
    say_facts(task.facts())
    say()
    say_wrapped(_NOTE)
