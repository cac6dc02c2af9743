/** The client as applications use it: accepted plans, values, randomness that fails closed, size. */

import { afterEach, describe, expect, test, vi } from "vitest";

import { gzippedSize } from "../build.js";
import {
  Client,
  DomainError,
  MissingExtraError,
  ParameterError,
  Plan,
  PlanError,
  PrivacyError,
  SunziError,
} from "../src/index.js";
import { MemoryStore } from "../src/device.js";
import { singletons } from "../src/designs/singletons.js";
import { parseEpsilon } from "../src/epsilon.js";
import { readResponse } from "../src/protocols/block_response.js";
import { selectingProtocol } from "../src/protocols/selection.js";
import { randomBytes, SystemSource } from "../src/randomness.js";
import { readBatches, readReport } from "../src/reading.js";
import { sha256 } from "../src/sha256.js";
import { records } from "../src/records.js";
import { subsets } from "../src/subsets.js";
import { texts } from "../src/texts.js";
import { expectError, expectRejection, hexOf, load, openDevice, ScriptedSource, thrownBy } from "./support.js";

const GRR = load("grr_k5").plan;
const LABELS = load("grr_labels_other").plan;

afterEach(() => vi.unstubAllGlobals());

test("at most 10.1 kB, minified and gzipped, without the extras", async () => {
  expect(await gzippedSize("index")).toBeLessThanOrEqual(10_100);
});

test("texts take 600 bytes more than records", async () => {
  expect((await gzippedSize("index", "records", "texts")) - (await gzippedSize("index", "records"))).toBeLessThanOrEqual(600);
});

describe("accepted plans", () => {
  test("maxEpsilon can be a number, a decimal or a fraction", () => {
    for (const maxEpsilon of [1, 1.5, "1", "3/2", 32]) expect(new Client(GRR, { maxEpsilon }).plan.epsilon).toBe("1");
    for (const maxEpsilon of [0.999, "999/1000"]) expectError("PrivacyError", () => new Client(GRR, { maxEpsilon }));
    for (const maxEpsilon of [0, -1, "much", NaN]) expectError("ParameterError", () => new Client(GRR, { maxEpsilon }));
  });

  test("a plan that states less epsilon than its numbers give is rejected", () => {
    const claimed = { ...GRR, epsilon: "99/100" };
    expectError("PrivacyError", () => new Client(claimed, { maxEpsilon: 32 }));
    expectError("PrivacyError", () => new Client(JSON.stringify(claimed), { maxEpsilon: 32 }));
  });

  test("a fingerprint can be pinned, in upper or lower case", () => {
    const { fingerprint } = new Plan(GRR);
    expect(new Client(GRR, { maxEpsilon: 32, fingerprint: fingerprint.toUpperCase() }).plan.fingerprint).toBe(fingerprint);
    expectError("PrivacyError", () => new Client(GRR, { maxEpsilon: 32, fingerprint: fingerprint.replace(/^./, "f") }));
  });

  test("changing the source does not change a checked plan", () => {
    const given = structuredClone(GRR);
    const client = new Client(given, { maxEpsilon: 32, source: new ScriptedSource(["0", "0"]) });
    given.parameters.response.threshold = "0";
    expect(hexOf(client.report(3))).toBe("03");
  });

  test("a plan can be stored, cloned and sent to a worker, and is checked again", () => {
    const extras = { designs: [subsets], records };
    for (const name of ["grr_k5", "grr_labels_other", "ss_bitmap_k20", "rappor_k57", "ordered_clamp", "tables_awkward"]) {
      const source = load(name).plan;
      const plan = new Plan(source, extras);
      expect(JSON.parse(JSON.stringify(plan))).toEqual(source);
      expect(structuredClone(plan)).toEqual(source);
      for (const copy of [JSON.stringify(plan), JSON.parse(JSON.stringify(plan)), structuredClone(plan), plan]) {
        expect(new Plan(copy, extras).fingerprint).toBe(plan.fingerprint);
        expect(new Client(copy, { maxEpsilon: 32, ...extras }).plan.epsilon).toBe(source.epsilon);
      }
    }
    expectError("PrivacyError", () => new Plan({ ...structuredClone(new Plan(GRR)), epsilon: "99/100" }));
  });

  test("a label file can be given with the plan or with the client, and is no part of copies", () => {
    const labels = ["alpha", "beta", "gamma", "delta", "epsilon"];
    const file = `${labels.join("\n")}\n`;
    const digest = hexOf(sha256(new TextEncoder().encode(file)));
    const source = { ...GRR, domain: { size: 5, labels_sha256: digest } };
    const [given, later] = [new Plan(source, { labelFile: file }), new Plan(source)];
    expectError("ParameterError", () => new Client(later, { maxEpsilon: 32 }).report("alpha"));
    for (const client of [
      new Client(given, { maxEpsilon: 32 }),
      new Client(later, { maxEpsilon: 32, labelFile: new TextEncoder().encode(file) }),
      new Client(source, { maxEpsilon: 32, labelFile: file }),
    ]) {
      expect(client.report("alpha")).toHaveLength(1);
      expect(client.plan.domain.labels).toEqual(labels);
      expect(structuredClone(client.plan)).toEqual(source);
      expect(JSON.parse(JSON.stringify(client.plan))).toEqual(source);
    }
    for (const plan of [later, new Plan(LABELS), new Plan(GRR)]) {
      expectError("DomainError", () => new Client(plan, { maxEpsilon: 32, labelFile: "a\nb\n" }));
    }
  });

  test("errors name the value that is wrong, and keep their cause", () => {
    const response = { ...GRR.parameters.response };
    const change = (changes: object) => ({ ...GRR, parameters: { response: { ...response, ...changes } } });
    const wrong: [unknown, string][] = [
      [{ ...GRR, version: 3 }, "version 3 is not known"],
      [{ ...GRR, format: "sunzi-tally" }, 'not a plan: format is "sunzi-tally"'],
      [{ ...GRR, protocol: "telepathy" }, 'protocol "telepathy" is not known'],
      [{ ...GRR, epsilon: "2/2" }, 'got "2/2"'],
      [{ ...GRR, extra: 1 }, 'got ["domain","epsilon","extra"'],
      [{ ...GRR, domain: { size: 1 } }, "size must be an integer from 2 to 1073741824, got 1"],
      [{ ...GRR, domain: { size: 5, labels: ["a", "b", "a", "c", "d"] } }, 'label "a" is repeated'],
      [{ ...GRR, domain: { size: 5, labels: ["a"] } }, "expected 5 labels, got 1"],
      [{ ...GRR, domain: { size: 5, other: "x" } }, 'other "x" is not a label'],
      [change({ design: "subsets" }), 'design must be singletons, got "subsets"'],
      [change({ threshold: 7 }), "threshold must be a string of digits, got 7"],
      [change({ points: "5" }), 'got "5"'],
      [null, "plans must not contain null"],
      [undefined, "plans must not contain undefined"],
    ];
    for (const [source, message] of wrong) {
      expect(() => new Plan(source as object)).toThrow(message);
      expect(() => new Plan(source as object)).toThrow(PlanError);
    }
    for (const source of ["{", Uint8Array.of(255)]) {
      const error = thrownBy(() => new Plan(source));
      expect([error.name, error.cause]).toEqual(["PlanError", expect.any(Error)]);
    }
    // What a server sent instead of a plan is not repeated.
    for (const source of ["<html>Welcome to our hotel", '{"format":"a secret"', '"a secret', "a secret"])
      expect(thrownBy(() => new Plan(source)).message).toBe("not JSON");
    for (const epsilon of ["secret".repeat(50), ["secret".repeat(50)]])
      expect(thrownBy(() => new Plan({ ...GRR, epsilon })).message.length).toBeLessThan(140);
    expect(() => new Client(GRR, { maxEpsilon: 32 }).report(77)).toThrow("value 77 is not in the domain 0 … 4");
    expect(() => new Client(GRR, { maxEpsilon: 32 }).reportIndices([1, 9])).toThrow("value 9 is not in the domain");
    const { other: _, ...domain } = LABELS.domain;
    expect(() => new Client({ ...LABELS, domain }, { maxEpsilon: 32 }).report("Lynx")).toThrow('label "Lynx" is not');
    expectError("ParameterError", () => new Client(GRR, null as any));
    vi.stubGlobal("crypto", {
      getRandomValues: () => {
        throw new Error("no entropy");
      },
    });
    expect(thrownBy(() => randomBytes(16)).cause).toEqual(new Error("no entropy"));
  });

  test("a plan with subsets names the missing import", () => {
    const plan = load("ss_bitmap_k20").plan;
    expect(() => new Client(plan, { maxEpsilon: 32 })).toThrow(MissingExtraError);
    expect(() => new Client(plan, { maxEpsilon: 32 })).toThrow("sunzi/subsets");
    expect(new Client(plan, { maxEpsilon: 32, designs: [subsets] }).report(0)).toHaveLength(3);
  });

  test("errors have the same names and base classes as in Python", () => {
    const error = new PrivacyError("no");
    expect([error.name, error instanceof PlanError, error instanceof SunziError, String(error)]).toEqual([
      "PrivacyError",
      true,
      true,
      "PrivacyError: no",
    ]);
    expect(new DomainError("no")).toBeInstanceOf(ParameterError);
  });
});

describe("limits on the cost of a report", () => {
  const extras = { designs: [subsets], records, texts };
  const cost = (name: string): number[] =>
    ["maxBits", "maxWork"].map((option) => {
      const { message } = thrownBy(() => new Client(load(name).plan, { maxEpsilon: 32, ...extras, [option]: 0 }));
      expect(message).toMatch(new RegExp(`^a report takes \\d+ (bits|steps), more than ${option} 0$`));
      return Number(/\d+/.exec(message)?.[0]);
    });

  test.each([
    // The bits of a selector and a payload; the words of a report, and the points that it shuffles.
    ["grr_k5", [3, 2]],
    ["oue_k57", [57, 57]],
    ["ss_compact_k151", [null, 4]],
    ["pgr_order3_k13", [4, 3]],
    ["mss_compact_k40", [null, 5]],
    ["ordered_8_bins", [null, 5]],
    ["number_5_points", [3, 3]],
    ["ss_bitmap_k20", [20, null]],
  ] as const)("%s", (name, [bits, work]) => {
    const [madeBits, madeWork] = cost(name);
    if (bits) expect(madeBits).toBe(bits);
    if (work) expect(madeWork).toBe(work);
    const { plan, cases } = load(name);
    expect(8 * (cases[0].report.length / 2)).toBeGreaterThanOrEqual(bits ?? 0);
    const limits = { maxBits: madeBits, maxWork: madeWork };
    expect(new Client(plan, { maxEpsilon: 32, ...extras, ...limits }).isPrivate).toBe(true);
    for (const [option, most] of Object.entries(limits))
      expectError("PlanError", () => new Client(plan, { maxEpsilon: 32, ...extras, ...limits, [option]: most - 1 }));
  });

  test("the work of plain subsets counts every variate and every point", () => {
    for (const name of ["ss_k10", "ss_k300", "ss_bitmap_k70", "ss_k70_nearly_all"]) {
      const { block_size, points } = load(name).plan.parameters.response;
      expect(cost(name)[1]).toBe(2 + block_size + points);
    }
  });

  test("defaults are 2^20 bits and 2^21 steps; a limit that is no number refuses every plan", () => {
    const wide = { ...load("oue_k57").plan, domain: { size: 2 ** 20 } };
    expect(new Client(wide, { maxEpsilon: 32 }).isPrivate).toBe(true);
    const wider = { ...wide, domain: { size: 2 ** 20 + 1 } };
    expect(thrownBy(() => new Client(wider, { maxEpsilon: 32 })).message).toBe(
      "a report takes 1048577 bits, more than maxBits 1048576",
    );
    expect(new Client(wider, { maxEpsilon: 32, maxBits: 2 ** 21 }).isPrivate).toBe(true);
    const widest = { ...wide, domain: { size: 2 ** 21 + 1 } };
    expect(thrownBy(() => new Client(widest, { maxEpsilon: 32, maxBits: 2 ** 22 })).message).toContain("maxWork 2097152");
    expectError("PlanError", () => new Client(GRR, { maxEpsilon: 32, maxWork: NaN }));
  });

  test("a device has them too, and makes the reports of larger plans if it may", async () => {
    const wide = { ...load("oue_k57").plan, domain: { size: 2 ** 21 + 1 } };
    const epoch = "https://collector.example/v1/collections/default/epochs/1";
    const options = { lifetimeEpsilon: 32, maxEpsilon: 32 };
    const small = await openDevice({ ...options, store: new MemoryStore() });
    await expectRejection("PlanError", small.queue(wide, "word", 0, epoch));
    expect(await small.spent("word")).toBe("0");
    const large = await openDevice({ ...options, maxBits: 2 ** 22, maxWork: 2 ** 22, store: new MemoryStore() });
    expect((await large.queue(wide, "word", 0, epoch)).outcome).toBe("queued");
  });
});

describe("values", () => {
  test("a label outside the domain is reported as other", () => {
    const words = ["0", "0"];
    const other = new Client(LABELS, { maxEpsilon: 32, source: new ScriptedSource(words) }).report(LABELS.domain.other);
    const unknown = new Client(LABELS, { maxEpsilon: 32, source: new ScriptedSource(words) }).report("never heard of");
    expect(unknown).toEqual(other);
  });

  test("without other it throws, and the background report can be sent instead", () => {
    expectError("DomainError", () => new Client(GRR, { maxEpsilon: 32 }).report(5));
    // The first word draws the value 3; the others make a truthful report of it.
    const source = new ScriptedSource([(3n << 64n) / 5n + 1n, 0n, 0n]);
    expect(hexOf(new Client(GRR, { maxEpsilon: 32, source }).reportBackground())).toBe("03");
    expect(source.remaining).toBe(0);
    expect(new Set(Array.from({ length: 300 }, () => new Client(GRR, { maxEpsilon: 32 }).reportBackground()[0])).size).toBe(5);
  });

  test("batches accept any iterable", () => {
    const client = new Client(GRR, { maxEpsilon: 32 });
    for (const values of [[0, 1, 4], Uint8Array.of(0, 1, 4), new Set([0, 1, 4])]) {
      expect(readBatches(client.plan, client.reportBatch(values))).toHaveLength(3);
    }
    for (const wrong of [[5], [-1], [0.5], [NaN], Float64Array.of(2 ** 32)]) {
      expectError("DomainError", () => client.reportIndices(wrong));
    }
    expect(client.reportBatch([])).toHaveLength(52);
  });

  test("reports are truthful as often as they should be", () => {
    // p = e/(e+4) = 0.4046 and 100,000 reports give a standard error of 0.00155. A deviation of six standard errors has
    // probability 2e-9.
    const client = new Client(GRR, { maxEpsilon: 32 });
    const reports = readBatches(client.plan, client.reportIndices(new Uint32Array(100_000).fill(3)));
    const share = reports.filter(({ payload }) => payload === 3).length / 100_000;
    expect(Math.abs(share - Math.E / (Math.E + 4))).toBeLessThan(6 * 0.00155);
    expect(readReport(client.plan, client.report(2)).selector).toBe(0);
  });
});

test("one report does the work of the one view that it drew", () => {
  const response = readResponse(GRR.parameters.response, "singletons", [singletons], parseEpsilon(1));
  const asked: number[] = [];
  const protocol = selectingProtocol(
    Array(50).fill(response),
    true,
    (count) => new Uint8Array(count).fill(7),
    (selector, indices) => {
      asked.push(selector);
      return Uint32Array.from(indices as number[]);
    },
  );
  protocol.randomize(Uint32Array.of(3), new SystemSource());
  expect(asked).toEqual([7]);
});

describe("numbers, dates and records", () => {
  const options = { maxEpsilon: 32, records };
  /** The indices of values under the plan of a vector. */
  const indices = (name: string, values: unknown[]) => {
    const { domain } = new Plan(load(name).plan, { records });
    return values.map((value) => domain.index(value));
  };

  test("plans about them name the missing import", () => {
    for (const name of ["ordered_8_bins", "ordered_one_level", "tables_survey", "number_2_points"]) {
      const { plan } = load(name);
      expect(() => new Client(plan, { maxEpsilon: 32 })).toThrow(MissingExtraError);
      expect(() => new Client(plan, { maxEpsilon: 32 })).toThrow("sunzi/records");
      expect(new Client(plan, options).reportBackground().length).toBeGreaterThan(0);
    }
  });

  test("numbers fall into bins, and outside only with clamp", () => {
    expect(indices("ordered_8_bins", [0, -0, 624.9, 625, 5000])).toEqual([0, 0, 0, 1, 7]);
    expect(indices("ordered_clamp", [-Infinity, Infinity, 1e300])).toEqual([0, 15, 15]);
    const { plan } = load("ordered_8_bins");
    for (const wrong of [-1, 5001, NaN, Infinity, "12", true, null, new Date(12), {}])
      expectError("DomainError", () => new Client(plan, options).report(wrong as number));
    expect(() => new Client(plan, options).report(5001)).toThrow("value 5001 is outside 0 to 5000");
    expect(() => new Client(plan, options).report("fast")).toThrow('value "fast" is not a number');
    expect(() => new Client(plan, options).report(NaN)).toThrow("value NaN is not a number");
    expect(() => new Client(plan, options).report(-Infinity)).toThrow(
      "value -Infinity is outside 0 to 5000; plan with clamp or a wider range, or send reportBackground()",
    );
    expect(() => new Client(plan, options).report(5n as any)).toThrow("value 5 is not a number");
  });

  test("dates are texts, Date objects and numbers of days", () => {
    const evening = new Date("2024-02-29T23:59:59.999Z");
    expect(indices("ordered_dates", ["2024-02-29", evening, 19782.5, new Date("2024-01-01")])).toEqual([59, 59, 59, 0]);
    expect(indices("ordered_dates_clamp", [new Date(-1), "1969-12-31", new Date(-8.64e15)])).toEqual([0, 0, 0]);
    const client = new Client(load("ordered_dates").plan, options);
    for (const wrong of ["2024-02-30", "2024-2-29", "29.2.2024", new Date(NaN), "0000-01-01"])
      expect(() => client.report(wrong)).toThrow("is not a date, such as 2026-11-19");
    expect(() => client.report("")).toThrow('a value is missing, got ""');
  });

  test("the end of a range of dates is the day after the last", () => {
    const client = new Client(load("ordered_dates").plan, options);
    expect(indices("ordered_dates", ["2024-03-04", 19786.999])).toEqual([63, 63]);
    for (const after of ["2024-03-05", new Date("2024-03-05"), 19787])
      expect(() => client.report(after)).toThrow("is outside 2024-01-01 to 2024-03-04; plan with clamp or a wider range");
    const days = ["2026-01-08", "2026-01-09", new Date("2026-03-01"), Infinity];
    expect(new Set(indices("number_dates_clamp", days))).toEqual(new Set([(7 / 8) * 2 ** 20]));
  });

  test("records have a value per attribute, missing ones count as other", () => {
    const survey = { version: "3", crashed: "yes", day: 6 };
    const { crashed: _, ...incomplete } = survey;
    expect(indices("tables_survey", [survey, incomplete, { ...survey, crashed: null }])).toEqual([41, 34, 34]);
    const client = new Client(load("tables_survey").plan, options);
    expect(() => client.report({ ...survey, country: "DE" })).toThrow(
      'there is no attribute "country"; the attributes are version, crashed, day',
    );
    expect(() => client.report({ version: "1" })).toThrow(
      'attribute "day": a value is missing, got undefined; fill it in, or send reportBackground()',
    );
    expect(() => client.report({ crashed: "no", day: 1 })).toThrow('attribute "version": a value is missing');
    expect(() => client.report({ ...survey, version: "4" })).toThrow('attribute "version": label "4" is not');
    const hidden = Object.defineProperty({ ...incomplete }, "crashed", { value: "yes" });
    expect(indices("tables_survey", [hidden])).toEqual([34]);
    for (const wrong of [[], [1], new Map(), new Date(), 5, "1", null])
      expect(() => client.report(wrong as object as Date)).toThrow("a record must be an object");
  });

  test("indices up to 2^53 - 1 are exact", () => {
    const plan = new Plan(load("tables_largest").plan, { records });
    expect(plan.domain.size).toBe(Number.MAX_SAFE_INTEGER);
    expect(plan.domain.index({ a: 6360, b: 69430, c: 20394400 })).toBe(Number.MAX_SAFE_INTEGER - 1);
    const sizes = [6361n, 69431n, 20394401n];
    for (const index of [2 ** 53 - 2, 2 ** 53 - 3, 2 ** 52 + 1, 2 ** 32, 2 ** 31, 0]) {
      const [a, b, c] = [BigInt(index) / sizes[1] / sizes[2], (BigInt(index) / sizes[2]) % sizes[1], BigInt(index) % sizes[2]];
      // Truthful reports of b, of c, and of a and b: after the selector, a truth word of 0 and a word for a lie.
      const [ofB, ofC, ofBoth] = [1n, 2n, 3n].map((view) => {
        const source = new ScriptedSource([view << 62n, 0n, 1n]);
        const report = new Client(plan, { ...options, source }).reportIndex(index);
        return readReport(plan, report).payload as number;
      });
      const offset = 6 * 6361;
      expect([ofB - offset, ofC - offset - 69431, ofBoth - offset - 69431 - 20394401]).toEqual(
        [b, c, a * sizes[1] + b].map(Number),
      );
    }
    const client = new Client(plan, options);
    for (const wrong of [2 ** 53, -1, 0.5, NaN]) expectError("DomainError", () => client.reportIndex(wrong));
    expect(readBatches(plan, client.reportIndices(Float64Array.of(0, 2 ** 53 - 2)))).toHaveLength(2);
    // A background report draws every attribute on its own: 69,430 of 69,431 is the second of these words.
    const source = new ScriptedSource([1n, (1n << 64n) - 1n, 1n, 1n << 62n, 0n, 1n]);
    expect(readReport(plan, new Client(plan, { ...options, source }).reportBackground())).toEqual({
      selector: 0,
      payload: 6361 * 6 + 69430,
    });
  });

  test("views are drawn by their shares", () => {
    const client = new Client(load("tables_survey").plan, options);
    const reports = readBatches(client.plan, client.reportIndices(new Uint32Array(40_000)));
    const first = reports.filter(({ payload }) => (payload as number) < 3).length / 40_000;
    expect(Math.abs(first - 1 / 4)).toBeLessThan(6 * Math.sqrt(3 / 16 / 40_000));
  });
});

describe("texts that nobody has listed", () => {
  const options = { maxEpsilon: 32, texts };
  /** The digits of texts under the plan of a vector. */
  const digits = (name: string, values: string[]) => {
    const { domain } = new Plan(load(name).plan, { texts });
    return values.map((value) => domain.index(value));
  };

  test("plans about them name the missing import", () => {
    const { plan } = load("prefixes_letters");
    expect(() => new Client(plan, { maxEpsilon: 32, records })).toThrow(MissingExtraError);
    expect(() => new Client(plan, { maxEpsilon: 32 })).toThrow("sunzi/texts");
    const closed = { ...plan, domain: GRR.domain };
    expect(() => new Client(closed, { maxEpsilon: 32 })).toThrow("sunzi/texts");
    expect(() => new Client(closed, options)).toThrow("prefixes need texts");
  });

  test("letters, with an end unless the text is longer", () => {
    expect(digits("prefixes_letters", ["ab", "", "abcde", "abcdef", "A😀"])).toEqual([
      [1, 2, 28],
      [28],
      [1, 2, 3, 4, 5, 28],
      [1, 2, 3, 4, 5],
      [27, 27, 28],
    ]);
  });

  test("bytes of UTF-8, where a lone surrogate is U+FFFD", () => {
    const [plain, wide, lone, replaced] = digits("prefixes_bytes", ["a\0", "é😀x", "\ud83d", "\ufffd"]);
    expect(plain).toEqual([98, 1, 257]);
    expect(wide).toEqual([0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80].map((byte) => byte + 1));
    expect(lone).toEqual(replaced);
  });

  test("tokens by greedy longest match", () => {
    const { symbols } = load("prefixes_tokens").plan.domain;
    const tokens = (...names: string[]) => names.map((name) => symbols.indexOf(name) + 1);
    const end = symbols.length + 1;
    expect(digits("prefixes_tokens", ["abcab", "abcde", "https://", "😀😀😀", "\ud800", "xabcdef", "😀\ude00"])).toEqual([
      [...tokens("abc", "ab"), end],
      [...tokens("abc", "abcdef", "e"), end],
      [...tokens("https://"), end],
      [...tokens("😀😀", "😀"), end],
      [...tokens("\ufffd"), end],
      [...tokens("abcdef", "abcdef"), end],
      [...tokens("😀", "\ufffd"), end],
    ]);
  });

  test("no text is refused, and nothing else is accepted", () => {
    const client = new Client(load("prefixes_bytes").plan, options);
    const reports = readBatches(client.plan, client.reportBatch(["", "hello", "\ud800", "x".repeat(100_000)]));
    expect(reports).toHaveLength(4);
    for (const wrong of [5, null, undefined, true, ["a"], {}, new Date()])
      expectError("DomainError", () => client.report(wrong as string));
    expect(readReport(client.plan, client.reportIndex(client.plan.domain.index("hello"))).selector).toBe(0);
    for (const wrong of [5, [NaN], [-1], [1, -400], [Infinity], "hello", null])
      expectError("DomainError", () => client.reportIndex(wrong as number));
    expect(client.reportBackground()).toHaveLength(client.report("").length);
  });

  test("a plan can be stored and passed on", () => {
    const { plan, fingerprint } = load("prefixes_tokens");
    const checked = new Plan(plan, { texts });
    expect(checked.domain.size).toBe(Infinity);
    for (const copy of [JSON.parse(JSON.stringify(checked)), structuredClone(checked)])
      expect(new Plan(copy, { texts }).fingerprint).toBe(fingerprint);
  });
});

describe("randomness", () => {
  test("nothing is reported without Web Crypto", () => {
    const client = new Client(GRR, { maxEpsilon: 32 });
    for (const broken of [
      undefined,
      {},
      {
        getRandomValues: () => {
          throw new Error("no entropy");
        },
      },
      { getRandomValues: () => undefined },
    ]) {
      vi.stubGlobal("crypto", broken);
      expectError("RandomnessError", () => new Client(GRR, { maxEpsilon: 32 }).report(1));
      expectError("RandomnessError", () => new Client(GRR, { maxEpsilon: 32 }).reportIndices(new Uint32Array(5000)));
      expectError("RandomnessError", () => randomBytes(16));
    }
    expectError("RandomnessError", () => client.report(1));
  });

  test("no word is used twice, and used words are wiped from the pool", () => {
    const pools: Uint32Array[] = [];
    const system = globalThis.crypto;
    vi.stubGlobal("crypto", {
      getRandomValues(array: Uint32Array) {
        expect(array.byteLength).toBeLessThanOrEqual(65_536);
        pools.push(array);
        return system.getRandomValues(array as Uint32Array<ArrayBuffer>);
      },
    });
    const source = new SystemSource();
    const seen = new Set<string>();
    for (let i = 0; i < 1000; i++) {
      const halves = new Uint32Array(2 * (1 + (i % 7)));
      source.fill(halves);
      for (let at = 0; at < halves.length; at += 2) seen.add(`${halves[at]} ${halves[at + 1]}`);
    }
    expect(seen.size).toBe(Array.from({ length: 1000 }, (_, i) => 1 + (i % 7)).reduce((sum, count) => sum + count));
    const pool = pools[0];
    expect(pool.subarray(0, 2).every((half) => half === 0)).toBe(true);
    source.fill(new Uint32Array(50_000));
    expect(pools.some((array) => array.length === 16_384)).toBe(true);
  });

  test("a client with reproducible words is not private", () => {
    expect(new Client(GRR, { maxEpsilon: 32, source: new ScriptedSource([]) }).isPrivate).toBe(false);
    expect(new Client(GRR, { maxEpsilon: 32 }).isPrivate).toBe(true);
  });
});
