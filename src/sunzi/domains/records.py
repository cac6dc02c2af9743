"""Domains of whole records, for plans of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.domains import records as client
from sunzi.client.errors import DomainError, shown
from sunzi.domains.columns import as_list
from sunzi.domains.labels import UNKNOWN, Domain
from sunzi.domains.ranges import OrderedDomain


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RecordDomain(client.RecordDomain, Domain):
    """Records with several attributes, each with its own labels. Immutable.

    The index of a record is the mixed-radix number of its attributes' indices; the last attribute varies fastest.

    Parameters
    ----------
    attributes: the values of every attribute: labels, or a :class:`Domain` (with ``other=`` for missing values).

    >>> RecordDomain({"version": ["1", "2"], "crashed": ["no", "yes"]}).index({"version": "2", "crashed": "no"})
    2
    """

    attributes: Mapping[str, Domain]

    @staticmethod
    def kind(values: str) -> type[Domain]:
        """The class of an attribute's domain."""
        return OrderedDomain if values == "range" else Domain

    @property
    def is_indices(self) -> bool:
        """Always False."""
        return False

    def numbers(self, names: Iterable[str]) -> tuple[int, ...]:
        """The places of these attributes, in increasing order."""
        known = list(self.attributes)
        if not isinstance(names, Iterable):
            raise DomainError(f"a table must be a list of attributes, got {shown(names)}")
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in known:
                raise DomainError(f"there is no attribute {shown(name)}; the attributes are {', '.join(known)}")
        if not wanted:
            raise DomainError("a table needs at least one attribute, got none; name some, or omit the table")
        if len(set(wanted)) != len(wanted):
            raise DomainError(f"the attributes of a table must be different, got {wanted}")
        return tuple(sorted(known.index(name) for name in wanted))

    def part(self, numbers: Sequence[int]) -> RecordDomain:
        """The domain of some attributes."""
        names = list(self.attributes)
        return RecordDomain({names[number]: self.attributes[names[number]] for number in numbers})

    def _exact(self, value: object) -> int:
        """The index of a record whose values are all in their domains."""
        record, total = self.checked(value), 0
        for name, domain in self.attributes.items():
            try:
                total = total * domain.size + domain.exact_index(record.get(name))
            except DomainError as error:
                raise DomainError(f"attribute {name!r}: {error}") from None
        return total

    def indices(self, values: object) -> Integers:
        """The indices of many records: a list of mappings, or a table with a column per attribute."""
        return self._joined(self._columns(values))

    def _columns(self, values: object) -> Mapping[str, Any]:
        """The values of every attribute, from records or from a table."""
        if isinstance(values, Mapping) or hasattr(type(values), "columns"):
            table: Any = values
            absent = next((name for name in self.attributes if name not in _names(table)), None)
            if absent is not None:
                raise DomainError(f"there is no column {absent!r}; the attributes are {self._listed()}")
            return {name: table[name] for name in self.attributes}
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise DomainError(f"records must be a list of mappings, or a table, got {shown(values)}")
        records = [self.checked(record) for record in as_list(values)]
        return {name: [record.get(name) for record in records] for name in self.attributes}

    def _joined(self, columns: Mapping[str, Any]) -> Integers:
        total: Integers | None = None
        for name, domain in self.attributes.items():
            try:
                found = domain.indices(columns[name])
            except DomainError as error:
                raise DomainError(f"attribute {name!r}: {error}") from None
            if total is not None and found.size != total.size:
                raise DomainError(f"the columns have different lengths: {name!r} has {found.size}, not {total.size}")
            total = found if total is None else total * domain.size + found
        assert total is not None, "there is an attribute"
        return total

    def locate(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        """The index of each record, UNKNOWN if any of its values is unknown or missing; no attribute's ``other``
        replaces it here.
        """
        found = []
        for value in values:
            try:
                found.append(self._exact(value))
            except DomainError:
                found.append(UNKNOWN)
        return np.array(found, dtype=np.int64)

    def refusal(self, value: object) -> DomainError:
        """The error that says why a record has no index."""
        try:
            self._exact(value)
        except DomainError as error:
            return error
        return DomainError(f"record {shown(value)} is not in the domain")

    def _listed(self) -> str:
        return ", ".join(self.attributes)

    def label(self, index: int) -> str:
        """The record as a text."""
        return self.shown(index)

    def example(self, index: int) -> dict[str, object]:
        """The record."""
        parts = zip(self.attributes.items(), self.digits(index), strict=True)
        return {name: domain.example(digit) for (name, domain), digit in parts}

    def search(self, text: str, limit: int) -> list[int]:
        """The first records that contain all comma-separated parts of a text, such as "version 2, yes"."""
        return self._search([part.strip() for part in text.split(",")], limit)

    def in_words(self) -> str:
        """The attributes and how many values each has."""
        parts = (f"{name} ({domain.size:,})" for name, domain in self.attributes.items())
        return f"records of {', '.join(parts)}"


def _names(values: Any) -> Sequence[str]:
    if isinstance(values, Mapping):
        return list(values)
    columns = getattr(values, "column_names", None)
    return list(values.columns if columns is None else columns)
