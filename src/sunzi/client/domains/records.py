"""Domains of whole records, for plans of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Self

from ..errors import DomainError, PlanError, shown
from ..strict_json import integer_parameter, keys_of
from .labels import Domain
from .ranges import CONTROL, OrderedDomain

MOST_RECORDS = (1 << 53) - 1
"""JSON's and JavaScript's largest exact integer."""
MOST_ATTRIBUTES = 64


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RecordDomain(Domain):
    """Records with several attributes, each with its own values. Immutable.

    The index of a record is the mixed-radix number of its attributes' indices; the last attribute varies fastest.

    Parameters
    ----------
    attributes: the values of every attribute: labels, or a :class:`Domain` (with ``other=`` for missing values).

    >>> from sunzi.client import RecordDomain
    >>> RecordDomain({"version": ["1", "2"], "crashed": ["no", "yes"]}).index({"version": "2", "crashed": "no"})
    2
    """

    attributes: Mapping[str, Domain]

    def __init__(self, attributes: Mapping[str, Domain | Iterable[str]]) -> None:
        if not isinstance(attributes, Mapping):
            raise DomainError(f"attributes must be a mapping of names to values, got {shown(attributes)}")
        if not 1 <= len(attributes) <= MOST_ATTRIBUTES:
            raise DomainError(f"a record must have 1 to {MOST_ATTRIBUTES} attributes, got {len(attributes)}")
        found = {name: self._attribute(name, values) for name, values in attributes.items()}
        size = prod(domain.size for domain in found.values())
        if size > MOST_RECORDS:
            raise DomainError(
                f"these attributes have about 2^{size.bit_length() - 1} combinations, more than 2^53; plan two "
                "collections with half of the attributes each, or merge rare values"
            )
        self._set(size, attributes=found)

    @staticmethod
    def kind(values: str) -> type[Domain]:
        """The class of an attribute's domain: of "values" or of a "range"."""
        return OrderedDomain if values == "range" else Domain

    def _attribute(self, name: object, values: Any) -> Domain:
        if type(name) is not str or not name or CONTROL.search(name):
            raise DomainError(f"an attribute's name must be printable text, got {shown(name)}")
        try:
            domain: Domain = values if isinstance(values, Domain) else self.kind("values")(values)
        except DomainError as error:
            raise DomainError(f"attribute {name!r}: {error}") from None
        if domain.labels_sha256:
            raise DomainError(f"the labels of attribute {name!r} must be in the plan: give them as a list")
        if isinstance(domain, RecordDomain):
            raise DomainError(f"attribute {name!r} is itself a record; list its attributes with the others")
        if domain.is_open:
            raise DomainError(f"attribute {name!r} needs a list of values or a range; texts need a separate plan")
        return domain

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(domain.size for domain in self.attributes.values())

    def index(self, value: object) -> int:
        """The index of one record."""
        record, total = self.checked(value), 0
        for name, domain in self.attributes.items():
            try:
                total = total * domain.size + domain.index(record.get(name))
            except DomainError as error:
                raise DomainError(f"attribute {name!r}: {error}") from None
        return total

    def checked(self, record: object) -> Mapping[str, Any]:
        """The record, if it has no unknown attribute."""
        if not isinstance(record, Mapping):
            raise DomainError(f"a record must be a mapping of attributes to values, got {shown(record)}")
        unknown = next((name for name in record if name not in self.attributes), None)
        if unknown is not None:
            raise DomainError(
                f"there is no attribute {shown(unknown)}; the attributes are {', '.join(self.attributes)}"
            )
        return record

    def digits(self, index: int) -> tuple[int, ...]:
        """The indices of the attributes of a record."""
        found = []
        for size in reversed(self.sizes):
            index, digit = divmod(index, size)
            found.append(digit)
        return tuple(reversed(found))

    def shown(self, index: int) -> str:
        """The record as a text, such as "version 2, crashed no"."""
        parts = zip(self.attributes.items(), self.digits(index), strict=True)
        return ", ".join(f"{name} {domain.shown(digit)}" for (name, domain), digit in parts)

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        listed = [{"name": name, "domain": domain.to_json()} for name, domain in self.attributes.items()]
        return {"size": self.size, "attributes": listed}

    @classmethod
    def from_json(cls, record: object) -> Self:
        """The inverse of :meth:`to_json`."""
        fields = keys_of("a domain of records", record, ["size", "attributes"])
        if not isinstance(fields["attributes"], list):
            raise PlanError(f"attributes must be a list, got {shown(fields['attributes'])}")
        found: dict[str, Domain | Iterable[str]] = {}
        for each in fields["attributes"]:
            attribute = keys_of("an attribute", each, ["name", "domain"])
            name, domain = attribute["name"], attribute["domain"]
            if not isinstance(name, str) or name in found:
                raise PlanError(f"the names of attributes must be different texts, got {shown(name)}")
            is_range = isinstance(domain, Mapping) and "range" in domain
            found[name] = cls.kind("range" if is_range else "values").from_json(domain)
        made = cls(found)
        if integer_parameter(fields, "size", 2, MOST_RECORDS) != made.size:
            raise PlanError(f"size is {fields['size']} but the attributes have {made.size} combinations")
        return made

    def __repr__(self) -> str:
        """The attributes and their sizes."""
        return f"RecordDomain({', '.join(f'{name} ({domain.size:,})' for name, domain in self.attributes.items())})"
