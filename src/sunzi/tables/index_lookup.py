"""The domain's index of every row of a column, and what becomes of values that have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.errors import DomainError, ParameterError, shown
from sunzi.domains.labels import MISSING, UNKNOWN, Domain, is_located
from sunzi.domains.ranges import OrderedDomain
from sunzi.domains.records import RecordDomain
from sunzi.domains.texts import LONGER, OpenDomain
from sunzi.formatting import counted
from sunzi.tables.column_rows import Rows

FOLDS = ("case", "space")
"""What :class:`IndexLookup` can ignore: upper and lower case, and spaces at the ends of a text or repeated within."""

MAX_UNKNOWN = 0.5
"""By default, a column of which a larger share of values is unknown is refused: it is likely the wrong one."""

_MOST_DIGITS = 18
_SHOWN_TEXTS = 5
_SHOWN_HINTS = 2
# Beyond this many distinct unknown texts, those that occurred least are forgotten.
_MOST_TEXTS = 1 << 16


class UnknownValuesWarning(UserWarning):
    """Unknown or missing values are reported as the domain's ``other``, or numbers outside a range as its nearest end;
    the message counts them.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnknownValuesWarning)  # an error instead
    ...     warnings.warn("3 values are unknown", UnknownValuesWarning)
    Traceback (most recent call last):
        ...
    sunzi.tables.index_lookup.UnknownValuesWarning: 3 values are unknown
    """


def may_replace(domain: Domain) -> bool:
    """Whether some values are reported as another one: as ``other``, or as an end of the range."""
    return domain.other is not None or (isinstance(domain, OrderedDomain) and domain.clamp)


def replaced_in_words(domain: Domain, rows: int, unknown: int, missing: int, clamped: int) -> str | None:
    """How many rows are reported as ``other`` or as the end of a range; None if there are none."""
    if clamped:
        return f"{clamped:,} of {counted(rows, 'row')} outside the range are reported as its nearest end"
    if not unknown and not missing:
        return None
    numbers = f"{unknown:,} unknown and {missing:,} missing"
    return f"of {counted(rows, 'row')}, {numbers} are reported as {shown(domain.other)}"


class IndexLookup:
    """Finds the domain's index of every row, by the rules of :class:`~sunzi.Domain`, and counts rows without one.

    In addition, text may spell the integers of a domain without labels. Errors name the row, counted from 1 without the
    line of column names.

    Parameters
    ----------
    domain: the plan's domain.
    skip_missing: leave rows without a value out, which reveals to anyone who sees who reported whose value is missing;
        epsilon does not cover that.
    fold: which of ``FOLDS`` to ignore in texts that are not labels as they are.
    """

    def __init__(self, domain: Domain, *, skip_missing: bool = False, fold: Sequence[str] = ()) -> None:
        self._domain, self._skip = domain, skip_missing
        self._folded = FoldedLabels(domain, fold) if fold else None
        self._known: tuple[Sequence[str | float | None], Integers] = ((), np.empty(0, dtype=np.int64))
        self._texts: Counter[str] = Counter()
        self.rows = 0
        """The number of rows read."""
        self.skipped = 0
        """The number of rows left out."""
        self.unknown = 0
        """The number of rows whose value is not in the domain and is reported as ``other``."""
        self.missing = 0
        """The number of rows without a value that are reported as ``other``."""
        self.clamped = 0
        """The number of rows whose number lies outside the range and is reported as its nearest end."""

    def indices(self, rows: Rows) -> Integers:
        """The index of every row that is not left out; a DomainError names the first row without one."""
        found = self.located(rows)
        return found[found >= 0] if self._skip else found

    def located(self, rows: Rows) -> Integers:
        """The index of every row, negative for rows that are left out; a DomainError names the first without one."""
        located = self._locate(rows)
        found = self._settle(rows, located) if located.size and located.min() < 0 else located
        self._count_clamped(rows)
        self.rows += rows.codes.size
        return found

    def commonest(self, number: int = _SHOWN_TEXTS) -> list[tuple[str, int]]:
        """The most common unknown texts, each with its number of rows."""
        return sorted(self._texts.items(), key=lambda item: (-item[1], item[0]))[:number]

    def describe(self) -> str | None:
        """What was reported as ``other`` or as the end of a range, in words; None if nothing was."""
        said = replaced_in_words(self._domain, self.rows, self.unknown, self.missing, self.clamped)
        if said is None or not self._texts:
            return said
        texts = ", ".join(f"{shown(text)} ({count:,})" for text, count in self.commonest())
        hints = hints_at(self._domain, [text for text, _ in self.commonest()])[:_SHOWN_HINTS]
        return "; ".join([said, f"unknown are {texts}", *hints])

    def check(self, max_unknown: float = MAX_UNKNOWN) -> None:
        """Raise DomainError if more than this share of the rows is unknown."""
        if self.unknown > max_unknown * self.rows:
            raise DomainError(
                f"{100 * self.unknown / self.rows:.3g} % of the values are not in the domain, more than "
                f"{100 * max_unknown:g} %: {self.describe()}; choose another column, or allow it with --max-unknown 1"
            )

    def _locate(self, rows: Rows) -> Integers:
        if rows.texts is None:
            located = self._domain.locate(rows.codes)
            return located if rows.missing is None else np.where(rows.missing, MISSING, located)
        if rows.texts is not self._known[0]:  # neighbouring pieces often share their list of texts
            self._known = rows.texts, self._locate_texts(rows.texts)
        return self._known[1][rows.codes]

    def _locate_texts(self, texts: Sequence[str | float | None]) -> Integers:
        located = self._domain.locate([self._meaning(text) for text in texts])
        if self._folded is not None:
            for place in np.flatnonzero(located == UNKNOWN).tolist():
                located[place] = self._folded.index(str(texts[place]))
        return located

    def _meaning(self, value: object) -> object:
        """Digits are a number where the domain is one of integers."""
        if self._domain.has_labels or not isinstance(value, str):
            return value
        return int(value) if value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS else value

    def _settle(self, rows: Rows, located: Integers) -> Integers:
        """Apply ``other``, leave rows out if requested, and refuse the first that still has no index."""
        skipped = np.logical_and(located == MISSING, self._skip)
        found = self._domain.replace_by_other(located)
        wrong = np.flatnonzero((found < 0) & ~skipped)
        if wrong.size:
            raise self._refusal(rows, int(wrong[0]), is_missing=located[wrong[0]] == MISSING)
        self.skipped += int(np.count_nonzero(skipped))
        self.missing += int(np.count_nonzero((located == MISSING) & ~skipped))
        self._count_unknown(rows, located == UNKNOWN)
        return np.where(skipped, MISSING, found)

    def _count_unknown(self, rows: Rows, is_unknown: NDArray[np.bool_]) -> None:
        self.unknown += int(np.count_nonzero(is_unknown))
        codes, counts = np.unique(rows.codes[is_unknown], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            text = code if rows.texts is None else rows.texts[code]
            self._texts[str(text)] += count
        if len(self._texts) > _MOST_TEXTS:
            self._texts = Counter(dict(self._texts.most_common(_MOST_TEXTS // 2)))

    def _count_clamped(self, rows: Rows) -> None:
        if not isinstance(self._domain, OrderedDomain) or not self._domain.clamp:
            return
        if rows.texts is None:
            self.clamped += self._domain.count_outside(rows.codes)
        else:
            self.clamped += int(np.count_nonzero(self._domain.is_outside(list(rows.texts))[rows.codes]))

    def _refusal(self, rows: Rows, row: int, *, is_missing: bool) -> DomainError:
        place = f"row {self.rows + row + 1}"
        if not is_missing:
            value = rows.value(row)
            hints = hints_at(self._domain, [value] if isinstance(value, str) else [])
            return DomainError("; ".join([f"{place}: {self._domain.refusal(self._meaning(value))}", *hints]))
        remedy = "give the domain an 'other' to report" if self._domain.has_labels else "fill it in"
        return DomainError(
            f"{place} has no value; {remedy}, or leave such rows out (--skip-missing), which reveals whose value is "
            "missing"
        )


class RecordLookup:
    """Finds the index of every record, whose attributes are columns: the first is the column itself, and the others
    come first among the columns beside it. Parameters and counts are those of :class:`IndexLookup`.
    """

    def __init__(self, domain: RecordDomain, *, skip_missing: bool = False, fold: Sequence[str] = ()) -> None:
        self._lookups = {
            name: IndexLookup(part, skip_missing=skip_missing, fold=fold if part.has_labels else ())
            for name, part in domain.attributes.items()
        }
        self._sizes = domain.sizes
        self.rows = 0
        """The number of rows read."""
        self.skipped = 0
        """The number of rows left out."""

    def indices(self, rows: Rows) -> Integers:
        """The index of every row that is not left out; a DomainError names the first row without one."""
        found = self.located(rows)
        return found[found >= 0]

    def located(self, rows: Rows) -> Integers:
        """The index of every row, negative for rows that are left out."""
        total = np.zeros(rows.codes.size, dtype=np.int64)
        skipped = np.zeros(rows.codes.size, dtype=np.bool_)
        columns = (rows, *rows.public[: len(self._sizes) - 1])
        for (name, lookup), size, column in zip(self._lookups.items(), self._sizes, columns, strict=True):
            try:
                found = lookup.located(column)
            except DomainError as error:
                raise DomainError(f"column {name!r}: {error}") from None
            skipped |= found < 0
            total = total * size + np.maximum(found, 0)
        self.rows += rows.codes.size
        self.skipped += int(np.count_nonzero(skipped))
        return np.where(skipped, MISSING, total)

    def describe(self) -> str | None:
        """What was reported as ``other`` or as the end of a range, by attribute; None if nothing was."""
        said = [f"{name}: {text}" for name, lookup in self._lookups.items() if (text := lookup.describe())]
        return "; ".join(said) or None

    def check(self, max_unknown: float = MAX_UNKNOWN) -> None:
        """Raise DomainError if more than this share of an attribute's values is unknown."""
        for name, lookup in self._lookups.items():
            try:
                lookup.check(max_unknown)
            except DomainError as error:
                raise DomainError(f"column {name!r}: {error}") from None


class TextLookup:
    """Finds the digits of every text of an open domain. Only values that are not texts have none; the counts are those
    of :class:`IndexLookup`.
    """

    def __init__(self, domain: OpenDomain, *, skip_missing: bool = False) -> None:
        self._domain, self._skip = domain, skip_missing
        self._known: tuple[Sequence[str | float | None], Integers] = ((), np.empty((0, domain.width), dtype=np.int64))
        self.rows = 0
        """The number of rows read."""
        self.skipped = 0
        """The number of rows left out."""
        self.longer = 0
        """The number of rows whose text is longer than planned."""

    def indices(self, rows: Rows) -> Integers:
        """The digits of every row that is not left out; a DomainError names the first that is not text."""
        found = self.located(rows)
        return found[is_located(found)]

    def located(self, rows: Rows) -> Integers:
        """The digits of every row, negative for rows that are left out."""
        if rows.texts is None:
            raise DomainError("the column holds numbers, and this plan is about texts; cast it to text")
        if rows.texts is not self._known[0]:  # neighbouring pieces often share their list of texts
            self._known = rows.texts, self._domain.locate(rows.texts)
        found = self._known[1][rows.codes]
        first = found[:, 0]
        wrong = np.flatnonzero((first < 0) & ~np.logical_and(first == MISSING, self._skip))
        if wrong.size:
            row = int(wrong[0])
            raise DomainError(f"row {self.rows + row + 1}: {self._domain.refusal(rows.value(row))}")
        self.skipped += int(np.count_nonzero(first < 0))
        self.longer += int(np.count_nonzero(self._domain.is_longer(found) & (first >= 0)))
        self.rows += rows.codes.size
        return found

    def describe(self) -> str | None:
        """How many texts are longer than planned; None if none is."""
        if not self.longer:
            return None
        return (
            f"{self.longer:,} of {counted(self.rows, 'row')} are longer than {self._domain.longest} tokens and count "
            f"as their beginning with {LONGER}"
        )

    def check(self, max_unknown: float = MAX_UNKNOWN) -> None:
        """Nothing: every text is in an open domain."""


Lookup = IndexLookup | RecordLookup | TextLookup


class FoldedLabels:
    """The labels of a domain by their folded texts. Labels that fold to the same text are found only as they are."""

    def __init__(self, domain: Domain, rules: Sequence[str]) -> None:
        wrong = [rule for rule in rules if rule not in FOLDS]
        if wrong:
            raise ParameterError(f"a text can be folded by {' and '.join(FOLDS)}, got {shown(wrong[0])}")
        if domain.labels is None:
            raise ParameterError("folding texts needs a domain of labels; this one has numbers")
        self._rules = tuple(rules)
        self._indices = {"": MISSING}
        for index, label in enumerate(domain.labels):
            folded = fold_text(label, self._rules)
            self._indices[folded] = UNKNOWN if self._indices.get(folded, MISSING) != MISSING else index

    def index(self, text: str) -> int:
        """The index of a text, or UNKNOWN, or MISSING if nothing is left of it."""
        return self._indices.get(fold_text(text, self._rules), UNKNOWN)


def fold_text(text: str, rules: Sequence[str]) -> str:
    """A text without the differences that the rules ignore."""
    text = " ".join(text.split()) if "space" in rules else text
    return text.casefold() if "case" in rules else text


def hints_at(domain: Domain, texts: Sequence[str]) -> list[str]:
    """Which labels differ from unknown texts only by case or spaces, and the option that ignores this."""
    if domain.labels is None or not texts:
        return []
    foldings = [(rules, FoldedLabels(domain, rules)) for rules in (("case",), ("space",), FOLDS)]
    hints = []
    for text in texts:
        rules, index = next(((rules, at) for rules, folded in foldings if (at := folded.index(text)) >= 0), ((), -1))
        if rules:
            words = " and ".join(rules).replace("space", "spaces")
            label = shown(domain.labels[index])
            hints.append(f"{shown(text)} differs from the label {label} only by {words}: --fold {','.join(rules)}")
    return hints
