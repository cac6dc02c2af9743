"""The domain of a collection: labels and their indices 0 … k−1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import isnan
from typing import Any, Self

from ..errors import DomainError, ParameterError, PlanError, as_integer, shown
from ..strict_json import integer_parameter, keys_of

MOST_VALUES = 1 << 30
SILENCE = "or leave its row out of a data set; a device sends a background report, since silence would reveal it"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Domain:
    """The values of a collection: a bare size (the integers 0 … k−1) or a list of distinct labels. Immutable.

    Parameters
    ----------
    values: the number of values, or the labels.
    other: the label that unknown and missing values (null, NaN, or an empty text that is not a label) are reported as;
        without it they are errors.
    separate_labels: keep the labels out of the plan, which then names their file by its SHA-256.

    >>> from sunzi.client import Domain
    >>> Domain(["red", "green", "other"], other="other").index("blue")
    2
    """

    size: int
    labels: tuple[str, ...] | None
    """None for a bare size, and without the file that the labels are in."""
    labels_sha256: str | None
    """The SHA-256 of the file of labels, if the plan does not hold them itself."""
    other: str | None

    def __init__(self, values: int | Iterable[str], *, other: str | None = None, separate_labels: bool = False) -> None:
        size = as_integer(values)
        if size is None:
            labels: tuple[str, ...] | None = _checked_labels(values)
            size = len(labels or ())
        else:
            labels = None
            if other is not None or separate_labels:
                what = "separate_labels" if other is None else f"other={other!r}"
                raise DomainError(f"{what} needs a domain of labels, got a size")
        if not 2 <= size <= MOST_VALUES:
            raise DomainError(f"a domain needs between 2 and 2^30 values, got {shown(size)}")
        if other is not None and other not in (labels or ()):
            raise DomainError(f"other must be one of the labels, got {other!r}; add it to the list")
        digest = sha256(label_bytes(labels)).hexdigest() if labels and separate_labels else None
        self._set(size, labels=labels, labels_sha256=digest, other=other)

    def _set(self, size: int, **fields: Any) -> None:
        """Set the fields once, although the dataclass is frozen."""
        vars(self).update({"size": size, "labels": None, "labels_sha256": None, "other": None} | fields)

    def attach(self, path: Any) -> Self:
        """This domain with its labels, read from their file, whose hash must match.

        Parameters
        ----------
        path: the file.
        """
        from .label_files import read_labels

        if self.labels_sha256 is None:
            raise DomainError(f"this plan names no label file, so {path} is not needed; omit it")
        labels = read_labels(path, self.labels_sha256)
        attached = type(self)(labels, separate_labels=True)
        if (attached.labels_sha256, attached.size) != (self.labels_sha256, self.size):
            found = f"its SHA-256 is {attached.labels_sha256} and it holds {attached.size} labels"
            raise DomainError(f"{path} is not the label file of this plan: {found}")
        return type(self)(labels, other=self.other, separate_labels=True)

    def known_labels(self) -> tuple[str, ...]:
        """The labels; DomainError if they are in a file that was not read."""
        if self.labels is None:
            raise DomainError(
                "this domain's labels are in a separate file; load the plan with labels=PATH, or give --labels PATH"
            )
        return self.labels

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The index of every label."""
        return {label: index for index, label in enumerate(self.known_labels())}

    @property
    def has_labels(self) -> bool:
        """Whether values are labels rather than the integers 0 … k−1."""
        return self.labels is not None or self.labels_sha256 is not None

    @property
    def is_open(self) -> bool:
        """Whether the values are texts without a list."""
        return False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values; for records, one number per attribute."""
        return (self.size,)

    def joined(self, digits: Sequence[int]) -> Any:
        """The index of the value with one digit below each of :attr:`sizes`."""
        index = 0
        for size, digit in zip(self.sizes, digits, strict=True):
            index = index * size + digit
        return index

    def index(self, value: object) -> Any:
        """The index of one value; DomainError if it has none."""
        if self.has_labels:
            positions = self.positions
            found = positions.get(value) if isinstance(value, str) else None
            if found is None and self.other is not None and (isinstance(value, str) or is_missing(value)):
                found = positions[self.other]
        else:
            found = as_integer(value)
        if found is None or not 0 <= found < self.size:
            raise self.refusal(value)
        return found

    def check_index(self, index: Any) -> None:
        """Raise DomainError unless this is the index of a value."""
        if type(index) is not int or not 0 <= index < self.size:
            raise DomainError(f"an index must lie between 0 and {self.size - 1}, got {shown(index)}")

    def refusal(self, value: object) -> DomainError:
        """The error that says why a value has no index."""
        if is_missing(value):
            other = ", give the domain an 'other'," if self.has_labels and self.other is None else ""
            return DomainError(f"a value is missing (null, NaN or empty text); fill it in{other} {SILENCE}")
        if self.has_labels and isinstance(value, str):
            hint = "add it, or give the domain an 'other'" if self.other is None else "check its spelling"
            return DomainError(f"label {shown(value)} is not in the domain; {hint}")
        if self.has_labels:
            return DomainError(
                f"value {shown(value)} is not text, but this domain's values are labels; use str() on it"
            )
        number = as_integer(value)
        if number is None:
            return DomainError(f"value {shown(value)} is not one of the integers 0 … {self.size - 1}")
        return DomainError(f"value {shown(number)} is not in the domain 0 … {self.size - 1}")

    def key_of(self, index: Any) -> str:
        """The text that stands for a value where a device derives noise from it (docs/format.md)."""
        return self.known_labels()[index] if self.has_labels else str(index)

    def shown(self, index: Any) -> str:
        """A value for display."""
        if self.labels is not None:
            return self.labels[index]
        return f"index {index}" if self.has_labels else str(index)

    def to_json(self) -> dict[str, Any]:
        """The domain as a plan file records it."""
        if self.labels_sha256 is not None:
            record: dict[str, Any] = {"size": self.size, "labels_sha256": self.labels_sha256}
        elif self.labels is not None:
            record = {"size": self.size, "labels": list(self.labels)}
        else:
            return {"size": self.size}
        if self.other is not None:
            record["other"] = self.other
        return record

    @classmethod
    def from_json(cls, record: object) -> Self:
        """The inverse of :meth:`to_json`."""
        fields = keys_of("a domain", record, ["size"], ["labels", "labels_sha256", "other"])
        size, other = integer_parameter(fields, "size", 2, MOST_VALUES), fields.get("other")
        if "other" in fields and not isinstance(other, str):
            raise PlanError(f"other must be a label, got {shown(other)}")
        if "labels" in fields and "labels_sha256" in fields:
            raise PlanError("labels and labels_sha256 cannot be combined")
        if "labels" in fields:
            if not isinstance(fields["labels"], list):
                raise PlanError(f"labels must be a list, got {shown(fields['labels'])}")
            domain = cls(fields["labels"], other=other)
            if domain.size != size:
                raise PlanError(f"size is {size} but there are {domain.size} labels")
            return domain
        digest = fields.get("labels_sha256")
        if digest is None:
            return cls(size, other=other)
        if not (isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
            raise PlanError(f"labels_sha256 must be 64 lower-case hexadecimal digits, got {shown(digest)}")
        domain = cls(size)
        domain._set(size, labels_sha256=digest, other=other)
        return domain

    def __eq__(self, other: object) -> bool:
        """Whether both have the same size, labels and label for unknown values."""
        return isinstance(other, Domain) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """A hash of the size."""
        return hash(self.size)

    def __repr__(self) -> str:
        """A description with the size and the first labels."""
        first = "" if self.labels is None else f", labels {', '.join(map(repr, self.labels[:3]))}…"
        return f"Domain({self.size} values{first})"


def read_domain(record: object, kinds: Any) -> Domain:
    """A domain of any kind, as a plan file records it.

    Parameters
    ----------
    record: what the plan has.
    kinds: a function from "values", "range", "attributes" and "symbols" to the class of such domains.
    """
    keys = record if isinstance(record, Mapping) else {}
    kind = next((key for key in ("attributes", "symbols", "range") if key in keys), "values")
    try:
        domain: Domain = kinds(kind).from_json(record)
    except ParameterError as error:
        raise PlanError(f"domain: {error}") from None
    return domain


def is_missing(value: object) -> bool:
    """None, NaN, empty text, and pandas' NA and NaT, recognised by name so that pandas is not imported."""
    if isinstance(value, str):
        return not value
    if isinstance(value, float):
        return isnan(value)
    if type(value).__name__ in ("float16", "float32", "longdouble", "datetime64"):  # numpy's other scalars
        return value != value  # noqa: PLR0124 - only a missing value differs from itself
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def label_bytes(labels: Sequence[str]) -> bytes:
    """The canonical label file."""
    broken = next((label for label in labels if "\n" in label or "\r" in label), None)
    if broken is not None:
        raise DomainError(f"label {broken!r} contains a line break, which label files do not allow")
    return "".join(f"{label}\n" for label in labels).encode()


def _checked_labels(values: object) -> tuple[str, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise DomainError(f"domain must be a size or a list of labels, got {shown(values)}")
    labels = tuple(values)
    for label in labels:
        if not isinstance(label, str):
            raise DomainError(f"a label must be text, got {shown(label)}; use str() on your values")
    if len(set(labels)) < len(labels):
        seen: set[str] = set()
        twice = next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
        raise DomainError(f"label {twice!r} occurs twice")
    try:
        "".join(labels).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DomainError(f"a label is not valid Unicode text: {shown(error.object[error.start])}") from None
    return tuple(map(str, labels))
