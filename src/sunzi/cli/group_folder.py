"""A folder with one tally per group, and a table that lists them."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import secrets
import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sunzi.atomic_files import sync_directory, write_atomically
from sunzi.cli.outputs import is_standard_output
from sunzi.errors import ParameterError

if TYPE_CHECKING:
    from sunzi.tables import Sifted
    from sunzi.tables.group_counts import Key

_LONGEST_NAME = 200


@contextmanager
def new_folder(output: str | None) -> Iterator[Path]:
    """A hidden folder that gets its name when the block succeeds, and is removed if it fails.

    Its hidden name is random, so that one left behind by a power cut does not matter.
    """
    if output is None or is_standard_output(output):
        raise ParameterError("--by makes several tallies; give -o FOLDER")
    folder = Path(output)
    if os.path.lexists(folder):
        raise ParameterError(f"{output} exists; give -o the name of a new folder")
    unfinished = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.unfinished")
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    sync_directory(folder.parent)


def write_groups(folder: Path, by: list[str], found: Mapping[Key, Sifted]) -> None:
    """Write ``country=DE,day=1.tally`` and so on, and a table of them, ``groups.csv``."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["file", *by, "reports"])
    taken: set[str] = set()
    for key, sifted in sorted(found.items(), key=lambda item: name_of_group(by, item[0])):
        name = name_of_group(by, key, taken)
        taken.add(name.lower())
        sifted.tally.save(folder / name)
        rows.writerow([name, *map(_text, key), sifted.tally.reports])
    write_atomically(folder / "groups.csv", text.getvalue().encode())


def name_of_group(by: list[str], key: Key, taken: Container[str] = ()) -> str:
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
