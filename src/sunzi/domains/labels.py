"""The domain of a collection: labels and their indices 0 … k−1."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.domains.columns import as_array, as_list, check_column, is_missing
from sunzi.domains.label_files import label_bytes, read_bytes, tidy_labels, utf8_text
from sunzi.errors import DomainError, ParameterError, PlanError
from sunzi.formatting import shortened
from sunzi.numerics.checks import shown

MOST_VALUES = 1 << 30
# Comparing an unknown label with these takes a second at most.
_MOST_COMPARED = 50_000
_LABELS_SHOWN, _LONGEST_LABEL = 8, 30

UNKNOWN, UNUSABLE, MISSING = -1, -2, -3
"""What :meth:`Domain.locate` returns for a value without an index: outside the domain, of the wrong type, or missing
(null, NaN, or an empty text that is not a label).
"""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Domain:
    """The values of a collection: a bare size (the integers 0 … k−1) or a list of distinct labels. Immutable.

    Parameters
    ----------
    values: the number of values, or the labels.
    other: the label that unknown and missing values (null, NaN, or an empty text that is not a label) are reported as;
        without it they are errors.
    separate_labels: keep the labels out of the plan, which then names their file by its SHA-256.

    >>> import sunzi
    >>> sunzi.Domain(["red", "green", "other"], other="other").index("blue")
    2
    """

    size: int
    labels: tuple[str, ...] | None
    """None for a bare size, and without the file that the labels are in."""
    labels_sha256: str | None
    """The SHA-256 of the file of labels, if the plan does not hold them itself."""
    other: str | None

    def __init__(self, values: int | Iterable[str], *, other: str | None = None, separate_labels: bool = False) -> None:
        if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
            if other is not None or separate_labels:
                what = "separate_labels" if other is None else f"other={other!r}"
                raise DomainError(f"{what} needs a domain of labels, got a size")
            labels, size = None, int(values)
        else:
            labels = _check_labels(values)
            size = len(labels)
        if not 2 <= size <= MOST_VALUES:
            raise DomainError(f"a domain needs between 2 and 2^30 values, got {shown(size)}")
        if other is not None and other not in (labels or ()):
            raise DomainError(f"other must be one of the labels, got {other!r}; add it to the list")
        digest = hashlib.sha256(label_bytes(labels)).hexdigest() if labels and separate_labels else None
        self._set(size, labels=labels, labels_sha256=digest, other=other)

    def _set(self, size: int, **fields: Any) -> None:
        """Set the fields once, although the dataclass is frozen."""
        vars(self).update({"size": size, "labels": None, "labels_sha256": None, "other": None} | fields)

    @classmethod
    def of(cls, values: int | Iterable[str] | Domain, *, other: str | None = None) -> Domain:
        """The domain of these values, which may be one already.

        Parameters
        ----------
        values: the number of values, the labels, or a domain.
        other: as for :class:`Domain`.
        """
        if not isinstance(values, Domain):
            return Domain(values, other=other)
        if other is not None:
            raise ParameterError("domain is already a Domain: pass other= to Domain()")
        return values

    @classmethod
    def from_file(cls, path: str | Path, *, other: str | None = None) -> Domain:
        """A domain from a UTF-8 file with one label per line, also compressed; its plan names the labels by their hash.

        A byte order mark, trailing spaces, blank lines at the end of the file and the kind of line ends are not part of
        the labels. A blank line before other labels, and a label that occurs twice, are refused.
        """
        return cls(tidy_labels(path, read_bytes(path)), other=other, separate_labels=True)

    def save_labels(self, path: str | Path) -> None:
        """Write the canonical label file, whose hash is in the plan; other clients read it unchanged."""
        Path(path).write_bytes(label_bytes(self._labels()))

    def attach(self, path: str | Path) -> Domain:
        """This domain with its labels, read from their file, whose hash must match."""
        if self.labels_sha256 is None:
            raise DomainError(f"this plan names no label file, so {path} is not needed; omit it")
        data = read_bytes(path)
        is_exact = hashlib.sha256(data).hexdigest() == self.labels_sha256
        labels = utf8_text(path, data).removesuffix("\n").split("\n") if is_exact else tidy_labels(path, data)
        attached = Domain(labels, separate_labels=True)
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

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {"": MISSING} | {label: index for index, label in enumerate(self._labels())}

    @property
    def has_labels(self) -> bool:
        """Whether values are labels rather than the integers 0 … k−1."""
        return self.labels is not None or self.labels_sha256 is not None

    @property
    def is_indices(self) -> bool:
        """Whether the values are the integers 0 … k−1."""
        return not self.has_labels

    @property
    def is_open(self) -> bool:
        """Whether the values are texts without a list."""
        return False

    @property
    def size_in_words(self) -> str:
        """How many values there are."""
        return f"{self.size} values"

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

    def index_array(self, index: Any) -> Integers:
        """One index as an array; DomainError if it is outside the domain."""
        if not 0 <= index < self.size:
            raise DomainError(f"an index must lie between 0 and {self.size - 1}, got {index}")
        return np.array([index], dtype=np.int64)

    def check_indices(self, indices: Integers) -> None:
        """Raise DomainError unless all indices are inside the domain."""
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.size:
            raise DomainError(f"indices must lie between 0 and {self.size - 1}")

    def index(self, value: object) -> int:
        """The index of one value."""
        known = self._positions.get(value, UNKNOWN) if self.labels is not None and type(value) is str else UNKNOWN
        return known if known >= 0 else int(self.indices([value])[0])

    def exact_index(self, value: object) -> int:
        """The index of a value that must be in the domain: ``other`` does not replace unknown or missing values."""
        return int(self.exact_indices([value])[0])

    def exact_indices(self, values: Iterable[object]) -> Integers:
        """:meth:`exact_index` of many values. The error for an unknown label suggests the most similar one."""
        listed = values if isinstance(values, np.ndarray) else list(values)
        found = self.locate(listed)
        if found.size and found.min() < 0:
            value = listed[int(found.argmin())]
            if not (self.has_labels and isinstance(value, str) and value):
                raise self.refusal(value)
            raise DomainError(f"label {shown(value)} is not in the domain; {self._spelling(value)}")
        return found

    def _spelling(self, value: str) -> str:
        similar = get_close_matches(value, self._labels()[:_MOST_COMPARED], n=1)
        return f"did you mean {shown(similar[0])}?" if similar else "check its spelling"

    def indices(self, values: object) -> Integers:
        """The indices of many values: a list, an array, or a column of a data frame."""
        column = check_column(values, "values must be a list, an array or a column")
        listed = as_list(column) if self.has_labels else as_array(column)
        found = self.replace_by_other(self.locate(listed))
        if found.size and found.min() < 0:
            # Missing values come first, since in some libraries they turn all integers of a column into floats.
            raise self.refusal(listed[int(found.argmin())])
        return found

    def locate(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        """The index of each value, or UNKNOWN, UNUSABLE or MISSING if it has none; ``other`` replaces nothing here."""
        return self._locate_labels(values) if self.has_labels else self._locate_integers(as_array(values))

    def replace_by_other(self, located: Integers) -> Integers:
        """What :meth:`locate` returned, with the index of ``other`` (if any) for unknown and missing values."""
        if self.other is None:
            return located
        return np.where((located == UNKNOWN) | (located == MISSING), self._positions[self.other], located)

    def refusal(self, value: object) -> DomainError:
        """The error that says why a value has no index."""
        if is_missing(value):
            can_get_other = self.has_labels and self.other is None
            hint = "fill it in, leave its row out, or give the domain an 'other'"
            hint = hint if can_get_other else "fill it in or leave its row out"
            return DomainError(f"a value is missing (null, NaN or empty text); {hint}")
        if self.has_labels and isinstance(value, str):
            hint = "add it, or give the domain an 'other'" if self.other is None else "check its spelling"
            return DomainError(f"label {shown(value)} is not in the domain; {hint}")
        if self.has_labels:
            return DomainError(
                f"value {shown(value)} is not text, but this domain's values are labels; use str() on it"
            )
        if not _is_integer(value):
            return DomainError(f"value {shown(value)} is not one of the integers 0 … {self.size - 1}")
        return DomainError(f"value {shown(int(value))} is not in the domain 0 … {self.size - 1}")

    def _locate_integers(self, array: NDArray[Any]) -> Integers:
        size = self.size
        if array.dtype.kind not in "iu":
            found = [
                value if type(value) is int and 0 <= value < size else self._locate_oddity(value)
                for value in array.tolist()
            ]
            return np.array(found, dtype=np.int64)
        integers = array.astype(np.int64, copy=False)
        if not array.size or (array.min() >= 0 and array.max() < size):
            return integers
        return np.where((array >= 0) & (array < size), integers, UNKNOWN)

    def _locate_oddity(self, value: object) -> int:
        if is_missing(value):
            return MISSING
        if not _is_integer(value):
            return UNUSABLE
        return int(value) if 0 <= value < self.size else UNKNOWN

    def _locate_labels(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        positions = self._positions
        found = [positions.get(value, UNKNOWN) if isinstance(value, str) else UNUSABLE for value in values]
        indices = np.array(found, dtype=np.int64)
        for place in np.flatnonzero(indices == UNUSABLE).tolist():
            if is_missing(values[place]):
                indices[place] = MISSING
        return indices

    def label(self, index: int) -> str:
        """The label of an index; for a bare size, the index as text. Raises if the labels are in a file not read."""
        return self._labels()[index] if self.has_labels else str(index)

    def example(self, index: int) -> object:
        """A value with this index, as clients take it."""
        return self.label(index) if self.has_labels else index

    def shown(self, index: int) -> str:
        """:meth:`label` for display: "index 3" if the labels are in a file that was not read."""
        if self.labels is not None:
            return self.labels[index]
        return f"index {index}" if self.has_labels else str(index)

    def search(self, text: str, limit: int) -> list[int]:
        """The first values whose labels contain a text, ignoring case; where values are indices, the value itself.

        Parameters
        ----------
        text: part of a label.
        limit: return at most this many indices.

        >>> import sunzi
        >>> sunzi.Domain(["red", "green", "dark red"]).search("Red", 10)
        [0, 2]
        """
        if self.has_labels:
            return self._search([text], limit)
        return [int(text)] if text.isdecimal() and int(text) < self.size else []

    def _search(self, parts: Sequence[str], limit: int) -> list[int]:
        """The first values whose labels contain all parts."""
        wanted = [part.casefold() for part in parts]
        shown_labels = ((place, self.shown(place).casefold()) for place in range(self.size))
        found = (place for place, label in shown_labels if all(part in label for part in wanted))
        return list(islice(found, limit))

    def in_words(self) -> str:
        """How many values there are, and which."""
        if self.labels is not None:
            first = ", ".join(shortened(label, _LONGEST_LABEL) for label in self.labels[:_LABELS_SHOWN])
            kind = f"labels {first}{', …' if self.size > _LABELS_SHOWN else ''}"
        elif self.labels_sha256 is not None:
            kind = f"labels in a separate file, SHA-256 {self.labels_sha256}"
        else:
            kind = f"the integers 0 … {self.size - 1}"
        other = "" if self.other is None else f"; all other values count as {self.other!r}"
        return f"{self.size:,}: {kind}{other}"

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
            raise DomainError("labels and labels_sha256 cannot be combined")
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
        shown = "" if self.labels is None else f", labels {', '.join(map(repr, self.labels[:3]))}…"
        return f"Domain({self.size} values{shown})"


def is_located(indices: Integers) -> NDArray[np.bool_]:
    """Which values :meth:`Domain.locate` has found; the texts of an open domain have a row of digits each."""
    return (indices if indices.ndim == 1 else indices[:, 0]) >= 0


def _is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_labels(values: object) -> tuple[str, ...]:
    labels: list[str] = []
    seen: set[str] = set()
    for label in check_column(values, "domain must be a size or a list of labels"):
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
