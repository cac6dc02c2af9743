/** Primitives, compared with slow, obvious code or with Node's implementations. */

import { createHash, createHmac, randomBytes as systemBytes, randomInt } from "node:crypto";
import { crc32 as zlibCrc } from "node:zlib";
import { describe, expect, test } from "vitest";

import {
  indexBits,
  isPrime,
  isPrimitiveRoot,
  multiplyModulo,
  power,
  powerModulo,
  primeFactors,
} from "../src/arithmetic.js";
import { crc32 } from "../src/crc32.js";
import { cyclotomic } from "../src/designs/cyclotomic.js";
import type { Design } from "../src/designs/design.js";
import { makeField } from "../src/designs/finite_field.js";
import { decodeSubset, encodeSubset, wordBits } from "../src/designs/subset_code.js";
import { drawRows, isBelow, uniformBelow } from "../src/drawing.js";
import { fractionText, parseEpsilon, planEpsilon } from "../src/epsilon.js";
import { canonicalForm, parseJson } from "../src/json.js";
import { pack } from "../src/packing.js";
import { hexadecimal, hmac, sha256 } from "../src/sha256.js";
import { expectError, ScriptedSource } from "./support.js";

const WORDS = 1n << 64n;
const word = (): bigint => systemBytes(8).readBigUInt64LE();

test("SHA-256 and HMAC equal Node's, for all lengths around a block", () => {
  for (let length = 0; length < 140; length++) {
    const bytes = systemBytes(length);
    expect(hexadecimal(sha256(bytes))).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(hexadecimal(sha256(bytes.subarray(0, length >> 1), bytes.subarray(length >> 1)))).toBe(
      hexadecimal(sha256(bytes)),
    );
    const key = systemBytes(32);
    expect(hexadecimal(hmac(key, bytes))).toBe(createHmac("sha256", key).update(bytes).digest("hex"));
  }
  const large = systemBytes(1 << 20);
  expect(hexadecimal(sha256(large))).toBe(createHash("sha256").update(large).digest("hex"));
});

test("CRC-32 equals zlib's", () => {
  expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  if (!zlibCrc) return;
  for (let length = 0; length < 100; length++) {
    const bytes = systemBytes(length);
    expect(crc32(bytes)).toBe(zlibCrc(bytes));
  }
});

describe("uniform integers", () => {
  const bounds = [
    1,
    2,
    3,
    5,
    6,
    1021,
    65535,
    65536,
    65537,
    2 ** 21,
    2 ** 21 + 1,
    2 ** 26 - 5,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
  ];

  function expected(value: bigint, bound: number): number {
    const product = value * BigInt(bound);
    return product % WORDS < WORDS % BigInt(bound) ? -1 : Number(product / WORDS);
  }

  /** Random words, and those near which the result changes or words are rejected. */
  function edges(bound: number): bigint[] {
    const chosen = [0n, 1n, 2n, WORDS - 1n, WORDS - 2n];
    for (let i = 0; i < 100; i++) {
      const step = (BigInt(randomInt(bound)) * WORDS) / BigInt(bound);
      chosen.push(word(), step, step + 1n, step + 2n, step > 0n ? step - 1n : 0n);
    }
    return chosen.filter((value) => value < WORDS);
  }

  test.each(bounds)("below %d, computed slowly and fast", (bound) => {
    const values = edges(bound);
    const results = values.map((value) => uniformBelow(Number(value >> 32n), Number(value & 0xffffffffn), bound));
    expect(results).toEqual(values.map((value) => expected(value, bound)));
    // With as many replacements as rejections, all rows are returned in the order of the format.
    const rejections = values.filter((value) => expected(value, bound) < 0).length;
    const source = new ScriptedSource([...values, ...new Array<bigint>(rejections).fill(WORDS - 1n)]);
    const drawn = new Array<number>(values.length);
    drawRows(source, values.length, [bound], undefined, (start, _, variates) => {
      variates.forEach((variate, i) => (drawn[start + i] = variate));
    });
    expect(drawn).toEqual(values.map((value) => (expected(value, bound) < 0 ? bound - 1 : expected(value, bound))));
    expect(source.remaining).toBe(0);
  });

  test("rejected cells are replaced round by round, row by row", () => {
    // Two rows, two bounds of 3: the word 0 is rejected. Round 1 replaces three cells, one of them again by 0.
    const third = WORDS / 3n + 1n;
    const source = new ScriptedSource([0n, third, 0n, 0n, 2n * third, 0n, third, WORDS - 1n]);
    const rows: number[][] = [];
    drawRows(source, 2, [3, 3], undefined, (start, truths, variates) => {
      truths.forEach((_, i) => (rows[start + i] = [...variates.subarray(2 * i, 2 * i + 2)]));
    });
    expect(rows).toEqual([
      [2, 1],
      [2, 1],
    ]);
  });

  test("many rows in several chunks", () => {
    const values = Array.from({ length: 20_000 }, word);
    const rows: [number, number][] = [];
    const threshold = { high: 2 ** 31, low: 5 };
    drawRows(new ScriptedSource(values), 10_000, [1000], threshold, (start, truths, variates) => {
      truths.forEach((truth, i) => (rows[start + i] = [truth, variates[i]]));
    });
    const wanted = rows.map((_, row) => [
      Number(values[2 * row] < (1n << 63n) + 5n),
      expected(values[2 * row + 1], 1000),
    ]);
    expect(rows).toHaveLength(10_000);
    expect(rows).toEqual(wanted);
  });
});

test("words are compared with thresholds in all 64 bits", () => {
  const threshold = { high: 7, low: 100 };
  expect([
    isBelow(7, 99, threshold),
    isBelow(7, 100, threshold),
    isBelow(6, 200, threshold),
    isBelow(8, 0, threshold),
  ]).toEqual([1, 0, 1, 0]);
});

describe("arithmetic", () => {
  test("bits, primes and powers", () => {
    expect([1, 2, 3, 4, 5, 2 ** 53].map(indexBits)).toEqual([0, 1, 2, 2, 3, 53]);
    const primes = Array.from({ length: 100 }, (_, i) => i).filter(isPrime);
    expect(primes).toEqual([
      2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
    ]);
    expect(primeFactors(2 ** 4 * 9 * 101)).toEqual([2, 3, 101]);
    expect([isPrime(2 ** 31 - 1), isPrime(46337 * 46337)]).toEqual([true, false]);
    expect([1, 2, 3, 5, 6].map((root) => isPrimitiveRoot(root, 7))).toEqual([false, false, true, true, false]);
  });

  test("products are exact for moduli up to 2^26", () => {
    for (let i = 0; i < 1000; i++) {
      const modulus = 2 ** 26 - randomInt(1000);
      const [left, right] = [modulus - 1 - randomInt(5), randomInt(modulus)];
      expect(multiplyModulo(left, right, modulus)).toBe(Number((BigInt(left) * BigInt(right)) % BigInt(modulus)));
    }
    expect(powerModulo(3, 2 ** 25, 67108859)).toBe(
      Number(Array.from({ length: 25 }).reduce<bigint>((power) => (power * power) % 67108859n, 3n)),
    );
  });

  test.each([
    [2, [1, 1, 1], true],
    [2, [1, 0, 1], false],
    [2, [1, 1, 0, 1], true],
    [3, [1, 0, 1], true],
    [3, [2, 0, 1], false],
    [5, [2, 0, 1], true],
    [2, [1, 0, 1, 0, 1], false],
    [2, [1, 1, 0, 0, 1], true],
  ])("modulo %d the polynomial %j makes a field: %s", (prime, polynomial, isField) => {
    const field = makeField(prime, polynomial);
    expect(field.isField()).toBe(isField);
    if (!isField) return;
    const order = prime ** (polynomial.length - 1);
    for (let element = 1; element < order; element++) {
      expect(field.multiply(element, power(element, order - 2, field.multiply))).toBe(1);
      expect(new Set(Array.from({ length: order }, (_, other) => field.add(element, other))).size).toBe(order);
    }
  });
});

test.each([
  [1021, 10, 4], // with small entries
  [65521, 17, 8], // with the last that are small enough
  [65537, 3, 8], // with large entries
])("modulo %d the tables of a cyclotomic design say what powers say", (points, generator, classes) => {
  const blockSize = 1 + (points - 1) / classes;
  const terms = { design: "cyclotomic", points, generator, classes, union: [1], with_zero: true, threshold: "" };
  const [slow, fast] = [0, 1].map(() => cyclotomic.read({ ...terms, block_size: blockSize })) as [Design, Design];
  fast.prepare!(points);
  const rows = 20_000;
  const values = Uint32Array.from({ length: rows }, () => randomInt(points));
  const truths = Uint8Array.from({ length: rows }, () => randomInt(2));
  const variates = Uint32Array.from({ length: 3 * rows }, (_, i) => randomInt(slow.bounds[i % 3]));
  variates.fill(blockSize - 1, 1, 2); // the place of 0, in the first row
  truths[0] = 1;
  const [expected, made] = [new Float64Array(rows), new Float64Array(rows)];
  slow.respond(values, truths, variates, expected);
  fast.respond(values, truths, variates, made);
  expect(made).toEqual(expected);
  expect(made[0] % points).toBe(values[0]);
});

describe("words of subsets", () => {
  /** All subsets of `count` out of `size` points, one byte per point. */
  function* subsets(size: number, count: number): Generator<Uint8Array> {
    for (let mask = 0; mask < 2 ** size; mask++) {
      const members = Uint8Array.from({ length: size }, (_, i) => (mask >> i) & 1);
      if (members.reduce((sum, member) => sum + member, 0) === count) yield members;
    }
  }

  test("every subset has one word, and every other word is refused", () => {
    for (let size = 2; size <= 10; size++) {
      for (let count = 1; count < size; count++) {
        const bits = wordBits(size, count);
        const words = Array.from(subsets(size, count), (members) => encodeSubset(members, count, bits));
        const accepted: string[] = [];
        for (let number = 0; number < 2 ** bits; number++) {
          const word = Uint8Array.from({ length: Math.ceil(bits / 8) }, (_, i) => number >> (8 * i));
          const members = decodeSubset(word, size, count, bits);
          if (!members) continue;
          accepted.push(String(word));
          expect(encodeSubset(members, count, bits)).toEqual(word);
        }
        expect(accepted.sort()).toEqual(words.map(String).sort());
        expect(new Set(accepted).size).toBe(words.length);
      }
    }
  });

  test.each([
    [2, 1, 2], // 2^1 is short by the rounding of divisions
    [256, 1, 9],
    [3, 2, 2],
    [1023, 1, 10],
    [131, 25, 89],
    [22000, 5916, 18471],
    [2 ** 20 - 1, 1, 21],
    [1_048_568, 392_068, 999_932], // of a million bits, and near a whole number
  ])("subsets of %d points, %d chosen, take %d bits", (points, blockSize, bits) => {
    expect(wordBits(points, blockSize)).toBe(bits);
  });

  test.each([
    [256, 1],
    [500, 499],
    [3000, 800],
    [2 ** 20 - 1, 5],
    [2 ** 20 - 1, 2 ** 20 - 6],
  ])("%d points, %d chosen: first, last and random ones", (points, blockSize) => {
    const bits = wordBits(points, blockSize);
    const chosen = [0, points - blockSize, randomInt(points - blockSize + 1)].map((first) =>
      new Uint8Array(points).fill(1, first, first + blockSize),
    );
    for (let round = 0; round < 5; round++) {
      const members = new Uint8Array(points);
      for (let left = blockSize, i = 0; i < points; i++) {
        members[i] = Number(randomInt(points - i) < left);
        left -= members[i];
      }
      chosen.push(members);
    }
    for (const members of chosen) {
      const decoded = decodeSubset(encodeSubset(members, blockSize, bits), points, blockSize, bits) as Uint8Array;
      expect(Buffer.from(decoded).equals(members)).toBe(true);
    }
  });
});

test("packing is the sum of shifted values", () => {
  for (let round = 0; round < 200; round++) {
    const width = 1 + (round % 53);
    const values = Array.from({ length: 9 }, () => Number(word() >> BigInt(64 - width)));
    const bytes = new Uint8Array(Math.ceil((9 * width) / 8) + 3);
    expect(pack(bytes, 2, values, [width])).toBe(bytes.length - 1);
    const sum = values.reduce((total, value, i) => total | (BigInt(value) << BigInt(i * width)), 0n);
    const packed = BigInt(`0x${Buffer.from(bytes.subarray(2, -1)).reverse().toString("hex")}`);
    expect(packed).toBe(sum);
  }
});

describe("epsilon", () => {
  test.each([
    [1, "1"],
    [0.1, "1/10"],
    ["0.50", "1/2"],
    ["2/4", "1/2"],
    [32, "32"],
    ["1/3", "1/3"],
  ])("%s is %s", (given, text) => {
    expect(fractionText(parseEpsilon(given))).toBe(text);
  });

  test.each([
    0,
    -1,
    NaN,
    Infinity,
    33,
    "",
    "1/0",
    "one",
    "0x10",
    "1e2",
    "1 ",
    "1000000000000000003/1000000000000000001",
  ])("%s is rejected", (given) => expectError("ParameterError", () => parseEpsilon(given)));

  test.each([1, "0.5", "2/4", "01", "1/1", undefined, true])("a plan must not contain %s", (given) => {
    expectError("PlanError", () => planEpsilon(given));
  });
});

describe("strict JSON", () => {
  test.each([
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    "1.0",
    "1e3",
    "9007199254740993",
    "[1,]",
    "{,}",
    "",
    " ",
    "1 2",
    "nul",
    "NaN",
    "\ufeff1",
    '"\u0001"',
    "'a'",
    "[01]",
    '{"a":1}//',
    "+1",
    "-",
  ])("%j is rejected", (text) => expectError("PlanError", () => parseJson(text)));

  const invalid = ["null", "9007199254740992", '"\\ud800"', "[".repeat(40) + "]".repeat(40)];
  test.each(invalid)("a plan must not contain %j", (text) => {
    expectError("PlanError", () => canonicalForm(parseJson(text)));
  });

  test("the canonical form does not depend on whitespace, order and escapes", () => {
    const text = ' { "b" : [ 1 , -0 , true ] ,\n"a" : "\\u00e9\\/\\ud83d\\ude00\\u001f" , "__proto__": "x" }\t';
    expect(canonicalForm(parseJson(text))).toBe('{"__proto__":"x","a":"é/😀\\u001f","b":[1,0,true]}');
  });
});
