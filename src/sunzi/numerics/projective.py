"""Finite projective geometry: points, hyperplanes, and how much weight passes through each point.

PG(t-1, q) has K = (q**t - 1)/(q - 1) points, the non-zero vectors of t coordinates up to scaling. A point's canonical
vector has leading zeros, then a 1, then free coordinates. Points are numbered by the number s of free coordinates, then
by those coordinates read as a base-q number, most significant first: index = (q**s - 1)/(q - 1) + value. Hyperplanes
are numbered alike: hyperplane y holds the points x with <x, y> = 0, and the two play interchangeable parts. The
numbering is part of the wire format and never changes.

Two consequences of it carry all the algorithms below:

- without its last coordinate, point number i > 0 is point number (i - 1) // q of PG(t-2, q);
- the first (q**(t-1) - 1)/(q - 1) points are (0, u), u numbered as in PG(t-2, q); the others are (1, v), v in order.

Counting is exact for integer weights, and the same to rounding for real ones. With R distinct reported hyperplanes and
L points asked for, the routes cost about

    fourier   K * log K       one character transform of q**s cells for points with s free coordinates
    dynamic   L * q * t       tables over (prefix of x, [rest of y : partial inner product]), both up to scaling
    direct    R * L / q       walk every reported hyperplane

The dynamic programme is that of Feldman, Nelson, Nguyen and Talwar, "Private frequency estimation via projective
geometry" (2022); canonical forms on both sides make its tables smaller by a factor of about q**2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from sunzi.errors import ParameterError
from sunzi.numerics.finite_fields import FiniteField

Route = Literal["fourier", "dynamic", "direct"]
Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

LARGEST_TABLE = 2**26
"""Points of the largest space that gets tables: a point takes up to 55 bytes by dynamic programme, 90 by Fourier."""

LARGEST_INTEGER_TOTAL = 2**45
"""Integer weights may add up to this much: rounding errors of the transform then stay far below one half."""

_CHUNK = 2**18  # cells handled at once: enough to hide Python's overhead, few enough to stay in cache
_LARGEST_MATRIX = 32  # short transforms are matrix products; a fast Fourier transform pays only for longer ones


@dataclass(frozen=True)
class ProjectiveSpace:
    """The points and hyperplanes of PG(t-1, q), where t = ``dimension`` counts coordinates.

    Guarantee: :meth:`hyperplane_through` and :meth:`hyperplane_avoiding` are, for each point, bijections from selectors
    to the hyperplanes that contain, or miss, the point. So a uniform selector gives a uniform hyperplane.
    """

    field: FiniteField
    dimension: int

    def __post_init__(self) -> None:
        if self.dimension < 2 or self.dimension * math.log2(self.field.order) > 62:
            raise ParameterError(f"need 2 coordinates or more, and q**t <= 2**62, got {self.dimension} coordinates")

    @property
    def point_count(self) -> int:
        """K, the number of points, and of hyperplanes."""
        return _points(self.field.order, self.dimension)

    @property
    def hyperplane_size(self) -> int:
        """The number of points on a hyperplane, and of hyperplanes through a point."""
        return _points(self.field.order, self.dimension - 1)

    def vectors(self, indices: Integers) -> Integers:
        """The canonical vectors, shape (n, t), of points or hyperplanes."""
        return self._columns(indices).T

    def indices(self, vectors: Integers) -> Integers:
        """The numbers of the points that non-zero vectors, shape (n, t), stand for; they need not be canonical."""
        order, columns = self.field.order, vectors.T
        leading = np.zeros(len(vectors), dtype=np.int64)
        start = np.zeros(len(vectors), dtype=np.int64)
        for free, column in enumerate(columns[::-1]):
            leading = np.where(column, column, leading)
            start = np.where(column, _points(order, free) - order**free, start)
        if not leading.all():
            raise ParameterError("the zero vector stands for no point")
        scale = self.field.inverse(leading)
        value = np.zeros(len(vectors), dtype=np.int64)
        for column in columns:
            value = value * order + self.field.multiply(column, scale)
        return value + start

    def contains(self, hyperplanes: Integers, points: Integers) -> NDArray[np.bool_]:
        """Whether each hyperplane contains the point beside it."""
        return np.asarray(self._inner_products(self._columns(hyperplanes), self._columns(points)) == 0)

    def hyperplane_through(self, points: Integers, selector: Integers) -> Integers:
        """For each point the hyperplane number ``selector`` of the ``hyperplane_size`` that contain it.

        With s the position of the point's leading 1, the other coordinates of y are canonical vector number
        ``selector`` of one dimension less, and y_s = -sum of x_i * y_i over i != s.
        """
        _check_range("selector", selector, self.hyperplane_size)
        others = _canonical_columns(self.field.order, self.dimension - 1, np.asarray(selector, dtype=np.int64))
        return self._complete(points, others, 0)

    def hyperplane_avoiding(self, points: Integers, selector: Integers) -> Integers:
        """For each point the hyperplane number ``selector`` of the q**(t-1) that miss it.

        The other coordinates of y are the base-q digits of ``selector``, most significant first, and y_s makes the
        inner product 1.
        """
        _check_range("selector", selector, self.field.order ** (self.dimension - 1))
        others = _digit_columns(self.field.order, self.dimension - 1, np.asarray(selector, dtype=np.int64))
        return self._complete(points, others, 1)

    def cheapest_route(self, reports: int, limit: int) -> Route:
        """The route that should take least time for ``reports`` distinct hyperplanes and the points below ``limit``."""
        costs = _estimated_costs(self.field, self.dimension, min(reports, self.point_count), limit)
        return min(costs, key=lambda route: costs[route])

    def incidence_counts(
        self, messages: Integers, multiplicities: Integers | Reals, limit: int, route: Route | None = None
    ) -> Integers | Reals:
        """For every point x < limit the total weight of the messages whose hyperplane contains x.

        Message i is hyperplane number ``messages[i]`` with weight ``multiplicities[i]``; a hyperplane may occur often.
        Exact, and int64, for integer weights; float64 for real ones. ``route`` overrides :meth:`cheapest_route`.
        """
        _check_range("message", messages, self.point_count)
        if not 1 <= limit <= self.point_count:
            raise ParameterError(f"limit must be 1..{self.point_count}, got {limit}")
        if np.shape(messages) != np.shape(multiplicities):
            raise ParameterError(f"{np.size(messages)} messages cannot have {np.size(multiplicities)} multiplicities")
        weights = np.asarray(multiplicities, dtype=np.float64)
        is_integer = np.issubdtype(np.asarray(multiplicities).dtype, np.integer)
        if is_integer and np.abs(weights).sum() > LARGEST_INTEGER_TOTAL:
            raise ParameterError(f"integer multiplicities must add up to at most {LARGEST_INTEGER_TOTAL}")
        hyperplanes, weights = self._merged(np.asarray(messages, dtype=np.int64), weights)
        chosen = route or self.cheapest_route(hyperplanes.size, limit)
        if chosen not in _ROUTES:
            raise ParameterError(f"route must be one of {', '.join(_ROUTES)}, got {chosen}")
        counts = _ROUTES[chosen](self, hyperplanes, weights, limit)
        return np.rint(counts).astype(np.int64) if is_integer else counts

    def hyperplane_sums(self, values: Integers | Reals, route: Route | None = None) -> Integers | Reals:
        """For every hyperplane the sum of values[x] over the points x < len(values) on it; the other points weigh 0.

        <x, y> = <y, x>, so this is :meth:`incidence_counts` with points as messages.
        """
        if len(values) > self.point_count:
            raise ParameterError(f"there are {self.point_count} points, got {len(values)} values")
        return self.incidence_counts(np.arange(len(values), dtype=np.int64), values, self.point_count, route)

    def _columns(self, indices: Integers) -> Integers:
        """The canonical vectors as columns: each coordinate contiguous in memory."""
        _check_range("index", indices, self.point_count)
        return _canonical_columns(self.field.order, self.dimension, np.asarray(indices, dtype=np.int64))

    def _inner_products(self, left: Integers, right: Integers) -> Integers:
        """Of columns with columns."""
        total = np.zeros(left.shape[1], dtype=np.int64)
        for first, second in zip(left, right, strict=True):
            total = self.field.add(total, self.field.multiply(first, second))
        return total

    def _complete(self, points: Integers, others: Integers, inner_product: int) -> Integers:
        """The hyperplanes y whose coordinates are ``others``, but for one at x's pivot that makes <x, y> as told."""
        x = self._columns(points)
        pivot = (x != 0).argmax(axis=0)
        y = np.zeros_like(x)
        for position in range(self.dimension - 1):  # the coordinates before the pivot stay, the others move on by one
            y[position] += np.where(position < pivot, others[position], 0)
            y[position + 1] += np.where(position < pivot, 0, others[position])
        missing = self.field.subtract(inner_product, self._inner_products(x, y))
        for position in range(self.dimension):
            y[position] = np.where(position == pivot, missing, y[position])
        return self.indices(y.T)

    def _merged(self, messages: Integers, weights: Reals) -> tuple[Integers, Reals]:
        """Without zero weights and, where there are more messages than hyperplanes, without repetitions."""
        if messages.size > self.point_count:
            weights = _weight_table(self, messages, weights)
            messages = np.arange(self.point_count, dtype=np.int64)
        present = weights != 0
        return (messages, weights) if present.all() else (messages[present], weights[present])


class _View(NamedTuple):
    """The messages as the points with ``free`` free coordinates see them: by their last ``free`` + 1 coordinates."""

    free: int
    pencil: Reals  # pencil[b, w]: weight of the messages (b, canonical vector number w)
    alone: float  # weight of the messages (1, 0, ..., 0)
    vanished: float  # weight of the messages of which nothing but zeros remains: they contain all these points
    size: int  # how many of the points are asked for


def fourier_counts(space: ProjectiveSpace, messages: Integers, weights: Reals, limit: int) -> Reals:
    """Incidence counts by characters: the sum over c != 0 of chi(c * <x, y>) is q - 1 if <x, y> = 0, else -1.

    For points (1, x') the sum over y = c(b, w), w canonical, is a transform in b for each w, whose result at c goes to
    the cell c*w, then one transform of all q**s cells. Points with leading zeros see only y's last coordinates.
    """

    def count(view: _View) -> Reals:
        total = view.pencil.sum() + view.alone
        return np.asarray((_character_sums(space.field, view) + total) / space.field.order + view.vanished)

    return _counts_by_view(space, messages, weights, limit, count)


def dynamic_counts(space: ProjectiveSpace, messages: Integers, weights: Reals, limit: int) -> Reals:
    """Incidence counts by the dynamic programme over the coordinates of x.

    For a prefix u of x a table holds the weight of all y with a given [rest of y : <u, y's beginning>], a point of a
    projective space that loses one dimension with each coordinate that u gains; both x and y stay canonical.
    """
    return _counts_by_view(space, messages, weights, limit, lambda view: _extend_prefixes(space.field, view))


def direct_counts(space: ProjectiveSpace, messages: Integers, weights: Reals, limit: int) -> Reals:
    """Incidence counts by walking the reported hyperplanes.

    The points 1 + q*r, ..., q + q*r share all but the last coordinate with point r of one dimension less. A hyperplane
    with last coordinate y_t != 0 meets each such row in one point, a = -<u_r, y'>/y_t; one with y_t = 0 contains the
    row if its own prefix contains u_r, which is the same question one dimension lower.
    """
    return _direct(space.field, space.vectors(messages), weights, limit)


_ROUTES: dict[Route, Callable[[ProjectiveSpace, Integers, Reals, int], Reals]] = {
    "fourier": fourier_counts,
    "dynamic": dynamic_counts,
    "direct": direct_counts,
}


def _estimated_costs(field: FiniteField, dimension: int, reports: int, limit: int) -> dict[Route, float]:
    """Nanoseconds, about, on one core; the constants were measured for orders from 2 to 1009."""
    order = field.order
    rows = -(-limit // order)
    direct = 9.0 * reports * rows + 300.0 * reports + 12.0 * limit
    if _points(order, dimension) > LARGEST_TABLE:
        return {"fourier": math.inf, "dynamic": math.inf, "direct": direct}
    fourier = dynamic = 20.0 * order ** (dimension - 1)
    for free in range(1, dimension):
        size = min(limit - _points(order, free), order**free)
        if size > 0:
            fourier += 250_000 + (80 if field.characteristic == 2 else 140) * order**free
            dynamic += 100_000 + sum(_step_cost(order, width, size) for width in range(2, free + 1))
    return {"fourier": fourier, "dynamic": dynamic, "direct": direct}


def _step_cost(order: int, width: int, size: int) -> float:
    """Of one call of :func:`_extend_prefix`: for each a, overhead, the numbers to gather at, and the gathering."""
    before, after = (-(-size // order**digits) for digits in (width, width - 1))
    return float(min(order, after) * (40_000 + (3 + 2 * before) * (order + 1) * _points(order, width)))


def _counts_by_view(
    space: ProjectiveSpace, messages: Integers, weights: Reals, limit: int, count: Callable[[_View], Reals]
) -> Reals:
    """Put together the counts of the points with s free coordinates, for every s; drop a coordinate of y for each."""
    if space.point_count > LARGEST_TABLE:
        raise ParameterError(f"{space.point_count} points are more than {LARGEST_TABLE}: the route must be direct")
    order, field, vanished = space.field.order, space.field, 0.0
    counts = np.empty(limit, dtype=np.float64)
    table = _weight_table(space, messages, weights)
    reciprocals = field.inverse(np.arange(1, order, dtype=np.int64))
    for free in range(space.dimension - 1, 0, -1):
        start = _points(order, free)
        head, tail = table[:start], table[start:]
        pencil = np.concatenate([head[np.newaxis], tail[_multiples(field, free, reciprocals)]])
        if start < limit:
            size = min(limit - start, order**free)
            counts[start : start + size] = count(_View(free, pencil, float(tail[0]), vanished, size))
        vanished += float(tail[0])
        table = pencil.sum(axis=0)
    counts[0] = vanished
    return counts


def _weight_table(space: ProjectiveSpace, messages: Integers, weights: Reals) -> Reals:
    """The weight of every hyperplane."""
    return np.asarray(np.bincount(messages, weights, space.point_count), dtype=np.float64)


def _character_sums(field: FiniteField, view: _View) -> Reals:
    """The sum of weight * chi(c * <x, y>) over messages y and c != 0, for the first points x of the view."""
    prime, degree, units = field.characteristic, field.degree, np.arange(1, field.order, dtype=np.int64)
    dual = field.digits(np.arange(field.order, dtype=np.int64)) @ field.trace_matrix() % prime
    dual_number = dual @ prime ** np.arange(degree, dtype=np.int64)
    spectra = _transform_digits(view.pencil.ravel(), prime, degree).reshape(-1, field.order)
    cells = np.empty(field.order**view.free, dtype=spectra.dtype)
    cells[0] = -view.alone
    cells[_multiples(field, view.free, units)] = spectra[:, dual_number[units]].T
    transform = _transform_digits(cells, prime, degree * view.free).real
    if degree == 1:
        return transform[: view.size]
    places = dual_number
    for _ in range(view.free - 1):
        places = np.add.outer(places * field.order, dual_number).ravel()
    return np.asarray(transform[places[: view.size]])


def _transform_digits(values: NDArray[np.inexact], prime: int, digits: int) -> NDArray[np.inexact]:
    """Fourier transform over the leading base-p digits of a flat array's index, which then go behind the others.

    An array of many short axes defeats a library's multidimensional transform; products with the matrix of a few digits
    at once are an order of magnitude faster.
    """
    while digits:
        together = max(1, min(digits, int(math.log(_LARGEST_MATRIX, prime) + 1e-9)))
        columns = values.reshape(prime**together, -1)
        if prime > _LARGEST_MATRIX:
            values = scipy.fft.fft(columns.T).ravel()
        else:
            values = (_fourier_matrix(prime, together) @ columns).T.ravel()
        digits -= together
    return values


@functools.cache
def _fourier_matrix(prime: int, digits: int) -> NDArray[np.inexact]:
    """The characters of (Z_p)**digits; real for p = 2."""
    single = np.array([[1.0, 1.0], [1.0, -1.0]]) if prime == 2 else scipy.fft.fft(np.eye(prime))
    return functools.reduce(np.kron, [single] * digits)


def _extend_prefixes(field: FiniteField, view: _View) -> Reals:
    """The dynamic programme for the points (1, a_1, ..., a_s), x's prefix growing by one a at a time.

    ``table[i, u]`` is the weight of the messages with [y_i+1 : ... : y_s : z] = point i, z the inner product of prefix
    u with y's beginning; ``zeros[u]`` of those where all of that is zero. The leading 1 makes z = b of the pencil.
    """
    order = field.order
    table = np.concatenate([[view.alone], view.pencil.T.ravel()])[:, np.newaxis]
    zeros = np.array([view.vanished])
    for width in range(view.free, 1, -1):
        prefixes = -(-view.size // order ** (width - 1))
        table, zeros = _extend_prefix(field, width, table, zeros, prefixes)
    completions = zeros + table[1:][field.negate(np.arange(order, dtype=np.int64))]
    return np.asarray(completions.T.ravel()[: view.size])


def _extend_prefix(field: FiniteField, width: int, table: Reals, zeros: Reals, prefixes: int) -> tuple[Reals, Reals]:
    """One step, [b : v : z] to [v : z + ab]. What becomes w is [0 : w] and, for every c != 0, [1 : cw - (0, a)]."""
    order, size = field.order, _points(field.order, width)
    head, tail = table[:size], table[size:]
    units = np.arange(1, order, dtype=np.int64)
    products = field.multiply(units[:, np.newaxis], np.arange(order, dtype=np.int64))
    beginnings = _multiples(field, width - 1, units)[:, :, np.newaxis] * order
    numbers = np.empty((order - 1, size), dtype=np.int64)
    longer, longer_zeros = np.empty((size, prefixes)), np.empty(prefixes)
    for a in range(min(order, prefixes)):
        owners = len(range(a, prefixes, order))
        numbers[:, 0] = field.subtract(units, a)
        np.add(beginnings, field.subtract(products, a)[:, np.newaxis], out=numbers[:, 1:].reshape(order - 1, -1, order))
        longer[:, a::order] = (head + _sum_rows(tail, numbers))[:, :owners]
        longer_zeros[a::order] = (zeros + tail[int(field.negate(a))])[:owners]
    return longer, longer_zeros


def _sum_rows(table: Reals, numbers: Integers) -> Reals:
    """The sum over i of table[numbers[i]], a few i at a time."""
    step = max(1, _CHUNK // (numbers.shape[1] * table.shape[1]))
    total = np.zeros((numbers.shape[1], table.shape[1]))
    for start in range(0, len(numbers), step):
        total += table.take(numbers[start : start + step], axis=0).sum(axis=0)
    return total


def _multiples(field: FiniteField, coordinates: int, scalars: Integers) -> Integers:
    """The base-q numbers of c*w, for each scalar c a row, for each canonical w a column."""
    numbers = scalars[:, np.newaxis]
    if coordinates > 1:
        products = field.multiply(numbers, np.arange(field.order, dtype=np.int64))[:, np.newaxis]
    for _ in range(coordinates - 1):
        longer = numbers[:, :, np.newaxis] * field.order + products
        numbers = np.concatenate([scalars[:, np.newaxis], longer.reshape(scalars.size, -1)], axis=1)
    return numbers


def _direct(field: FiniteField, vectors: Integers, weights: Reals, limit: int) -> Reals:
    """:func:`direct_counts` for hyperplanes given by their vectors."""
    counts = np.zeros(limit)
    flat = vectors[:, -1] == 0
    counts[0] = weights[flat].sum()
    if limit > 1:
        rows = -(-(limit - 1) // field.order)
        whole_rows = _direct(field, vectors[flat, :-1], weights[flat], rows)
        slopes = field.multiply(vectors[~flat, :-1], field.negate(field.inverse(vectors[~flat, -1:])))
        single_points = _count_crossings(field, slopes, weights[~flat], rows)
        counts[1:] = (np.repeat(whole_rows, field.order) + single_points)[: limit - 1]
    return counts


def _count_crossings(field: FiniteField, slopes: Integers, weights: Reals, rows: int) -> Reals:
    """The weight at each point (u, <u, slope>), for the first ``rows`` points u; q cells a row."""
    counts = np.zeros(rows * field.order)
    row_starts = np.arange(rows, dtype=np.int64)[:, np.newaxis] * field.order
    step = max(field.order, _CHUNK // rows)
    for start in range(0, len(slopes), step):
        share = weights[start : start + step]
        columns = np.ascontiguousarray(slopes[start : start + step].T)
        cells = (_row_products(field, columns, rows) + row_starts).ravel()
        if (share == share[0]).all():
            counts += share[0] * np.bincount(cells, minlength=counts.size)
        else:
            counts += np.bincount(cells, np.tile(share, rows), counts.size)
    return counts


def _row_products(field: FiniteField, vectors: Integers, rows: int) -> Integers:
    """The inner products of the first ``rows`` canonical points with each vector, a column; one field addition each."""
    last = vectors[-1:]
    if rows == 1:
        return last
    shorter = _row_products(field, vectors[:-1], -(-(rows - 1) // field.order))
    scalars = np.arange(min(field.order, rows - 1), dtype=np.int64)
    multiples = field.multiply(scalars[:, np.newaxis], last)
    longer = field.add(shorter[:, np.newaxis], multiples).reshape(-1, last.size)
    return np.concatenate([last, longer[: rows - 1]])


def _points(order: int, coordinates: int) -> int:
    """The number of points of PG(coordinates - 1, order); none if there are no coordinates."""
    return int((order**coordinates - 1) // (order - 1))


def _digit_columns(order: int, length: int, numbers: Integers) -> Integers:
    """The base-q digits of each number, a column, most significant first."""
    digits = np.empty((length, numbers.size), dtype=np.int64)
    for position in range(length - 1, -1, -1):
        quotient = numbers // order  # numpy's division by a scalar is a multiplication; its divmod and % are not
        digits[position] = numbers - quotient * order
        numbers = quotient
    return digits


def _canonical_columns(order: int, coordinates: int, indices: Integers) -> Integers:
    """The canonical vectors, columns: adding q**s to the value of s free coordinates writes the leading 1."""
    leading_ones = np.zeros(indices.size, dtype=np.int64)
    for free in range(coordinates):
        leading_ones[indices >= _points(order, free)] = order**free - _points(order, free)
    return _digit_columns(order, coordinates, indices + leading_ones)


def _check_range(what: str, numbers: Integers, stop: int) -> None:
    if np.size(numbers) and not (np.min(numbers) >= 0 and np.max(numbers) < stop):
        raise ParameterError(f"{what} must be 0..{stop - 1}, got {np.min(numbers)} to {np.max(numbers)}")
