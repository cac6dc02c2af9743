"""A folder of tallies, one file per group, and ``groups.csv``, which lists them."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Container, Mapping, Sequence
from pathlib import Path, PurePath
from urllib.parse import quote

from sunzi.atomic_files import write_atomically
from sunzi.client.errors import ParameterError
from sunzi.errors import TallyError
from sunzi.tables.group_counts import Key
from sunzi.tally import Tally, load_tally

GROUPS_FILE = "groups.csv"
_LONGEST_NAME = 200


def save_groups(folder: str | Path, by: Sequence[str], tallies: Mapping[Key, Tally]) -> None:
    """Write one file per group, such as ``country=DE,day=1.tally``, and a table of them, ``groups.csv``.

    Parameters
    ----------
    folder: an empty folder.
    by: the names of the group columns.
    tallies: one tally per group, as from :func:`tally` with ``by``.

    >>> import os, sunzi
    >>> from sunzi.tables import save_groups
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> os.mkdir("by-country")
    >>> save_groups("by-country", ["country"], {("DE",): plan.simulate(["yes"] * 9, seed=1)})
    >>> sorted(os.listdir("by-country"))
    ['country=DE.tally', 'groups.csv']
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", *by, "reports"])
    taken: set[str] = set()
    for key, tally in sorted(tallies.items(), key=lambda item: name_of_group(by, item[0])):
        name = name_of_group(by, key, taken)
        taken.add(name.lower())
        tally.save(Path(folder, name))
        rows.writerow([name, *map(_text, key), tally.reports])
    write_atomically(Path(folder, GROUPS_FILE), text.getvalue().encode())


def load_groups(folder: str | Path) -> tuple[list[str], dict[tuple[str, ...], Tally]]:
    """The names of the group columns and the tallies of a folder that ``sunzi tally --by`` wrote.

    The keys are tuples of texts, as in ``groups.csv``, where a missing value is empty.

    Parameters
    ----------
    folder: the folder; ``groups.csv`` in it lists the tallies.

    >>> import os, sunzi
    >>> from sunzi.tables import load_groups, save_groups
    >>> plan = sunzi.make_plan("grr", ["no", "yes"], epsilon=1)
    >>> os.mkdir("tallies")
    >>> save_groups("tallies", ["country"], {("DE",): plan.simulate(["yes"] * 9, seed=1)})
    >>> by, tallies = load_groups("tallies")
    >>> by, tallies["DE",].reports
    (['country'], 9)
    """
    path = Path(folder, GROUPS_FILE)
    if not path.is_file():
        raise ParameterError(f"{folder} has no {GROUPS_FILE}, so it is not a folder of 'sunzi tally --by'")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
    except (ValueError, csv.Error) as error:
        raise ParameterError(f"{path} is not the list of tallies that 'sunzi tally --by' writes: {error}") from None
    if len(header) < 3 or (header[0], header[-1]) != ("file", "reports"):
        raise ParameterError(f"{path} must have the columns file, the group columns and reports; got {header}")
    found: dict[tuple[str, ...], Tally] = {}
    for row in rows:
        if len(row) != len(header) or PurePath(row[0]).name != row[0]:
            raise ParameterError(f"{path} has a damaged row: {row}")
        tally, key = load_tally(Path(folder, row[0])), tuple(row[1:-1])
        if str(tally.reports) != row[-1]:
            raise TallyError(f"{Path(folder, row[0])} has {tally.reports} reports, and {path} says {row[-1]}")
        found[key] = found[key] + tally if key in found else tally  # missing values and empty texts look the same
    return header[1:-1], found


def name_of_group(by: Sequence[str], key: Key, taken: Container[str] = ()) -> str:
    """The file name of a group, in which values are escaped; a missing value has no ``=``.

    A name that is too long, or that differs from a name in ``taken`` by upper and lower case only, which some file
    systems ignore, is shortened and made unique by ``+`` and a hash; values have their ``+`` escaped.
    """
    name = ",".join(_escaped(column, value) for column, value in zip(by, key, strict=True))
    if len(name) > _LONGEST_NAME or f"{name}.tally".lower() in taken:
        name = name[: _LONGEST_NAME // 2] + "+" + hashlib.sha256(name.encode()).hexdigest()
    return name + ".tally"


def _escaped(column: str, value: object) -> str:
    return quote(column, safe="") + ("" if value is None else "=" + quote(_text(value), safe=" "))


def _text(value: object) -> str:
    """A value as text: bytes in hexadecimal digits, and empty text for a missing value."""
    return "" if value is None else value.hex() if isinstance(value, bytes) else str(value)
