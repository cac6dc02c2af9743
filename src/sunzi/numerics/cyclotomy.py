"""Cyclotomic classes of Z_m: the points of the base block of a cyclotomic design (MATH §2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def powers(generator: int, modulus: int, count: int) -> NDArray[np.int64]:
    """g^0, g^1, …, g^(count−1) modulo m, by doubling. m < 2^31, so that products fit in 63 bits."""
    table = np.ones(max(count, 1), dtype=np.int64)
    filled = 1
    while filled < count:
        step = pow(generator, filled, modulus)
        take = min(filled, count - filled)
        table[filled : filled + take] = table[:take] * step % modulus
        filled += take
    return table[:count]


def ordered_points(
    modulus: int, classes: int, generator: int, union: tuple[int, ...], with_zero: bool
) -> NDArray[np.int64]:
    """All points of Z_m, those of the base block D first; the order is part of the wire format.

    D is the union of the classes C_c = {g^(c + e·i)}, c in ``union`` in the given order, i = 0, 1, …, then 0 if
    ``with_zero``. The rest follows: the other classes by ascending c, then 0 if it is not in D.
    """
    table = powers(generator, modulus, modulus - 1).reshape(-1, classes)
    others = sorted(set(range(classes)) - set(union))
    zero = np.zeros(1, dtype=np.int64)
    inside = [table[:, index] for index in union]
    outside = [table[:, index] for index in others]
    parts = [*inside, zero, *outside] if with_zero else [*inside, *outside, zero]
    return np.concatenate(parts)
