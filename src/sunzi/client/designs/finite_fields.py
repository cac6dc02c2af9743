"""Exact arithmetic in finite fields of up to 2^20 elements.

An element of the field of q = p^d elements is an integer 0 … q−1; its base-p digits, least significant first, are its
coefficients of 1, β, β², …, where β is a root of the field's polynomial. So 0 and 1 are the field's zero and one, and
the elements of a prime field are residues. Polynomials are tuples of coefficients, lowest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import ParameterError, shown
from .primes import prime_factors

LARGEST_ORDER = 1 << 20


@dataclass(frozen=True)
class FiniteField:
    """The field of ``order`` elements; ``polynomial`` is the monic irreducible one that defines it.

    A prime field always has the polynomial (0, 1), so that equal fields have equal parameters. ParameterError unless
    the parameters define a field.
    """

    order: int
    polynomial: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 2 <= self.order <= LARGEST_ORDER or len(prime_factors(self.order)) != 1:
            raise ParameterError(f"order must be a prime power up to 2^20, got {self.order}")
        if len(self.polynomial) != self.degree + 1:
            raise ParameterError(
                f"polynomial must have degree {self.degree}, got coefficients {shown(self.polynomial)}"
            )
        if self.degree == 1 and self.polynomial != (0, 1):
            raise ParameterError(f"the polynomial of a prime field must be (0, 1), got {self.polynomial}")
        if self.polynomial[-1] != 1 or not all(0 <= term < self.characteristic for term in self.polynomial):
            raise ParameterError(
                f"coefficients must be 0..{self.characteristic - 1} and end in 1, got {shown(self.polynomial)}"
            )
        if not is_irreducible(self.characteristic, self.polynomial):
            raise ParameterError(f"polynomial {self.polynomial} is reducible modulo {self.characteristic}")

    @cached_property
    def characteristic(self) -> int:
        """p."""
        return prime_factors(self.order)[0]

    @cached_property
    def degree(self) -> int:
        """d."""
        degree, order = 0, self.order
        while order > 1:
            degree, order = degree + 1, order // self.characteristic
        return degree

    def add(self, left: int, right: int) -> int:
        """The sum: digit by digit modulo p."""
        if self.degree == 1:
            return (left + right) % self.order
        pairs = zip(self._digits(left), self._digits(right), strict=True)
        return self._element([one + two for one, two in pairs])

    def multiply(self, left: int, right: int) -> int:
        """The product, of polynomials modulo p and modulo the field's polynomial."""
        if self.degree == 1:
            return left * right % self.order
        product = _product(self._digits(left), self._digits(right))
        return self._element(remainder(product, self.polynomial, self.characteristic))

    def inverse(self, element: int) -> int:
        """The multiplicative inverse: the element to the power of q − 2."""
        result, exponent = 1, self.order - 2
        while exponent:
            if exponent & 1:
                result = self.multiply(result, element)
            element = self.multiply(element, element)
            exponent >>= 1
        return result

    def negate(self, element: int) -> int:
        """The additive inverse."""
        return self.multiply(element, self.characteristic - 1)

    def _digits(self, element: int) -> list[int]:
        return digits(element, self.characteristic, self.degree)

    def _element(self, coefficients: Sequence[int]) -> int:
        element = 0
        for coefficient in reversed(coefficients):
            element = element * self.characteristic + coefficient % self.characteristic
        return element


def digits(number: int, base: int, length: int) -> list[int]:
    """The digits of a number, least significant first."""
    found = []
    for _ in range(length):
        number, digit = divmod(number, base)
        found.append(digit)
    return found


def remainder(dividend: Sequence[int], divisor: Sequence[int], prime: int) -> list[int]:
    """The remainder of a division by a monic polynomial."""
    rest, degree = list(dividend), len(divisor) - 1
    for top in range(len(rest) - 1, degree - 1, -1):
        quotient = rest[top] % prime
        if quotient:
            for place, coefficient in enumerate(divisor):
                rest[top - degree + place] -= quotient * coefficient
    return [term % prime for term in rest[:degree]]


def is_irreducible(prime: int, polynomial: Sequence[int]) -> bool:
    """Whether a monic polynomial f has no factor of at most half its degree (Ben-Or's test): those of degree i divide
    x^(p^i) − x.
    """
    power = [0, 1]
    for _ in range((len(polynomial) - 1) // 2):
        power = _power(power, prime, polynomial, prime)
        rest = [*power, 0, 0][: len(polynomial) - 1]
        rest[1] -= 1
        if len(_common_factor(polynomial, rest, prime)) > 1:
            return False
    return True


def _power(base: Sequence[int], exponent: int, modulus: Sequence[int], prime: int) -> list[int]:
    """A power of a polynomial, modulo another one and p."""
    result, square = [1], list(base)
    while exponent:
        if exponent & 1:
            result = remainder(_product(result, square), modulus, prime)
        square = remainder(_product(square, square), modulus, prime)
        exponent >>= 1
    return result


def _product(left: Sequence[int], right: Sequence[int]) -> list[int]:
    product = [0] * (len(left) + len(right) - 1)
    for place, one in enumerate(left):
        if one:
            for other, two in enumerate(right):
                product[place + other] += one * two
    return product


def _common_factor(left: Sequence[int], right: Sequence[int], prime: int) -> list[int]:
    """The greatest common divisor, monic, by Euclid's algorithm; the first one is monic."""
    one, two = list(left), [term % prime for term in right]
    while any(two):
        while not two[-1]:
            two.pop()
        scale = pow(two[-1], -1, prime)
        one, two = [term * scale % prime for term in two], remainder(one, [term * scale for term in two], prime)
    return one
