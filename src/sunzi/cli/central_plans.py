"""Plans for a central guarantee: ``sunzi plan --central``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from sunzi.cli.files import refuse_options
from sunzi.cli.group_lists import read_group_lists
from sunzi.cli.numbers import parse_number
from sunzi.cli.results import Result, deliver_plan
from sunzi.cli.terminal import ProgressBar, print_table, printed_warnings, say, say_facts, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.domains.labels import Domain
    from sunzi.planning import CentralPlan

_OTHERS = ("epsilon", "target_error", "protocol", "objective", "max_bits", "max_attack", "search", "delta")
_RECORDS = ("ordered", "number", "tables", "open")


def add_central(parser: argparse.ArgumentParser) -> None:
    """Add ``--central``, ``--max-epsilon`` and ``--honest``."""
    parser.add_argument(
        "--central",
        metavar="E,D",
        help="instead of --epsilon: the central epsilon and delta that the batch of all users must reach, such as "
        "1,1e-8; finds the epsilon and block size with the least error (docs/batch.md)",
    )
    parser.add_argument(
        "--max-epsilon",
        metavar="E",
        help="with --central: maximum epsilon of one report, the only protection against the collector",
    )
    parser.add_argument(
        "--honest",
        metavar="SHARE",
        type=float,
        help="with --central: assumed share of clients that follow the plan (default: 1)",
    )


def check_central(arguments: argparse.Namespace) -> None:
    """Refuse incompatible options."""
    if arguments.central is None:
        refuse_options(arguments, ("max_epsilon", "honest"), "needs --central")
        return
    refuse_options(arguments, _OTHERS, "has no effect with --central; omit it")
    if arguments.histogram != "flat":
        raise ParameterError("--histogram has no effect with --central; omit it")
    if any(getattr(arguments, name) is not None for name in _RECORDS):
        raise ParameterError(
            "--central is for a list of values; for other plans give --epsilon, then run sunzi batch on the plan"
        )
    if arguments.users is None:
        raise ParameterError("--central needs --users, the minimum number of users in a batch")


def run_central(arguments: argparse.Namespace, domain: Domain) -> int:
    """Find the plan, write it, and print how it compares with other methods."""
    from sunzi.planning import plan_for_batch
    from sunzi.planning.pages import central_page

    pieces = arguments.central.split(",")
    if len(pieces) != 2:
        raise ParameterError(f"--central must be an epsilon and a delta such as 1,1e-8, got {arguments.central!r}")
    epsilon, delta = (parse_number(piece, "--central") for piece in pieces)
    with printed_warnings(), ProgressBar() as bar:
        found = plan_for_batch(
            domain,
            arguments.users,
            epsilon,
            float(delta),
            max_epsilon=arguments.max_epsilon,
            honest=1.0 if arguments.honest is None else arguments.honest,
            progress=bar.show,
        ).with_groups(read_group_lists(arguments.group))
    found = found.with_lifetime(arguments.lifetime)

    deliver_plan(
        arguments,
        found.plan,
        Result(
            table=partial(_print_table, found),
            document=found.to_dict,
            rows=lambda: [method.to_dict() for method in found.methods],
            page=partial(central_page, found),
        ),
    )
    return 0


def _print_table(found: CentralPlan) -> None:
    from sunzi.planning.central import CENTRAL_HEADER, CENTRAL_LEGEND

    size, users = counted(found.plan.domain.size, "value"), counted(found.guarantee.minimum_reports, "user")
    say(f"{size}, {users}, central epsilon {found.target:g} with delta {found.guarantee.delta:g}")
    say()
    rows = found.rows()
    print_table(CENTRAL_HEADER, rows, left=2, styles=["green", *[None] * (len(rows) - 1)])
    say()
    for line in CENTRAL_LEGEND:
        say_wrapped(line, "dim")
    say()
    say_facts(found.guarantee.facts())
    say()
    say_wrapped(found.reason)
    say_wrapped(f"What this means: {found.guarantee.in_words()}")
    say_wrapped(found.warning, "red")
