"""The search for frequent texts: level by level from short prefixes to whole texts, or among a list of candidates.

Its errors are harmless, since other reports count what it proposes (docs/mathematics.md §18).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.domains.texts import Digits, OpenDomain, distinct
from sunzi.errors import EstimateError
from sunzi.numerics.polynomial_hash import AlignedDigits, all_endings, ending_digits, extended
from sunzi.protocols.prefix_tables import Cells, ViewTable, least_squares, view_tables
from sunzi.protocols.text_prior import TextPrior

if TYPE_CHECKING:
    from sunzi.protocols.prefix_views import PrefixViews
    from sunzi.tally import Tally

BEAM = 300
"""How many prefixes a level passes on."""
FINISHED = 50_000
"""How many complete texts of a level are looked up in all later levels."""
PROPOSED = 500
"""How many texts are proposed in total, equally many from every level."""

# A text has one cell in each view of a level. If their values differ by more than this many standard errors, the
# smaller counts: the larger one includes a colliding text.
_GHOST = 4.0
_SCORED_AT_ONCE = 1 << 20
_MOST_ENDINGS = 1 << 24
_PUBLIC_SHARE = 0.9
_PEELED, _STANDS_OUT, _KEPT_OF_LIST = 4, 5.5, 20_000


@dataclass(frozen=True)
class _Level:
    """The views that see the same number of digits."""

    digits: int
    tables: tuple[ViewTable, ...]

    @property
    def standard_error(self) -> float:
        """The standard error of the mean of all views."""
        return float(np.mean([table.standard_error**2 for table in self.tables]) / len(self.tables)) ** 0.5

    def means(self, cells: list[Integers]) -> Cells:
        """The mean over the views, with values that another view contradicts lowered."""
        values = [table.at(place) for table, place in zip(self.tables, cells, strict=True)]
        bounds = [value + np.float32(_GHOST * t.standard_error) for value, t in zip(values, self.tables, strict=True)]
        least = bounds[0] if len(bounds) == 1 else np.minimum.reduce(bounds)
        total = sum(np.minimum(value, least) for value in values)
        return np.asarray(total / np.float32(len(values)))


@dataclass(frozen=True)
class _Texts:
    """Texts or prefixes, with their scores."""

    digits: Digits
    scores: Floats
    carried: Floats
    """The part of a score that is not from this level: the prior, and the prefix's own score."""

    def with_more(self, other: _Texts) -> _Texts:
        """These texts and others."""
        return _Texts(
            np.concatenate([self.digits, other.digits]),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.carried, other.carried]),
        )


@dataclass(eq=False)
class _Best:
    """The best of many scores, added chunk by chunk."""

    number: int
    pieces: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    floor: float = -np.inf

    def add(self, scores: Cells, carried: Cells, *places: Integers) -> None:
        """Add scores and the data that belongs to each of them."""
        flat = np.flatnonzero(scores.reshape(-1) > self.floor)
        if flat.size > self.number:
            flat = flat[np.argpartition(-scores.reshape(-1)[flat], self.number)[: self.number]]
        columns: list[NDArray[Any]] = [scores, carried, *places]
        self.pieces.append(tuple(np.broadcast_to(part, scores.shape).reshape(-1)[flat] for part in columns))
        if sum(len(piece[0]) for piece in self.pieces) > 2 * self.number:
            self.pieces = [self.result()]
            self.floor = float(self.pieces[0][0].min())

    def result(self) -> tuple[NDArray[Any], ...]:
        """The best, best first."""
        joined = [np.concatenate(parts) for parts in zip(*self.pieces, strict=True)]
        order = np.argsort(-joined[0], kind="stable")[: self.number]
        return tuple(part[order] for part in joined)


@dataclass(frozen=True)
class PrefixSearch:
    """The decoded search views of a tally."""

    domain: OpenDomain
    levels: tuple[_Level, ...]
    beam: int

    @classmethod
    def of(cls, protocol: PrefixViews, domain: OpenDomain, tally: Tally, beam: int = BEAM) -> PrefixSearch:
        """Decode the search views."""
        tables = view_tables(protocol.with_role("search"), tally)
        depths = sorted({table.view.digits for table in tables})
        levels = (_Level(depth, tuple(t for t in tables if t.view.digits == depth)) for depth in depths)
        return cls(domain, tuple(levels), beam)

    def best(self, prior: TextPrior | None = None) -> Digits:
        """The texts that look most frequent, equally many that end at every level."""
        if not is_searchable(self.domain, [level.digits for level in self.levels]):
            raise EstimateError("this plan has no views to search for unknown texts; give a list of candidates")
        begun = _Texts(np.empty((1, 0), dtype=np.uint16), np.zeros(1), np.zeros(1))
        each, proposed = PROPOSED // len(self.levels), []
        for place in range(len(self.levels)):
            begun, finished = self._extended(place, begun, prior)
            values, error = self._pooled(finished.digits, place)
            scores = _evidence(values / error) + finished.carried
            proposed.append(finished.digits[_largest(scores, each)])
        return np.concatenate(proposed)

    def _extended(self, place: int, begun: _Texts, prior: TextPrior | None) -> tuple[_Texts, _Texts]:
        """The best prefixes at a level, and the best texts that end there; at the last level all do."""
        level, is_last = self.levels[place], place == len(self.levels) - 1
        most = (self.domain.longest if is_last else level.digits) - begun.digits.shape[1]
        opened, ended = _Best(FINISHED if is_last else self.beam), _Best(FINISHED)
        lengths = range(most + 1)
        number = sum(len(self.domain.symbols) ** length for length in lengths)
        rows = max(1, _SCORED_AT_ONCE // len(self.domain.symbols) ** most)
        for start in range(0, len(begun.digits), rows):
            part = slice(start, start + rows)
            chances = _chances(self.domain, begun.digits[part], prior, most, number)
            parent = np.arange(len(begun.digits))[part, None]
            parents = np.minimum(0.0, begun.scores[part]).astype(np.float32)[:, None]
            for length, (going_on, ending) in zip(lengths, chances, strict=True):
                among = np.arange(len(self.domain.symbols) ** length)[None, :]
                kinds = [(ended, ending, True)] if length < most or is_last else []
                kinds += [(opened, going_on, False)] if length == most else []
                for best, chance, with_end in kinds:
                    values = self._values(level, begun.digits[part], length, with_end=with_end)
                    carried = chance + parents
                    score = _evidence(values / level.standard_error) + carried
                    best.add(score, carried, parent, among, np.array(length))
        going, finished = self._texts(begun, opened, None), self._texts(begun, ended, self.domain.end)
        if is_last:  # truncated texts are found as well
            return going, finished.with_more(going)
        return replace(going, digits=going.digits[:, : level.digits]), finished

    def _values(self, level: _Level, digits: Digits, length: int, *, with_end: bool) -> Cells:
        """For every prefix (rows) and all endings of one length (columns), the mean over the level's views."""
        cells = []
        for table in level.tables:
            view, residue = table.view, table.view.points(digits.astype(np.int64))
            endings = all_endings(len(self.domain.symbols), length, view.base, view.cells)
            if with_end:
                endings = (endings * view.base + self.domain.end) % view.cells
            cells.append(extended(residue, endings, length + with_end, view.base, view.cells))
        return level.means(cells)

    def _texts(self, begun: _Texts, best: _Best, end: int | None) -> _Texts:
        """The rows behind the best scores."""
        scores, carried, parents, places, lengths = best.result()
        digits = np.zeros((scores.size, self.domain.width), dtype=np.uint16)
        before = begun.digits.shape[1]
        digits[:, :before] = begun.digits[parents.astype(np.int64)]
        for length in np.unique(lengths).astype(int).tolist():
            rows = np.flatnonzero(lengths == length)
            added = ending_digits(len(self.domain.symbols), length, places[rows].astype(np.int64))
            digits[rows, before : before + length] = added
            if end is not None:
                digits[rows, before + length] = end
        return _Texts(digits, scores.astype(np.float64), carried.astype(np.float64))

    def _pooled(self, digits: Digits, place: int) -> tuple[Floats, float]:
        """For texts that end at a level, the mean over it and all later levels, which see them whole too; and its
        standard error.
        """
        aligned = AlignedDigits.of(digits, self.domain.end + 1)
        total, weights = np.zeros(len(digits)), 0.0
        for level in self.levels[place:]:
            cells = [aligned.residues(table.view.base, table.view.cells) for table in level.tables]
            weight = 1 / level.standard_error**2
            total += weight * level.means(cells)
            weights += weight
        return total / weights, weights**-0.5

    def among(self, digits: Digits) -> Digits:
        """The texts of a list that look most frequent. Outliers are subtracted round by round, so that texts colliding
        with them do not look frequent.
        """
        kept = distinct(digits[_largest(self._scores(digits), _KEPT_OF_LIST)])
        search, out = self, np.zeros(len(kept), dtype=np.bool_)
        scores = self._scores(kept)
        for _ in range(_PEELED):
            found = np.flatnonzero((scores > _STANDS_OUT) & ~out)
            if not found.size:
                break
            out[found] = True
            search = self._without(kept[out])
            scores = np.where(out, np.inf, search._scores(kept))
        return kept[_largest(scores, PROPOSED)]

    def _scores(self, digits: Digits) -> Floats:
        """How many standard errors every text of a list is above 0."""
        scores = np.empty(len(digits))
        for start in range(0, len(digits), _SCORED_AT_ONCE):
            part = digits[start : start + _SCORED_AT_ONCE]
            ends = self._last_levels(part)
            for place in np.unique(ends).tolist():
                rows = np.flatnonzero(ends == place)
                values, error = self._pooled(part[rows], place)
                scores[start + rows] = values / error
        return scores

    def _last_levels(self, digits: Digits) -> Integers:
        """The first level that sees the whole of each text."""
        depths = np.array([level.digits for level in self.levels])
        lengths = np.where(self.domain.is_longer(digits), depths[-1], np.count_nonzero(digits, axis=1))
        return np.searchsorted(depths, lengths)

    def _without(self, digits: Digits) -> PrefixSearch:
        """The search with these texts subtracted, using estimates from the level that sees whole texts."""
        frequencies = least_squares(list(self.levels[-1].tables), digits)
        rows = digits.astype(np.int64)
        levels = (
            _Level(level.digits, tuple(t.without(t.view.points(rows), frequencies) for t in level.tables))
            for level in self.levels
        )
        return PrefixSearch(self.domain, tuple(levels), self.beam)


def is_searchable(domain: OpenDomain, depths: list[int]) -> bool:
    """Whether all endings that a level adds can be enumerated."""
    added = np.diff([0, *depths[:-1], domain.longest])
    return max(len(domain.symbols) ** int(length) for length in added) <= _MOST_ENDINGS


def _largest(scores: Floats, number: int) -> Integers:
    """The places of the largest scores, largest first."""
    if scores.size > number:
        places = np.argpartition(-scores, number)[:number]
        return np.asarray(places[np.argsort(-scores[places], kind="stable")])
    return np.argsort(-scores, kind="stable")


def _evidence(scaled: Cells | Floats) -> Cells:
    """The logarithm of a likelihood ratio, negative for values below 0."""
    return np.asarray(scaled * np.abs(scaled) / 2, dtype=np.float32)


def _chances(
    domain: OpenDomain, begun: Digits, prior: TextPrior | None, most: int, number: int
) -> Iterator[tuple[Cells, Cells]]:
    """For endings of every length after every prefix: the log probability that the text continues after them, and that
    it ends.
    """
    flat = np.full((1, 1), -log(number), dtype=np.float32)
    if prior is None:
        yield from ((flat, flat) for _ in range(most + 1))
        return
    public, floor = np.float32(log(_PUBLIC_SHARE)), np.float32(log((1 - _PUBLIC_SHARE) / number))
    chance: Cells = np.zeros((len(begun), 1), dtype=np.float32)
    context = prior.contexts(begun)[:, None]
    tokens = np.arange(1, len(domain.symbols) + 1)
    for length in range(most + 1):
        following = prior.chances(context)
        ending = chance + following[:, :, -1]
        yield np.logaddexp(chance + public, floor), np.logaddexp(ending + public, floor)
        if length < most:
            chance = (chance[:, :, None] + following[:, :, :-1]).reshape(len(begun), -1)
            context = prior.after(context[:, :, None], tokens).reshape(len(begun), -1)
