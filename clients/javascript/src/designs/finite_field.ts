/** Arithmetic in GF(q): an element is an integer whose base-p digits are the coefficients of a polynomial. */

import { multiplyModulo, power } from "../arithmetic.js";

/** A field of q = p^n elements. */
export interface Field {
  add(left: number, right: number): number;
  multiply(left: number, right: number): number;
  isField(): boolean;
}

/** The lowest digits of a number, least significant first. */
export function digits(number: number, base: number, length: number): number[] {
  return Array.from({ length }, () => {
    const digit = number % base;
    number = (number - digit) / base;
    return digit;
  });
}

/**
 * The ring of p^n elements defined by a monic polynomial of degree n. It is a field if the polynomial is irreducible,
 * see {@link Field.isField}.
 */
export function makeField(prime: number, polynomial: readonly number[]): Field {
  const degree = polynomial.length - 1;

  function join(coefficients: readonly number[]): number {
    return coefficients.reduceRight((sum, coefficient) => sum * prime + (coefficient % prime), 0);
  }

  function add(left: number, right: number): number {
    if (degree === 1) return (left + right) % prime;
    const other = digits(right, prime, degree);
    return join(digits(left, prime, degree).map((digit, place) => digit + other[place]));
  }

  function multiply(left: number, right: number): number {
    if (degree === 1) return multiplyModulo(left, right, prime);
    const product = new Array<number>(2 * degree).fill(0);
    const other = digits(right, prime, degree);
    digits(left, prime, degree).forEach((one, i) => other.forEach((two, j) => (product[i + j] += one * two)));
    for (let top = 2 * degree - 1; top >= degree; top--) {
      const quotient = product[top] % prime;
      for (let place = 0; place < degree; place++)
        product[top - degree + place] += (prime - quotient) * polynomial[place];
    }
    return join(product.slice(0, degree));
  }

  /** Tries all monic polynomials of up to half the degree: a proper factor has no power equal to 1. */
  function isField(): boolean {
    for (let start = prime; start * start <= prime ** degree; start *= prime) {
      for (let factor = start; factor < 2 * start; factor++)
        if (power(factor, prime ** degree - 1, multiply) !== 1) return false;
    }
    return true;
  }

  return { add, multiply, isField };
}
