"""The domain of a collection: labels and their indices 0 … k−1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.domains import labels as client
from sunzi.client.domains.label_files import read_bytes, tidy_labels
from sunzi.client.domains.labels import is_missing, label_bytes
from sunzi.client.errors import DomainError, ParameterError, as_integer, shown
from sunzi.domains.columns import as_array, as_list, check_column
from sunzi.formatting import shortened

# Comparing an unknown label with these takes a second at most.
_MOST_COMPARED = 50_000
_LABELS_SHOWN, _LONGEST_LABEL = 8, 30

UNKNOWN, UNUSABLE, MISSING = -1, -2, -3
"""What :meth:`Domain.locate` returns for a value without an index: outside the domain, of the wrong type, or missing
(null, NaN, or an empty text that is not a label).
"""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Domain(client.Domain):
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

    def __init__(self, values: int | Iterable[str], *, other: str | None = None, separate_labels: bool = False) -> None:
        is_size = as_integer(values) is not None and not isinstance(values, np.ndarray)
        given: Any = values if is_size else check_column(values, "domain must be a size or a list of labels")
        super().__init__(given, other=other, separate_labels=separate_labels)

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
        Path(path).write_bytes(label_bytes(self.known_labels()))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {"": MISSING, **self.positions}

    @property
    def is_indices(self) -> bool:
        """Whether the values are the integers 0 … k−1."""
        return not self.has_labels

    @property
    def size_in_words(self) -> str:
        """How many values there are."""
        return f"{self.size} values"

    def check_indices(self, indices: Integers) -> None:
        """Raise DomainError unless all indices are inside the domain."""
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < self.size:
            raise DomainError(f"indices must lie between 0 and {self.size - 1}")

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
        similar = get_close_matches(value, self.known_labels()[:_MOST_COMPARED], n=1)
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
        return np.where((located == UNKNOWN) | (located == MISSING), self.positions[self.other], located)

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
        integer = as_integer(value)
        if integer is None:
            return UNUSABLE
        return integer if 0 <= integer < self.size else UNKNOWN

    def _locate_labels(self, values: Sequence[Any] | NDArray[Any]) -> Integers:
        positions = self._places
        found = [positions.get(value, UNKNOWN) if isinstance(value, str) else UNUSABLE for value in values]
        indices = np.array(found, dtype=np.int64)
        for place in np.flatnonzero(indices == UNUSABLE).tolist():
            if is_missing(values[place]):
                indices[place] = MISSING
        return indices

    def label(self, index: int) -> str:
        """The label of an index; for a bare size, the index as text. Raises if the labels are in a file not read."""
        return self.known_labels()[index] if self.has_labels else str(index)

    def example(self, index: int) -> object:
        """A value with this index, as clients take it."""
        return self.label(index) if self.has_labels else index

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


def is_located(indices: Integers) -> NDArray[np.bool_]:
    """Which values :meth:`Domain.locate` has found; the texts of an open domain have a row of digits each."""
    return (indices if indices.ndim == 1 else indices[:, 0]) >= 0
