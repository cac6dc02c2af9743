"""Plans of texts without a list: ``sunzi plan --open``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import open_input, refuse_options
from sunzi.cli.group_lists import read_group_lists
from sunzi.cli.record_plans import check_other_options, deliver_record_plan, planned_users, say_spending
from sunzi.cli.terminal import print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, percent_of_three_digits

if TYPE_CHECKING:
    from sunzi.plan import Plan

_RECALLS = (0.5, 0.8, 0.95)
_COLUMNS = tuple(f"found_{100 * recall:.0f}" for recall in _RECALLS)


def add_open(parser: argparse.ArgumentParser) -> None:
    """Add ``--open``, and the options that belong to it."""
    parser.add_argument(
        "--open",
        metavar="ALPHABET",
        nargs="?",
        const="bytes",
        help="plan for texts without a list, which 'sunzi discover' finds; read as UTF-8 bytes (the default), as "
        "letters (a to z), or as the tokens in a file, one per line",
    )
    parser.add_argument(
        "--longest",
        "--length",
        metavar="N",
        type=int,
        help="with --open: maximum length of a text in tokens; longer texts are truncated and counted as such",
    )
    parser.add_argument(
        "--note",
        metavar="TEXT",
        help="with --open: how your application normalises texts, such as 'lower case, NFC'; stored in the plan as "
        "information, since Sunzi does not normalise texts",
    )
    parser.add_argument(
        "--list-only",
        action="store_true",
        help="with --open: no search; estimate only texts that you list later",
    )


def check_open_options(arguments: argparse.Namespace) -> None:
    """Refuse options of other plans."""
    if arguments.open is None:
        refuse_options(arguments, ("longest", "note", "list_only"), "needs --open")
        return
    check_other_options(arguments)
    if arguments.longest is None:
        raise ParameterError("--open needs --longest, the maximum length of a text in tokens, such as 12")


def run_open(arguments: argparse.Namespace) -> int:
    """Make the plan, write it, and print how frequent a text must be to be found."""
    from sunzi.domains.texts import OpenDomain
    from sunzi.plan import make_plan

    users = planned_users(arguments)
    domain = OpenDomain(_alphabet(arguments.open), arguments.longest, note=arguments.note or "")
    groups = read_group_lists(arguments.group)
    plan = make_plan("prefixes", domain, arguments.epsilon, groups=groups, list_only=arguments.list_only)
    plan = plan.with_lifetime(arguments.lifetime)
    by_recall = [plan.thresholds(users, recall=recall) for recall in _RECALLS]
    rows = [
        {"tokens": found[0].tokens, **dict(zip(_COLUMNS, (each.frequency for each in found), strict=True))}
        for found in zip(*by_recall, strict=True)
    ]
    deliver_record_plan(arguments, plan, users, "thresholds", rows, partial(_print, plan, users, rows))
    return 0


def _alphabet(text: str) -> str | Iterable[str]:
    if text in ("letters", "bytes"):
        return text
    with open_input(text) as stream:
        try:
            content = stream.read().decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise ParameterError(f"{text} is not UTF-8 text with one token per line") from None
    return content.removesuffix("\n").split("\n")  # tokens may hold other line separators


def _print(plan: Plan, users: int, rows: list[dict[str, Any]]) -> None:
    say_wrapped(f"{plan.domain.in_words()}, {counted(users, 'user')}, epsilon {float(plan.epsilon):.4g}")
    say()
    cells = [[length_in_words(row["tokens"]), *(share_in_words(row[column]) for column in _COLUMNS)] for row in rows]
    print_table(["a text", *(f"{recall:.0%}".replace("%", " %") for recall in _RECALLS)], cells)
    say()
    say_wrapped(
        "The frequency at which a text is found with this probability, at a false discovery rate of 5 %. The list is "
        "assumed to have a million candidates."
    )
    say_wrapped(f"The frequency of a text that you name has a standard error of {_error(plan, users)}.")
    say_spending(plan)


def length_in_words(tokens: int | None) -> str:
    """Which texts a threshold applies to."""
    return "from a list of candidates" if tokens is None else f"of up to {counted(tokens, 'token')}"


def share_in_words(frequency: float) -> str:
    """A threshold; texts that even all users have can be missed if users are few."""
    return percent_of_three_digits(frequency) if frequency <= 1 else "never"


def _error(plan: Plan, users: int) -> str:
    return percent_of_three_digits(plan.expected_mse(users) ** 0.5)
