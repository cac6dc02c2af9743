"""Plans of numbers and records: ``sunzi plan --ordered``, ``--number`` and ``--tables``."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import open_input
from sunzi.cli.group_lists import read_group_lists
from sunzi.cli.numbers import parse_integer
from sunzi.cli.results import Result, print_result, say_written
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.errors import ParameterError
from sunzi.formatting import attacker_success, counted, percent_of_three_digits, privacy_bound

if TYPE_CHECKING:
    from sunzi.plan import Plan

_BINS = 256
_OTHERS = (
    "column",
    "target_error",
    "protocol",
    "objective",
    "max_bits",
    "max_attack",
    "other",
    "separate_labels",
    "search",
)


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add ``--ordered``, ``--number`` and ``--tables``, and the options that belong to them."""
    parser.add_argument(
        "--ordered",
        metavar="LOW:HIGH",
        help="numbers or dates in this range, for ranges, quantiles and the distribution: 0:5000 or "
        "2026-01-01:2026-02-02",
    )
    parser.add_argument("--number", metavar="LOW:HIGH", help="numbers in this range, for their mean alone")
    parser.add_argument(
        "--tables",
        metavar="FILE",
        help='records with several attributes: JSON such as {"attributes": {"version": ["1", "2"], "crashed": '
        '{"labels": ["no", "yes", "unknown"], "other": "unknown"}}, "wanted": [["version"], ["version", "crashed"]]}',
    )
    parser.add_argument(
        "--bins", metavar="N", help=f"with --ordered: the number of bins, a power of two (default: {_BINS})"
    )
    parser.add_argument("--unit", metavar="TEXT", help="with --ordered or --number: the unit to show, such as ms")
    parser.add_argument(
        "--clamp",
        action="store_true",
        help="with --ordered or --number: report numbers outside the range as its nearest end; else they are refused",
    )


def is_record_plan(arguments: argparse.Namespace) -> bool:
    """Whether the plan is about numbers or records."""
    return any(given is not None for given in (arguments.ordered, arguments.number, arguments.tables))


def check_record_options(arguments: argparse.Namespace) -> None:
    """Refuse options of other plans."""
    if not is_record_plan(arguments):
        for name in ("bins", "unit", "clamp"):
            if getattr(arguments, name):
                raise ParameterError(f"--{name} needs --ordered or --number")
        return
    for name in _OTHERS:
        if getattr(arguments, name):
            option = name.replace("_", "-")
            raise ParameterError(f"--{option} is for plans of single values; leave it out")
    if arguments.tables is not None and (arguments.unit or arguments.clamp):
        raise ParameterError("--unit and --clamp need --ordered or --number; in --tables give an attribute its own")
    if arguments.bins is not None and arguments.ordered is None:
        raise ParameterError("--bins needs --ordered")
    if arguments.histogram != "flat":
        raise ParameterError("--histogram is for plans of single values; leave it out")
    if arguments.epsilon is None:
        raise ParameterError("give --epsilon")
    if any(path.lower().endswith(".html") for path in arguments.output):
        raise ParameterError("a plan of numbers or records has no page of protocols; write the plan to a .json file")


def run_records(arguments: argparse.Namespace) -> int:
    """Make the plan, write it, and print its errors."""
    users = None if arguments.users is None else parse_integer(arguments.users, "--users")
    plan = _make(arguments).with_groups(read_group_lists(arguments.group))
    for path in arguments.output:
        plan.save(path)
        say_written(path, f"the plan {plan.fingerprint[:16]}…")
    rows = _rows(plan, users or 1_000_000)
    document = {
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "users": users or 1_000_000,
        "fingerprint": plan.fingerprint,
        "report_bits": plan.report_bits,
        "errors": rows,
    }
    result = Result(table=partial(_print, plan, users or 1_000_000, rows), document=lambda: document, rows=lambda: rows)
    print_result(arguments, result)
    return 0


def _make(arguments: argparse.Namespace) -> Plan:
    from sunzi.record_plans import make_number, make_ordered

    if arguments.tables is not None:
        return _tables(arguments.tables, arguments.epsilon)
    options = {"clamp": arguments.clamp, "unit": arguments.unit or ""}
    if arguments.number is not None:
        low, high = _ends(arguments.number, "--number")
        return make_number(low, high, arguments.epsilon, **options)
    low, high = _ends(arguments.ordered, "--ordered")
    bins = _BINS if arguments.bins is None else parse_integer(arguments.bins, "--bins")
    return make_ordered(low, high, bins, arguments.epsilon, **options)


def _ends(text: str, name: str) -> tuple[Any, Any]:
    """Two numbers or dates."""
    from datetime import date

    parts = text.split(":")
    for read in (float, date.fromisoformat):
        try:
            low, high = map(read, parts)
        except ValueError:
            continue
        return low, high
    raise ParameterError(f"{name} must be two numbers or dates such as 0:5000, got {text!r}")


def _tables(path: str, epsilon: str) -> Plan:
    from sunzi.record_plans import make_tables

    with open_input(path) as stream:
        text = stream.read().decode("utf-8-sig", errors="replace")
    try:
        found = json.loads(text)
        attributes = {name: _attribute(values) for name, values in found["attributes"].items()}
        wanted = [tuple(table) for table in found["wanted"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ParameterError(
            f'{path} must be JSON with "attributes" and "wanted" as sunzi plan --help shows; got {error!r}'
        ) from None
    return make_tables(attributes, wanted, epsilon)


def _attribute(values: Any) -> Any:
    """Labels, labels with ``other``, or a range in bins."""
    from sunzi.domain import Domain
    from sunzi.ranges import OrderedDomain

    if isinstance(values, list):
        return values
    if "labels" in values:
        return Domain(values["labels"], other=values.get("other"))
    low, high = _ends(f"{values['low']}:{values['high']}", "low and high")
    return OrderedDomain(low, high, values["bins"], clamp=values.get("clamp", False), unit=values.get("unit", ""))


def _rows(plan: Plan, users: int) -> list[dict[str, Any]]:
    """What the plan answers, each with its standard error."""
    return [
        {
            "question": error.question,
            "standard_error": error.variance**0.5,
            "from_one_histogram": None if error.plain_variance is None else error.plain_variance**0.5,
        }
        for error in plan.protocol.planned_errors(plan.domain, users)
    ]


def _print(plan: Plan, users: int, rows: list[dict[str, Any]]) -> None:
    say(f"{plan.domain.in_words()}, {counted(users, 'user')}, epsilon {float(plan.epsilon):.4g}")
    say()
    cells = [
        [
            row["question"],
            f"± {percent_of_three_digits(row['standard_error'])}",
            "" if row["from_one_histogram"] is None else f"± {percent_of_three_digits(row['from_one_histogram'])}",
        ]
        for row in rows
    ]
    print_table(["question", "standard error", "from one histogram of all"], cells)
    say()
    say_wrapped(f"A report takes {plan.report_bits:g} bits and answers one question, with the whole epsilon.", "dim")
    say_wrapped(f"{privacy_bound(plan.epsilon)}.")
    success = attacker_success(plan.attackability, plan.domain.size)
    say_wrapped(f"{success[0].upper()}{success[1:]}.")
