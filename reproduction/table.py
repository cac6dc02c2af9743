"""Rows of results: a CSV file on disk, simple queries, and a summary of many trials in one row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from sunzi import ParameterError
from sunzi._typing import Floats
from sunzi.atomic_files import write_atomically

from .experiment import Row, Value


class Table:
    """Rows in order, each a dictionary; a column that a row lacks is None."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)

    def where(self, **values: Any) -> Table:
        """Rows with these values; a tuple or list means any of them."""
        return Table(row for row in self.rows if all(_matches(row.get(name), value) for name, value in values.items()))

    def column(self, name: str) -> Floats:
        """A column of numbers; missing values are NaN."""
        return np.array([_number(row.get(name)) for row in self.rows], dtype=np.float64)

    def distinct(self, name: str) -> list[Any]:
        """The different values of a column in order of appearance, numbers by size."""
        found: list[Any] = list(dict.fromkeys(row[name] for row in self.rows if row.get(name) is not None))
        return found if any(isinstance(value, str) for value in found) else sorted(found)

    def number(self, name: str, /, **values: Any) -> float:
        """The one number in a column among the rows with these values."""
        rows = self.where(**values).rows
        if len(rows) != 1:
            raise ParameterError(f"{len(rows)} rows have {values}, expected one")
        return _number(rows[0].get(name))

    def to_csv(self) -> bytes:
        """All columns in order of appearance, numbers in their shortest form that reads back the same."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([["" if row.get(name) is None else row[name] for name in columns] for row in self.rows])
        return text.getvalue().encode()

    def save(self, path: Path) -> None:
        """Write the CSV file atomically."""
        write_atomically(path, self.to_csv())

    @classmethod
    def load(cls, path: Path) -> Table:
        """Read what :meth:`save` wrote."""
        with path.open(newline="", encoding="utf-8") as file:
            return cls({name: _value(text) for name, text in row.items()} for row in csv.DictReader(file))


def number_in(row: Row, name: str) -> float:
    """A number that the row must have."""
    value = row[name]
    assert isinstance(value, (int, float)), f"{name} is {value!r}"
    return float(value)


def summary(values: Sequence[float], *, quantiles: Sequence[float] = ()) -> Row:
    """Columns trials, mean, standard_error (of the mean), and each of the quantiles as q0.05 and so on."""
    array = np.asarray(values, dtype=np.float64)
    error = float(array.std(ddof=1)) / sqrt(array.size) if array.size > 1 else None
    row: Row = {"trials": int(array.size), "mean": float(array.mean()), "standard_error": error}
    for level, value in zip(quantiles, np.quantile(array, quantiles).tolist() if quantiles else [], strict=True):
        row[f"q{level:g}"] = value
    return row


def _matches(value: Value, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, (tuple, list)) else value == wanted


def _number(value: Value) -> float:
    return float("nan") if value is None or isinstance(value, str) else float(value)


def _value(text: str) -> Value:
    """A number if it looks like one; the version 1.0.0 and a list 3;5;7 do not."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
