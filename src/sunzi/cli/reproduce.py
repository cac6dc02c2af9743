"""``sunzi reproduce``: the paper's figures and tables again, and which of its claims hold."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sunzi.cli.outputs import need_matplotlib
from sunzi.cli.terminal import ProgressBar, say, styled, table
from sunzi.errors import ParameterError

_SCALES = ("quick", "full")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``reproduce`` to the command line."""
    description = (
        "Run the paper's experiments again, and write tables, pictures and a report that says which of its claims "
        "hold. A run that was interrupted goes on where it ended when it is started again. Needs the extra 'plot'."
    )
    parser = commands.add_parser("reproduce", description=description, allow_abbrev=False)
    parser.add_argument("experiments", metavar="NAME", nargs="*", help="experiments to run, or all; see --list")
    parser.add_argument("--list", action="store_true", help="name all experiments and what they reproduce")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="few trials and settings: all in some minutes")
    scale.add_argument("--full", action="store_true", help="the paper's own settings: about nine hours of one core")
    parser.add_argument(
        "--out", metavar="DIR", help="where to write (default: sunzi-reproduction-quick or sunzi-reproduction-full)"
    )
    parser.add_argument("--jobs", metavar="N", type=int, help="processes to run at once (default: one a core)")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="of all trials (default: %(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List or run."""
    if arguments.list:
        return _list()
    _check(arguments)
    experiments = _find(arguments.experiments)
    scale = "full" if arguments.full else "quick"
    root = Path(arguments.out or f"sunzi-reproduction-{scale}")
    runner = _load("runner")
    with ProgressBar() as bar:
        runner.run(experiments, scale, root, seed=arguments.seed, jobs=arguments.jobs, progress=bar.show)
    for experiment in experiments:
        say(str(root / "results" / f"{experiment.name}.csv"))
    say(str(root / "report.html"))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Complaints come before any work."""
    if not arguments.experiments:
        raise ParameterError("name an experiment to run, or all; --list names them")
    if not (arguments.quick or arguments.full):
        raise ParameterError("say how much to run: --quick (minutes) or --full (about nine hours of one core)")
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ParameterError(f"--jobs must be at least 1, got {arguments.jobs}")
    if arguments.seed < 0:
        raise ParameterError(f"--seed must not be negative, got {arguments.seed}")


def _list() -> int:
    rows = [[experiment.name, experiment.title, experiment.reproduces] for experiment in _find(["all"])]
    header, *lines = table(["name", "shows", "in the paper"], rows, left=3)
    say(styled(header, "bold", sys.stdout))
    for line in lines:
        say(line)
    return 0


def _find(names: list[str]) -> list[Any]:
    """Return the experiments of these names; each can draw, so matplotlib is needed to find them."""
    need_matplotlib("reproducing the paper")
    experiments: list[Any] = _load("catalogue").find_all(names)
    return experiments


def _load(module: str) -> Any:
    """A module of the reproduction: part of the wheel, or beside src in the repository."""
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
            "the paper's experiments are not part of this installation: they are in the wheel as sunzi.reproduction "
            "and in the repository as reproduction/"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return "reproduction"
