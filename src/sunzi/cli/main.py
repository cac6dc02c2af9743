"""The command ``sunzi``: one subcommand a file, each importing what it needs when it runs.

``sunzi --help`` and ``sunzi --version`` import neither numpy nor scipy.

Exit codes:

=====  ==================================================================================================
0      done
1      the operating system refused, for instance a file that cannot be written
2      the arguments or the data are wrong: argparse's own errors, and every :class:`~sunzi.errors.SunziError`
130    interrupted from the keyboard (128 + SIGINT, as shells count)
141    the reader of the output went away (128 + SIGPIPE), which is no error and says nothing
=====  ==================================================================================================

Errors are one line on standard error, ``sunzi: error: ...``; a traceback means a bug in Sunzi.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from sunzi._version import __version__
from sunzi.cli import demo
from sunzi.errors import SunziError

_COMMANDS = (demo,)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    try:
        parsed = build_parser().parse_args(arguments)
        code: int = parsed.run(parsed)
        # What is still buffered must meet its reader, or the reader's absence, in here.
        sys.stdout.flush()
        return code
    except SunziError as error:
        return _complain(error, code=2)
    except BrokenPipeError:
        # The interpreter flushes once more at exit and would fail again: give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _complain(error, code=1)
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Collect the commands. Building it imports nothing heavy, so that ``--help`` answers at once."""
    parser = argparse.ArgumentParser(
        prog="sunzi", description="Frequency estimation under local differential privacy.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"sunzi {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def _complain(error: Exception, code: int) -> int:
    message = " ".join(str(error).split())
    print(f"sunzi: error: {message}", file=sys.stderr)
    return code
