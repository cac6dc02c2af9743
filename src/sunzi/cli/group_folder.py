"""A folder of tallies, one a group, and a table that says which is which."""

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
    from sunzi.tables.sifting import Sifted
    from sunzi.tables.terms import Key

_LONGEST_NAME = 200


@contextmanager
def new_folder(output: str | None) -> Iterator[Path]:
    """A hidden folder that takes its name when the block ends well, and is gone if it fails.

    Its own name is never the same, so that one left behind by a power cut is in nobody's way.
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
    """``country=DE,day=1.tally`` and so on, and a table of them."""
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
    """A file name that no value can lead out of the folder; a missing value leaves out its ``=``.

    What is too long for a name, or differs from one that is taken in capital letters only, which some file systems take
    for the same, is cut and told apart by a hash after ``+``, which no value leaves as it is.
    """
    name = ",".join(_escaped(column, value) for column, value in zip(by, key, strict=True))
    if len(name) > _LONGEST_NAME or f"{name}.tally".lower() in taken:
        name = name[: _LONGEST_NAME // 2] + "+" + hashlib.sha256(name.encode()).hexdigest()
    return name + ".tally"


def _escaped(column: str, value: object) -> str:
    return quote(column, safe="") + ("" if value is None else "=" + quote(_text(value), safe=" "))


def _text(value: object) -> str:
    """A value as text: bytes in hexadecimal digits, and nothing for one that is missing."""
    return "" if value is None else value.hex() if isinstance(value, bytes) else str(value)
