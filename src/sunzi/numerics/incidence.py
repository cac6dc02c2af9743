"""The total weight of the hyperplanes through each point of a projective space, by the cheapest of three routes
(docs/mathematics.md §5).

All the algorithms below rest on two properties of the numbering of points:

- without its last coordinate, point number i > 0 is point number (i - 1) // q of PG(t-2, q);
- the first (q**(t-1) - 1)/(q - 1) points are (0, u), u numbered as in PG(t-2, q); the others are (1, v), v in order.

Counting is exact for integer weights, and the same to rounding for real ones. With R distinct reported hyperplanes and
L requested points, the routes cost about

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
from typing import Literal, NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from sunzi._typing import Floats, Integers
from sunzi.client.designs.projective import points_of
from sunzi.client.errors import ParameterError
from sunzi.numerics.counters import LARGEST_EXACT_TOTAL
from sunzi.numerics.finite_fields import FiniteField
from sunzi.numerics.projective import ProjectiveSpace, check_range

Route = Literal["fourier", "dynamic", "direct"]

LARGEST_TABLE = 2**26
"""Points of the largest space with tables: up to 55 bytes per point for the dynamic programme, 90 for Fourier."""

_CHUNK = 2**18  # cells per step: large enough to hide Python's overhead, small enough to stay in the cache
_LARGEST_MATRIX = 32  # up to this length a matrix product is faster than a Fourier transform


def cheapest_route(space: ProjectiveSpace, reports: int, limit: int) -> Route:
    """The fastest route, by estimate, for ``reports`` distinct hyperplanes and the points below ``limit``."""
    costs = _estimated_costs(space.field, space.dimension, min(reports, space.point_count), limit)
    return min(costs, key=lambda route: costs[route])


def incidence_counts(
    space: ProjectiveSpace,
    messages: Integers,
    multiplicities: Integers | Floats,
    limit: int,
    route: Route | None = None,
) -> Integers | Floats:
    """For every point x < limit the total weight of the messages whose hyperplane contains x.

    Message i is hyperplane number ``messages[i]`` with weight ``multiplicities[i]``; hyperplanes may repeat. Exact,
    and int64, for integer weights; float64 for real ones. ``route`` overrides :func:`cheapest_route`.
    """
    check_range("message", messages, space.point_count)
    if not 1 <= limit <= space.point_count:
        raise ParameterError(f"limit must be 1..{space.point_count}, got {limit}")
    if np.shape(messages) != np.shape(multiplicities):
        raise ParameterError(f"{np.size(messages)} messages cannot have {np.size(multiplicities)} multiplicities")
    weights = np.asarray(multiplicities, dtype=np.float64)
    is_integer = np.issubdtype(np.asarray(multiplicities).dtype, np.integer)
    if is_integer and np.abs(weights).sum() > LARGEST_EXACT_TOTAL:
        raise ParameterError(f"integer multiplicities must add up to at most {LARGEST_EXACT_TOTAL}")
    hyperplanes, weights = _merged(space, np.asarray(messages, dtype=np.int64), weights)
    chosen = route or cheapest_route(space, hyperplanes.size, limit)
    if chosen not in _ROUTES:
        raise ParameterError(f"route must be one of {', '.join(_ROUTES)}, got {chosen}")
    counts = _ROUTES[chosen](space, hyperplanes, weights, limit)
    return np.rint(counts).astype(np.int64) if is_integer else counts


def hyperplane_sums(space: ProjectiveSpace, values: Integers | Floats, route: Route | None = None) -> Integers | Floats:
    """For every hyperplane the sum of values[x] over the points x < len(values) on it; the other points weigh 0.

    <x, y> = <y, x>, so this is :func:`incidence_counts` with points as messages.
    """
    if len(values) > space.point_count:
        raise ParameterError(f"there are {space.point_count} points, got {len(values)} values")
    return incidence_counts(space, np.arange(len(values), dtype=np.int64), values, space.point_count, route)


def _merged(space: ProjectiveSpace, messages: Integers, weights: Floats) -> tuple[Integers, Floats]:
    """Without zero weights and, if there are more messages than hyperplanes, without duplicates."""
    if messages.size > space.point_count:
        weights = _weight_table(space, messages, weights)
        messages = np.arange(space.point_count, dtype=np.int64)
    present = weights != 0
    return (messages, weights) if present.all() else (messages[present], weights[present])


class _View(NamedTuple):
    """The messages reduced to their last ``free`` + 1 coordinates, which decide for points with ``free`` free ones."""

    free: int
    pencil: Floats  # pencil[b, w]: weight of the messages (b, canonical vector number w)
    alone: float  # weight of the messages (1, 0, ..., 0)
    vanished: float  # weight of the messages whose remaining coordinates are all zero: they contain all these points
    size: int  # the number of requested points


def _fourier_counts(space: ProjectiveSpace, messages: Integers, weights: Floats, limit: int) -> Floats:
    """Incidence counts by characters: the sum over c != 0 of chi(c * <x, y>) is q - 1 if <x, y> = 0, else -1.

    For points (1, x') the sum over y = c(b, w), w canonical, is a transform in b for each w, whose result at c goes to
    the cell c*w, then one transform of all q**s cells. For points with leading zeros only y's last coordinates matter.
    """

    def count(view: _View) -> Floats:
        total = view.pencil.sum() + view.alone
        return np.asarray((_character_sums(space.field, view) + total) / space.field.order + view.vanished)

    return _counts_by_view(space, messages, weights, limit, count)


def _dynamic_counts(space: ProjectiveSpace, messages: Integers, weights: Floats, limit: int) -> Floats:
    """Incidence counts by the dynamic programme over the coordinates of x.

    For a prefix u of x a table holds the weight of all y with a given [rest of y : <u, y's beginning>], a point of a
    projective space that loses one dimension with each coordinate that u gains; both x and y stay canonical.
    """
    return _counts_by_view(space, messages, weights, limit, lambda view: _extend_prefixes(space.field, view))


def _direct_counts(space: ProjectiveSpace, messages: Integers, weights: Floats, limit: int) -> Floats:
    """Incidence counts by walking the reported hyperplanes.

    The points 1 + q*r, ..., q + q*r share all but the last coordinate with point r of one dimension less. A hyperplane
    with last coordinate y_t != 0 meets each such row in one point, a = -<u_r, y'>/y_t; one with y_t = 0 contains the
    row if its own prefix contains u_r, which is the same question one dimension lower.
    """
    return _direct(space.field, space.vectors(messages), weights, limit)


_ROUTES: dict[Route, Callable[[ProjectiveSpace, Integers, Floats, int], Floats]] = {
    "fourier": _fourier_counts,
    "dynamic": _dynamic_counts,
    "direct": _direct_counts,
}


def _estimated_costs(field: FiniteField, dimension: int, reports: int, limit: int) -> dict[Route, float]:
    """Approximate nanoseconds on one core; the constants were measured for orders from 2 to 1009."""
    order = field.order
    rows = -(-limit // order)
    direct = 9.0 * reports * rows + 300.0 * reports + 12.0 * limit
    if points_of(order, dimension) > LARGEST_TABLE:
        return {"fourier": math.inf, "dynamic": math.inf, "direct": direct}
    fourier = dynamic = 20.0 * order ** (dimension - 1)
    for free in range(1, dimension):
        size = min(limit - points_of(order, free), order**free)
        if size > 0:
            fourier += 250_000 + (80 if field.characteristic == 2 else 140) * order**free
            dynamic += 100_000 + sum(_step_cost(order, width, size) for width in range(2, free + 1))
    return {"fourier": fourier, "dynamic": dynamic, "direct": direct}


def _step_cost(order: int, width: int, size: int) -> float:
    """Nanoseconds of one call of :func:`_extend_prefix`: for each a, overhead, computing indices, and gathering."""
    before, after = (-(-size // order**digits) for digits in (width, width - 1))
    return float(min(order, after) * (40_000 + (3 + 2 * before) * (order + 1) * points_of(order, width)))


def _counts_by_view(
    space: ProjectiveSpace, messages: Integers, weights: Floats, limit: int, count: Callable[[_View], Floats]
) -> Floats:
    """Combine the counts of the points with s free coordinates, for each s, dropping one coordinate of y each time."""
    if space.point_count > LARGEST_TABLE:
        raise ParameterError(f"{space.point_count} points are more than {LARGEST_TABLE}: the route must be direct")
    order, field, vanished = space.field.order, space.field, 0.0
    counts = np.empty(limit, dtype=np.float64)
    table = _weight_table(space, messages, weights)
    reciprocals = field.inverse(np.arange(1, order, dtype=np.int64))
    for free in range(space.dimension - 1, 0, -1):
        start = points_of(order, free)
        head, tail = table[:start], table[start:]
        pencil = np.concatenate([head[np.newaxis], tail[_multiples(field, free, reciprocals)]])
        if start < limit:
            size = min(limit - start, order**free)
            counts[start : start + size] = count(_View(free, pencil, float(tail[0]), vanished, size))
        vanished += float(tail[0])
        table = pencil.sum(axis=0)
    counts[0] = vanished
    return counts


def _weight_table(space: ProjectiveSpace, messages: Integers, weights: Floats) -> Floats:
    """The weight of every hyperplane."""
    return np.asarray(np.bincount(messages, weights, space.point_count), dtype=np.float64)


def _character_sums(field: FiniteField, view: _View) -> Floats:
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

    For many short axes, products with the matrix of a few digits at a time are ten times as fast as a multidimensional
    transform by scipy.
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


def _extend_prefixes(field: FiniteField, view: _View) -> Floats:
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


def _extend_prefix(
    field: FiniteField, width: int, table: Floats, zeros: Floats, prefixes: int
) -> tuple[Floats, Floats]:
    """One step, [b : v : z] to [v : z + ab]. What becomes w is [0 : w] and, for every c != 0, [1 : cw - (0, a)]."""
    order, size = field.order, points_of(field.order, width)
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


def _sum_rows(table: Floats, numbers: Integers) -> Floats:
    """The sum over i of table[numbers[i]], a few i at a time."""
    step = max(1, _CHUNK // (numbers.shape[1] * table.shape[1]))
    total = np.zeros((numbers.shape[1], table.shape[1]))
    for start in range(0, len(numbers), step):
        total += table.take(numbers[start : start + step], axis=0).sum(axis=0)
    return total


def _multiples(field: FiniteField, coordinates: int, scalars: Integers) -> Integers:
    """The base-q numbers of c*w: one row per scalar c, one column per canonical w."""
    numbers = scalars[:, np.newaxis]
    if coordinates > 1:
        products = field.multiply(numbers, np.arange(field.order, dtype=np.int64))[:, np.newaxis]
    for _ in range(coordinates - 1):
        longer = numbers[:, :, np.newaxis] * field.order + products
        numbers = np.concatenate([scalars[:, np.newaxis], longer.reshape(scalars.size, -1)], axis=1)
    return numbers


def _direct(field: FiniteField, vectors: Integers, weights: Floats, limit: int) -> Floats:
    """:func:`_direct_counts` for hyperplanes given by their vectors."""
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


def _count_crossings(field: FiniteField, slopes: Integers, weights: Floats, rows: int) -> Floats:
    """The weight at each point (u, <u, slope>), for the first ``rows`` points u; q cells per row."""
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
    """The inner products of the first ``rows`` canonical points with each vector (a column), one addition each."""
    last = vectors[-1:]
    if rows == 1:
        return last
    shorter = _row_products(field, vectors[:-1], -(-(rows - 1) // field.order))
    scalars = np.arange(min(field.order, rows - 1), dtype=np.int64)
    multiples = field.multiply(scalars[:, np.newaxis], last)
    longer = field.add(shorter[:, np.newaxis], multiples).reshape(-1, last.size)
    return np.concatenate([last, longer[: rows - 1]])
