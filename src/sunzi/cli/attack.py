"""``sunzi attack``: how often an attacker who sees the reports of a plan guesses the value behind them."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.numbers import counted, parse_integer, parse_integers, percent
from sunzi.cli.outputs import PICTURES, add_format, check_suffix, need_matplotlib, save_picture, show
from sunzi.cli.terminal import ProgressBar, printable, say, styled, table
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.analysis.attack import Attack

_SCHEDULE = "1,2,5,10,20,50"
_MOST_REPORTS = 10_000


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``attack`` to the command line."""
    description = (
        "Measure how often a Bayes-optimal attacker, who knows the plan and how likely each value is, guesses a value "
        "from its report: by formula, and by playing against the client that ships. With --reports also from several "
        "reports of one value, with fresh noise and from a client that sends the same report again. On a terminal this "
        "prints a table, in a pipe JSON."
    )
    parser = commands.add_parser("attack", description=description, allow_abbrev=False)
    parser.add_argument("plan", metavar="PLAN", help="the plan file")
    parser.add_argument("--labels", metavar="FILE", help="the label file, if the plan names it by its hash")
    parser.add_argument(
        "--prior",
        default="uniform",
        help="how likely the attacker takes each value to be: uniform, zipf:EXPONENT (the values in the plan's order), "
        "or a file of lines VALUE,WEIGHT (default: %(default)s)",
    )
    parser.add_argument("--trials", metavar="N", help="simulated users (default: 100,000, fewer if reports are long)")
    parser.add_argument(
        "--reports",
        metavar="R",
        nargs="?",
        const=_SCHEDULE,
        help=f"also after so many reports of each user, a list or a range (default without a value: {_SCHEDULE})",
    )
    parser.add_argument("--seed", type=int, help="make it reproducible; the client is then not the private one")
    parser.add_argument(
        "--confidence",
        metavar="C",
        type=float,
        default=0.95,
        help="how often an interval covers (default: %(default)s)",
    )
    add_format(parser)
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help=f"draw success against the number of reports; the suffix says how: {', '.join(PICTURES)}. Needs the "
        "extra 'plot'",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Attack, then write it in the form asked for."""
    from sunzi.analysis.attack import simulate
    from sunzi.plan import load_plan

    reports = _schedule(arguments)
    trials = None if arguments.trials is None else parse_integer(arguments.trials, "--trials")
    if arguments.plot is not None:
        check_suffix(arguments.plot, PICTURES)
        need_matplotlib("drawing pictures")
    plan = load_plan(arguments.plan, labels=arguments.labels)
    with ProgressBar() as bar:
        attack = simulate(
            plan,
            trials=trials,
            prior=arguments.prior,
            seed=arguments.seed,
            reports=reports,
            confidence=arguments.confidence,
            progress=bar.show,
        )
    if arguments.plot is not None:
        from sunzi.analysis.attack_picture import draw_growth

        save_picture(arguments.plot, draw_growth(attack))
    show(arguments.format, table=partial(_print_table, attack), document=attack.to_dict, rows=partial(_rows, attack))
    return 0


def _schedule(arguments: argparse.Namespace) -> list[int]:
    """Numbers of reports; a picture needs some."""
    text = arguments.reports or (_SCHEDULE if arguments.plot is not None else None)
    if text is None:
        return []
    found = parse_integers(text, "--reports")
    if min(found) < 1 or max(found) > _MOST_REPORTS:
        raise ParameterError(f"--reports must lie between 1 and {_MOST_REPORTS:,}, got {text!r}")
    return found


def _rows(attack: Attack) -> list[dict[str, Any]]:
    """Every measured success as a record, what was done first."""
    fixed = {
        "protocol": attack.protocol,
        "domain_size": attack.domain_size,
        "epsilon": str(attack.epsilon),
        "prior": attack.prior,
    }
    rows = [{**fixed, "client": "fresh", "reports": 1, **attack.success.to_dict(), "formula": attack.formula}]
    for client, grown in (("fresh", attack.repeated), ("memoised", attack.memoised)):
        rows += [{**fixed, "client": client, **growth.to_dict(), "formula": None} for growth in grown]
    return rows


def _print_table(attack: Attack) -> None:
    """For a person."""
    say(
        f"{attack.protocol}, {counted(attack.domain_size, 'value')}, epsilon {float(attack.epsilon):.4g}, "
        f"prior {printable(attack.prior)}"
    )
    say()
    interval = f"{100 * attack.success.confidence:g} % interval"
    rows = [
        ["no report", "", percent(attack.baseline, 2), "", ""],
        [
            "1 report",
            "by formula",
            "too many messages" if attack.formula is None else percent(attack.formula, 2),
            "",
            "",
        ],
        ["1 report", "simulated", *_measured(attack.success)],
    ]
    for kind, grown in (("fresh noise", attack.repeated), ("the same again", attack.memoised)):
        rows += [[counted(growth.reports, "report"), kind, *_measured(growth.success)] for growth in grown]
    header, *lines = table(["attacker sees", "", "is right", interval, "trials"], rows, left=2)
    say(styled(header, "bold", sys.stdout))
    for line in lines:
        say(line)
    if not attack.agrees:
        say()
        say(
            styled(
                "The formula lies outside the interval of the simulation; a right client shows this in "
                f"{percent(1 - attack.success.confidence)} of all runs. Run it again with more trials.",
                "red",
                sys.stdout,
            )
        )


def _measured(success: Any) -> list[str]:
    low, high = percent(success.low, 2), percent(success.high, 2)
    return [percent(success.rate, 2), f"{low} to {high}", f"{success.trials:,}"]
