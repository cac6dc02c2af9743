"""``sunzi estimate``: a tally becomes a histogram: a table, a file of numbers, a picture or a page.

The unbiased estimate and its interval are always there; what post-processing makes of it stands beside it.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from sunzi.cli.inputs import STANDARD, check_paths, input_name, read_tally
from sunzi.cli.numbers import counted, decimals_for, percent
from sunzi.cli.outputs import is_standard_output, open_output
from sunzi.cli.plan_figures import privacy_bound
from sunzi.cli.terminal import is_terminal, printable, say, shortened, styled, table
from sunzi.errors import ParameterError, TallyError

if TYPE_CHECKING:
    from sunzi.estimate import Estimate, PostprocessedHistogram
    from sunzi.plan import Plan
    from sunzi.tables.writers import HistogramTable, Note

_TABLES = (".csv", ".json", ".parquet")
_PICTURES = (".png", ".svg")
_SUFFIXES = (*_TABLES, *_PICTURES, ".html")
_SHOWN = 20
_ON_A_PAGE = 50
_LONGEST_LABEL = 40
_POSTPROCESSING = ("simplex", "clip", "significant", "constrained")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``estimate`` to the command line."""
    description = (
        "Turn a tally into a histogram with an interval for every value. Frequencies are unbiased, so those of rare "
        "values may be negative. On a terminal this prints a table of the most frequent values, in a pipe CSV of all."
    )
    parser = commands.add_parser("estimate", description=description, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="the plan file")
    parser.add_argument("tally", metavar="TALLY", nargs="?", help="the tally file, or - for standard input")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="URL|STORE",
        help="take plan and tally from a collector (http://…; its admin token is read from SUNZI_ADMIN_TOKEN) or from "
        "its store (a file or postgresql://…) instead of from files",
    )
    parser.add_argument("--collection", metavar="NAME", help="the collection, with --from (default: the only one)")
    parser.add_argument("--epoch", metavar="N", type=int, help="the epoch, with --from (default: the newest)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"where to write it; the suffix says how: {', '.join(_SUFFIXES)}. Parquet needs the extra 'frames', a "
        "picture the extra 'plot'; a page needs neither, and nothing from elsewhere",
    )
    parser.add_argument("--labels", metavar="FILE", help="the label file, if the plan names it by its hash")
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        help=f"only the N most frequent values, most frequent first (default: {_SHOWN} on a terminal and in a picture, "
        f"{_ON_A_PAGE} on a page, all of them in the domain's order elsewhere)",
    )
    parser.add_argument(
        "--confidence",
        metavar="C",
        type=float,
        default=0.95,
        help="how often an interval covers (default: %(default)s)",
    )
    parser.add_argument(
        "--postprocess",
        choices=_POSTPROCESSING,
        help="add a column of post-processed frequencies, which are biased and have no intervals",
    )
    parser.add_argument(
        "--target",
        choices=("reporters", "population"),
        default="reporters",
        help="whom the intervals are about: the users who reported, or the population that they are a random sample of "
        "(default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Estimate, and write it in the form asked for."""
    write = _writer(arguments)
    plan, estimate = _estimate(arguments)
    method = arguments.postprocess
    processed = estimate.postprocess(method, arguments.confidence) if method else None
    if write is None:
        _print_table(arguments, plan, estimate, processed)
        return 0
    with open_output(arguments.output, "a histogram") as stream:
        write(stream, arguments, plan, estimate, processed)
    return 0


def _writer(arguments: argparse.Namespace) -> Callable[..., None] | None:
    """What writes the output, or None for a table on the terminal; complaints come before any work."""
    if arguments.top is not None and arguments.top < 1:
        raise ParameterError(f"--top must be at least 1, got {arguments.top}")
    _check_source(arguments)
    check_paths([path for path in (arguments.plan, arguments.tally) if path], arguments.output)
    if is_standard_output(arguments.output):
        return None if is_terminal(sys.stdout) else partial(_write_table, ".csv")
    suffix = PurePath(arguments.output).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ParameterError(f"the output's name must end in one of {', '.join(_SUFFIXES)}; got {arguments.output!r}")
    if suffix in _PICTURES and arguments.postprocess:
        raise ParameterError("a picture shows the unbiased estimate only; for --postprocess choose a table or a page")
    if suffix in _PICTURES:
        return partial(_write_picture, suffix.removeprefix("."))
    return _write_page if suffix == ".html" else partial(_write_table, suffix)


def _check_source(arguments: argparse.Namespace) -> None:
    given = [path for path in (arguments.plan, arguments.tally) if path is not None]
    if len(given) != (0 if arguments.source else 2):
        raise ParameterError(f"give a plan and a tally, or --from and neither; got {given or 'neither'}")
    if not arguments.source and (arguments.collection or arguments.epoch):
        raise ParameterError("--collection and --epoch go with --from")


def _estimate(arguments: argparse.Namespace) -> tuple[Plan, Estimate]:
    from sunzi.plan import load_plan

    if arguments.source:
        from sunzi.cli.inputs import read_epoch

        plan, tally = read_epoch(arguments.source, arguments.collection, arguments.epoch, arguments.labels)
        return plan, plan.estimate(tally)
    if arguments.plan == STANDARD:
        raise ParameterError("the plan must be a file; only the tally may come from standard input")
    plan = load_plan(arguments.plan, labels=arguments.labels)
    if plan.domain.has_labels and plan.domain.labels is None:
        raise ParameterError(f"{arguments.plan} names its labels by their hash: give the label file with --labels")
    tally = read_tally(arguments.tally)
    try:
        return plan, plan.estimate(tally)
    except TallyError as error:
        raise TallyError(f"{input_name(arguments.tally)}: {error}") from None


def _table(arguments: argparse.Namespace, plan: Plan, top: int | None, *estimated: Any) -> HistogramTable:
    from sunzi.tables.writers import histogram_table

    estimate, processed = estimated
    notes: dict[str, Note] = {
        "plan": plan.fingerprint,
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "domain_size": plan.domain.size,
    }
    return histogram_table(
        estimate, confidence=arguments.confidence, target=arguments.target, top=top, processed=processed, notes=notes
    )


def _write_table(
    suffix: str,
    stream: BinaryIO,
    arguments: argparse.Namespace,
    plan: Plan,
    estimate: Estimate,
    processed: PostprocessedHistogram | None,
) -> None:
    _table(arguments, plan, arguments.top, estimate, processed).write(suffix.removeprefix("."), stream)


def _write_picture(
    kind: str,
    stream: BinaryIO,
    arguments: argparse.Namespace,
    plan: Plan,
    estimate: Estimate,
    _: PostprocessedHistogram | None,
) -> None:
    figure = estimate.plot(top=arguments.top or _SHOWN, confidence=arguments.confidence, target=arguments.target)
    drawn = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(drawn, format=kind, dpi=150, metadata={"Title": f"Histogram under the plan {plan.fingerprint}"})
    if any("missing from font" in str(warning.message) for warning in caught):
        say("sunzi: note: the picture's font lacks characters of some labels; a page (.html) shows them", sys.stderr)
    stream.write(drawn.getvalue())


def _write_page(
    stream: BinaryIO,
    arguments: argparse.Namespace,
    plan: Plan,
    estimate: Estimate,
    processed: PostprocessedHistogram | None,
) -> None:
    from sunzi.cli.page import page

    rows = _table(arguments, plan, arguments.top or _ON_A_PAGE, estimate, processed)
    stream.write(page(plan, rows, _lowest(arguments, estimate, rows)).encode())


def _lowest(arguments: argparse.Namespace, estimate: Estimate, rows: HistogramTable) -> list[float]:
    """The rows' lower ends with all values considered at once, since these rows were picked among all."""
    low, _ = estimate.interval(arguments.confidence, target=arguments.target, simultaneous=True)
    return low[rows.indices].tolist()


def _print_table(
    arguments: argparse.Namespace, plan: Plan, estimate: Estimate, processed: PostprocessedHistogram | None
) -> None:
    """The most frequent values for a person, those that chance could explain in a paler shade."""
    rows = _table(arguments, plan, arguments.top or _SHOWN, estimate, processed)
    lowest = _lowest(arguments, estimate, rows)
    header, *lines = table(_header(arguments, processed), _cells(rows, processed))
    say(f"{counted(estimate.reports, 'report')} by {plan.protocol.name} on {counted(plan.domain.size, 'value')}")
    say(privacy_bound(plan.epsilon))
    say()
    say(styled(header, "bold", sys.stdout))
    for line, least in zip(lines, lowest, strict=True):
        say(line if least > 0 else styled(line, "dim", sys.stdout))
    say()
    unclear = sum(least <= 0 for least in lowest)
    say(f"{len(rows):,} of {counted(plan.domain.size, 'value')}; {unclear:,} of them not distinguishable from 0.")
    if processed is not None:
        say(f"{processed.method} is post-processed, so it has no interval: {processed.effect}.")


def _header(arguments: argparse.Namespace, processed: PostprocessedHistogram | None) -> list[str]:
    interval = f"{100 * arguments.confidence:g} % interval"
    return ["value", "estimate", interval, "users", *([] if processed is None else [processed.method])]


def _cells(rows: HistogramTable, processed: PostprocessedHistogram | None) -> list[list[str]]:
    columns = rows.columns
    decimals = decimals_for(columns["standard_error"])
    shown = [shortened(printable(str(label)), _LONGEST_LABEL) for label in columns["label"]]
    extra = [] if processed is None else columns[f"frequency_{processed.method}"]
    return [
        [
            label,
            percent(columns["frequency"][row], decimals),
            f"{percent(columns['low'][row], decimals)} to {percent(columns['high'][row], decimals)}",
            f"{columns['count'][row]:,.0f}",
            *([percent(extra[row], decimals)] if extra else []),
        ]
        for row, label in enumerate(shown)
    ]
