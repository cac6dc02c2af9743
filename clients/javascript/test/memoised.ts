/** Vectors of memoised reports, by the formulas of `docs/format.md` and Node's own HMAC. */

import { createHmac } from "node:crypto";

import { Client, type Index, Plan } from "../src/index.js";
import { encodeReport } from "../src/wire.js";
import { hexOf, ScriptedSource } from "./support.js";

/** A value under a plan, with all that is derived for its report. */
export interface MemoisedCase {
  value?: unknown;
  outside?: true;
  seed: string;
  report: string;
  question?: number;
  cell?: number;
}

/** Reports of one attribute of one device. */
export interface MemoisedVector {
  plan: object;
  fingerprint: string;
  label_file?: string;
  key: string;
  attribute: string;
  cases: MemoisedCase[];
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function withLength(text: string): Buffer {
  return Buffer.concat([number(Buffer.byteLength(text)), Buffer.from(text)]);
}

/** The first 1024 words that derive from a seed. */
function wordsOf(seed: Buffer): bigint[] {
  return Array.from({ length: 256 }, (_, block) => {
    const counter = Buffer.alloc(8);
    counter.writeUInt32LE(block);
    const digest = createHmac("sha256", seed).update(counter).digest();
    return [0, 8, 16, 24].map((at) => digest.readBigUInt64LE(at));
  }).flat();
}

/** A vector for these values; undefined is a value outside the domain. */
export function makeVector(source: object, extras: object, key: Buffer, attribute: string, values: unknown[]): MemoisedVector {
  const plan = new Plan(source, extras);
  const { mechanism, domain, fingerprint } = plan;
  const secret = (purpose: string, value: Buffer): Buffer =>
    createHmac("sha256", key)
      .update(Buffer.concat([Buffer.from(`${purpose}\0`), Buffer.from(fingerprint, "hex"), withLength(attribute), value]))
      .digest();
  const report = (value: Buffer): Buffer => secret("sunzi memoised report, version 1", value);
  const outside = report(number(0xffffffff));
  const cases = values.map((value): MemoisedCase => {
    const given = value === undefined ? ({ outside: true } as const) : { value };
    const index = value === undefined ? undefined : domain.index(value);
    if (!mechanism.drawCell || !mechanism.respond) {
      const seed = index === undefined ? outside : report(withLength(domain.labels?.[index as number] ?? String(index)));
      const client = new Client(plan, { maxEpsilon: 32, source: new ScriptedSource(wordsOf(seed)) });
      const made = index === undefined ? client.reportBackground() : client.reportIndex(index);
      return { ...given, seed: hexOf(seed), report: hexOf(made) };
    }
    // One random value stands for all that are outside: here of one attribute, whose choice takes one word.
    const [word] = wordsOf(outside);
    const random = (): Index => domain.joined([Number((word * BigInt(domain.sizes[0])) >> 64n)]);
    const words = new ScriptedSource(wordsOf(secret("sunzi memoised question, version 1", Buffer.alloc(0))));
    const [question, cell] = mechanism.drawCell(index ?? random(), words);
    const seed = report(withLength(`${question} ${cell}`));
    const made = mechanism.respond(question, cell, new ScriptedSource(wordsOf(seed)));
    return { ...given, seed: hexOf(seed), report: hexOf(encodeReport(mechanism.layout, made)), question, cell };
  });
  return { plan: source, fingerprint, key: hexOf(key), attribute, cases };
}
