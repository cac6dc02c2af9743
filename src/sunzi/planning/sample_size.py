"""How many users, or how large an ε, a target error needs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, inf
from typing import Any

from sunzi.client.epsilon import Epsilon
from sunzi.client.errors import ParameterError, SunziError
from sunzi.domains.labels import Domain
from sunzi.plan import Plan, make_plan
from sunzi.planning.axes import error_curve
from sunzi.planning.recommendation import Recommendation, at_users, recommend
from sunzi.protocols.base import check_users
from sunzi.protocols.registry import find

# ε is sought among the numbers of three digits from 0.001 to 32.
_DIGITS = 3
_PER_DECADE = 9 * 10 ** (_DIGITS - 1)
_SMALLEST_EXPONENT = -5
_ANY_USERS = 1_000_000
_GOOD_ALMOST_EVERYWHERE = "ss-compact"
_ROUNDS = 4
_LAST = 4 * _PER_DECADE + 220


def users_needed(
    protocol: str, domain: int | Iterable[str] | Domain, epsilon: Epsilon, target_error: float, **options: Any
) -> int:
    """The fewest users for which the standard error of a value that nobody holds is at most the target.

    Parameters
    ----------
    protocol: a name from the catalogue.
    domain, epsilon, options: as for :func:`sunzi.make_plan`.
    target_error: a standard error, as a share of all users such as 0.001.

    >>> users_needed("grr", 16, 1, target_error=0.01)
    56625
    """
    return users_for(make_plan(protocol, domain, epsilon, **options), target_error)


def users_for(plan: Plan, target_error: float) -> int:
    """The fewest users for which this plan's standard error of a value that nobody holds is at most the target."""
    _check_target_error(target_error)
    curve = error_curve(plan.protocol)
    users = max(1, ceil(curve.constant / target_error**2))
    # Rounding in the division and the root may be off by one.
    while users > 1 and curve.standard_error(users - 1) <= target_error:
        users -= 1
    while curve.standard_error(users) > target_error:
        users += 1
    return users


def epsilon_needed(
    protocol: str, domain: int | Iterable[str] | Domain, users: int, target_error: float, **options: Any
) -> Fraction:
    """The smallest ε of three digits at which the standard error of a value that nobody holds is at most the target.

    If the error does not fall steadily as ε grows, the result meets the target and the next smaller ε of three digits
    does not. Raises ParameterError if no ε meets the target.

    Parameters
    ----------
    protocol: a name from the catalogue.
    domain, options: as for :func:`sunzi.make_plan`.
    users: how many users will report.
    target_error: a standard error, as a share of all users such as 0.001.

    >>> float(epsilon_needed("grr", 16, users=100_000, target_error=0.01))
    0.823
    """
    terms = Domain.of(domain)
    check_users(users)
    _check_target_error(target_error)
    find(protocol)

    def meets(index: int) -> bool:
        return _error(protocol, terms, _epsilon(index), users, options) <= target_error

    if meets(0):
        return _epsilon(0)
    if not meets(_LAST):
        reached = _error(protocol, terms, _epsilon(_LAST), users, options)
        raise ParameterError(
            f"no epsilon gives {protocol} a standard error of {target_error:g} with {users:,} users; "
            f"even {_epsilon(_LAST)} gives {reached:.3g}: collect from more users"
        )
    below, above = 0, _LAST
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if meets(middle) else (middle, above)
    return _epsilon(above)


def recommend_users(
    domain: int | Iterable[str] | Domain, epsilon: Epsilon, target_error: float, **wishes: Any
) -> Recommendation:
    """The recommendation at this ε with as many users as the chosen protocol needs for the target. ``wishes`` are the
    options of :func:`~sunzi.planning.recommend`.
    """
    _check_target_error(target_error)
    # All errors scale alike with the number of users, so any number leads to the same choice.
    recommendation = recommend(domain, epsilon, _ANY_USERS, **wishes)
    return at_users(recommendation, users_for(recommendation.plan, target_error))


def recommend_epsilon(
    domain: int | Iterable[str] | Domain, users: int, target_error: float, **wishes: Any
) -> Recommendation:
    """The recommendation for ``users`` users at the ε that the chosen protocol needs for the target.

    Starts at the ε that a good protocol needs, and repeats with the ε that the choice needs until the choice stays.
    """
    terms = Domain.of(domain)
    protocol = (wishes.get("protocols") or [_GOOD_ALMOST_EVERYWHERE])[0]
    for _ in range(_ROUNDS):
        epsilon = epsilon_needed(protocol, terms, users, target_error)
        recommendation = recommend(terms, epsilon, users, **wishes)
        if recommendation.protocol == protocol:
            break
        protocol = recommendation.protocol
    else:
        wishes["protocols"] = [protocol]
        recommendation = recommend(terms, epsilon_needed(protocol, terms, users, target_error), users, **wishes)
    if recommendation.axes.standard_error > target_error:
        raise ParameterError(
            f"within these limits {protocol} does not reach a standard error of {target_error:g} at epsilon "
            f"{recommendation.plan.epsilon}: {recommendation.axes.standard_error:.3g}; relax a limit"
        )
    return recommendation


def _check_target_error(target_error: float) -> None:
    """Raise ParameterError unless the target is positive."""
    if not 0 < target_error < inf:
        raise ParameterError(f"the target error must be a positive share such as 0.001, got {target_error}")


def _epsilon(index: int) -> Fraction:
    """The index-th of 0.00100, 0.00101, …, 0.00999, 0.0100, …, 32.0."""
    decade, place = divmod(index, _PER_DECADE)
    return (10 ** (_DIGITS - 1) + place) * Fraction(10) ** (_SMALLEST_EXPONENT + decade)


def _error(protocol: str, domain: Domain, epsilon: Fraction, users: int, options: dict[str, Any]) -> float:
    """The standard error; infinite if there is no such plan."""
    try:
        return error_curve(make_plan(protocol, domain, epsilon, **options).protocol).standard_error(users)
    except SunziError:
        return inf
