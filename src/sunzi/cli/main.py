"""The command ``sunzi``: one subcommand a file, each imported only when it is run.

``sunzi --help`` and ``sunzi --version`` import neither numpy nor scipy, nor any command.

Errors are one line on standard error, ``sunzi: error: ...``; a traceback means a bug in Sunzi.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from sunzi._version import __version__
from sunzi.errors import SunziError

COMMANDS = {
    "plan": "weigh all protocols for a domain, an epsilon and a number of users, choose one and write its plan",
    "privatize": "turn one column of a table into reports",
    "tally": "count reports",
    "merge": "add tallies of one plan up",
    "estimate": "turn a tally into a histogram with intervals",
    "inspect": "say what a plan, a file of reports or a tally holds, and whether it is whole",
    "serve": "collect reports over HTTP, each counted exactly once, with a live page",
    "simulate": "send the reports of simulated users to a collector",
    "store": "show, back up, restore, merge or close what a collector has stored",
    "compare": "sweep protocols over epsilon, domain sizes or numbers of users, by formula or by simulation",
    "attack": "measure how often an attacker who sees the reports guesses the value",
    "audit": "bound epsilon from below by running the shipped client",
    "poison": "measure how far fake clients move the histogram, and whether it shows",
    "reproduce": "run the paper's figures and tables again, and say which claims hold",
    "demo": "run one collection with simulated users, and show how close the estimate comes",
}
"""Every command and what it does. ``sunzi.cli.NAME`` offers ``add_parser(commands)``, which says what it takes."""

EXIT_CODES = {
    0: "done",
    1: "the operating system refused, for instance a file that cannot be read or written",
    2: "the arguments or the data are wrong; the message names the value and the fix",
    3: "an audit found that the client does not keep its plan",
    130: "interrupted from the keyboard (128 + SIGINT, as shells count)",
    141: "the reader of the output went away (128 + SIGPIPE), which is no error and says nothing",
    143: "told to end (128 + SIGTERM)",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with _terminable():
            parsed = build_parser(*_command_of(words)).parse_args(words)
            code: int = parsed.run(parsed)
            # What is still buffered must meet its reader, or the reader's absence, in here.
            sys.stdout.flush()
            return code
    except SunziError as error:
        return _complain(str(error), code=2)
    except BrokenPipeError:
        # The interpreter flushes once more at exit and would fail again: give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        named = error.filename is not None and error.strerror
        return _complain(f"{error.filename}: {error.strerror}" if named else str(error), code=1)
    except KeyboardInterrupt:
        return 130


def _command_of(words: Sequence[str]) -> list[str]:
    """The command among these words, if there is one: no option that may precede it takes a value."""
    return [word for word in words if not word.startswith("-")][:1]


def build_parser(*commands: str) -> argparse.ArgumentParser:
    """All commands by name and summary. Only those given are imported and know their arguments, so that ``--help``
    answers at once.
    """
    parser = argparse.ArgumentParser(
        prog="sunzi",
        description="Frequency estimation under local differential privacy.",
        epilog="Exit codes: " + ". ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sunzi {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name in commands:
            module: Any = import_module(f"sunzi.cli.{name}")
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return parser


@contextmanager
def _terminable() -> Iterator[None]:
    """Let a request to end unwind the program, so that no half-written file stays behind."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # only the main thread may listen to signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain(message: str, code: int) -> int:
    print(f"sunzi: error: {' '.join(message.split())}", file=sys.stderr)
    return code
