"""The blocks of designs, built from their definitions."""

from itertools import product

import numpy as np


def primitive_root(prime):
    """The smallest primitive root: its powers are all of 1 … m−1."""
    return next(g for g in range(1, prime) if len({pow(g, i, prime) for i in range(prime - 1)}) == prime - 1)


def cyclotomic_blocks(points, classes, union, with_zero):
    """g^a·D + b in the order of the messages a·m + b."""
    g = primitive_root(points)
    base = {pow(g, c + classes * i, points) for c in union for i in range((points - 1) // classes)}
    base |= {0} if with_zero else set()
    scales = [pow(g, a, points) for a in range(classes)]
    return [{(scale * d + b) % points for d in base} for scale in scales for b in range(points)]


def field_product(left, right, prime, polynomial):
    """The product of two elements of GF(p^d), given as integers with their base-p digits."""
    degree = len(polynomial) - 1
    digits = [[number // prime**place % prime for place in range(degree)] for number in (left, right)]
    total = [0] * (2 * degree)
    for (i, one), (j, two) in product(enumerate(digits[0]), enumerate(digits[1])):
        total[i + j] += one * two
    for top in range(2 * degree - 1, degree - 1, -1):
        factor = total[top]
        for place, coefficient in enumerate(polynomial):
            total[top - degree + place] -= factor * coefficient
    return sum(total[place] % prime * prime**place for place in range(degree))


def projective_blocks(order, dimension, polynomial):
    """For every hyperplane y the numbers of the points x with ⟨x, y⟩ = 0, in the documented numbering."""
    degree = len(polynomial) - 1
    prime = round(order ** (1 / degree))
    assert prime**degree == order
    times = [[field_product(a, b, prime, polynomial) for b in range(order)] for a in range(order)]
    digits = [[a // prime**place % prime for place in range(degree)] for a in range(order)]
    vectors = []
    for free in range(dimension):  # leading zeros, a one, then the free coordinates in lexicographic order
        head = (0,) * (dimension - 1 - free) + (1,)
        vectors += [head + tail for tail in product(range(order), repeat=free)]

    def on(x, y):
        terms = [digits[times[a][b]] for a, b in zip(x, y, strict=True)]
        return all(sum(column) % prime == 0 for column in zip(*terms, strict=True))

    return [{number for number, x in enumerate(vectors) if on(x, y)} for y in vectors]


def incidence_of(blocks, points):
    matrix = np.zeros((len(blocks), points), dtype=np.int64)
    for row, block in enumerate(blocks):
        matrix[row, list(block)] = 1
    return matrix
