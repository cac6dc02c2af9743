"""The domain of a collection: labels and their indices 0 … k−1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi.errors import DomainError, PlanError

MOST_VALUES = 1 << 30


class Domain:
    """Either a bare size, whose values are the integers 0 … k−1, or a list of distinct text labels.

    ``other`` names the label that unknown values are reported as; without it an unknown value is an error. A domain
    with very many labels can leave them out of the plan and name their file by its SHA-256.
    """

    def __init__(self, values: int | Iterable[str], *, other: str | None = None, separate_labels: bool = False) -> None:
        self.labels: tuple[str, ...] | None = None
        self.labels_sha256: str | None = None
        if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
            self.size = int(values)
            if other is not None:
                raise DomainError(f"other={other!r} needs a domain of labels, got a size")
        else:
            self.labels = _check_labels(values)
            self.size = len(self.labels)
        if not 2 <= self.size <= MOST_VALUES:
            raise DomainError(f"a domain needs between 2 and 2^30 values, got {self.size}")
        if other is not None and other not in (self.labels or ()):
            raise DomainError(f"other must be one of the labels, got {other!r}; add it to the list")
        self.other = other
        if separate_labels:
            self.labels_sha256 = self._hash_labels()

    @classmethod
    def from_file(cls, path: str | Path, *, other: str | None = None) -> Domain:
        """One label a line, UTF-8; the plan will name the labels by their hash instead of listing them."""
        return cls(_read_labels(path), other=other, separate_labels=True)

    def save_labels(self, path: str | Path) -> None:
        """Write the label file that :meth:`from_file` reads."""
        Path(path).write_bytes(_label_bytes(self._labels()))

    def attach(self, path: str | Path) -> Domain:
        """This domain with its labels read from their file, whose hash must match."""
        if self.labels_sha256 is None:
            raise DomainError(f"this plan names no label file, so {path} is not needed; leave it out")
        attached = Domain.from_file(path, other=None)
        if (attached.labels_sha256, attached.size) != (self.labels_sha256, self.size):
            found = f"its SHA-256 is {attached.labels_sha256} and it holds {attached.size} labels"
            raise DomainError(f"{path} is not the label file of this plan: {found}")
        return Domain(attached._labels(), other=self.other, separate_labels=True)

    def _labels(self) -> tuple[str, ...]:
        if self.labels is None:
            raise DomainError(
                "this domain's labels are in a separate file; load the plan with labels=PATH, or give --labels PATH"
            )
        return self.labels

    def _hash_labels(self) -> str:
        return hashlib.sha256(_label_bytes(self._labels())).hexdigest()

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self._labels())}

    @property
    def has_labels(self) -> bool:
        """Whether values are labels rather than the integers 0 … k−1."""
        return self.labels is not None or self.labels_sha256 is not None

    def index(self, value: object) -> int:
        """The index of one value."""
        return int(self.indices([value])[0])

    def indices(self, values: object) -> NDArray[np.int64]:
        """The indices of many values: a list, an array, or a column of a data frame."""
        if self.has_labels:
            return self._label_indices(values)
        is_integer = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
        array = np.asarray(values) if is_integer else self._integers(values)
        if array.ndim != 1:
            raise DomainError(f"values must be one-dimensional, got {array.ndim} dimensions")
        # A uint64 above 2^63 would wrap to a negative number, which is refused all the same.
        array = array.astype(np.int64, copy=False)
        if array.size and (array.min() < 0 or array.max() >= self.size):
            wrong = array[(array < 0) | (array >= self.size)][0]
            raise DomainError(f"value {wrong} is not in the domain 0 … {self.size - 1}")
        return array

    def _integers(self, values: object) -> NDArray[Any]:
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise DomainError(f"values must be a list, an array or a column, got {values!r}")
        arrow = {"zero_copy_only": False} if hasattr(values, "to_pylist") else {}  # else it refuses nulls by itself
        listed = values.to_numpy(**arrow) if hasattr(values, "to_numpy") else values
        array = listed if isinstance(listed, np.ndarray) else np.array(list(listed), dtype=object)
        if array.dtype.kind in "iu":
            return array
        if array.size == 0:
            return array.astype(np.int64)
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise DomainError("a value is missing (null or NaN); fill it in or leave its row out")
        for value in array.ravel().tolist():
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise DomainError(f"value {value!r} is not one of the integers 0 … {self.size - 1}")
            if not 0 <= value < self.size:
                raise DomainError(f"value {value} is not in the domain 0 … {self.size - 1}")
        return array.astype(np.int64)

    def _label_indices(self, values: object) -> NDArray[np.int64]:
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise DomainError(f"values must be a list, an array or a column, got {values!r}")
        values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
        positions = self._positions
        fallback = None if self.other is None else positions[self.other]
        found = [positions.get(value, fallback) if isinstance(value, str) else fallback for value in values]
        if fallback is None and None in found:
            wrong = values[found.index(None)]
            raise DomainError(f"label {wrong!r} is not in the domain; add it, or give the domain an 'other'")
        return np.array(found, dtype=np.int64)

    def label(self, index: int) -> str:
        """The label of an index; for a bare size, the index itself as text."""
        return str(index) if self.labels is None else self.labels[index]

    def to_json(self) -> dict[str, Any]:
        """What a plan records."""
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
    def from_json(cls, record: object) -> Domain:
        """The inverse of :meth:`to_json`."""
        if not isinstance(record, Mapping) or not set(record) <= {"size", "labels", "labels_sha256", "other"}:
            raise PlanError(f"domain must be an object with size and optional labels, got {record!r}")
        size, other = record.get("size"), record.get("other")
        if type(size) is not int:
            raise PlanError(f"domain size must be a whole number, got {size!r}")
        if other is not None and not isinstance(other, str):
            raise PlanError(f"other must be a label, got {other!r}")
        try:
            return cls._from_checked(record, size, other)
        except DomainError as error:
            raise PlanError(f"domain: {error}") from None

    @classmethod
    def _from_checked(cls, record: Mapping[str, Any], size: int, other: str | None) -> Domain:
        if "labels" in record and "labels_sha256" in record:
            raise DomainError("labels and labels_sha256 exclude each other")
        if "labels" in record:
            domain = cls(_check_labels(record["labels"]), other=other)
            if domain.size != size:
                raise DomainError(f"size is {size} but there are {domain.size} labels")
            return domain
        if "labels_sha256" not in record:
            return cls(size, other=other)
        domain = cls(size)
        digest = record["labels_sha256"]
        if not (isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
            raise DomainError(f"labels_sha256 must be 64 lower-case hexadecimal digits, got {digest!r}")
        domain.labels_sha256, domain.other = digest, other
        return domain

    def __eq__(self, other: object) -> bool:
        """Equal terms."""
        return isinstance(other, Domain) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """By size."""
        return hash(self.size)

    def __repr__(self) -> str:
        """Size and the first labels."""
        shown = "" if self.labels is None else f", labels {', '.join(map(repr, self.labels[:3]))}…"
        return f"Domain({self.size} values{shown})"


def _check_labels(values: object) -> tuple[str, ...]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise DomainError(f"domain must be a size or a list of labels, got {values!r}")
    labels: list[str] = []
    seen: set[str] = set()
    for label in values:
        if not isinstance(label, str):
            raise DomainError(f"a label must be text, got {label!r}; use str() on your values")
        if label in seen:
            raise DomainError(f"label {label!r} occurs twice")
        try:
            label.encode("utf-8")
        except UnicodeEncodeError:
            raise DomainError(f"label {label!r} is not valid Unicode text") from None
        seen.add(label)
        labels.append(str(label))
    return tuple(labels)


def _label_bytes(labels: Sequence[str]) -> bytes:
    broken = next((label for label in labels if "\n" in label or "\r" in label), None)
    if broken is not None:
        raise DomainError(f"label {broken!r} holds a line break and cannot stand in a label file")
    return "".join(f"{label}\n" for label in labels).encode()


def _read_labels(path: str | Path) -> list[str]:
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise DomainError(f"{path} is not UTF-8 text") from None
    if not text.endswith("\n"):
        raise DomainError(f"{path} must end with a line break, else its last label may have been cut")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")
