"""``sunzi attack``: how often an attacker guesses a value from its reports."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import PICTURES, TABLES, add_client_seed, add_confidence, add_labels, add_plan
from sunzi.cli.numbers import parse_integers
from sunzi.cli.results import Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import ProgressBar, print_table, say, say_wrapped
from sunzi.client.errors import ParameterError
from sunzi.formatting import counted, percent, printable

if TYPE_CHECKING:
    from sunzi.analysis import Attack

_SCHEDULE = "1,2,5,10,20,50"
_MOST_REPORTS = 10_000
_SUFFIXES = (*TABLES, *PICTURES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``attack``, and add its arguments."""
    parser.description = (
        "Measure how often a Bayes-optimal attacker, who knows the plan and the prior, guesses a value from its "
        "report: by formula, and in a simulation against the shipped client. The value is a whole record under a plan "
        "of tables, a bin under an ordered plan, and under a plan of a number one of the points that numbers are "
        "rounded to. With --reports, also from several "
        "reports of the same value, with fresh noise and with memoisation; a picture shows the success rate against "
        "their number. Prints a table on a terminal, CSV in a pipe."
    )
    add_plan(parser)
    add_labels(parser)
    parser.add_argument(
        "--prior",
        default="uniform",
        help="prior probabilities of the values: uniform, zipf:EXPONENT (in the plan's order), or a file of lines "
        "VALUE,WEIGHT (default: %(default)s)",
    )
    parser.add_argument(
        "--trials",
        metavar="N",
        type=int,
        help="number of simulated users (default: 100,000, fewer if reports are long)",
    )
    parser.add_argument(
        "--reports",
        metavar="R",
        nargs="?",
        const=_SCHEDULE,
        help=f"also attack with R reports per user: a number, a list or a range (without a value: {_SCHEDULE})",
    )
    add_client_seed(parser)
    add_confidence(parser)
    add_output(parser, _SUFFIXES)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Attack, then print the result."""
    from sunzi.analysis import simulate_attack
    from sunzi.plan import load_plan

    reports = _schedule(arguments.reports, draws=check_output(arguments, _SUFFIXES))
    plan = load_plan(arguments.plan, labels=arguments.labels)
    with ProgressBar() as bar:
        attack = simulate_attack(
            plan,
            trials=arguments.trials,
            prior=arguments.prior,
            seed=arguments.seed,
            reports=reports,
            confidence=arguments.confidence,
            progress=bar.show,
        )
    deliver(
        arguments,
        Result(
            table=partial(_print_table, attack),
            document=attack.to_dict,
            rows=partial(_rows, attack),
            picture=partial(_draw, attack),
        ),
    )
    return 0


def _draw(attack: Attack) -> Any:
    from sunzi.analysis.attack_plots import draw_growth

    return draw_growth(attack)


def _schedule(text: str | None, *, draws: bool) -> list[int]:
    """Return the numbers of reports; a picture needs some."""
    text = text or (_SCHEDULE if draws else None)
    if text is None:
        return []
    found = parse_integers(text, "--reports")
    if min(found) < 1 or max(found) > _MOST_REPORTS:
        raise ParameterError(f"--reports must be between 1 and {_MOST_REPORTS:,}, got {text!r}")
    return found


def _rows(attack: Attack) -> list[dict[str, Any]]:
    """Return one record per measured success rate."""
    fixed = {
        "protocol": attack.protocol,
        "domain_size": attack.domain_size,
        "epsilon": str(attack.epsilon),
        "prior": attack.prior,
        "guessed": attack.guessed,
    }
    rows = [{**fixed, "client": "fresh", "reports": 1, **attack.success.to_dict(), "formula": attack.formula}]
    for client, grown in (("fresh", attack.repeated), ("memoised", attack.memoised)):
        rows += [{**fixed, "client": client, **growth.to_dict(), "formula": None} for growth in grown]
    return rows


def _print_table(attack: Attack) -> None:
    say_wrapped(
        f"{attack.protocol}, {counted(attack.choices, 'value')}, epsilon {float(attack.epsilon):.4g}, "
        f"prior {printable(attack.prior)}; the attacker guesses {attack.guessed}"
    )
    say()
    interval = f"{100 * attack.success.confidence:g} % interval"
    rows = [
        ["no report", "", percent(attack.baseline, 2), "", ""],
        [
            "1 report",
            "by formula",
            "not enumerable" if attack.formula is None else percent(attack.formula, 2),
            "",
            "",
        ],
        ["1 report", "simulated", *_measured(attack.success)],
    ]
    for kind, grown in (("fresh noise", attack.repeated), ("memoised", attack.memoised)):
        rows += [[counted(growth.reports, "report"), kind, *_measured(growth.success)] for growth in grown]
    print_table(["attacker sees", "", "success rate", interval, "trials"], rows, left=2)
    if not attack.agrees:
        say()
        say_wrapped(
            "The formula is outside the confidence interval of the simulation. For a correct client this happens "
            f"in {percent(1 - attack.success.confidence)} of all runs; run it again with more trials.",
            "red",
        )


def _measured(success: Any) -> list[str]:
    low, high = percent(success.low, 2), percent(success.high, 2)
    return [percent(success.rate, 2), f"{low} to {high}", f"{success.trials:,}"]
