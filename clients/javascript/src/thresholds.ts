/**
 * Thresholds that certify ε-local differential privacy, derived here with integers and compared with the plan's.
 *
 * E is an integer with E ≤ 2^96·e^ε, so every inequality that holds with E holds with e^ε (`docs/format.md`, 3).
 */

import { fraction, type Fraction } from "./epsilon.js";
import { check, PrivacyError } from "./errors.js";

const SCALE = 1n << 96n;
const WORDS = 1n << 64n;
const WRONG_THRESHOLD = "threshold does not match epsilon";
const NOT_PRIVATE = "leaks more than epsilon";
const NOT_INFORMATIVE = "reports are pure noise";

/** A threshold as two 32-bit halves, which compare without BigInt. */
export interface Threshold {
  readonly high: number;
  readonly low: number;
}

/** The halves of a threshold below 2^64. */
export function halves(threshold: bigint): Threshold {
  return { high: Number(threshold >> 32n), low: Number(threshold & 0xffffffffn) };
}

function exponentialBelow({ numerator, denominator }: Fraction): bigint {
  let total = 0n;
  for (let term = SCALE, index = 1n; term; index++) {
    total += term;
    term = (term * numerator) / (denominator * index);
  }
  return total;
}

/** Check that a block response with this threshold is ε-private, informative, and the one derived here. */
export function checkTruth(threshold: bigint, blockSize: number, points: number, epsilon: Fraction): Threshold {
  check(1 <= blockSize && blockSize < points, NOT_INFORMATIVE, PrivacyError);
  const inside = BigInt(blockSize);
  const outside = BigInt(points) - inside;
  const weight = inside * exponentialBelow(epsilon);
  check(threshold === (weight * WORDS) / (weight + outside * SCALE), WRONG_THRESHOLD, PrivacyError);
  check(threshold * outside * SCALE <= weight * (WORDS - threshold), NOT_PRIVATE, PrivacyError);
  check(threshold * BigInt(points) > inside * WORDS, NOT_INFORMATIVE, PrivacyError);
  return halves(threshold);
}

/** {@link checkTruth} for one bit per value: OUE, or symmetric RAPPOR with half the budget. */
export function checkUnary(isOptimal: boolean, truth: bigint, lie: bigint, epsilon: Fraction): [Threshold, Threshold] {
  const exponential = exponentialBelow(isOptimal ? epsilon : fraction(epsilon.numerator, epsilon.denominator * 2n));
  const sum = exponential + SCALE;
  const wantedTruth = isOptimal ? WORDS / 2n : (exponential * WORDS) / sum;
  const wantedLie = isOptimal ? (WORDS * SCALE + sum - 1n) / sum : WORDS - wantedTruth;
  check(truth === wantedTruth && lie === wantedLie, WRONG_THRESHOLD, PrivacyError);
  check(0n < lie && lie < truth && truth < WORDS, NOT_INFORMATIVE, PrivacyError);
  const isCertified = isOptimal
    ? truth * (WORDS - lie) * SCALE <= exponential * lie * (WORDS - truth)
    : truth * SCALE <= exponential * lie;
  check(isCertified, NOT_PRIVATE, PrivacyError);
  return [halves(truth), halves(lie)];
}
