"""Plans for open domains: the views, and how frequent a text must be to be found (docs/mathematics.md §18)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import exp, log, log2
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from sunzi.client.designs.finite_fields import LARGEST_ORDER
from sunzi.client.designs.primes import is_prime
from sunzi.client.designs.projective import points_of
from sunzi.client.errors import ParameterError, whole_number
from sunzi.client.protocols.views import SHARE_BITS
from sunzi.designs.projective import Projective
from sunzi.designs.response import BlockResponse
from sunzi.numerics.checks import real_number
from sunzi.numerics.finite_fields import prime_power
from sunzi.numerics.support_probabilities import SupportProbabilities
from sunzi.protocols.prefix_search import BEAM, FINISHED, PROPOSED, is_searchable
from sunzi.protocols.prefix_views import PrefixView, with_shares
from sunzi.results.discovery import Threshold

if TYPE_CHECKING:
    from sunzi.domains.texts import OpenDomain
    from sunzi.protocols.prefix_views import PrefixViews

MODULI = 2
"""Search views per level, and the minimum number of count views: texts that collide in one view rarely collide in the
other.
"""

# Double the counters only if that cuts the variance by at least this share.
_COST_OF_DOUBLING = 0.03
# A level adds as many tokens as give about this many combinations.
_MOST_ENDINGS = 25_000
_MOST_POINTS = 1 << 23
# With fewer cells, so many of the proposed texts would collide that their counts could not be separated.
_LEAST_CELLS = 1000
# Thresholds assume that about this many texts are found.
_TYPICAL_FOUND = 20
_LIST_LENGTH = 1_000_000


def planned_views(domain: OpenDomain, epsilon: Fraction, *, list_only: bool, cells: int) -> tuple[PrefixView, ...]:
    """The views of a plan, with equal shares: two for every level of the search, and a quarter of all for counting."""
    cells = whole_number("cells", cells, _LEAST_CELLS, _MOST_POINTS >> 1)
    response = BlockResponse(_design(max(cells, 2 * domain.end), epsilon), epsilon)
    depths = [domain.width] if list_only else levels(domain, cells)
    views = MODULI if len(depths) > 1 else 2 * MODULI
    counting = max(MODULI, round(MODULI * len(depths) / 3))
    needed = [(depth, True) for depth in depths for _ in range(views)] + [(domain.width, False)] * counting
    moduli = list(islice(_primes(response.design.points, 2 * domain.end), len(needed)))
    if len(moduli) < len(needed):
        raise ParameterError(f"{cells} cells have too few primes for {len(needed)} views; use more cells")
    made = zip(needed, moduli, strict=True)
    return with_shares(_view(domain, response, modulus, depth, is_search=search) for (depth, search), modulus in made)


def levels(domain: OpenDomain, cells: int) -> list[int]:
    """How many digits each level of the search sees, increasing; the last one sees all."""
    first = max(1, round(log(cells) / log(domain.end)))
    step = max(1, int(log(_MOST_ENDINGS) / log(domain.end)))
    rest = domain.width - first
    more = -(-rest // step)
    return [first + round(rest * place / more) for place in range(more + 1)] if rest > 0 else [domain.width]


def _design(cells: int, epsilon: Fraction) -> Projective:
    """A geometry of at least ``cells`` points with nearly the least error, and not many more points than needed."""
    found = list(_geometries(cells, epsilon))
    best = min(error for error, _, _ in found)
    _, order, dimension = min(
        found, key=lambda each: each[0] / best + _COST_OF_DOUBLING * log2(points_of(each[1], each[2]) / cells)
    )
    return Projective(order, dimension)


def _geometries(cells: int, epsilon: Fraction) -> Iterator[tuple[float, int, int]]:
    """Error, order and dimension of geometries with at least ``cells`` points: for every dimension the smallest ones,
    up to the order of least error.
    """
    optimum = min(exp(epsilon) + 1, LARGEST_ORDER)
    for dimension in range(2, 27):
        order = max(2, int(cells ** (1 / (dimension - 1)) / 2))
        while points_of(order, dimension) < cells:
            order += 1
        passed = False
        while not passed and order <= LARGEST_ORDER and points_of(order, dimension) < _MOST_POINTS:
            if prime_power(order) is not None:
                points, size = points_of(order, dimension), points_of(order, dimension - 1)
                yield SupportProbabilities.planned(points, size, epsilon).variance(0.0), order, dimension
                passed = order >= optimum
            order += 1


def _primes(largest: int, above: int) -> Iterator[int]:
    return (candidate for candidate in range(largest, above, -1) if is_prime(candidate))


def _view(domain: OpenDomain, response: BlockResponse, modulus: int, digits: int, *, is_search: bool) -> PrefixView:
    """A view with a deterministic base, so that the same terms always give the same plan."""
    seed = hashlib.sha256(f"sunzi prefixes {domain.end} {domain.longest} {modulus}".encode()).digest()
    base = domain.end + int.from_bytes(seed, "little") % (modulus - domain.end)
    while _repeats(base, digits, modulus):
        base = base + 1 if base + 1 < modulus else domain.end
    return PrefixView(modulus, 1, response, digits, base, "search" if is_search else "count")


def _repeats(base: int, digits: int, modulus: int) -> bool:
    """Whether two of the first powers of the base are equal: then texts with two digits swapped share their cell.

    Half the largest order is enough: for a primitive root b, b or −b lies in the upper half, and both have it.
    """
    power = 1
    for _ in range(min(digits - 1, (modulus - 1) // 2 - 1)):
        power = power * base % modulus
        if power == 1:
            return True
    return False


@dataclass(frozen=True)
class _Stage:
    """One selection that a text must survive: the best ``kept`` of all candidates, judged by a share of the reports."""

    share: float
    kept: float
    among: float


def thresholds(
    protocol: PrefixViews, domain: OpenDomain, users: int, false_share: float, recall: float
) -> list[Threshold]:
    """Thresholds by number of tokens, for one length per level, and for texts from a list."""
    if not 0 < real_number("recall", recall) < 1 or not 0 < real_number("false_share", false_share) < 1:
        raise ParameterError(f"recall and false_share must lie between 0 and 1, got {recall} and {false_share}")
    error = (protocol.views[0].null_variance / users) ** 0.5
    count = _Stage(protocol.counting_share, false_share * _TYPICAL_FOUND, PROPOSED)
    searching = protocol.with_role("search").values()
    depths = sorted({view.digits for view in searching})
    shares = [sum(view.share for view in searching if view.digits == depth) / (1 << SHARE_BITS) for depth in depths]
    listed = [_Stage(shares[-1], PROPOSED, _LIST_LENGTH), count]
    found, beams = [], list[_Stage]()
    if is_searchable(domain, depths):
        tokens = len(domain.symbols)
        for place, depth in enumerate(depths):
            starts, digits = (BEAM, depth - depths[place - 1]) if place else (1, depth)
            ending = starts * sum(tokens**length for length in range(digits))
            finished = _Stage(shares[place], FINISHED, ending)
            proposed = _Stage(sum(shares[place:]), PROPOSED / len(depths), ending)
            distance = _distance([*beams, finished, proposed, count], recall)
            found.append(Threshold(min(depth - 1, domain.longest), error * distance))
            beams.append(_Stage(shares[place], BEAM, starts * tokens**digits))
    return [*found, Threshold(None, error * _distance(listed, recall))]


def _distance(stages: list[_Stage], recall: float) -> float:
    """The frequency at which a text survives all stages with probability ``recall``, by bisection, in standard errors
    of a count by all reports.
    """
    selective = [stage for stage in stages if stage.kept < stage.among]
    roots = np.sqrt([stage.share for stage in selective])
    limits = ndtri([stage.kept / stage.among for stage in selective])
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.prod(ndtr(middle * roots + limits)) < recall else (low, middle)
    return high
