"""Fields against their axioms, element by element, and against plain polynomial arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from geometry import field_of

from sunzi.client.designs.finite_fields import is_irreducible
from sunzi.client.errors import ParameterError
from sunzi.numerics.finite_fields import FiniteField, find_irreducible, nearest_prime_power, prime_power

PRIME_POWERS = [q for q in range(2, 257) if prime_power(q)]
SMALL = [q for q in PRIME_POWERS if q <= 16]


def multiply_slowly(field: FiniteField, left: int, right: int) -> int:
    """Schoolbook product of the digit polynomials, reduced one leading term at a time."""
    p, d = field.characteristic, field.degree
    a = [left // p**i % p for i in range(d)]
    b = [right // p**i % p for i in range(d)]
    terms = [0] * (2 * d - 1)
    for i, j in product(range(d), repeat=2):
        terms[i + j] += a[i] * b[j]
    for top in range(2 * d - 2, d - 1, -1):
        for i in range(d):
            terms[top - d + i] -= terms[top] * field.polynomial[i]
    return sum(term % p * p**i for i, term in enumerate(terms[:d]))


def monic_polynomials(p: int, degree: int) -> list[tuple[int, ...]]:
    return [(*low, 1) for low in product(range(p), repeat=degree)]


def polynomial_product(left: tuple[int, ...], right: tuple[int, ...], p: int) -> tuple[int, ...]:
    terms = [0] * (len(left) + len(right) - 1)
    for (i, a), (j, b) in product(enumerate(left), enumerate(right)):
        terms[i + j] = (terms[i + j] + a * b) % p
    return tuple(terms)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("order", SMALL)
def test_axioms_hold_for_all_elements(order: int) -> None:
    field = field_of(order)
    a, b, c = (grid.ravel() for grid in np.meshgrid(*[np.arange(order)] * 3, indexing="ij"))
    for operation, unit in ((field.add, 0), (field.multiply, 1)):
        np.testing.assert_array_equal(operation(a, b), operation(b, a))
        np.testing.assert_array_equal(operation(operation(a, b), c), operation(a, operation(b, c)))
        np.testing.assert_array_equal(operation(a, unit), a)
        assert operation(a, b).min() >= 0
        assert operation(a, b).max() < order
    np.testing.assert_array_equal(
        field.multiply(a, field.add(b, c)), field.add(field.multiply(a, b), field.multiply(a, c))
    )
    np.testing.assert_array_equal(field.add(a, field.negate(a)), np.zeros_like(a))
    np.testing.assert_array_equal(field.add(field.subtract(a, b), b), a)


@pytest.mark.parametrize("order", SMALL)
def test_products_are_those_of_polynomials(order: int) -> None:
    field = field_of(order)
    table = field.multiply(np.arange(order)[:, np.newaxis], np.arange(order))
    assert table.tolist() == [[multiply_slowly(field, a, b) for b in range(order)] for a in range(order)]


@pytest.mark.parametrize("order", PRIME_POWERS)
def test_every_unit_has_an_inverse(order: int) -> None:
    field = field_of(order)
    units = np.arange(1, order)
    np.testing.assert_array_equal(field.multiply(units, field.inverse(units)), np.ones(order - 1))


@pytest.mark.parametrize(
    "order", [1024, 3**7, 2**13, 65521, 5**8, *(pytest.param(each, marks=SLOW) for each in (3**12, 2**20)), 1048573]
)
def test_large_fields_agree_with_polynomial_arithmetic(order: int) -> None:
    field = field_of(order)
    generator = np.random.default_rng(order)
    a, b = generator.integers(0, order, (2, 200))
    assert field.multiply(a, b).tolist() == [multiply_slowly(field, int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(
        field.digits(field.add(a, b)), (field.digits(a) + field.digits(b)) % field.characteristic
    )
    np.testing.assert_array_equal(field.subtract(field.add(a, b), b), a)
    units = np.maximum(a, 1)
    np.testing.assert_array_equal(field.multiply(units, field.inverse(units)), np.ones(200))


def test_zero_has_no_inverse() -> None:
    with pytest.raises(ParameterError, match="zero has no inverse"):
        field_of(9).inverse(np.array([1, 0, 2]))


def test_scalars_and_broadcasting() -> None:
    field = field_of(7)
    assert int(field.add(5, 6)) == 4
    assert int(field.negate(3)) == 4
    assert field.multiply(np.arange(7)[:, np.newaxis], np.arange(3)).shape == (7, 3)


@pytest.mark.parametrize(
    ("p", "degree"), [(2, 1), (2, 2), (2, 4), (2, 6), (3, 2), (3, 3), (3, 4), (5, 2), (5, 3), (7, 2)]
)
def test_irreducible_polynomials_are_those_without_factors(p: int, degree: int) -> None:
    products = {
        polynomial_product(left, right, p)
        for low in range(1, degree // 2 + 1)
        for left in monic_polynomials(p, low)
        for right in monic_polynomials(p, degree - low)
    }
    irreducible = [polynomial for polynomial in monic_polynomials(p, degree) if is_irreducible(p, polynomial)]
    assert set(irreducible) == set(monic_polynomials(p, degree)) - products
    as_integer = {sum(c * p**i for i, c in enumerate(polynomial)): polynomial for polynomial in irreducible}
    assert find_irreducible(p, degree) == as_integer[min(as_integer)]


@pytest.mark.parametrize(
    ("p", "degree", "polynomial"),
    [
        (2, 2, (1, 0, 1)),  # (x + 1)**2
        (2, 4, (1, 0, 1, 0, 1)),  # (x**2 + x + 1)**2, without a root
        (3, 2, (2, 0, 1)),  # (x + 1)(x + 2)
        (5, 2, (1, 0, 1)),  # (x + 2)(x + 3)
        (2, 3, (0, 1, 1, 1)),  # has the root 0
        (2, 2, (1, 1, 0)),  # not monic
        (3, 2, (1, 3, 1)),  # a coefficient that is not a residue
        (3, 2, (1, -1, 1)),
        (2, 2, (1, 1)),  # wrong degree
        (7, 1, (1, 1)),  # a prime field's polynomial is x
        (4, 1, (0, 1)),  # not a prime
        (1, 1, (0, 1)),
        (2, 0, (1,)),
        (2, 21, (1, 0, 1) + (0,) * 18 + (1,)),  # too large
        (1048583, 1, (0, 1)),
    ],
)
def test_invalid_fields_are_refused(p: int, degree: int, polynomial: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError):
        FiniteField(p, degree, polynomial)


def test_another_irreducible_polynomial_gives_another_arithmetic() -> None:
    first, second = FiniteField(2, 3, (1, 1, 0, 1)), FiniteField(2, 3, (1, 0, 1, 1))
    assert first != second
    assert int(first.multiply(4, 2)) == 0b011
    assert int(second.multiply(4, 2)) == 0b101


@pytest.mark.parametrize("order", [2, 4, 5, 8, 9, 16, 25, 27, 64, 81])
def test_trace_matrix_gives_the_trace_of_products(order: int) -> None:
    """The trace is the sum of the conjugates a, a**p, a**(p**2), ..., and lies in the prime field."""
    field = field_of(order)
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(order), np.arange(order)))
    conjugate = field.multiply(a, b)
    trace = np.zeros_like(conjugate)
    for _ in range(field.degree):
        trace = field.add(trace, conjugate)
        power = conjugate
        for _ in range(field.characteristic - 1):
            power = field.multiply(power, conjugate)
        conjugate = power
    by_matrix = np.einsum("ni,ij,nj->n", field.digits(a), field.trace_matrix(), field.digits(b)) % field.characteristic
    np.testing.assert_array_equal(by_matrix, trace)


def test_prime_power() -> None:
    powers = {p**d: (p, d) for p in range(2, 200) if all(p % i for i in range(2, p)) for d in range(1, 8)}
    assert {n: prime_power(n) for n in range(-2, 200) if prime_power(n)} == {n: f for n, f in powers.items() if n < 200}
    assert prime_power(2**20) == (2, 20)
    assert prime_power(6**6) is None


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        (0.5, 2),
        (2, 2),
        (2.5, 2),
        (2.51, 3),
        (6, 5),
        (Fraction(6) + Fraction(1, 10**30), 7),
        (10, 9),
        (10.1, 11),
        (14.5, 13),
        (21, 19),
        (91, 89),
        (2**20 - 1, 2**20),
        (2**20, 2**20),
    ],
)
def test_nearest_prime_power(target: float | Fraction, nearest: int) -> None:
    assert nearest_prime_power(target) == nearest


@pytest.mark.parametrize("target", [2**20 + 1, float("inf"), float("nan")])
def test_no_prime_power_beyond_the_largest_field(target: float) -> None:
    with pytest.raises(ParameterError):
        nearest_prime_power(target)
