"""``sunzi estimate``: turn a tally into a histogram: a table, a data file, a picture or a page.

The unbiased estimates and their confidence intervals are always included; post-processed frequencies are an extra
column.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from sunzi.cli.files import (
    STANDARD,
    TABLES,
    add_confidence,
    add_labels,
    check_order,
    check_paths,
    check_suffix,
    is_standard_output,
    load_labelled_plan,
    open_output,
    refuse_options,
)
from sunzi.cli.group_estimates import add_group_options, is_grouped, run_groups
from sunzi.cli.queries import (
    add_estimation,
    add_groups,
    add_sums,
    check_plan_file,
    estimated,
    estimated_file,
    regrouped,
    sums_result,
)
from sunzi.cli.record_queries import (
    add_record_queries,
    answers_result,
    ask_for_mean,
    check_record_queries,
    has_record_queries,
    has_tables_only,
    is_mean,
    table_names,
    wide_bins,
)
from sunzi.cli.results import (
    add_format,
    add_output,
    check_output,
    check_page,
    chosen_format,
    deliver,
    refuse_format,
    say_written,
)
from sunzi.cli.sources import add_source, given_files, guarantee_in_words, read_epoch, read_guarantee
from sunzi.cli.terminal import EMPTY_TEXT, print_table, printed_warnings, say, say_facts, say_wrapped, shown_label
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, decimals_for, lifetime_note, percent, privacy_bound

if TYPE_CHECKING:
    from sunzi.batch import BatchGuarantee
    from sunzi.plan import Plan
    from sunzi.results.certainty import Certainty
    from sunzi.results.estimate import Estimate
    from sunzi.results.histogram import PostprocessedHistogram
    from sunzi.tables.writers import HistogramTable, Note

_PICTURES = (".png", ".svg")
_SUFFIXES = (*TABLES, *_PICTURES, ".html")
_SHOWN = 20
_ON_A_PAGE = 50
_ABOVE_ZERO = {"clear": "yes", "alone": "alone", "unclear": "no"}
_POSTPROCESSING = ("simplex", "clip", "significant", "constrained", "smooth")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``estimate``, and add its arguments."""
    parser.description = (
        "Turn a tally into a histogram with a confidence interval for each value. The estimates are unbiased, so those "
        "of rare values may be negative. Prints a table of the most frequent values on a terminal, CSV of all values "
        "in a pipe."
    )
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="plan file")
    parser.add_argument(
        "tally", metavar="TALLY", nargs="?", help="tally file, - for standard input, or a folder of 'sunzi tally --by'"
    )
    add_source(
        parser, note="; several are added up, and intervals then assume different users or fresh noise in each epoch"
    )
    add_output(parser, _SUFFIXES)
    add_labels(parser, "; for a plan of 'sunzi plan --open', the texts to estimate, one per line, frequent or not")
    parser.add_argument(
        "--top",
        metavar="N",
        type=int,
        help=f"only the N most frequent values, most frequent first (default: {_SHOWN} on a terminal and in a picture, "
        f"{_ON_A_PAGE} on a page, otherwise all values in the domain's order)",
    )
    parser.add_argument(
        "--publish-delta",
        metavar="D",
        type=float,
        help="show what readers can learn about one person if this histogram is all that is published about these "
        "reports, with this delta, such as 1e-8; needs --honest (docs/batch.md)",
    )
    parser.add_argument(
        "--honest",
        metavar="SHARE",
        type=float,
        help="with --publish-delta: assumed share of reports from clients that follow the plan, such as 0.9",
    )
    parser.add_argument("--title", metavar="TEXT", help="the heading of an .html page (default: reports and values)")
    add_confidence(parser)
    parser.add_argument(
        "--postprocess",
        metavar="METHOD",
        choices=_POSTPROCESSING,
        help="add a column of post-processed frequencies: simplex, clip, significant, constrained, or smooth for "
        "ordered plans; these are biased and have no confidence intervals",
    )
    add_estimation(parser, target="reporters")
    add_sums(parser)
    add_groups(parser)
    add_record_queries(parser)
    add_format(parser)
    add_group_options(parser)


@dataclass(frozen=True)
class _Output:
    """Everything that the outputs show."""

    arguments: argparse.Namespace
    plan: Plan
    estimate: Estimate
    processed: PostprocessedHistogram | None
    collection: str | None
    batch: BatchGuarantee | None
    published: dict[str, Any]
    """What the collector says that readers can learn."""

    def rows(self, top: int | None) -> HistogramTable:
        """Return the requested number of rows, by default ``top``, with notes about the plan."""
        from sunzi.tables.writers import histogram_table

        notes: dict[str, Note] = {
            "plan": self.plan.fingerprint,
            "protocol": self.plan.protocol.name,
            "epsilon": str(self.plan.epsilon),
            "domain_size": self.estimate.domain.size,
            **({} if self.batch is None else {"batch_guarantee": self.batch.to_dict()}),
            **{name: told for name, told in self.published.items() if name != "facts"},
        }
        return histogram_table(
            self.estimate,
            confidence=self.arguments.confidence,
            target=self.arguments.target,
            top=self.arguments.top or top,
            processed=self.processed,
            notes=notes,
        )

    def certainties(self, rows: HistogramTable) -> list[Certainty]:
        """Return whether each of these rows is above 0."""
        from sunzi.results.certainty import certainties

        found = certainties(self.estimate, self.arguments.confidence, self.arguments.target)
        return [found[index] for index in rows.indices.tolist()]


def run(arguments: argparse.Namespace) -> int:
    """Estimate, then write or print the histogram."""
    _check(arguments)
    if is_grouped(arguments):
        return run_groups(arguments)
    if arguments.sums or has_record_queries(arguments):
        return _run_questions(arguments)
    writers = [(path, _writer(arguments, path)) for path in arguments.output or [STANDARD]]
    plan, estimate, collection = _estimate(arguments)
    if is_mean(estimate) and has_tables_only(arguments):
        ask_for_mean(arguments)
        deliver(arguments, answers_result(arguments, estimate))
        return 0
    method = arguments.postprocess
    processed = estimate.postprocess(method, arguments.confidence) if method else None
    batch, published = _batch(arguments, plan, estimate.reports), {}
    if arguments.source:
        published = read_guarantee(arguments.source, arguments.collection, arguments.epoch)
    histogram = _Output(arguments, plan, estimate, processed, collection, batch, published)
    for path, write in writers:
        if write is None:
            _print_table(histogram)
            continue
        with open_output(path, "a histogram") as stream:
            write(stream, histogram)
        if not is_standard_output(path):
            say_written(path, f"the histogram of {counted(estimate.reports, 'report')}")
    return 0


def _run_questions(arguments: argparse.Namespace) -> int:
    if arguments.sums:
        refuse_options(arguments, ("top", "postprocess", "title"), "is for histograms; leave it or --sum out")
    check_output(arguments, TABLES)
    _, estimate, _ = _estimate(arguments)
    deliver(arguments, (sums_result if arguments.sums else answers_result)(arguments, estimate))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    check_record_queries(arguments)
    _check_publication(arguments)
    check_page(arguments)
    given = given_files(arguments)
    if given:
        check_order("estimate", given[0], given[1:])
    for path in arguments.output or [None]:
        check_paths(given, path, force=arguments.force)


def _check_publication(arguments: argparse.Namespace) -> None:
    """Refuse ``--publish-delta`` where this histogram is not all that is published, or is not shown."""
    if arguments.publish_delta is None:
        if arguments.honest is not None:
            raise ParameterError("--honest needs --publish-delta")
        return
    if arguments.honest is None:
        raise ParameterError(
            "--publish-delta needs --honest, the share of reports from clients that follow the plan, such as 0.9; "
            "it cannot be measured"
        )
    if arguments.source:
        raise ParameterError(
            "--publish-delta is for tally files; a collector that is started with it states the guarantee of all that "
            "it publishes"
        )
    if is_grouped(arguments) or arguments.sums or has_record_queries(arguments):
        raise ParameterError("--publish-delta is about one histogram; leave out groups, sums and queries")


def _batch(arguments: argparse.Namespace, plan: Plan, reports: int) -> BatchGuarantee | None:
    """What readers of this histogram can learn, if that is requested."""
    if arguments.publish_delta is None:
        return None
    with printed_warnings():
        found = plan.batch_guarantee(reports, arguments.publish_delta, honest=arguments.honest, reader="tally")
    for path in arguments.output:
        if path.endswith((".csv", *_PICTURES)):
            say(
                f"sunzi: note: {path} has no place for what readers can learn; publish it with .html or .json",
                sys.stderr,
            )
    say(
        f"sunzi: note: the guarantee is for batches of at least {counted(reports, 'report')}, as many as here",
        sys.stderr,
    )
    return found


def _writer(arguments: argparse.Namespace, path: str) -> Callable[[BinaryIO, _Output], None] | None:
    """Return the function that writes an output, or None for a table on the terminal."""
    if is_standard_output(path):
        chosen = chosen_format(arguments)
        return None if chosen == "table" else partial(_write_table, f".{chosen}")
    refuse_format(arguments, path)
    suffix = check_suffix(path, _SUFFIXES)
    if suffix in _PICTURES and arguments.postprocess:
        raise ParameterError("a picture shows only the unbiased estimates; with --postprocess choose a table or a page")
    if suffix in _PICTURES:
        return partial(_write_picture, suffix.removeprefix("."))
    return _write_page if suffix == ".html" else partial(_write_table, suffix)


def _estimate(arguments: argparse.Namespace) -> tuple[Plan, Estimate, str | None]:
    """The plan, the estimate, and the collection's name if it is known."""
    name = None
    options = {"table": table_names(arguments), "texts": arguments.labels}
    if arguments.source:
        plan, tally, name = read_epoch(
            arguments.source, arguments.collection, arguments.epoch, arguments.labels, arguments.group
        )
        estimate = estimated(plan, tally, arguments.weights, **options)
    else:
        plan = load_labelled_plan(check_plan_file(arguments.plan), arguments.labels)
        estimate = estimated_file(plan, arguments.tally, arguments.weights, **options)
    return plan, regrouped(estimate, arguments.groups), name


def _write_table(suffix: str, stream: BinaryIO, histogram: _Output) -> None:
    histogram.rows(None).write(suffix.removeprefix("."), stream)


def _write_picture(kind: str, stream: BinaryIO, histogram: _Output) -> None:
    arguments = histogram.arguments
    with printed_warnings():
        figure = histogram.estimate.plot(
            top=arguments.top or _SHOWN, confidence=arguments.confidence, target=arguments.target
        )
    drawn = io.BytesIO()
    title = f"Histogram under the plan {histogram.plan.fingerprint}"
    figure.savefig(drawn, format=kind, dpi=150, metadata={"Title": title})
    stream.write(drawn.getvalue())


def _write_page(stream: BinaryIO, histogram: _Output) -> None:
    arguments = histogram.arguments
    page = histogram.estimate.to_html(
        arguments.title,
        collection=histogram.collection,
        top=arguments.top or _ON_A_PAGE,
        confidence=arguments.confidence,
        target=arguments.target,
        postprocess=arguments.postprocess,
        batch=histogram.batch,
        remark=guarantee_in_words(histogram.published),
    )
    stream.write(page.encode())


def _print_table(histogram: _Output) -> None:
    """Print the most frequent values, each with whether it is above 0; those that are not are dimmed."""
    plan, processed = histogram.plan, histogram.processed
    wide = None if histogram.arguments.top or processed else wide_bins(histogram.estimate)
    histogram = histogram if wide is None else replace(histogram, estimate=wide)
    rows = histogram.rows(_SHOWN if wide is None else None)
    found = histogram.certainties(rows)
    noun = "group" if histogram.arguments.groups is not None else "value" if wide is None else "bin"
    values = counted(histogram.estimate.domain.size, noun)
    say(f"{counted(histogram.estimate.reports, 'report')}, {plan.protocol.name}, {values}")
    say_wrapped(privacy_bound(plan.epsilon))
    if plan.lifetime is not None:
        say_wrapped(lifetime_note(plan))
    say()
    interval = f"{100 * histogram.arguments.confidence:g} % interval"
    header = ["value", "estimate", interval, "users", *([] if processed is None else [processed.method])]
    cells = [[*row, _ABOVE_ZERO[each]] for row, each in zip(_cells(rows, processed), found, strict=True)]
    print_table([*header, "above 0"], cells, styles=["dim" if each == "unclear" else None for each in found])
    say()
    say(f"{len(rows):,} of {values}; {found.count('unclear'):,} of them not distinguishable from 0.")
    if "alone" in found:
        say_wrapped(
            'Above 0: "yes" is tested for all values at once; "alone" is by the value\'s own interval only, and among '
            "many values some are by chance."
        )
    if processed is not None:
        say_wrapped(f"{processed.method} is post-processed and has no confidence interval: {processed.effect}.")
    if histogram.published:
        say()
        say_wrapped(guarantee_in_words(histogram.published))
    if histogram.batch is not None:
        say()
        say_wrapped(f"What readers can learn: {histogram.batch.in_words()}")
        say()
        say_facts(histogram.batch.facts())


def _cells(rows: HistogramTable, processed: PostprocessedHistogram | None) -> list[list[str]]:
    columns = rows.columns
    decimals = decimals_for(columns["standard_error"])
    shown = [shown_label(label) or EMPTY_TEXT for label in columns["label"]]
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
