/** Primes, residues and bits, computed exactly in doubles. */

/** ⌈log2 count⌉: the bits needed to number `count` messages, for counts up to 2^53. */
export function indexBits(count: number): number {
  let bits = 0;
  while (2 ** bits < count) bits++;
  return bits;
}

/** The number of bytes that hold this many bits. */
export function byteLength(bits: number): number {
  return Math.ceil(bits / 8);
}

/** The distinct prime factors, ascending. */
export function primeFactors(number: number): number[] {
  const factors: number[] = [];
  for (let divisor = 2; number > 1; divisor++) {
    if (divisor * divisor > number) divisor = number;
    if (number % divisor === 0) factors.push(divisor);
    while (number % divisor === 0) number /= divisor;
  }
  return factors;
}

/** Whether a number is prime. */
export function isPrime(number: number): boolean {
  return primeFactors(number)[0] === number;
}

/** left·right mod modulus, exact for residues of moduli up to 2^26: the quotient is off by less than 2^-27. */
export function multiplyModulo(left: number, right: number, modulus: number): number {
  const product = left * right;
  return product - Math.floor(product / modulus) * modulus;
}

/** base^exponent under a multiplication with identity 1. The number of products depends only on its length. */
export function power(base: number, exponent: number, multiply: (left: number, right: number) => number): number {
  let result = 1;
  for (; exponent > 0; exponent = Math.floor(exponent / 2)) {
    const multiplied = multiply(result, base);
    result = exponent % 2 ? multiplied : result;
    base = multiply(base, base);
  }
  return result;
}

/** base^exponent mod modulus. */
export function powerModulo(base: number, exponent: number, modulus: number): number {
  return power(base, exponent, (left, right) => multiplyModulo(left, right, modulus));
}

/** Whether the powers of the generator are all nonzero residues of the prime. */
export function isPrimitiveRoot(generator: number, prime: number): boolean {
  return primeFactors(prime - 1).every((factor) => powerModulo(generator, (prime - 1) / factor, prime) !== 1);
}
