/** ε as an exact fraction: privacy decisions use no floating-point numbers. */

import { check, type ErrorKind, ParameterError, PlanError, shown } from "./errors.js";

/** A fraction in lowest terms. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** ε as an application states it: a number, read by its shortest decimal form, or a string such as "1/3". */
export type Epsilon = number | string;

const MAX_EPSILON = 32n;
const MAX_TERM = 10n ** 18n;

/** A fraction in lowest terms; the denominator must not be 0. */
export function fraction(numerator: bigint, denominator: bigint): Fraction {
  let [a, b] = [numerator, denominator];
  while (b) [a, b] = [b, a % b];
  return { numerator: numerator / a, denominator: denominator / a };
}

/** The sum of two fractions. */
export function add(left: Fraction, right: Fraction): Fraction {
  return fraction(
    left.numerator * right.denominator + right.numerator * left.denominator,
    left.denominator * right.denominator,
  );
}

/** Whether the first fraction is larger. */
export function exceeds(left: Fraction, right: Fraction): boolean {
  return left.numerator * right.denominator > right.numerator * left.denominator;
}

/** "a/b", or "a" for a whole number. */
export function fractionText({ numerator, denominator }: Fraction): string {
  return denominator === 1n ? `${numerator}` : `${numerator}/${denominator}`;
}

/** ε of a plan: a string with a fraction in lowest terms, 0 < ε ≤ 32 (`docs/format.md`, 2.2). */
export function planEpsilon(text: unknown): Fraction {
  const epsilon = parseEpsilon(text as string, PlanError);
  check(fractionText(epsilon) === text, `epsilon must be a reduced fraction, got ${shown(text)}`);
  return epsilon;
}

/** Parse ε, or throw an error of this kind. */
export function parseEpsilon(epsilon: Epsilon, kind: ErrorKind = ParameterError): Fraction {
  const found = /^(\d{1,19})(?:\/(\d{1,19})|\.(\d{1,19}))?$/.exec(String(epsilon)) ?? [];
  const [, whole = "0", divisor = "1", decimals = ""] = found;
  const numerator = BigInt(whole + decimals);
  const denominator = BigInt(divisor) * 10n ** BigInt(decimals.length);
  const isPositive = numerator > 0n && denominator > 0n;
  check(
    isPositive && numerator <= MAX_EPSILON * denominator,
    `epsilon must be in (0, 32], such as 2 or "1/3", got ${shown(epsilon)}`,
    kind,
  );
  const reduced = fraction(numerator, denominator);
  check(reduced.numerator <= MAX_TERM && reduced.denominator <= MAX_TERM, `epsilon ${shown(epsilon)} has too many digits`, kind);
  return reduced;
}
