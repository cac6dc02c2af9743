"""``sunzi compare``: protocols over a range of ε, domain sizes or users, as a table, a file or a picture."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from sunzi.cli.axes_table import axes_cells, axes_header
from sunzi.cli.quantities import several, several_whole
from sunzi.cli.streams import STANDARD
from sunzi.cli.terminal import is_terminal, say, styled, table
from sunzi.cli.waiting import Waiting
from sunzi.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from sunzi.planning.sweep import Record, Setting, Trials

_TABLES = (".csv", ".json", ".parquet")
_PICTURES = (".png", ".svg", ".pdf")
_VARIED = ("epsilon", "size", "users")
_FIXED = {"epsilon": "1", "size": "1024", "users": "10000"}
_RANGES = {"epsilon": "0.5:5:0.5", "size": "64:65536:x4", "users": "1000:1000000:x10"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``compare`` to the command line."""
    description = (
        "Sweep protocols over epsilon, domain sizes or numbers of users. A value is a number, a list 1,2,4, a range "
        "FIRST:LAST:STEP or a range FIRST:LAST:xFACTOR. Without --simulate all figures are formulas; with it, errors "
        "and times are measured in simulated collections. On a terminal this prints a table, in a pipe CSV."
    )
    parser = commands.add_parser("compare", description=description, allow_abbrev=False)
    parser.add_argument("--epsilon", metavar="E", help=f"privacy of one report (default: {_FIXED['epsilon']})")
    parser.add_argument("--size", metavar="K", help=f"values in the domain (default: {_FIXED['size']})")
    parser.add_argument("--users", metavar="N", help=f"users (default: {_FIXED['users']})")
    parser.add_argument(
        "--vary",
        choices=_VARIED,
        help="what to sweep and to draw against (default: what has several values, else epsilon); swept over "
        + ", ".join(f"{name} {values}" for name, values in _RANGES.items())
        + " if no values are given",
    )
    parser.add_argument("--protocols", metavar="NAMES", help="names with commas between them (default: all)")
    parser.add_argument("--simulate", metavar="TRIALS", type=int, help="measure in so many simulated collections")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default: %(default)s)")
    parser.add_argument(
        "--population",
        default="zipf:3",
        help="what simulated users hold: uniform, spike (all the same value) or zipf:EXPONENT (default: %(default)s)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help=f"where to write it, once or more; the suffix says how: {', '.join((*_TABLES, *_PICTURES))}. Parquet "
        "needs the extra 'frames', a picture the extra 'plot'",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Sweep, then write it in the forms asked for."""
    from sunzi.planning.sweep import sweep

    _check_outputs(arguments.output)
    points, varied = _settings(arguments)
    trials = _trials(arguments)
    with Waiting() as waiting:
        records = list(sweep(points, _protocols(arguments), trials, waiting.show))
    for path in arguments.output:
        _write(path, records, varied)
    if not arguments.output:
        _print(records, varied)
    return 0


def _check_outputs(paths: list[str]) -> None:
    """Complaints come before any work."""
    for path in paths:
        suffix = PurePath(path).suffix.lower()
        if path == STANDARD or suffix not in (*_TABLES, *_PICTURES):
            known = ", ".join((*_TABLES, *_PICTURES))
            raise ParameterError(f"the output's name must end in one of {known}; got {path!r}")
        if suffix in _PICTURES:
            _need_pictures()


def _settings(arguments: argparse.Namespace) -> tuple[list[Setting], str]:
    """All combinations, and what to draw against."""
    from sunzi.planning.sweep import settings

    texts = {name: getattr(arguments, name) for name in _VARIED}
    varied = arguments.vary or (None if any(texts.values()) else "epsilon")
    if varied is not None and texts[varied] is None:
        texts[varied] = _RANGES[varied]
    texts = {name: _FIXED[name] if text is None else text for name, text in texts.items()}
    sizes, users = several_whole(texts["size"], "--size"), several_whole(texts["users"], "--users")
    epsilons = several(texts["epsilon"], "--epsilon")
    lengths = {"epsilon": len(epsilons), "size": len(sizes), "users": len(users)}
    swept = [name for name, length in lengths.items() if length > 1]
    varied = varied or (swept[0] if swept else "epsilon")
    if any(PurePath(path).suffix.lower() in _PICTURES for path in arguments.output) and set(swept) - {varied}:
        raise ParameterError(
            f"a picture is drawn against one of epsilon, size and users, got several values of {' and '.join(swept)}"
        )
    return settings(sizes, epsilons, users), varied


def _protocols(arguments: argparse.Namespace) -> list[str]:
    from sunzi.protocols.catalogue import catalogue, find

    if arguments.protocols is None:
        return list(catalogue())
    names = list(dict.fromkeys(name.strip() for name in arguments.protocols.split(",")))
    for name in names:
        find(name)
    return names


def _trials(arguments: argparse.Namespace) -> Trials | None:
    from sunzi.planning.populations import Population
    from sunzi.planning.sweep import Trials

    if arguments.simulate is None:
        return None
    return Trials(arguments.simulate, arguments.seed, Population.parse(arguments.population))


def _need_pictures() -> Any:
    try:
        from sunzi.planning import pictures
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError("drawing pictures", "plot") from None
    return pictures


def _write(path: str, records: list[Record], varied: str) -> None:
    """One file, whole or not at all."""
    from sunzi.atomic_files import write_atomically
    from sunzi.tables.records import records_as

    form = PurePath(path).suffix.lower().removeprefix(".")
    if f".{form}" in _TABLES:
        write_atomically(path, records_as(form, [record.row() for record in records]))
        return
    drawn = io.BytesIO()
    _need_pictures().draw_sweep(records, varied).savefig(drawn, format=form, dpi=150)
    write_atomically(path, drawn.getvalue())


def _print(records: list[Record], varied: str) -> None:
    from sunzi.tables.records import records_as

    if not is_terminal(sys.stdout):
        sys.stdout.buffer.write(records_as("csv", [record.row() for record in records]))
        return
    places = {"epsilon": "epsilon", "size": "domain_size", "users": "users"}
    fixed = [name for name in places if name == varied or len({record.row()[places[name]] for record in records}) > 1]
    # By setting and then by protocol: a person compares protocols.
    ordered = sorted(records, key=lambda record: [record.row()[places[name]] for name in fixed])
    measured = ["mse", "decode"] if records[0].trials is not None else []
    rows = [
        [*(f"{record.row()[places[name]]:,.10g}" for name in fixed), *_cells(record, bool(measured))]
        for record in ordered
    ]
    header, *lines = table([*fixed, *axes_header(), *measured], rows, left=len(fixed) + 1)
    say(styled(header, "bold", sys.stdout))
    for line in lines:
        say(line)
    for record in ordered:
        if record.note:
            setting = record.setting
            place = f"{setting.domain_size:,} values at epsilon {float(setting.epsilon):g}"
            say(styled(f"not {record.protocol} on {place}: {record.note}", "dim", sys.stdout))


def _cells(record: Record, is_measured: bool) -> list[str]:
    cells = [record.protocol] + ["-"] * (len(axes_header()) - 1) if record.axes is None else axes_cells(record.axes)
    if is_measured:
        simulated = record.simulated
        cells += (
            ["-", "-"]
            if simulated is None
            else [f"{simulated.mse:.3g} ± {simulated.mse_error:.1g}", f"{1000 * simulated.decode_seconds:.3g} ms"]
        )
    return cells
