"""Plans of numbers and records: ``sunzi plan --ordered``, ``--number`` and ``--tables``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import open_input, parse_json, refuse_options
from sunzi.cli.group_lists import read_group_lists
from sunzi.cli.results import Result, deliver_plan
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import bits_in_words, counted, percent_of_three_digits, privacy_bound

if TYPE_CHECKING:
    from sunzi.client.epsilon import Epsilon
    from sunzi.plan import Plan

_BINS = 256
_USERS = 1_000_000
_LONGEST_SHOWN = 100
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
    "delta",
)


@dataclass(frozen=True)
class RecordRequest:
    """What to plan, except for ε."""

    make: Callable[[Epsilon], Plan]
    wanted: Sequence[Sequence[str]] | None = None
    """The tables, for a plan of tables."""


def add_records(parser: argparse.ArgumentParser) -> None:
    """Add ``--ordered``, ``--number``, ``--tables`` and ``--bins``."""
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
        "--bins", metavar="N", type=int, help=f"with --ordered: the number of bins, a power of two (default: {_BINS})"
    )


def add_number_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--unit`` and ``--clamp``."""
    parser.add_argument("--unit", metavar="TEXT", help="with --ordered or --number: the unit to show, such as ms")
    parser.add_argument(
        "--clamp",
        action="store_true",
        help="with --ordered or --number: report numbers outside the range as the nearest end instead of refusing them",
    )


def is_record_plan(arguments: argparse.Namespace) -> bool:
    """Whether the plan is about numbers or records."""
    return any(given is not None for given in (arguments.ordered, arguments.number, arguments.tables))


def check_record_options(arguments: argparse.Namespace) -> None:
    """Refuse options of other plans."""
    if arguments.ordered is None:
        refuse_options(arguments, ("bins",), "needs --ordered")
    if not is_record_plan(arguments):
        refuse_options(arguments, ("unit", "clamp"), "needs --ordered or --number")
        return
    check_other_options(arguments)
    if arguments.tables is not None and (arguments.unit or arguments.clamp):
        raise ParameterError("--unit and --clamp need --ordered or --number; in --tables give an attribute its own")


def check_other_options(arguments: argparse.Namespace) -> None:
    """Refuse options of plans of single values, where there is a list of them."""
    refuse_options(arguments, _OTHERS, "is for plans of single values; omit it")
    if arguments.histogram != "flat":
        raise ParameterError("--histogram is for plans of single values; omit it")
    if arguments.epsilon is None:
        raise ParameterError("give --epsilon")
    if any(path.lower().endswith(".html") for path in arguments.output):
        raise ParameterError("there is no comparison page for this kind of plan; write the plan to a .json file")


def run_records(arguments: argparse.Namespace) -> int:
    """Make the plan, write it, and print its errors."""
    users = planned_users(arguments)
    request = record_request(arguments, clamp=arguments.clamp, unit=arguments.unit or "")
    plan = (
        request.make(arguments.epsilon).with_groups(read_group_lists(arguments.group)).with_lifetime(arguments.lifetime)
    )
    rows = _rows(plan, users, request.wanted)
    deliver_record_plan(arguments, plan, users, "errors", rows, partial(_print, plan, users, rows))
    return 0


def planned_users(arguments: argparse.Namespace) -> int:
    """The number of users to plan for."""
    users: int = _USERS if arguments.users is None else arguments.users
    if users < 1:
        raise ParameterError(f"--users must be at least 1, got {arguments.users}")
    return users


def deliver_record_plan(
    arguments: argparse.Namespace,
    plan: Plan,
    users: int,
    name: str,
    rows: list[dict[str, Any]],
    table: Callable[[], None],
) -> None:
    """Write the plan, and print what to expect of it as a table, or as ``rows``, which JSON has under a name."""
    document = {
        "protocol": plan.protocol.name,
        "epsilon": str(plan.epsilon),
        "users": users,
        "fingerprint": plan.fingerprint,
        "report_bits": plan.report_bits,
        name: rows,
    }
    deliver_plan(arguments, plan, Result(table=table, document=lambda: document, rows=lambda: rows))


def record_request(arguments: argparse.Namespace, **options: Any) -> RecordRequest:
    """The request of ``--ordered``, ``--number`` or ``--tables``; ``options`` are those of numbers."""
    from sunzi.record_plans import make_number, make_ordered, make_tables

    if arguments.tables is not None:
        attributes, wanted = _schema(arguments.tables)
        return RecordRequest(lambda epsilon: make_tables(attributes, wanted, epsilon), wanted)
    if arguments.number is not None:
        least, most = _ends(arguments.number, "--number")
        return RecordRequest(lambda epsilon: make_number(least, most, epsilon, **options))
    low, high = _ends(arguments.ordered, "--ordered")
    bins = _BINS if arguments.bins is None else arguments.bins
    return RecordRequest(lambda epsilon: make_ordered(low, high, bins, epsilon, **options))


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


def _schema(path: str) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """The attributes and the wanted tables."""
    with open_input(path) as stream:
        text = stream.read().decode("utf-8-sig", errors="replace")
    found = parse_json(path, text)
    try:
        return _read_schema(found)
    except ParameterError as error:
        raise ParameterError(f"{path}: {error}") from None


def _json(value: Any) -> str:
    """A value of the file, for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _check_keys(what: str, record: dict[str, Any], needed: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Refuse an object without some keys, or with others."""
    missing = next((key for key in needed if key not in record), None)
    unknown = next((key for key in record if key not in (*needed, *optional)), None)
    listed = ", ".join(map(repr, needed)) + "".join(f", optionally {key!r}" for key in optional)
    if missing is not None:
        raise ParameterError(f"{what} has {listed}; {missing!r} is missing")
    if unknown is not None:
        raise ParameterError(f"{what} has {listed}; {_json(unknown)} is not known")


def _read_schema(found: Any) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    if not isinstance(found, dict):
        raise ParameterError(f"a schema is a JSON object with 'attributes' and 'wanted', got {_json(found)}")
    _check_keys("a schema", found, ["attributes", "wanted"])
    attributes, wanted = found["attributes"], found["wanted"]
    if not isinstance(attributes, dict):
        raise ParameterError(f"'attributes' is an object of names and their values, got {_json(attributes)}")
    if not isinstance(wanted, list):
        raise ParameterError(f"'wanted' is a list of tables, each a list of attributes, got {_json(wanted)}")
    for table in wanted:
        if not isinstance(table, list) or not all(isinstance(name, str) for name in table):
            raise ParameterError(f'a wanted table is a list of attributes such as ["version"], got {_json(table)}')
    read = {}
    for name, values in attributes.items():
        try:
            read[name] = _attribute(values)
        except ParameterError as error:
            raise ParameterError(f"attribute {name!r}: {error}") from None
    return read, [tuple(table) for table in wanted]


def _attribute(values: Any) -> Any:
    """Labels, labels with ``other``, or a range in bins."""
    from sunzi.domains.labels import Domain
    from sunzi.domains.ranges import OrderedDomain

    if isinstance(values, list):
        return Domain(values)
    if isinstance(values, dict) and "labels" in values:
        _check_keys("an attribute with labels", values, ["labels"], ["other"])
        if not isinstance(values["labels"], list):
            raise ParameterError(f"'labels' is a list of texts, got {_json(values['labels'])}")
        return Domain(values["labels"], other=values.get("other"))
    if not isinstance(values, dict) or not {"low", "high", "bins"} & set(values):
        raise ParameterError(
            "give a list of labels, an object with 'labels' and 'other', or one with 'low', 'high' and 'bins'; got "
            f"{_json(values)}"
        )
    if "other" in values:
        raise ParameterError(
            f"a range has no 'other', got {_json(values['other'])}; for records without the number, give the bins as "
            "labels, with one more for them (docs/records.md)"
        )
    _check_keys("a range", values, ["low", "high", "bins"], ["clamp", "unit"])
    low, high = _ends(f"{values['low']}:{values['high']}", "low and high")
    return OrderedDomain(low, high, values["bins"], clamp=values.get("clamp", False), unit=values.get("unit", ""))


def _rows(plan: Plan, users: int, wanted: Sequence[Sequence[str]] | None) -> list[dict[str, Any]]:
    """What the plan answers, each with its standard error."""
    from sunzi.protocols.alternatives import ONE_HISTOGRAM

    rows = []
    for error in plan.protocol.planned_errors(plan.domain, users, wanted):
        plain = error.alternatives.get(ONE_HISTOGRAM)
        rows.append(
            {
                "question": error.question,
                "standard_error": error.variance**0.5,
                "from_one_histogram": None if plain is None else plain**0.5,
            }
        )
    return rows


def _print(plan: Plan, users: int, rows: list[dict[str, Any]]) -> None:
    values = plan.protocol.values_in_words(plan.domain)
    say_wrapped(f"{values}, {counted(users, 'user')}, epsilon {float(plan.epsilon):.4g}")
    say()
    columns = {"standard_error": "standard error", "from_one_histogram": "from one histogram of all"}
    shown = [name for name in columns if rows[0][name] is not None]
    cells = [[row["question"], *(f"± {percent_of_three_digits(row[name])}" for name in shown)] for row in rows]
    print_table(["question", *(columns[name] for name in shown)], cells)
    say()
    say_spending(plan)
    success = plan.attacker_in_words()
    say_wrapped(f"{success[0].upper()}{success[1:]}.")


def say_spending(plan: Plan) -> None:
    """Print the size of a report, and what epsilon guarantees."""
    bits = bits_in_words(plan.report_bits)
    say_wrapped(f"A report takes {bits} and spends the whole epsilon on one question.", "dim")
    say_wrapped(f"{privacy_bound(plan.epsilon)}.")
