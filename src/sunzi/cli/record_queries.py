"""Questions about numbers and tables: ``--range``, ``--quantile``, ``--mean``, ``--table``, ``--share``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING

from sunzi.cli.files import STANDARD, TABLES, refuse_options
from sunzi.cli.numbers import parse_numbers
from sunzi.cli.results import Result
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, decimals_for, percent, printable

if TYPE_CHECKING:
    from sunzi.results.estimate import Estimate
    from sunzi.results.record_answers import Answer, Questions

_WIDE_BINS = 16


def add_record_queries(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--range",
        dest="ranges",
        metavar="LOW:HIGH",
        action="append",
        default=[],
        help="of an ordered plan: the share of values from LOW to below HIGH, such as 100:250; if these are not edges "
        "of bins, of the narrowest range of whole bins around them. May be repeated",
    )
    parser.add_argument(
        "--quantile", metavar="P", help="of an ordered plan: these quantiles, such as 0.5,0.95 for the median"
    )
    parser.add_argument("--mean", action="store_true", help="of a plan of an ordered value or a number: the mean")
    parser.add_argument(
        "--table",
        metavar="ATTRIBUTES",
        help="of a plan of tables: the table of these attributes, such as version,crashed",
    )
    parser.add_argument(
        "--share",
        dest="shares",
        metavar="A=B",
        action="append",
        default=[],
        help="of a plan of tables: the share of records with this value, among those of --given. May be repeated",
    )
    parser.add_argument(
        "--given",
        metavar="A=B",
        help="the condition of --share: one or more values, separated by commas; without --share, one or more "
        "attributes, for the shares of all other values within each of theirs: --given version",
    )
    parser.add_argument(
        "--independence", action="store_true", help="of a table of two attributes: test whether they are independent"
    )


def questions(arguments: argparse.Namespace) -> Questions:
    """The questions in the options."""
    from sunzi.results.record_answers import Questions

    quantiles = () if arguments.quantile is None else parse_numbers(arguments.quantile, "--quantile")
    return Questions(
        arguments.ranges,
        [float(probability) for probability in quantiles],
        arguments.mean,
        arguments.shares,
        arguments.given,
        arguments.independence,
    )


def has_record_queries(arguments: argparse.Namespace) -> bool:
    """Whether some option asks for answers instead of a histogram."""
    return bool(questions(arguments))


def check_record_queries(arguments: argparse.Namespace) -> None:
    """Refuse meaningless combinations."""
    if arguments.shares and not arguments.given:
        raise ParameterError("--share needs --given: --share crashed=yes --given version=2")
    if has_record_queries(arguments):
        if arguments.sums:
            raise ParameterError("--sum and other questions print different tables; use one per command")
        names = ("top", "postprocess", "title", "groups")
        refuse_options(arguments, names, "is for histograms; omit it, or the question")


def table_names(arguments: argparse.Namespace) -> list[str] | None:
    """The attributes that ``--table`` names."""
    if arguments.table is None:
        return None
    from sunzi.results.record_answers import comma_list

    return comma_list(arguments.table)


def answers_result(arguments: argparse.Namespace, estimate: Estimate) -> Result:
    """The answers to all questions, as a table, CSV, JSON or Parquet."""
    answers = questions(arguments).ask(estimate, arguments.confidence, arguments.target)
    rows = [answer.record() for answer in answers]
    notes = {"reports": estimate.reports, "confidence": arguments.confidence, "target": arguments.target}
    return Result(
        table=partial(_print, answers, arguments.confidence, estimate.reports),
        document=lambda: {**notes, "answers": rows},
        rows=lambda: rows,
    )


def is_mean(estimate: Estimate) -> bool:
    """Whether the estimate is of a mean, so that its histogram of rounded numbers is of little use."""
    from sunzi.results.means import MeanEstimate

    return isinstance(estimate, MeanEstimate)


def has_tables_only(arguments: argparse.Namespace) -> bool:
    """Whether the outputs are tables or data, and none is a picture or a page."""
    return all(path == STANDARD or path.endswith(TABLES) for path in arguments.output)


def ask_for_mean(arguments: argparse.Namespace) -> None:
    """Ask for the mean instead of a histogram; options of histograms are refused."""
    reason = "is for histograms, and the result of this plan is a mean; omit it, or write a page: -o mean.html"
    refuse_options(arguments, ("top", "postprocess", "publish_delta"), reason)
    arguments.mean = True


def wide_bins(estimate: Estimate) -> Estimate | None:
    """The histogram of an ordered plan in bins that fit on a screen; None for other plans."""
    from sunzi.domains.ranges import OrderedDomain
    from sunzi.results.ordered import OrderedEstimate

    if isinstance(estimate, OrderedEstimate) and isinstance(estimate.domain, OrderedDomain):
        return estimate.histogram(_WIDE_BINS)
    return None


def _cells(answer: Answer, decimals: int) -> list[str]:
    from sunzi.domains.ranges import shown_number

    question, low, high = printable(answer.question), answer.low, answer.high
    if low is None or high is None:
        return [question, f"{answer.value:.4g}", ""]
    if answer.is_share:
        ends = [percent(end, decimals) if isfinite(end) else "?" for end in (low, high)]
        return [question, percent(answer.value, decimals), " to ".join(ends)]
    value, first, last = (shown_number(number, answer.unit, high - low) for number in (answer.value, low, high))
    return [question, value, f"{first.removesuffix(f' {answer.unit}')} to {last}"]


def _print(answers: Sequence[Answer], confidence: float, reports: int) -> None:
    decimals = decimals_for(answer.standard_error for answer in answers if answer.is_share and answer.standard_error)
    say(counted(reports, "report"))
    say()
    print_table(
        ["question", "estimate", f"{100 * confidence:g} % interval"], [_cells(answer, decimals) for answer in answers]
    )
    for note in dict.fromkeys(answer.note for answer in answers if answer.note):
        say()
        say_wrapped(note)
