"""Questions about numbers and tables, as text from commands and web pages, and their answers."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from sunzi.client.errors import ParameterError
from sunzi.results.cross_tables import ConditionalShare, TableEstimate
from sunzi.results.estimate import Estimate
from sunzi.results.means import MeanEstimate
from sunzi.results.ordered import OrderedEstimate
from sunzi.results.uncertainty import Target

_OR_NUMBER = " or one of a number (sunzi plan --number, or sunzi.make_number)"
_UNBOUNDED = "The interval is unbounded: the condition's frequency is not significantly above 0."


@dataclass(frozen=True)
class Answer:
    """A question and its answer, in the unit of the values or as a share."""

    question: str
    value: float
    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    is_share: bool = False
    unit: str = ""
    """The unit of numbers and their means, such as "ms" or "days since 1970-01-01"."""
    note: str = ""
    """A caveat, as one sentence."""

    def record(self) -> dict[str, Any]:
        """For JSON and CSV; None where there is no number."""
        numbers = {"value": self.value, "low": self.low, "high": self.high, "standard_error": self.standard_error}
        finite = {name: None if number is None or not isfinite(number) else number for name, number in numbers.items()}
        return {
            "question": self.question,
            **finite,
            "is_share": self.is_share,
            "unit": self.unit,
            "note": self.note,
        }


@dataclass(frozen=True)
class Questions:
    """Questions about an estimate."""

    ranges: Sequence[str] = ()
    """Each as ``LOW:HIGH``."""
    quantiles: Sequence[float] = ()
    mean: bool = False
    shares: Sequence[str] = ()
    """Each as ``ATTRIBUTE=VALUE``, or several with commas."""
    given: str | None = None
    """The condition of the shares, in the same form; without shares, attributes: the share of every cell among the
    records with the same values of them.
    """
    independence: bool = False

    def __bool__(self) -> bool:
        """Whether there is any question."""
        is_given = self.given is not None
        return bool(self.ranges or self.quantiles or self.mean or self.shares or is_given or self.independence)

    def ask(self, estimate: Estimate, confidence: float = 0.95, target: Target = "reporters") -> list[Answer]:
        """All answers, in the order of the fields.

        Parameters
        ----------
        estimate: of an ordered plan, of a number, or of a table.
        confidence, target: as in :meth:`Estimate.interval`.
        """
        return [*self._about_numbers(estimate, confidence, target), *self._about_tables(estimate, confidence, target)]

    def _about_numbers(self, estimate: Estimate, confidence: float, target: Target) -> Iterator[Answer]:
        for text in self.ranges:
            low, separator, high = text.partition(":")
            if not separator:
                raise ParameterError(f"a range must be LOW:HIGH such as 100:250, got {text!r}")
            yield _range(_ordered(estimate, "a range"), low, high, confidence, target)
        for probability in self.quantiles:
            yield _quantile(_ordered(estimate, "a quantile"), probability, confidence, target)
        if self.mean:
            asked = estimate if isinstance(estimate, MeanEstimate) else _ordered(estimate, "a mean", _OR_NUMBER)
            mean, bins = asked.mean(confidence, target=target), asked.bins
            note = f"Values outside {bins.shown_range(0, bins.size)} count as its nearest end, also in this mean."
            note = note if bins.clamp else ""
            yield Answer("mean", mean.value, mean.low, mean.high, mean.standard_error, unit=bins.unit, note=note)

    def _about_tables(self, estimate: Estimate, confidence: float, target: Target) -> Iterator[Answer]:
        if self.shares and not self.given:
            raise ParameterError("a share needs a condition: share crashed=yes, given version=2")
        for text in self.shares:
            table = _table(estimate, "a share")
            values, given = _pairs(text, table.attributes), _pairs(self.given or "", table.attributes)
            yield _share(f"{text} among {self.given}", table.share(values, given, confidence, target=target))
        if self.given is not None and not self.shares:
            table, attributes = _table(estimate, "a share"), comma_list(self.given)
            if any("=" in name and name not in table.attributes for name in attributes):
                raise ParameterError(
                    f"give a share with the condition {self.given}, such as crashed=yes; or only an attribute, for the "
                    "shares of all cells"
                )
            yield from _every_share(table, attributes, confidence, target)
        if self.independence:
            test = _table(estimate, "independence").independence()
            yield Answer(f"χ² of independence, {test.degrees} degrees of freedom", test.statistic)
            yield Answer("p-value of independence", test.p_value)


def _range(estimate: OrderedEstimate, low: str, high: str, confidence: float, target: Target) -> Answer:
    """The share of a range, or of the narrowest one of whole bins that encloses it."""
    bins, ends = estimate.bins, (_end(low), _end(high))
    start, stop = bins.enclosing(*ends)
    share = estimate.range(bins.edges[start], bins.edges[stop], confidence, target=target)
    question, notes = f"{low} to {high}", []
    if not all(bins.is_edge(end) for end in ends):
        question = f"{bins.shown_edge(start)} to {bins.shown_edge(stop)}"
        notes.append(
            f"{low} to {high} does not consist of whole bins; the answer is about {question}, which encloses it."
        )
    beyond = [f"below {bins.shown_edge(0)}"] * (start == 0) + [f"above {bins.shown_edge(bins.size)}"] * (
        stop == bins.size
    )
    if bins.clamp and beyond:
        notes.append(f"{question} also counts all values {' and '.join(beyond)}.")
    return Answer(question, share.value, share.low, share.high, share.standard_error, True, note=" ".join(notes))


def _quantile(estimate: OrderedEstimate, probability: float, confidence: float, target: Target) -> Answer:
    found, bins = estimate.quantile(probability, confidence, target=target), estimate.bins
    question, note = f"quantile {probability:g}", ""
    if bins.clamp and (found.low <= bins.low or found.high >= bins.high):
        note = (
            f"The interval of {question} reaches an end of the range, where all values beyond it are counted: the "
            "quantile may lie outside."
        )
    return Answer(question, found.value, found.low, found.high, unit=bins.unit, note=note)


def _share(question: str, share: ConditionalShare) -> Answer:
    note = "" if share.is_bounded else _UNBOUNDED
    return Answer(question, share.value, share.low, share.high, is_share=True, note=note)


def _every_share(table: TableEstimate, given: list[str], confidence: float, target: Target) -> Iterator[Answer]:
    for index, share in enumerate(table.shares(given, confidence, target=target)):
        texts = {name: f"{name}={label}" for name, label in table.cell(index).items()}
        asked = ",".join(text for name, text in texts.items() if name not in given)
        condition = ",".join(text for name, text in texts.items() if name in given)
        yield _share(f"{asked} among {condition}", share)


def comma_list(text: str) -> list[str]:
    """Texts with commas between them, quoted as in CSV.

    >>> comma_list('version,"a, b"')
    ['version', 'a, b']
    """
    try:
        found = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise ParameterError(f"expected texts with commas between them, got {text!r}: {error}") from None
    if not found:
        raise ParameterError("expected texts with commas between them, got none")
    return found


def _ordered(estimate: Estimate, what: str, other: str = "") -> OrderedEstimate:
    if not isinstance(estimate, OrderedEstimate):
        raise ParameterError(f"{what} needs an ordered plan{other}: sunzi plan --ordered, or sunzi.make_ordered")
    return estimate


def _table(estimate: Estimate, what: str) -> TableEstimate:
    if not isinstance(estimate, TableEstimate):
        raise ParameterError(f"{what} needs a plan of tables: sunzi plan --tables, or sunzi.make_tables")
    return estimate


def _end(text: str) -> object:
    """A number, or the text of a date."""
    try:
        return float(text)
    except ValueError:
        return text


def _pairs(text: str, attributes: Collection[str]) -> dict[str, object]:
    """The values of ``ATTRIBUTE=VALUE,…``. The shortest name that is an attribute counts; it may contain "="."""
    found: dict[str, object] = {}
    for part in comma_list(text):
        words = part.split("=")
        if len(words) == 1:
            raise ParameterError(f"values must be ATTRIBUTE=VALUE such as crashed=yes, got {part!r}")
        names = ["=".join(words[:number]) for number in range(1, len(words))]
        name = next((name for name in names if name in attributes), words[0])
        value = part.removeprefix(f"{name}=")
        if name in found:
            raise ParameterError(f"{text!r} names the attribute {name!r} twice; ask about one of its values at a time")
        found[name] = value
    return found
