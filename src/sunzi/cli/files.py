"""Inputs and outputs of commands: shared arguments, plans, tallies, tables and pictures.

The name ``-`` means standard input or output.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from sunzi.atomic_files import open_atomically, write_atomically
from sunzi.client.errors import ParameterError, PlanError
from sunzi.errors import TallyError, needing_matplotlib

if TYPE_CHECKING:
    from sunzi.plan import Plan
    from sunzi.tally import Tally

STANDARD = "-"
TOKEN_VARIABLE = "SUNZI_ADMIN_TOKEN"  # the name of a variable, not its value
TABLES = (".csv", ".json", ".parquet")
PICTURES = (".png", ".svg", ".pdf")


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``PLAN``."""
    parser.add_argument("plan", metavar="PLAN", help="plan file")


def add_labels(parser: argparse.ArgumentParser, note: str = "") -> None:
    """Add ``--labels``; ``note`` ends its help."""
    parser.add_argument("--labels", metavar="FILE", help=f"label file, if the plan identifies it by its hash{note}")


def add_column(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--column`` and ``--delimiter``, for one column of a table."""
    parser.add_argument("--column", metavar="NAME", help=meaning)
    parser.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        help="what separates the columns of CSV: ',', ';' or tab (default: the one in the line of column names)",
    )


def add_by(parser: argparse.ArgumentParser | argparse._ArgumentGroup, meaning: str) -> None:
    """Add ``--by``, for columns that name groups."""
    parser.add_argument(
        "--by",
        metavar="NAME",
        action="append",
        help=f"{meaning}. May be given several times, or name several columns with commas between them",
    )


def columns_by(arguments: argparse.Namespace) -> list[str]:
    """The columns that ``--by`` names; quotation marks protect a comma in a name, as in CSV."""
    return [name for text in arguments.by or () for name in next(csv.reader([text])) or [""]]


def add_confidence(parser: argparse.ArgumentParser, default: float = 0.95, meaning: str = "") -> None:
    """Add ``--confidence``, by default of confidence intervals."""
    meaning = meaning or "confidence level of the intervals"
    parser.add_argument(
        "--confidence", metavar="C", type=float, default=default, help=f"{meaning} (default: %(default)s)"
    )


def add_client_seed(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed`` for a reproducible client."""
    parser.add_argument(
        "--seed", metavar="S", type=int, help="seed for a reproducible run; replaces the operating system's randomness"
    )


def add_histogram(parser: argparse.ArgumentParser) -> None:
    """Add ``--histogram``, the frequencies that errors are computed for."""
    parser.add_argument(
        "--histogram",
        choices=("flat", "skewed"),
        default="flat",
        help="frequencies to compute errors for: flat, all values equally frequent; skewed, Zipf's law with exponent "
        "1.1, which takes up to a minute on tens of thousands of values (default: %(default)s)",
    )


def add_delta(parser: argparse.ArgumentParser) -> None:
    """Add ``--delta``, for the axis of central ε."""
    parser.add_argument(
        "--delta",
        metavar="D",
        type=float,
        help="also compute the central epsilon of a shuffled batch of all reports, with this delta, such as 1e-8, if "
        "all clients follow the plan (docs/batch.md)",
    )


def add_simulation(parser: argparse.ArgumentParser, population: str) -> None:
    """Add ``--seed`` and ``--population`` for simulated users."""
    parser.add_argument(
        "--seed", metavar="S", type=int, default=1, help="seed of the simulation (default: %(default)s)"
    )
    parser.add_argument(
        "--population",
        metavar="NAME",
        default=population,
        help="distribution of the simulated values: uniform, spike (all users hold the same value) or zipf:EXPONENT "
        "(default: %(default)s)",
    )


def load_labelled_plan(path: str, labels: str | None) -> Plan:
    """Load a plan whose labels are known, from the plan itself or from a label file."""
    from sunzi.plan import load_plan

    plan = load_plan(path)
    if labels is not None and not plan.domain.is_open:
        return load_plan(path, labels=labels)
    return with_labels(plan, path, labels)


def with_labels(plan: Plan, source: str, labels: str | None) -> Plan:
    """The plan with its labels, from the label file if it identifies them by their hash."""
    if not plan.domain.has_labels or plan.domain.labels is not None:
        return plan
    if labels is None:
        raise ParameterError(f"{source} identifies its labels by their hash; give the label file with --labels")
    return plan.with_labels(labels)


def input_name(path: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == STANDARD else path


def parse_json(path: str, text: str) -> Any:
    """The value of a JSON file. No object may repeat a key: of two groups with one name, the first would disappear."""

    def distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                key = json.dumps(name, ensure_ascii=False)
                raise ParameterError(f"{path}: {key} occurs twice in one object; rename or remove one")
            found[name] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=distinct)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ParameterError(f"{path} is not JSON: {error}") from None


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file, or standard input."""
    if path == STANDARD:
        yield sys.stdin.buffer
        return
    with open(path, "rb") as stream:
        yield stream


def read_tally(path: str) -> Tally:
    """Read a tally from a file or standard input; errors name it."""
    from sunzi.tally import Tally

    with open_input(path) as stream:
        data = stream.read()
    try:
        return Tally.from_bytes(data)
    except TallyError as error:
        raise TallyError(f"{input_name(path)}: {error}") from None


def refuse_options(arguments: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Refuse the options of these names that were given; ``reason`` follows the option in the message."""
    for name in names:
        given = getattr(arguments, name)
        if given is not None and given is not False and given != []:
            raise ParameterError(f"--{name.replace('_', '-')} {reason}")


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, which belongs to ``-o``."""
    parser.add_argument("--force", action="store_true", help="replace an output file that exists")


def check_new(output: str | None, *, force: bool) -> None:
    """Refuse to replace an existing file without ``--force``."""
    if output is not None and output != STANDARD and not force and os.path.isfile(output):
        raise ParameterError(f"{output} exists; give -o another name, or --force to replace it")


def check_order(command: str, plan: str, others: Sequence[str]) -> None:
    """Refuse arguments in another order than the plan first."""
    swapped = next((path for path in others if _is_plan(path)), None)
    if swapped is not None and os.path.isfile(plan) and not _is_plan(plan):
        right = " ".join([swapped, *(plan if path == swapped else path for path in others)])
        raise ParameterError(f"the plan comes first, and {plan} is not a plan, {swapped} is: sunzi {command} {right}")


def _is_plan(path: str) -> bool:
    """Whether a file is a plan; False if it cannot be read, which is reported when it is opened."""
    from sunzi.client.plan import load_plan

    try:
        with open(path, "rb") as stream:
            if not os.path.isfile(path) or not stream.read(64).lstrip().startswith(b"{"):
                return False
        load_plan(path)
    except (OSError, PlanError):
        return False
    return True


def check_paths(inputs: Sequence[str], output: str | None = None, *, force: bool = False) -> None:
    """Refuse an input that is given twice, and an output that is an input or exists."""
    seen: list[str] = []
    for path in inputs:
        if any(_is_same(path, other) for other in seen):
            raise ParameterError(f"{input_name(path)} is given twice and would be counted twice")
        seen.append(path)
    if output is not None and output != STANDARD and any(_is_same(path, output) for path in inputs):
        raise ParameterError(f"{output} is an input and must not be overwritten; give -o another name")
    check_new(output, force=force)


def _is_same(path: str, other: str) -> bool:
    if STANDARD in (path, other):
        return path == other
    try:
        return os.path.samefile(path, other)
    except OSError:  # one of them does not exist, which is reported when it is opened
        return False


def is_standard_output(path: str | None) -> bool:
    """Return whether the output goes to standard output."""
    return path is None or path == STANDARD


def check_suffix(path: str, suffixes: Sequence[str]) -> str:
    """Return the suffix of an output's name in lower case, if it is one of these."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in suffixes:
        raise ParameterError(f"the output's name must end in one of {', '.join(suffixes)}; got {path!r}")
    return suffix


@contextmanager
def open_output(path: str | None, content: str, cut_mark: bytes = b"") -> Iterator[BinaryIO]:
    """Open a file that appears complete at the end or not at all, or standard output unless that is a terminal.

    Bytes already written to a pipe cannot be taken back. If the block fails, ``cut_mark`` follows them: the beginning
    of another record, so that a reader does not mistake the part for the whole.
    """
    if path is not None and path != STANDARD:
        with open_atomically(path) as stream:
            yield stream
        return
    if sys.stdout.isatty():
        raise ParameterError(f"cannot write {content} to the terminal: it is binary; give -o FILE or use a pipe")
    try:
        yield sys.stdout.buffer
    except BrokenPipeError:
        raise
    except BaseException:
        with suppress(OSError):
            sys.stdout.buffer.write(cut_mark)
            sys.stdout.buffer.flush()
        raise
    sys.stdout.buffer.flush()


def need_matplotlib(feature: str) -> None:
    """Raise an error that names the extra to install if matplotlib is missing."""
    with needing_matplotlib(feature):
        import_module("matplotlib")


def save_picture(path: str, figure: Any) -> None:
    """Write a matplotlib figure in the format of its suffix."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=PurePath(path).suffix.lower().removeprefix("."), dpi=150)
    write_atomically(path, drawn.getvalue())
