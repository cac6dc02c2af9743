"""``sunzi reproduce``: reproduce the paper's figures and tables, and report which claims hold."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sunzi.cli.files import need_matplotlib
from sunzi.cli.results import Result, add_format, print_result, say_written
from sunzi.cli.terminal import ProgressBar, say, wrapped
from sunzi.client.errors import ParameterError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``reproduce``, and add its arguments."""
    parser.description = (
        "Reproduce the paper's experiments: write tables, pictures and a report of which claims hold. An interrupted "
        "run resumes when started again. Needs the extra 'plot'."
    )
    parser.add_argument("experiments", metavar="NAME", nargs="*", help="names of experiments, or all; see --list")
    parser.add_argument("--list", action="store_true", help="list all experiments and what they reproduce")
    add_format(parser, "the list")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick", action="store_true", help="few trials and settings; all experiments take a few minutes"
    )
    scale.add_argument(
        "--full", action="store_true", help="the paper's settings; all experiments take about three core hours"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="output folder (default: sunzi-reproduction-quick or sunzi-reproduction-full)",
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="number of processes (default: one per core)")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="seed of all trials (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """List the experiments, or run some."""
    if arguments.list:
        return _list(arguments)
    _check(arguments)
    experiments = _find(arguments.experiments)
    scale = "full" if arguments.full else "quick"
    root = Path(arguments.output or f"sunzi-reproduction-{scale}")
    runner = _load("runner")
    with ProgressBar() as bar:
        runner.run(experiments, scale, root, seed=arguments.seed, jobs=arguments.jobs, progress=bar.show)
    for experiment in experiments:
        say_written(str(root / "results" / f"{experiment.name}.csv"), f"the results of {experiment.name}")
    say_written(str(root / "report.html"), "the report")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Check the arguments before any work."""
    if not arguments.experiments:
        raise ParameterError("give the names of experiments to run, or all; --list shows them")
    if not (arguments.quick or arguments.full):
        raise ParameterError("choose --quick (a few minutes) or --full (about three core hours)")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, got {arguments.jobs}")
    if arguments.seed < 0:
        raise ParameterError(f"--seed must not be negative, got {arguments.seed}")


def _list(arguments: argparse.Namespace) -> int:
    records = [{"name": each.name, "shows": each.title, "in_the_paper": each.reproduces} for each in _find(["all"])]
    result = Result(table=partial(_print_list, records), document=lambda: records, rows=lambda: records)
    print_result(arguments, result)
    return 0


def _print_list(records: list[dict[str, str]]) -> None:
    width = max(len(record["name"]) for record in records) + 2
    for record in records:
        text = f"{record['name']:{width}}{record['shows']}; in the paper: {record['in_the_paper']}"
        for line in wrapped(text, hanging=width):
            say(line)


def _find(names: list[str]) -> list[Any]:
    """Return the experiments of these names; each can draw, so matplotlib is needed to find them."""
    need_matplotlib("reproducing the paper")
    experiments: list[Any] = _load("catalogue").find_all(names)
    return experiments


def _load(module: str) -> Any:
    """Import a module of the reproduction, from the wheel or from the repository."""
    return import_module(f"{_package()}.{module}")


def _package() -> str:
    try:
        import_module("sunzi.reproduction")
        return "sunzi.reproduction"
    except ModuleNotFoundError as error:
        if error.name != "sunzi.reproduction":
            raise
    root = Path(__file__).resolve().parents[3]
    if not (root / "reproduction" / "catalogue.py").is_file():
        raise ParameterError(
            "this installation lacks the paper's experiments; the wheel has them as sunzi.reproduction, the repository "
            "as reproduction/"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return "reproduction"
