"""Exact arithmetic in finite fields of up to 2**20 elements, vectorised.

An element of the field of q = p**d elements is an integer 0..q-1; its base-p digits, least significant first, are its
coefficients of 1, beta, beta**2, ..., where beta is a root of the field's polynomial. So 0 and 1 are the field's zero
and one, and the elements of a prime field are residues. Polynomials over the integers modulo p are tuples of
coefficients, lowest first.

The client's field of the same name checks the parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count, product

import numpy as np
from numpy.typing import NDArray

from sunzi._typing import Integers
from sunzi.client.designs import finite_fields as client
from sunzi.client.designs.finite_fields import LARGEST_ORDER, is_irreducible
from sunzi.client.errors import ParameterError
from sunzi.numerics.primes import factorize

_LARGEST_SUM_TABLE = 2**20

Polynomial = tuple[int, ...]


@dataclass(frozen=True)
class FiniteField:
    """The field of ``characteristic ** degree`` elements; ``polynomial`` is the monic irreducible that defines it.

    A prime field always has the polynomial (0, 1), so that equal fields have equal parameters. Raises
    :class:`ParameterError` unless the parameters define a field. The arithmetic does not check that its arguments are
    elements.
    """

    characteristic: int
    degree: int
    polynomial: Polynomial

    def __post_init__(self) -> None:
        client.FiniteField(self.characteristic**self.degree, self.polynomial)

    @property
    def order(self) -> int:
        """The number of elements, q."""
        return int(self.characteristic**self.degree)

    def add(self, left: Integers | int, right: Integers | int) -> Integers:
        """The sum, element by element, with numpy's broadcasting."""
        first, second = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
        if self.characteristic == 2:
            return np.asarray(first ^ second)
        if self.degree == 1:
            excess = first + second - self.characteristic
            return np.asarray(excess + (excess >> 63 & self.characteristic))  # a mask is faster than a branch
        if self.order**2 <= _LARGEST_SUM_TABLE:
            return np.asarray(self._sums[first * self.order + second])
        return self._add_digits(first, second)

    def negate(self, element: Integers | int) -> Integers:
        """The additive inverse, element by element."""
        array = np.asarray(element, dtype=np.int64)
        if self.characteristic == 2:
            return array.copy()
        if self.degree == 1:
            return np.asarray(np.where(array == 0, 0, self.characteristic - array))
        return self._from_digits(-self.digits(array))

    def subtract(self, left: Integers | int, right: Integers | int) -> Integers:
        """The difference, element by element, with numpy's broadcasting."""
        return self.add(left, self.negate(right))

    def multiply(self, left: Integers | int, right: Integers | int) -> Integers:
        """The product, element by element, with numpy's broadcasting."""
        first, second = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
        if self.degree == 1:
            terms = np.asarray(first * second)
            return np.asarray(terms - terms // self.characteristic * self.characteristic)  # faster than numpy's %
        powers, logarithms = self._tables
        return np.asarray(powers[logarithms[first] + logarithms[second]], dtype=np.int64)

    def inverse(self, element: Integers | int) -> Integers:
        """The multiplicative inverse, element by element; raises :class:`ParameterError` if any element is zero."""
        array = np.asarray(element, dtype=np.int64)
        if not np.all(array):
            raise ParameterError("zero has no inverse in a field")
        powers, logarithms = self._tables
        return np.asarray(powers[self.order - 1 - logarithms[array]], dtype=np.int64)

    def digits(self, elements: Integers | int) -> Integers:
        """The coefficients of 1, beta, beta**2, ..., along a new last axis of length ``degree``."""
        weights = self.characteristic ** np.arange(self.degree, dtype=np.int64)
        return np.asarray(np.asarray(elements, dtype=np.int64)[..., np.newaxis] // weights % self.characteristic)

    def trace_matrix(self) -> Integers:
        """M[i, j] = Tr(beta**(i+j)) mod p, so that Tr(a*b) = digits(a) . M . digits(b) mod p.

        The trace of an element is the trace of the linear map "multiply by it": a power of the companion matrix.
        """
        prime, degree = self.characteristic, self.degree
        companion = np.eye(degree, k=-1, dtype=np.int64)
        companion[:, -1] = -np.array(self.polynomial[:-1], dtype=np.int64) % prime
        traces, power = [], np.eye(degree, dtype=np.int64)
        for _ in range(2 * degree - 1):
            traces.append(int(np.trace(power)) % prime)
            power = power @ companion % prime
        exponents = np.add.outer(np.arange(degree), np.arange(degree))
        return np.array(traces, dtype=np.int64)[exponents]

    def _from_digits(self, digits: Integers) -> Integers:
        weights = self.characteristic ** np.arange(self.degree, dtype=np.int64)
        return np.asarray(digits % self.characteristic @ weights)

    def _add_digits(self, first: Integers, second: Integers) -> Integers:
        return self._from_digits(self.digits(first) + self.digits(second))

    @cached_property
    def _sums(self) -> Integers:
        everything = np.arange(self.order, dtype=np.int64)
        return self._add_digits(everything[:, np.newaxis], everything).ravel()

    @cached_property
    def _tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Powers of a primitive element, and logarithms to its base.

        The powers are repeated for a second period, so that a sum of two logarithms needs no reduction, and followed by
        zeros: the logarithm of zero is 2q, larger than any other sum, so that products with zero need no branch.
        """
        units = self.order - 1
        cycle = self._powers(self._primitive_element())
        powers = np.zeros(4 * self.order + 1, dtype=np.int32)
        powers[: 2 * units] = np.tile(cycle, 2)
        logarithms = np.full(self.order, 2 * self.order, dtype=np.int32)
        logarithms[cycle] = np.arange(units, dtype=np.int32)
        return powers, logarithms

    def _powers(self, base: Polynomial) -> Integers:
        """base**0, ..., base**(q-2), by doubling: multiplying by a constant is a linear map of the digits."""
        powers, step = np.ones(1, dtype=np.int64), base
        while powers.size < self.order - 1:
            rows, row = [], step
            for _ in range(self.degree):
                rows.append(_padded(row, self.degree))
                row = _multiply_modulo(row, (0, 1), self.polynomial, self.characteristic)
            powers = np.concatenate([powers, self._from_digits(self.digits(powers) @ np.array(rows, dtype=np.int64))])
            step = _multiply_modulo(step, step, self.polynomial, self.characteristic)
        return powers[: self.order - 1]

    def _primitive_element(self) -> Polynomial:
        """The smallest element whose powers are all the units."""
        cofactors = [(self.order - 1) // prime for prime, _ in factorize(self.order - 1)]
        for candidate in range(1, self.order):
            element = _trimmed(tuple(int(digit) for digit in self.digits(candidate)))
            powers = (_power_modulo(element, c, self.polynomial, self.characteristic) for c in cofactors)
            if (1,) not in powers:
                return element
        raise AssertionError("the units of a finite field are a cyclic group")


def find_irreducible(characteristic: int, degree: int) -> Polynomial:
    """The first monic irreducible polynomial of this degree, ordered by the integer sum of c_i * p**i."""
    for highest_first in product(range(characteristic), repeat=degree):
        polynomial = (*reversed(highest_first), 1)
        if is_irreducible(characteristic, polynomial):
            return polynomial
    raise AssertionError("there are irreducible polynomials of every degree")


def prime_power(number: int) -> tuple[int, int] | None:
    """(p, d) if number = p**d with p prime and d >= 1, else None."""
    factors = factorize(number)
    return factors[0] if len(factors) == 1 else None


def nearest_prime_power(target: float | Fraction) -> int:
    """The prime power nearest to ``target``, the smaller of two at equal distance; exact for floats too."""
    if not target <= LARGEST_ORDER:  # also refuses NaN
        raise ParameterError(f"there is no field of order near {target}; the largest has {LARGEST_ORDER} elements")
    if target <= 2:
        return 2
    below = next(number for number in count(math.floor(target), -1) if prime_power(number))
    above = next(number for number in count(math.ceil(target)) if prime_power(number))
    exact = Fraction(target)
    return below if exact - below <= above - exact else above


def _trimmed(polynomial: Polynomial) -> Polynomial:
    """Without leading zeros; the zero polynomial is ()."""
    length = len(polynomial)
    while length and polynomial[length - 1] == 0:
        length -= 1
    return polynomial[:length]


def _padded(polynomial: Polynomial, length: int) -> Polynomial:
    return polynomial + (0,) * (length - len(polynomial))


def _remainder(dividend: Polynomial, divisor: Polynomial, prime: int) -> Polynomial:
    """The remainder of a division by a polynomial with a non-zero leading coefficient."""
    rest, degree = list(dividend), len(divisor) - 1
    scale = pow(divisor[-1], -1, prime)
    for top in range(len(rest) - 1, degree - 1, -1):
        quotient = rest[top] * scale % prime
        for offset, coefficient in enumerate(divisor):
            rest[top - degree + offset] = (rest[top - degree + offset] - quotient * coefficient) % prime
    return _trimmed(tuple(rest[:degree]))


def _multiply_modulo(left: Polynomial, right: Polynomial, modulus: Polynomial, prime: int) -> Polynomial:
    terms = [0] * max(len(left) + len(right) - 1, 0)
    for i, first in enumerate(left):
        for j, second in enumerate(right):
            terms[i + j] = (terms[i + j] + first * second) % prime
    return _remainder(tuple(terms), modulus, prime)


def _power_modulo(base: Polynomial, exponent: int, modulus: Polynomial, prime: int) -> Polynomial:
    result: Polynomial = (1,)
    while exponent:
        if exponent & 1:
            result = _multiply_modulo(result, base, modulus, prime)
        base = _multiply_modulo(base, base, modulus, prime)
        exponent >>= 1
    return result
