"""Domains of whole records, for plans of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.domains.columns import as_list
from sunzi.domains.labels import UNKNOWN, Domain
from sunzi.domains.ranges import CONTROL, OrderedDomain
from sunzi.domains.texts import OpenDomain
from sunzi.errors import DomainError, ParameterError, PlanError
from sunzi.numerics.checks import shown

MOST_RECORDS = (1 << 53) - 1
"""JSON's and JavaScript's largest exact integer."""
MOST_ATTRIBUTES = 64


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RecordDomain(Domain):
    """Records with several attributes, each with its own labels. Immutable.

    The index of a record is the mixed-radix number of its attributes' indices; the last attribute varies fastest.

    Parameters
    ----------
    attributes: the values of every attribute: labels, or a :class:`Domain` (with ``other=`` for missing values).

    >>> RecordDomain({"version": ["1", "2"], "crashed": ["no", "yes"]}).index({"version": "2", "crashed": "no"})
    2
    """

    attributes: Mapping[str, Domain]

    def __init__(self, attributes: Mapping[str, Domain | Iterable[str]]) -> None:
        if not isinstance(attributes, Mapping):
            raise DomainError(f"attributes must be a mapping of names to values, got {shown(attributes)}")
        if not 1 <= len(attributes) <= MOST_ATTRIBUTES:
            raise DomainError(f"a record must have 1 to {MOST_ATTRIBUTES} attributes, got {len(attributes)}")
        for name in attributes:
            if type(name) is not str or not name or CONTROL.search(name):
                raise DomainError(f"an attribute's name must be printable text, got {shown(name)}")
        found = {}
        for name, values in attributes.items():
            try:
                found[name] = values if isinstance(values, Domain) else Domain(values)
            except DomainError as error:
                raise DomainError(f"attribute {name!r}: {error}") from None
        filed = next((name for name, domain in found.items() if domain.labels_sha256), None)
        if filed is not None:
            raise DomainError(f"the labels of attribute {filed!r} must be in the plan: give them as a list")
        nested = next((name for name, domain in found.items() if isinstance(domain, RecordDomain)), None)
        if nested is not None:
            raise DomainError(f"attribute {nested!r} is itself a record; list its attributes with the others")
        unlisted = next((name for name, domain in found.items() if domain.is_open), None)
        if unlisted is not None:
            raise DomainError(f"attribute {unlisted!r} needs a list of values or a range; texts need a separate plan")
        size = prod(domain.size for domain in found.values())
        if size > MOST_RECORDS:
            raise DomainError(
                f"these attributes have {size:.3g} combinations, more than 2^53; plan two collections with half of the "
                "attributes each, or merge rare values"
            )
        self._set(size, attributes=found)

    @property
    def is_indices(self) -> bool:
        """Always False."""
        return False

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(domain.size for domain in self.attributes.values())

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

    def index(self, value: object) -> int:
        """The index of one record."""
        return self._index(value, lambda domain, each: domain.index(each))

    def _index(self, value: object, find: Callable[[Domain, object], int]) -> int:
        """The index of one record, whose values ``find`` finds in their domains."""
        record, total = self._checked(value), 0
        for name, domain in self.attributes.items():
            try:
                total = total * domain.size + find(domain, record.get(name))
            except DomainError as error:
                raise DomainError(f"attribute {name!r}: {error}") from None
        return total

    def _exact(self, value: object) -> int:
        """The index of a record whose values are all in their domains."""
        return self._index(value, lambda domain, each: domain.exact_index(each))

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
        records = [self._checked(record) for record in as_list(values)]
        return {name: [record.get(name) for record in records] for name in self.attributes}

    def _checked(self, record: object) -> Mapping[str, Any]:
        if not isinstance(record, Mapping):
            raise DomainError(f"a record must be a mapping of attributes to values, got {shown(record)}")
        unknown = next((name for name in record if name not in self.attributes), None)
        if unknown is not None:
            raise DomainError(f"there is no attribute {shown(unknown)}; the attributes are {self._listed()}")
        return record

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

    def digits(self, index: int) -> tuple[int, ...]:
        """The indices of the attributes of a record."""
        found = []
        for size in reversed(self.sizes):
            index, digit = divmod(index, size)
            found.append(digit)
        return tuple(reversed(found))

    def label(self, index: int) -> str:
        """The record as a text."""
        return self.shown(index)

    def example(self, index: int) -> dict[str, object]:
        """The record."""
        parts = zip(self.attributes.items(), self.digits(index), strict=True)
        return {name: domain.example(digit) for (name, domain), digit in parts}

    def shown(self, index: int) -> str:
        """The record as a text, such as "version 2, crashed no"."""
        parts = zip(self.attributes.items(), self.digits(index), strict=True)
        return ", ".join(f"{name} {domain.shown(digit)}" for (name, domain), digit in parts)

    def search(self, text: str, limit: int) -> list[int]:
        """The first records that contain all comma-separated parts of a text, such as "version 2, yes"."""
        return self._search([part.strip() for part in text.split(",")], limit)

    def in_words(self) -> str:
        """The attributes and how many values each has."""
        parts = (f"{name} ({domain.size:,})" for name, domain in self.attributes.items())
        return f"records of {', '.join(parts)}"

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        listed = [{"name": name, "domain": domain.to_json()} for name, domain in self.attributes.items()]
        return {"size": self.size, "attributes": listed}

    @classmethod
    def from_json(cls, record: object) -> RecordDomain:
        """The inverse of :meth:`to_json`."""
        keys = {"size", "attributes"}
        if not isinstance(record, Mapping) or set(record) != keys or not isinstance(record["attributes"], list):
            raise PlanError(f"a domain of records must have a size and a list of attributes, got {shown(record)}")
        found: dict[str, Domain | Iterable[str]] = {}
        for each in record["attributes"]:
            if not isinstance(each, Mapping) or set(each) != {"name", "domain"} or not isinstance(each["name"], str):
                raise PlanError(f"an attribute must have a name and a domain, got {shown(each)}")
            if each["name"] in found:
                raise PlanError(f"the attribute {each['name']!r} occurs twice")
            found[each["name"]] = _read_attribute(each["domain"])
        domain = cls(found)
        if type(record["size"]) is not int or domain.size != record["size"]:
            raise PlanError(f"size is {shown(record['size'])} but the attributes have {domain.size} combinations")
        return domain

    def __repr__(self) -> str:
        """The attributes and their sizes."""
        return f"RecordDomain({self.in_words()})"


def read_domain(record: object) -> Domain:
    """A domain of any kind, as a plan file records it."""
    try:
        if isinstance(record, Mapping) and "attributes" in record:
            return RecordDomain.from_json(record)
        if isinstance(record, Mapping) and "symbols" in record:
            return OpenDomain.from_json(record)
        return _read_attribute(record)
    except ParameterError as error:
        raise PlanError(f"domain: {error}") from None


def _read_attribute(record: object) -> Domain:
    if isinstance(record, Mapping) and "range" in record:
        return OrderedDomain.from_json(record)
    return Domain.from_json(record)


def _names(values: Any) -> Sequence[str]:
    if isinstance(values, Mapping):
        return list(values)
    columns = getattr(values, "column_names", None)
    return list(values.columns if columns is None else columns)
