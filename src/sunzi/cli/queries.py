"""Questions about several values at once: ``--sum`` and ``--groups``, and the options that all estimates share."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from sunzi.cli.files import STANDARD, input_name, open_input, parse_json, read_tally
from sunzi.cli.numbers import parse_integers
from sunzi.cli.results import Result
from sunzi.cli.terminal import print_table, say
from sunzi.client.errors import DomainError, ParameterError
from sunzi.errors import TallyError
from sunzi.formatting import counted, decimals_for, percent, printable, shortened

if TYPE_CHECKING:
    from sunzi.domains.labels import Domain
    from sunzi.plan import Plan
    from sunzi.results.estimate import Estimate
    from sunzi.tally import Tally

_REST = "*"
_LONGEST_SUM = 60


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Add ``--groups``."""
    parser.add_argument(
        "--groups",
        metavar="FILE",
        help='groups of values, shown instead of the values: JSON such as {"Chromium": ["Chrome", "Edge"], '
        f'"rest": "{_REST}"}}, or CSV with the columns label and group, where the label {_REST} stands for all values '
        "that no other row names",
    )


def add_sums(parser: argparse.ArgumentParser) -> None:
    """Add ``--sum``."""
    parser.add_argument(
        "--sum",
        dest="sums",
        metavar="VALUES",
        action="append",
        default=[],
        help="the total frequency of these values, instead of the histogram: Chrome,Edge (with quotation marks around "
        'a label that has a comma, as in CSV), ["Chrome", "Edge"], or numbers such as 0,3 or 0:9:1. May be repeated',
    )


def add_estimation(parser: argparse.ArgumentParser, target: Literal["reporters", "population"]) -> None:
    """Add ``--target``, with this default, and ``--weights``."""
    parser.add_argument(
        "--target",
        choices=("reporters", "population"),
        default=target,
        help="the group that the intervals describe: the users who reported, or the population they are a random "
        "sample of (default: %(default)s)",
    )
    add_weights(parser)


def add_weights(parser: argparse.ArgumentParser) -> None:
    """Add ``--weights``."""
    parser.add_argument(
        "--weights",
        choices=("efficient", "planned"),
        default="efficient",
        help="how reports are weighted: efficient weights adapt to the reports and give the smallest error; planned "
        "weights are the same for every tally, so that the estimate is exactly unbiased (default: %(default)s)",
    )


def estimated(plan: Plan, tally: Tally, weights: str, **others: Any) -> Estimate:
    """The estimate. Options as for estimate_options."""
    return plan.estimate(tally, **estimate_options(plan, weights, **others))


def estimate_options(
    plan: Plan, weights: str, table: Sequence[str] | None = None, texts: str | None = None
) -> dict[str, Any]:
    """The options of an estimate. Defaults are omitted, since other protocols may not support these options.

    Parameters
    ----------
    plan: the plan.
    weights: how reports are weighted.
    table: the attributes of one table.
    texts: a file with the texts to estimate, one per line, for a plan that has no list of values.
    """
    options: dict[str, Any] = {} if weights == "efficient" else {"weights": weights}
    if table is not None:
        options["table"] = table
    if plan.domain.is_open:
        if texts is None:
            raise ParameterError(
                "this plan has no list of values: 'sunzi discover' finds the frequent texts, and 'sunzi estimate "
                "--labels FILE' estimates the texts in a file, one per line"
            )
        options["labels"] = texts
    return options


def check_plan_file(path: str) -> str:
    """The path of a plan, which must not be standard input."""
    if path == STANDARD:
        raise ParameterError("the plan must be a file; only a tally can come from standard input")
    return path


def estimated_file(plan: Plan, path: str, weights: str, **others: Any) -> Estimate:
    """The estimate from the tally in a file or standard input; errors name it. Options as for estimate_options."""
    tally = read_tally(path)
    try:
        return estimated(plan, tally, weights, **others)
    except TallyError as error:
        raise TallyError(f"{input_name(path)}: {error}") from None


def parse_values(text: str, domain: Domain) -> list[Any]:
    """The values that an argument lists: labels, numbers or records as CSV or JSON; of bare indices also ranges."""
    if domain.is_indices:
        return list(parse_integers(text, "--sum"))
    if not text.startswith("["):
        from sunzi.domains.records import RecordDomain
        from sunzi.results.record_answers import comma_list

        if isinstance(domain, RecordDomain):
            example = json.dumps([domain.example(0)], ensure_ascii=False)
            raise ParameterError(f"--sum of a table takes a list of its cells, such as '{example}'; got {text}")
        return comma_list(text)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParameterError(
            f'--sum must be labels such as Chrome,Edge or ["Chrome", "Edge"]; got {text}: {error}'
        ) from None
    return list(values)


def _shown_value(value: Any) -> str:
    """A value as a text; a record as "country DE, version 2"."""
    return ", ".join(f"{name} {each}" for name, each in value.items()) if isinstance(value, dict) else str(value)


def sums_result(arguments: argparse.Namespace, estimate: Estimate) -> Result:
    """The sums that ``--sum`` names, as a table, CSV, JSON or Parquet."""
    asked = {text: parse_values(text, estimate.domain) for text in arguments.sums}
    answers = {
        text: estimate.sum(values, arguments.confidence, target=arguments.target) for text, values in asked.items()
    }

    def rows() -> list[dict[str, Any]]:
        return [
            {"label": " + ".join(map(_shown_value, asked[text]))} | answer.record(estimate.reports)
            for text, answer in answers.items()
        ]

    notes = {"reports": estimate.reports, "confidence": arguments.confidence, "target": arguments.target}
    return Result(
        table=lambda: _print_sums(rows(), arguments.confidence, estimate.reports),
        document=lambda: {**notes, "sums": rows()},
        rows=rows,
    )


def _print_sums(rows: list[dict[str, Any]], confidence: float, reports: int) -> None:
    decimals = decimals_for(row["standard_error"] for row in rows)
    cells = [
        [
            shortened(printable(row["label"]), _LONGEST_SUM),
            percent(row["frequency"], decimals),
            f"{percent(row['low'], decimals)} to {percent(row['high'], decimals)}",
            f"{row['count']:,.0f}",
        ]
        for row in rows
    ]
    say(counted(reports, "report"))
    say()
    print_table(["any of these values", "estimate", f"{100 * confidence:g} % interval", "users"], cells)


def read_groups(path: str, domain: Domain) -> dict[str, Any]:
    """The groups of a file, with ``...`` for the rest; errors name the file."""
    with open_input(path) as stream:
        text = stream.read().decode("utf-8-sig", errors="replace")
    groups = _from_json(path, text) if text.lstrip().startswith("{") else _from_csv(path, text, domain)
    if domain.is_indices:
        for name, values in groups.items():
            groups[name] = values if values is ... else [_number(path, value) for value in values]
    return groups


def regrouped(estimate: Estimate, path: str | None) -> Estimate:
    """The estimate of the groups in a file; the estimate itself without a file."""
    if path is None:
        return estimate
    groups = read_groups(path, estimate.domain)
    try:
        return estimate.regroup(groups)
    except (ParameterError, DomainError) as error:
        raise ParameterError(f"{path}: {error}") from None


def _from_json(path: str, text: str) -> dict[str, Any]:
    found = parse_json(path, text)
    wrong = next((name for name, values in found.items() if values != _REST and not isinstance(values, list)), None)
    if wrong is not None:
        raise ParameterError(f'{path}: the group {wrong!r} must be a list of values, or "{_REST}" for the rest')
    return {name: ... if values == _REST else values for name, values in found.items()}


def _from_csv(path: str, text: str, domain: Domain) -> dict[str, Any]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if not {"label", "group"} <= set(reader.fieldnames or ()):
        raise ParameterError(
            f"{path} must be a JSON object of groups, or CSV whose first line names the columns label and group; "
            f"got {', '.join(reader.fieldnames or ['an empty file'])}"
        )
    found: dict[str, Any] = {}
    for row in reader:
        label, name = row["label"], row["group"]
        if not name:
            raise ParameterError(f"{path}: line {reader.line_num} names no group for {label!r}")
        is_rest = label == _REST and _REST not in (domain.labels or ())
        if is_rest or found.get(name) is ...:
            found[name] = ...
        else:
            found.setdefault(name, []).append(label)
    return found


def _number(path: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise ParameterError(f"{path}: the values of this plan are whole numbers; got {value!r}") from None
