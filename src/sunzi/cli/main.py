"""The command ``sunzi``: one module per subcommand, imported only when that subcommand runs.

``sunzi --help`` and ``sunzi --version`` import neither numpy nor scipy, nor any command.

An error is one line on standard error, ``sunzi: error: ...``, wrapped only on a terminal; a traceback is a bug in
Sunzi.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from sunzi._version import __version__
from sunzi.cli.parser import CommandParser
from sunzi.client.errors import SunziError

COMMANDS = {
    "plan": "compare all protocols for a domain, an epsilon and a number of users; choose one and write its plan",
    "privatize": "turn a column of a table into reports",
    "tally": "count reports",
    "merge": "add up tallies of one plan",
    "aggregation": "print the parameters of a secure aggregation (DAP) of a plan's reports",
    "batch": "compute what a whole batch of reports, or its tally, reveals about one person",
    "estimate": "turn a tally into a histogram with confidence intervals",
    "discover": "find frequent texts without a list of candidates, or count the texts of a list",
    "diff": "compare two tallies: what changed, with confidence intervals and verdicts",
    "trend": "follow values over epochs: series, slopes, changes, and alarms with a stated false alarm rate",
    "inspect": "describe a plan, a file of reports or a tally, and check its integrity",
    "serve": "collect reports over HTTP, count each exactly once, and show a live page",
    "simulate": "send reports of simulated users to a collector",
    "store": "show, back up, restore or merge a collector's store, or open or close an epoch in it",
    "compare": "compare protocols over a range of epsilon, domain sizes or users, by formula or by simulation",
    "attack": "measure how often an attacker guesses a value from its reports",
    "audit": "run the shipped client and compute a lower bound on its epsilon",
    "poison": "measure how much fake clients change the histogram, and whether they are detected",
    "reproduce": "reproduce the paper's figures and tables, and report which claims hold",
    "demo": "run a collection with simulated users and compare the estimate with the truth",
}
"""The summary of each command. The module ``sunzi.cli.NAME`` has ``add_arguments(parser)`` and ``run(arguments)``."""

EXIT_CODES = {
    0: "success",
    1: "an operating system error, for example a file that cannot be read or written",
    2: "invalid arguments or data; the message names the value and the fix",
    3: "an audit found that the client departs from its plan",
    130: "interrupted from the keyboard (128 + SIGINT)",
    141: "the reader of the output closed the pipe (128 + SIGPIPE); no message",
    143: "terminated (128 + SIGTERM)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _terminable():
            command = [word for word in words if not word.startswith("-")][:1]  # no option before it takes a value
            parsed = build_parser(*command).parse_args(words)
            code: int = parsed.run(parsed)
            # Flush here, so that a closed pipe is handled below.
            sys.stdout.flush()
            return code
    except SunziError as error:
        return _complain(str(error), code=2)
    except BrokenPipeError:
        # The interpreter flushes again at exit and would fail again, so redirect its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _complain(f"{error.filename}: {error.strerror}" if named else str(error), code=1)
    except KeyboardInterrupt:
        return 130


def build_parser(*commands: str) -> CommandParser:
    """Build a parser that lists all commands; only the given ones are imported and know their arguments.

    This keeps ``--help`` instant.
    """
    parser = CommandParser(
        prog="sunzi",
        description="Frequency estimation under local differential privacy.",
        epilog="exit codes:\n" + "\n".join(f"  {code:<9} {meaning}" for code, meaning in EXIT_CODES.items()),
    )
    parser.add_argument("--version", action="version", version=f"sunzi {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        if name in commands:
            module: Any = import_module(f"sunzi.cli.{name}")
            command = subparsers.add_parser(name)
            command.set_defaults(run=getattr(module, "run", None))  # the actions of `sunzi store` have one each
            module.add_arguments(command)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


@contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that cleanup runs and no half-written file stays behind."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # only the main thread may handle signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain(message: str, code: int) -> int:
    text = f"sunzi: error: {' '.join(message.split())}"
    if sys.stderr.isatty():
        from sunzi.cli.terminal import wrapped

        text = "\n".join(wrapped(text, hanging=2))
    print(text, file=sys.stderr)
    return code
