"""The least error of any protocol (docs/mathematics.md §8): the unit in which protocols are compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sunzi.client.epsilon import parse_epsilon
from sunzi.client.errors import whole_number

if TYPE_CHECKING:
    from sunzi.client.epsilon import Epsilon


def least_error(domain_size: int, epsilon: Epsilon, users: int) -> float:
    """The smallest root mean squared error that an unbiased estimate from any ε-LDP protocol can have.

    It is the error of all frequencies among the users who report, if these are equally frequent.

    Parameters
    ----------
    domain_size: the number k of values.
    epsilon: the privacy of one report.
    users: the number n of users.

    >>> round(least_error(1024, 1, 10_000), 4)
    0.0192
    """
    size = whole_number("domain_size", domain_size, least=2)
    number = whole_number("users", users, least=1)
    odds = math.exp(parse_epsilon(epsilon))
    # The spread has one minimum over real w, at k/(e^ε + 1), so the best integer is next to it.
    middle = math.floor(size / (odds + 1))
    candidates = {min(max(each, 1), size - 1) for each in (middle, middle + 1)}
    spread = min((width * odds + size - width) ** 2 / (width * (size - width)) for width in candidates)
    about_population = (size - 1) ** 2 * spread / (odds - 1) ** 2
    return math.sqrt((about_population - (size - 1)) / number) / size
