"""The argument parser of all commands: its own usage for an error, the nearest name, and help that breaks no words."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_HANGING = re.compile(r" +\S+ +")
_NEGATIVE = re.compile(r"-\.?[0-9]")


class HelpFormatter(argparse.HelpFormatter):
    """Wraps between words only. An indented line ``  NAME  text`` continues below its text."""

    def add_argument(self, action: argparse.Action) -> None:
        """Add an argument; unlike argparse, leave room for the indentation of a command's name."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(" ".join(text.split()), width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            hanging = _HANGING.match(line)
            lines += _wrapped(line, width, " " * (hanging.end() if hanging else 0))
        return "\n".join(indent + line for line in lines)


def _wrapped(text: str, width: int, hanging: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=hanging, break_on_hyphens=False, break_long_words=False) or [""]


class CommandParser(argparse.ArgumentParser):
    """A parser for ``sunzi`` and each of its commands.

    Options are not abbreviated. Options of ``type=int`` and ``type=float`` also take 1e6 and 1/3. Without a command or
    action, the parser prints its help.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, "allow_abbrev": False, **settings})

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Read the value of an option; errors about numbers are those of all commands, and name the option."""
        if action.type not in (int, float):
            return super()._get_value(action, arg_string)
        from sunzi.cli.numbers import parse_integer, parse_number

        name = action.option_strings[0]
        return parse_integer(arg_string, name) if action.type is int else float(parse_number(arg_string, name))

    def add_subparsers(self, **settings: Any) -> Any:
        """Add commands or actions; without one, the help is printed."""
        self.set_defaults(run=self._run_help)
        return super().add_subparsers(**settings)

    def _run_help(self, _: argparse.Namespace) -> int:
        self.print_help()
        return 0

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse unknown arguments here, where the command's own usage is known."""
        words = self._joined(sys.argv[1:] if args is None else args)
        if not self._subparsers:  # an unknown option before a missing argument, which it may be meant to be
            self._refuse([word for word in self._options_in(words) if word not in self._option_string_actions])
        parsed, unknown = super().parse_known_args(words, namespace)
        self._refuse(unknown)
        return parsed, unknown

    def _joined(self, words: Iterable[str]) -> list[str]:
        """Make ``--range -5:5`` one word, since argparse takes all that begins with - for an option."""
        found: list[str] = []
        for word in words:
            option = self._option_string_actions.get(found[-1]) if found else None
            if option is not None and option.nargs is None and _NEGATIVE.match(word):
                found[-1] += f"={word}"
            else:
                found.append(word)
        return found

    def _options_in(self, words: Sequence[str]) -> list[str]:
        before = words[: words.index("--")] if "--" in words else words
        return [word.partition("=")[0] for word in before if word.startswith("--")]

    def _refuse(self, unknown: Sequence[str]) -> None:
        if unknown:
            self.error(self._unknown(unknown))

    def _unknown(self, words: Sequence[str]) -> str:
        option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if option is None:
            return f"{words[0]!r} is one argument too many"
        return f"there is no option {option}{nearest(option, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is none of the choices, and name the nearest one."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        hint = nearest(str(value), choices)
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"there is no {str(action.metavar).lower()} {value!r}{hint or '; see ' + self.prog + ' --help'}")
        raise argparse.ArgumentError(action, f"{value!r} is none of {', '.join(choices)}{hint}")

    def error(self, message: str) -> NoReturn:
        """Print the usage and one line that begins with ``sunzi: error:``, and exit with 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"sunzi: error: {message}\n")


def nearest(word: str, names: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` for the name most like a word, or nothing if none is like it."""
    from difflib import get_close_matches

    found = get_close_matches(word, list(names), n=1)
    return f"; did you mean {found[0]}?" if found else ""
