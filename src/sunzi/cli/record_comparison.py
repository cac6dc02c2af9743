"""``sunzi compare`` for plans of numbers and records: their errors and those of alternative methods."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import refuse_options
from sunzi.cli.record_plans import record_request
from sunzi.cli.results import Result, deliver
from sunzi.cli.terminal import ProgressBar, print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted

if TYPE_CHECKING:
    from sunzi.planning import MethodRow
    from sunzi.planning.plots import Varied

_OTHERS = ("size", "protocols", "simulate", "delta")
_LEGEND = (
    "error: standard error of the answer, if all values are equally frequent.",
    "users needed: how many users each method needs to reach the error of this plan.",
)
_BIASED = "Not listed: the square wave with EM. Its bias depends on the data; docs/records.md has measurements."


def check_record_comparison(arguments: argparse.Namespace) -> None:
    """Refuse options of comparisons of protocols."""
    kinds = ("ordered", "number", "tables")
    given = [f"--{name}" for name in kinds if getattr(arguments, name) is not None]
    if len(given) > 1:
        raise ParameterError(f"give one of {', '.join(f'--{name}' for name in kinds)}; got {' and '.join(given)}")
    if arguments.ordered is None:
        refuse_options(arguments, ("bins",), "needs --ordered")
    if not given:
        return
    refuse_options(arguments, _OTHERS, f"is for protocols of single values; omit it, or {given[0]}")
    if arguments.histogram != "flat":
        raise ParameterError(f"--histogram is for protocols of single values; omit it, or {given[0]}")
    if arguments.vary == "size":
        raise ParameterError(f"--vary size is for protocols of single values; with {given[0]}, vary epsilon or users")


def run_record_comparison(
    arguments: argparse.Namespace, epsilons: Sequence[Fraction], users: Sequence[int], varied: Varied | None
) -> int:
    """Compare, then write or print the result; ``varied`` is the x axis of a picture, None if there are two."""
    from sunzi.planning import compare_records
    from sunzi.planning.pages import record_comparison_page

    request = record_request(arguments)
    legend = [*_LEGEND, _BIASED] if arguments.ordered is not None else _LEGEND
    with ProgressBar() as bar:
        rows = list(compare_records(request.make, epsilons, users, request.wanted, bar.show))
    deliver(
        arguments,
        Result(
            table=partial(_print, rows, legend),
            document=partial(_columns, rows),
            rows=partial(_columns, rows),
            picture=partial(_draw, rows, varied),
            page=partial(record_comparison_page, rows, varied, legend),
        ),
    )
    return 0


def _columns(rows: Sequence[MethodRow]) -> list[dict[str, Any]]:
    return [row.columns() for row in rows]


def _draw(rows: Sequence[MethodRow], varied: Varied | None) -> Any:
    from sunzi.planning.plots import draw_record_comparison

    assert varied is not None, "the command has checked it"
    return draw_record_comparison(rows, varied)


def _print(rows: Sequence[MethodRow], legend: Sequence[str]) -> None:
    """Print the methods for one question together, the best first."""
    from sunzi.planning.record_comparison import METHODS_HEADER, best_first

    ordered, first = best_first(rows), rows[0]
    swept = [name for name in ("epsilon", "users") if len({getattr(row, name) for row in rows}) > 1]
    fixed = {"users": counted(first.users, "user"), "epsilon": f"epsilon {float(first.epsilon):.4g}"}
    if len(swept) < len(fixed):
        say(", ".join(text for name, text in fixed.items() if name not in swept))
        say()
    cells = [[*(f"{row.columns()[name]:,.10g}" for name in swept), *_marked(row)] for row in ordered]
    styles = ["green" if row.is_ours else None for row in ordered]
    print_table(
        [*swept, METHODS_HEADER[0], f"  {METHODS_HEADER[1]}", *METHODS_HEADER[2:]],
        cells,
        left=len(swept) + 2,
        styles=styles,
    )
    say()
    for line in legend:
        say_wrapped(line, "dim")


def _marked(row: MethodRow) -> list[str]:
    question, method, *figures = row.cells()
    return [question, f"{'>' if row.is_ours else ' '} {method}", *figures]
