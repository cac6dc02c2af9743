"""``sunzi batch``: what someone who sees only a whole batch of reports, or its tally, learns about one person."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_plan
from sunzi.cli.results import ALL_SUFFIXES, Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import ProgressBar, printed_warnings, say, say_facts, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.batch import BatchGuarantee
    from sunzi.plan import Plan
    from sunzi.planning import BatchCurves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``batch``, and add its arguments."""
    parser.description = (
        "Compute what someone who sees only whole batches can learn about one person: all reports shuffled, or only "
        "their tally and estimates. Prints the proven central epsilon, the epsilon that a known attack reaches, and "
        "all conditions (docs/batch.md). A picture plots both over the size of the batch and over the epsilon of one "
        "report. Prints a table on a terminal, CSV in a pipe."
    )
    add_plan(parser)
    parser.add_argument(
        "--users", metavar="N", type=int, help="minimum number of reports in a batch, one per user: 10000 or 1e6"
    )
    parser.add_argument(
        "--delta",
        metavar="D",
        type=float,
        required=True,
        help="failure probability of the guarantee, far below 1/N, such as 1e-8",
    )
    parser.add_argument(
        "--honest",
        metavar="SHARE",
        type=float,
        default="1",
        help="assumed share of reports from clients that follow the plan; the others may collude with the reader "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--reader",
        default="reports",
        help="what the reader sees: reports, all of them shuffled, without ids, times or addresses; or tally, counts "
        "and estimates only, which reveal less with oue and rappor. The guarantee for reports holds for both (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--epochs",
        metavar="N",
        type=int,
        default="1",
        help="number of batches that contain the same person, with fresh noise in each unless --cohort is given "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--memoised", action="store_true", help="devices repeat memoised reports in every epoch; needs --cohort"
    )
    parser.add_argument(
        "--cohort",
        metavar="N",
        type=int,
        help="with memoised reports: minimum number of users who are in exactly the same batches",
    )
    parser.add_argument(
        "--target",
        metavar="E",
        type=float,
        help="also find the smallest batch with this central epsilon; without --users, print its guarantee",
    )
    add_output(parser, ALL_SUFFIXES)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compute the guarantee and print it."""
    from sunzi.plan import load_plan
    from sunzi.planning.pages import batch_page

    check_output(arguments, ALL_SUFFIXES)
    options = _options(arguments)
    if arguments.users is not None and arguments.users < 1:
        raise ParameterError(f"--users must be at least 1, got {arguments.users}")
    plan = load_plan(arguments.plan)
    with printed_warnings():
        target = _target(arguments, plan, options)
        least = arguments.users or (target or {}).get("target_reports")
        if least is None:
            raise ParameterError("give --users, or --target for the smallest batch with that central epsilon")
        if options["cohort"] is not None and options["cohort"] > least:
            raise ParameterError(f"--cohort {options['cohort']:,} exceeds the {least:,} --users of a batch")
        guarantee = plan.batch_guarantee(least, **options)
    document = {
        **guarantee.to_dict(),
        **(target or {}),
    }
    facts = _facts(guarantee, target)
    curves = cache(partial(_curves, plan, guarantee))  # a picture and a page show the same ones
    deliver(
        arguments,
        Result(
            table=partial(_print_table, guarantee, facts),
            document=lambda: document,
            rows=lambda: [document],
            picture=partial(_draw, curves),
            page=lambda: batch_page(curves(), facts),
        ),
    )
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the guarantee, except the number of reports."""
    if arguments.memoised and arguments.cohort is None:
        raise ParameterError(
            "--memoised needs --cohort, the number of users who are in exactly the same batches: if one user joins or "
            "leaves, the difference of two histograms is that user's report, and only the plan's epsilon holds"
        )
    if arguments.target is not None and (arguments.epochs != 1 or arguments.cohort is not None):
        raise ParameterError("--target is for one batch; omit --epochs and --cohort")
    return {name: getattr(arguments, name) for name in ("delta", "honest", "reader", "epochs", "cohort")}


def _target(arguments: argparse.Namespace, plan: Plan, options: dict[str, Any]) -> dict[str, Any] | None:
    """The smallest batch for ``--target``."""
    if arguments.target is None:
        return None
    conditions = {name: options[name] for name in ("delta", "honest", "reader")}
    return {
        "target_epsilon": arguments.target,
        "target_reports": plan.minimum_batch(arguments.target, **conditions),
    }


def _facts(guarantee: BatchGuarantee, target: dict[str, Any] | None) -> list[tuple[str, str]]:
    facts = guarantee.facts()
    if target is not None:
        needed = counted(target["target_reports"], "report")
        text = f"central epsilon {target['target_epsilon']:g} needs {needed} in each batch"
        facts.insert(3, ("target", text))
    return facts


def _print_table(guarantee: BatchGuarantee, facts: list[tuple[str, str]]) -> None:
    say_facts(facts)
    say()
    say_wrapped(f"What this means: {guarantee.in_words()}")


def _curves(plan: Plan, guarantee: BatchGuarantee) -> BatchCurves:
    from sunzi.planning import batch_curves

    with ProgressBar() as bar:
        return batch_curves(plan, guarantee, bar.show)


def _draw(curves: Callable[[], BatchCurves]) -> Any:
    from sunzi.planning.central_plots import draw_batch

    return draw_batch(curves())
