"""Questions about numbers and tables: ``--range``, ``--quantile``, ``--mean``, ``--table``, ``--share``."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from sunzi.cli.numbers import parse_numbers
from sunzi.cli.results import Result
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.errors import ParameterError
from sunzi.formatting import counted, decimals_for, percent

if TYPE_CHECKING:
    from sunzi.cross_tables import TableEstimate
    from sunzi.estimate import Estimate
    from sunzi.ordered import MeanEstimate, OrderedEstimate

_WIDE_BINS = 16
_UNBOUNDED = (
    "An interval without ends: the reports do not tell that anybody meets the condition, so the share may be anything."
)


def add_record_queries(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--range",
        dest="ranges",
        metavar="LOW:HIGH",
        action="append",
        default=[],
        help="of an ordered plan: the share of values from LOW to below HIGH, edges of bins: 100:250. May be repeated",
    )
    parser.add_argument(
        "--quantile", metavar="P", help="of an ordered plan: these quantiles, such as 0.5,0.95 for the median"
    )
    parser.add_argument("--mean", action="store_true", help="of an ordered plan, or one of a number: the mean")
    parser.add_argument(
        "--table", metavar="ATTRIBUTES", help="of a plan of tables: the table of these attributes: version,crashed"
    )
    parser.add_argument(
        "--share",
        dest="shares",
        metavar="A=B",
        action="append",
        default=[],
        help="of a plan of tables: the share of records with this value, among those of --given. May be repeated",
    )
    parser.add_argument("--given", metavar="A=B", help="the condition of --share: one or more values, with commas")
    parser.add_argument(
        "--independence", action="store_true", help="of a table of two attributes: test whether they are independent"
    )


@dataclass(frozen=True)
class _Answer:
    """One line: a question and what was found, in the unit of the values or as a share."""

    question: str
    value: float
    low: float | None
    high: float | None
    standard_error: float | None = None
    is_share: bool = False

    def record(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "value": self.value if isfinite(self.value) else None,
            "low": self.low if self.low is not None and isfinite(self.low) else None,
            "high": self.high if self.high is not None and isfinite(self.high) else None,
            "standard_error": self.standard_error,
        }

    def cells(self, decimals: int) -> list[str]:
        ends = [self.low, self.high]
        if ends[0] is None or ends[1] is None:
            return [self.question, f"{self.value:.4g}", ""]
        if self.is_share:
            low, high = (percent(end, decimals) if isfinite(end) else "?" for end in (ends[0], ends[1]))
            return [self.question, percent(self.value, decimals), f"{low} to {high}"]
        return [self.question, f"{self.value:.5g}", f"{ends[0]:.5g} to {ends[1]:.5g}"]


def has_record_queries(arguments: argparse.Namespace) -> bool:
    """Whether some option asks for answers instead of a histogram."""
    return bool(arguments.ranges or arguments.quantile or arguments.mean or arguments.shares or arguments.independence)


def check_record_queries(arguments: argparse.Namespace) -> None:
    """Refuse combinations without a meaning."""
    if bool(arguments.given) != bool(arguments.shares):
        raise ParameterError("--share and --given belong together: --share crashed=yes --given version=2")
    if has_record_queries(arguments):
        for name in ("top", "postprocess", "title", "groups"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} is for histograms; leave it out, or the question")


def table_names(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    """The attributes that ``--table`` names."""
    return None if arguments.table is None else tuple(_listed(arguments.table))


def answers_result(arguments: argparse.Namespace, estimate: Estimate) -> Result:
    """The answers to all questions, as a table, CSV, JSON or Parquet."""
    answers = [*_number_answers(arguments, estimate), *_table_answers(arguments, estimate)]
    rows = [answer.record() for answer in answers]
    notes = {"reports": estimate.reports, "confidence": arguments.confidence, "target": arguments.target}
    return Result(
        table=partial(_print, answers, arguments.confidence, estimate.reports),
        document=lambda: {**notes, "answers": rows},
        rows=lambda: rows,
    )


def is_mean(estimate: Estimate) -> bool:
    """Whether the estimate is of a mean, so that its histogram of rounded numbers says little."""
    from sunzi.ordered import MeanEstimate

    return isinstance(estimate, MeanEstimate)


def wide_bins(estimate: Estimate) -> Estimate | None:
    """The histogram of an ordered plan in bins that fit on a screen; None for other plans."""
    from sunzi.ordered import OrderedEstimate
    from sunzi.records import OrderedDomain

    if isinstance(estimate, OrderedEstimate) and isinstance(estimate.domain, OrderedDomain):
        return estimate.histogram(_WIDE_BINS)
    return None


def _number_answers(arguments: argparse.Namespace, estimate: Estimate) -> list[_Answer]:
    from sunzi.ordered import MeanEstimate

    options = {"confidence": arguments.confidence, "target": arguments.target}
    found = []
    for text in arguments.ranges:
        low, separator, high = text.partition(":")
        if not separator:
            raise ParameterError(f"--range must be LOW:HIGH such as 100:250, got {text!r}")
        share = _ordered(estimate, "--range").range(_end(low), _end(high), **options)
        found.append(_Answer(f"{low} to {high}", share.value, share.low, share.high, share.standard_error, True))
    for probability in parse_numbers(arguments.quantile, "--quantile") if arguments.quantile else ():
        each = _ordered(estimate, "--quantile").quantile(float(probability), **options)
        found.append(_Answer(f"quantile {float(probability):g}", each.value, each.low, each.high))
    if arguments.mean:
        asked: MeanEstimate | OrderedEstimate
        asked = estimate if isinstance(estimate, MeanEstimate) else _ordered(estimate, "--mean")
        mean = asked.mean(**options)
        found.append(_Answer("mean", mean.value, mean.low, mean.high, mean.standard_error))
    return found


def _table_answers(arguments: argparse.Namespace, estimate: Estimate) -> list[_Answer]:
    found = []
    for text in arguments.shares:
        asked = _table(estimate, "--share").share(
            _pairs(text), given=_pairs(arguments.given), confidence=arguments.confidence, target=arguments.target
        )
        question = f"{text} among {arguments.given}"
        found.append(_Answer(question, asked.value, asked.low, asked.high, is_share=True))
    if arguments.independence:
        test = _table(estimate, "--independence").independence()
        found.append(_Answer(f"χ² of independence, {test.degrees} degrees of freedom", test.statistic, None, None))
        found.append(_Answer("p-value of independence", test.p_value, None, None))
    return found


def _ordered(estimate: Estimate, option: str) -> OrderedEstimate:
    from sunzi.ordered import OrderedEstimate

    if not isinstance(estimate, OrderedEstimate):
        raise ParameterError(f"{option} needs a plan made with sunzi plan --ordered")
    return estimate


def _table(estimate: Estimate, option: str) -> TableEstimate:
    from sunzi.cross_tables import TableEstimate

    if not isinstance(estimate, TableEstimate):
        raise ParameterError(f"{option} needs a plan made with sunzi plan --tables")
    return estimate


def _end(text: str) -> object:
    """A number, or the text of a date."""
    try:
        return float(text)
    except ValueError:
        return text


def _listed(text: str) -> list[str]:
    return next(csv.reader([text], skipinitialspace=True), [])


def _pairs(text: str) -> dict[str, str]:
    found = {}
    for part in _listed(text):
        name, separator, value = part.partition("=")
        if not separator:
            raise ParameterError(f"values are ATTRIBUTE=VALUE such as crashed=yes, got {part!r}")
        found[name] = value
    return found


def _print(answers: Sequence[_Answer], confidence: float, reports: int) -> None:
    decimals = decimals_for(answer.standard_error for answer in answers if answer.is_share and answer.standard_error)
    say(counted(reports, "report"))
    say()
    print_table(
        ["question", "estimate", f"{100 * confidence:g} % interval"], [answer.cells(decimals) for answer in answers]
    )
    if any(answer.low is not None and not isfinite(answer.low) for answer in answers):
        say()
        say_wrapped(_UNBOUNDED)
