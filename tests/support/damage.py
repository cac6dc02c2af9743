"""Seeded damage to files: bytes flipped, zeroed, cut or appended, and cells of SQLite tables edited."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sunzi.client.errors import BudgetError, StoreError

_VALUES: tuple[object, ...] = (
    None,
    -5,
    -1,
    0,
    1,
    7,
    1 << 31,
    1 << 62,
    -(1 << 63),
    0.5,
    -1.5,
    float("inf"),
    "",
    "x",
    "-5",
    "1/0",
    "1e999999",
    "nan",
    "9" * 5000,
    "/../",
    "é" * 40,
    b"",
    b"\0",
    b"\xff" * 7,
    b"\xff" * 8,
    b"\xff" * 32,
    b"\xff" * 4000,
    b"{}",
)


@contextmanager
def directory_in_memory() -> Iterator[Path]:
    """A directory in memory, where the system has one: damaged files need no disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:
        yield Path(directory)


def outcome(use: Callable[[Path], None], path: Path, damage: str) -> str:
    """Use a damaged file: "fine" or the name of the refusal. Other errors are raised, with a note of the damage."""
    try:
        use(path)
    except (StoreError, BudgetError) as error:
        return type(error).__name__
    except BaseException as error:
        error.add_note(f"{damage}, {use.__name__}")
        raise
    return "fine"


def damage_bytes(path: Path, generator: random.Random) -> str:
    """Damage the bytes of a file in one of several ways; return what was done."""
    data = bytearray(path.read_bytes())
    way = generator.choice(["flip", "flip", "flip", "many", "zero", "cut", "append", "swap"])
    place = generator.randrange(len(data)) if data else 0
    if way == "flip":
        data[place] ^= 1 << generator.randrange(8)
    elif way == "many":
        for _ in range(generator.randrange(2, 40)):
            data[generator.randrange(len(data))] = generator.randrange(256)
    elif way == "zero":
        end = min(len(data), place + generator.choice([8, 512, 4096]))
        data[place:end] = bytes(end - place)
    elif way == "cut":
        del data[generator.choice([0, place, place, len(data) - 1, place // 4096 * 4096]) :]
    elif way == "append":
        data += generator.randbytes(generator.choice([1, 512, 4096]))
    else:
        other = generator.randrange(len(data))
        data[place : place + 64], data[other : other + 64] = data[other : other + 64], data[place : place + 64]
    path.write_bytes(data)
    return f"{way} at {place}"


def damage_cell(path: Path, generator: random.Random) -> str:
    """Write a wrong value into one cell of an SQLite file, in spite of its constraints; return what was done."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            if connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        ]
        table = generator.choice(tables)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        keys = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]] or ["rowid"]
        column, value = generator.choice(columns), generator.choice(_VALUES)
        rows = connection.execute(f"SELECT {', '.join(keys)} FROM {table}").fetchall()
        row = generator.choice(rows)
        schema = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        _write_schema(connection, table, str(schema).replace(" NOT NULL", ""))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        where = " AND ".join(f"{key} IS ?" for key in keys)
        # Text that is not UTF-8, once in a while.
        new = "CAST(x'80ff' AS TEXT)" if value == "x" else "?"
        parameters = row if value == "x" else (value, *row)
        try:
            connection.execute(f"UPDATE {table} SET {column} = {new} WHERE {where}", parameters)
        except sqlite3.Error as error:
            value = f"(refused: {error})"
        if schema is not None:
            _write_schema(connection, table, schema)
    return f"{table}.{column} of {row} = {str(value)[:40]!r}"


def _write_schema(connection: sqlite3.Connection, table: str, schema: str | None) -> None:
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (schema, table))
    connection.execute("PRAGMA writable_schema=RESET")
