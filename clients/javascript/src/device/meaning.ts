/** What a report says, in words: the values that it names, and how often it would name them. */

import type { Domain } from "../domain.js";
import type { Design, Payload } from "../designs/design.js";
import type { JsonObject } from "../json.js";
import type { Plan } from "../plan.js";
import { decimal } from "../plan_fields.js";
import type { Index } from "../protocols/protocol.js";
import { readReport } from "../reading.js";
import { blockOf } from "./blocks.js";
import type { QueueOutcome } from "./deciding.js";
import type { MemoisingClient } from "./memoising.js";
import { likelihood } from "./notice.js";

/** How many values are looked at, and how many of those that are named are listed. */
const LOOKED_AT = 4096;
const LISTED = 5;
const WORDS = 2 ** 64;
const DAY = 86_400_000;

/** What a report claims. */
interface Claim {
  /** Whether it names a value. */
  readonly names: (index: Index) => boolean;
  /** Its share of all points that values are mapped to. */
  readonly share: number;
  /** The probability that such a report names the user's value, and any other value. */
  readonly own: number;
  readonly other: number;
  /** Whether it cannot tell all values apart. */
  readonly isCoarse: boolean;
}

/** The words about a report; without one, about silence. */
export async function meaningOf(
  client: MemoisingClient,
  index: Index | undefined,
  outcome: QueueOutcome,
  body: Uint8Array | undefined,
): Promise<string> {
  const { plan } = client;
  if (!body) return "Nothing would be sent: the privacy budget has ended.";
  const claim = await claimOf(client, body);
  const sentences = [`The report names ${named(plan, claim)}.`];
  if (index !== undefined) sentences.push(`Your value is ${claim.names(index) ? "" : "not "}among them.`);
  if (outcome === "kept") {
    sentences.push("The privacy budget has ended: this is the last report again, whatever your value is now.");
  } else if (outcome === "background" || index === undefined) {
    sentences.push("It was made for a random value and says nothing about yours.");
  } else {
    const coarse = claim.isCoarse ? ", if it can tell the two apart" : "";
    sentences.push(`Such a report names your value in ${percent(claim.own)} of cases, any other in ${percent(claim.other)}${coarse}.`);
  }
  sentences.push(`Your value makes it at most ${likelihood(plan.epsilon)} as likely as any other value would.`);
  return sentences.join(" ");
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

async function claimOf(client: MemoisingClient, body: Uint8Array): Promise<Claim> {
  const { plan } = client;
  const { designs } = plan.mechanism;
  const { selector, payload } = readReport(plan, body);
  const parameters = plan.parameters as Record<string, JsonObject & JsonObject[]>;
  if (!designs.length) return unaryClaim(plan, payload as Uint8Array);
  const [response, message] = responseOf(designs, plan.mechanism.layout.length, selector, payload);
  const design = designs[response];
  const listed = parameters.response ?? parameters.responses?.[response] ?? parameters.views[response].response;
  const record = listed as JsonObject;
  const truth = Number(decimal(record, "threshold")) / WORDS;
  const { points, blockSize } = design;
  const contains = blockOf(record, design, message);
  const kept = await client.kept();
  const isModular = "responses" in parameters;
  return {
    names: (index) => contains(kept ? kept(index)[1] : isModular ? (index as number) % points : (index as number)),
    share: blockSize / points,
    own: truth,
    // Of the other points, a block has blockSize − 1 if it contains the user's, else blockSize, all alike.
    other: (truth * (blockSize - 1) + (1 - truth) * blockSize) / (points - 1),
    isCoarse: isModular || kept !== undefined,
  };
}

/** The response that a message belongs to, and the message within it. Joint protocols number all messages in one. */
function responseOf(designs: readonly Design[], widths: number, selector: number, payload: Payload): [number, Payload] {
  if (widths === designs.length || typeof payload !== "number") return [selector, payload];
  let [response, message] = [0, payload];
  for (; message >= (designs[response].limit as number); response++) message -= designs[response].limit as number;
  return [response, message];
}

function unaryClaim({ domain, parameters }: Plan, bits: Uint8Array): Claim {
  const { true_threshold: truth, false_threshold: lie } = parameters as Record<string, string>;
  const names = (index: Index) => ((bits[(index as number) >> 3] >> ((index as number) & 7)) & 1) === 1;
  const ones = bits.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
  return { names, share: ones / domain.size, own: Number(truth) / WORDS, other: Number(lie) / WORDS, isCoarse: false };
}

/** The first few of the named values, and how many there are. */
function named({ domain }: Plan, { names, share }: Claim): string {
  if (domain.size === Infinity) return `${percent(share)} of all texts, which it sorts by a number made from each`;
  const count = Math.min(domain.size, LOOKED_AT);
  const found: number[] = [];
  for (let index = 0; index < count; index++) if (names(index)) found.push(index);
  const isExact = count === domain.size;
  const many = isExact ? `${found.length}` : `about ${Math.round(share * domain.size)}`;
  const runs = domain.range ? joined(found) : found.map((index) => [index, index] as const);
  const first = runs.slice(0, LISTED).map(([start, end]) => described(domain, start, end));
  const list = first.length ? `: ${first.join(", ")}${isExact && runs.length <= LISTED ? "" : ", …"}` : "";
  return `${many} of ${domain.size} values${list}`;
}

/** Ascending numbers as runs of consecutive ones. */
function joined(numbers: readonly number[]): (readonly [number, number])[] {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs;
}

/** A value, or those from the start to the end of a run, in words. */
function described({ labels, range, attributes, size }: Domain, start: number, end: number): string {
  if (attributes) {
    const parts: string[] = [];
    for (const { name, domain } of [...attributes].reverse()) {
      const index = start % domain.size;
      parts.unshift(`${name} ${described(domain, index, index)}`);
      start = Math.floor(start / domain.size);
    }
    return `(${parts.join(", ")})`;
  }
  if (!range) return labels?.[start] ?? String(start);
  // Names in quotes, which the build does not rename.
  const [low, high] = ["low", "high"].map((name) => Number(range[name as "low" | "high"]));
  const at = (place: number): number => low + (place / size) * (high - low);
  const isDate = range.unit?.startsWith("days since");
  const shown = (value: number): string => {
    const date = new Date(Math.floor(value) * DAY);
    return isDate && !Number.isNaN(date.getTime()) ? date.toISOString().slice(0, 10) : `${Number(value.toPrecision(6))}`;
  };
  return `${shown(at(start))} to ${shown(at(end + 1))}`;
}
