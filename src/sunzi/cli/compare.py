"""``sunzi compare``: protocols over a range of ε, domain sizes or users, as a table, a file or a picture.

With ``--ordered``, ``--number`` or ``--tables`` it compares a plan with other methods (``cli/record_comparison.py``).
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from sunzi.cli.files import add_delta, add_histogram, add_simulation
from sunzi.cli.numbers import parse_integers, parse_numbers
from sunzi.cli.record_comparison import check_record_comparison, run_record_comparison
from sunzi.cli.record_plans import add_records, is_record_plan
from sunzi.cli.results import ALL_SUFFIXES, Result, add_format, add_output, check_output, deliver
from sunzi.cli.terminal import ProgressBar, print_table, printed_warnings, say_wrapped
from sunzi.client.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.planning import ComparisonRow, Setting, Trials
    from sunzi.planning.axes_table import AxesTable
    from sunzi.planning.plots import Varied

_DEFAULTS = {"epsilon": "1", "size": "1024", "users": "10000"}
_RANGES = {"epsilon": "0.5:5:0.5", "size": "64:65536:x4", "users": "1000:1000000:x10"}
_COLUMNS = {"epsilon": "epsilon", "size": "domain_size", "users": "users"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``compare``, and add its arguments."""
    parser.description = (
        "Compare protocols over a range of epsilon, domain sizes or numbers of users; with --ordered, --number or "
        "--tables, compare a plan of numbers or records with other methods. Give a number, a list 1,2,4, a range "
        "FIRST:LAST:STEP or a geometric range FIRST:LAST:xFACTOR. Without --simulate all figures are computed "
        "by formula; with it, errors and times are also measured in simulated collections. Prints a table on a "
        "terminal, CSV in a pipe."
    )
    parser.add_argument("--epsilon", metavar="E", help=f"privacy of one report (default: {_DEFAULTS['epsilon']})")
    parser.add_argument("--size", metavar="K", help=f"number of values in the domain (default: {_DEFAULTS['size']})")
    parser.add_argument("--users", metavar="N", help=f"number of users (default: {_DEFAULTS['users']})")
    parser.add_argument(
        "--vary",
        choices=tuple(_RANGES),
        help="the parameter to sweep, and the x axis of a picture (default: the one with several values, else "
        "epsilon); its default range is " + ", ".join(f"{values} for {name}" for name, values in _RANGES.items()),
    )
    parser.add_argument("--protocols", metavar="NAMES", help="comma-separated protocol names (default: all)")
    add_records(parser)
    add_delta(parser)
    add_histogram(parser)
    parser.add_argument("--simulate", metavar="N", type=int, help="also measure in N simulated collections")
    add_simulation(parser, population="zipf:3")
    add_output(parser, ALL_SUFFIXES)
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Sweep, then write or print the result."""
    from sunzi.planning import setting_grid

    draws = check_output(arguments, ALL_SUFFIXES)
    check_record_comparison(arguments)
    texts = _texts(arguments)
    epsilons, users = parse_numbers(texts["epsilon"], "--epsilon"), parse_integers(texts["users"], "--users")
    sizes = parse_integers(texts["size"], "--size")
    counts: dict[Varied, int] = {"epsilon": len(epsilons), "size": len(sizes), "users": len(users)}
    swept = [name for name, count in counts.items() if count > 1]
    varied: Varied = arguments.vary or (swept[0] if swept else "epsilon")
    has_one_axis = not set(swept) - {varied}
    if draws and not has_one_axis:
        raise ParameterError(
            f"a picture has one of epsilon, size and users as its x axis; got several values of {' and '.join(swept)}"
        )
    if is_record_plan(arguments):
        return run_record_comparison(arguments, epsilons, users, varied if has_one_axis else None)
    return _compare_protocols(arguments, setting_grid(sizes, epsilons, users), varied, has_one_axis=has_one_axis)


def _compare_protocols(
    arguments: argparse.Namespace, settings: list[Setting], varied: Varied, *, has_one_axis: bool
) -> int:
    from sunzi.planning import compare
    from sunzi.planning.pages import comparison_page

    terms = (settings, _protocols(arguments), _trials(arguments))
    with printed_warnings(), ProgressBar() as bar:
        records = list(compare(*terms, bar.show, arguments.histogram, delta=arguments.delta))
    deliver(
        arguments,
        Result(
            table=partial(_print_table, records, varied),
            document=partial(_columns, records),
            rows=partial(_columns, records),
            picture=partial(_draw, records, varied),
            page=partial(comparison_page, records, varied if has_one_axis else None),
        ),
    )
    return 0


def _texts(arguments: argparse.Namespace) -> dict[str, str]:
    """The parameters; the one to vary has a default range."""
    texts = {name: getattr(arguments, name) for name in _RANGES}
    varied = arguments.vary or (None if any(texts.values()) else "epsilon")
    if varied is not None and texts[varied] is None:
        texts[varied] = _RANGES[varied]
    return {name: _DEFAULTS[name] if text is None else text for name, text in texts.items()}


def _protocols(arguments: argparse.Namespace) -> list[str]:
    from sunzi.protocols.registry import catalogue, find

    if arguments.protocols is None:
        return list(catalogue())
    names = list(dict.fromkeys(name.strip() for name in arguments.protocols.split(",")))
    for name in names:
        find(name)
    return names


def _trials(arguments: argparse.Namespace) -> Trials | None:
    from sunzi.planning import Population, Trials

    if arguments.simulate is None:
        return None
    return Trials(arguments.simulate, arguments.seed, Population.parse(arguments.population))


def _columns(records: list[ComparisonRow]) -> list[dict[str, Any]]:
    return [record.columns() for record in records]


def _draw(records: list[ComparisonRow], varied: Varied) -> Any:
    from sunzi.planning.plots import draw_comparison

    return draw_comparison(records, varied)


def _print_table(records: list[ComparisonRow], varied: Varied) -> None:
    """Print the protocols of one setting together, since those are what people compare."""
    from sunzi.planning.axes_table import AxesTable

    table = AxesTable.of(record.axes for record in records)
    shown = [
        name
        for name, key in _COLUMNS.items()
        if name == varied or len({record.columns()[key] for record in records}) > 1
    ]
    ordered = sorted(records, key=lambda record: [record.columns()[_COLUMNS[name]] for name in shown])
    measured = ["mse", "decode"] if records[0].trials is not None else []
    rows = [
        [*(f"{record.columns()[_COLUMNS[name]]:,.10g}" for name in shown), *_cells(record, table, bool(measured))]
        for record in ordered
    ]
    print_table([*shown, *table.header, *measured], rows, left=len(shown) + 1)
    for line in table.legend:
        if line.startswith("central: "):
            say_wrapped(line, "dim")
    for record in ordered:
        if record.axes is None:
            setting = f"{record.setting.domain_size:,} values at epsilon {float(record.setting.epsilon):g}"
            say_wrapped(f"not {record.protocol} on {setting}: {record.note}", "dim")


def _cells(record: ComparisonRow, table: AxesTable, is_measured: bool) -> list[str]:
    cells = table.cells(record.protocol, record.axes)
    if is_measured:
        simulated = record.simulated
        cells += (
            ["-", "-"]
            if simulated is None
            else [f"{simulated.mse:.3g} ± {simulated.mse_error:.1g}", f"{1000 * simulated.decode_seconds:.3g} ms"]
        )
    return cells
