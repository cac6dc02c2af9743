/** What a report says, in words: the values that it names, and how often it would name them. */

import type { Design, Payload } from "../designs/design.js";
import type { JsonObject } from "../json.js";
import type { Plan } from "../plan.js";
import { decimal } from "../plan_fields.js";
import type { Index } from "../protocols/protocol.js";
import { readReport } from "../reading.js";
import { answersOf, type Answers } from "./answers.js";
import { blockOf } from "./blocks.js";
import type { QueueOutcome } from "./deciding.js";
import type { MemoisingClient } from "./memoising.js";
import { likelihood } from "./notice.js";

/** How many answers are looked at, and how many of those that are named are listed. */
const LOOKED_AT = 2 ** 14;
const LISTED = 5;
const WORDS = 2 ** 64;

/** What a report claims. */
interface Claim {
  readonly answers: Answers;
  /** Whether it names an answer. */
  readonly names: (answer: number) => boolean;
  /** The only answer that it can name, if it names one. */
  readonly only?: number | undefined;
  /** The share of all answers that it names. */
  readonly share: number;
  /** The probability that such a report names the user's answer, and any other answer. */
  readonly own: number;
  readonly other: number;
  /** Whether it tells answers apart only by their remainders. */
  readonly isModular: boolean;
  /** The answer to which a value belongs. */
  readonly answerTo: (index: Index) => number;
}

/** The words about a report; without one, about silence. */
export async function meaningOf(
  client: MemoisingClient,
  index: Index | undefined,
  outcome: QueueOutcome,
  body: Uint8Array | undefined,
): Promise<string> {
  if (!body) return "Nothing would be sent: the privacy budget has ended.";
  const claim = await claimOf(client, body);
  const { answers, own, other, isModular } = claim;
  const sentences = [`The report names ${named(claim)}.`];
  if (index !== undefined) sentences.push(`Yours is ${claim.names(claim.answerTo(index)) ? "" : "not "}among them.`);
  if (outcome === "kept") {
    sentences.push("The privacy budget has ended: this is the last report again, whatever your value is now.");
  } else if (outcome === "background" || index === undefined) {
    sentences.push("It was made for a random value and says nothing about yours.");
  } else {
    const coarse = isModular ? ", if it can tell the two apart" : "";
    sentences.push(`Such a report names your ${answers.noun} in ${percent(own)} of cases, any other in ${percent(other)}${coarse}.`);
  }
  sentences.push(`Your value makes it at most ${likelihood(client.plan.epsilon)} as likely as any other value would.`);
  return sentences.join(" ");
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** The first few of the named answers, and how many there are. */
function named({ answers, names, only, share }: Claim): string {
  const { count, noun, isOrdered, describe } = answers;
  if (!describe) return `${percent(share)} of all texts, which it sorts by a number made from each`;
  const found: number[] = only === undefined || only >= count ? [] : [only];
  const looked = only === undefined ? Math.min(count, LOOKED_AT) : 0;
  for (let answer = 0; answer < looked; answer++) if (names(answer)) found.push(answer);
  const isExact = only !== undefined || looked === count;
  const runs = isOrdered ? joined(found) : found.map((answer) => [answer, answer] as const);
  const first = runs.slice(0, LISTED).map(([start, end]) => describe(start, end));
  const list = first.length ? `: ${first.join(", ")}${isExact && runs.length <= LISTED ? "" : ", …"}` : "";
  return `${isExact ? found.length : `about ${Math.round(share * count)}`} of ${count} ${noun}s${list}`;
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

async function claimOf(client: MemoisingClient, body: Uint8Array): Promise<Claim> {
  const { plan } = client;
  const { designs, layout } = plan.mechanism;
  const { selector, payload } = readReport(plan, body);
  if (!designs.length) return unaryClaim(plan, payload as Uint8Array);
  const [response, message] = responseOf(designs, layout.length, selector, payload);
  const { response: single, responses, views } = plan.parameters as Record<string, JsonObject & JsonObject[]>;
  const view = views?.[response];
  const record = (single ?? responses?.[response] ?? view.response) as JsonObject;
  const design = designs[response];
  const { points, blockSize } = design;
  const truth = Number(decimal(record, "threshold")) / WORDS;
  const contains = blockOf(record, design, message);
  const kept = await client.kept();
  const isSingle = record.design === "singletons" && !responses;
  return {
    answers: answersOf(plan, view, points),
    names: responses ? (answer) => contains(answer % points) : contains,
    only: isSingle ? (message as number) : undefined,
    share: blockSize / points,
    own: truth,
    // Of the other points, a block has blockSize − 1 if it contains the user's, else blockSize, all alike.
    other: (truth * (blockSize - 1) + (1 - truth) * blockSize) / (points - 1),
    isModular: responses !== undefined,
    answerTo: (index) => kept?.(index)[1] ?? (index as number),
  };
}

/** The response that a message belongs to, and the message within it. Joint protocols number all messages in one. */
function responseOf(designs: readonly Design[], widths: number, selector: number, payload: Payload): [number, Payload] {
  if (widths === designs.length || typeof payload !== "number") return [selector, payload];
  let [response, message] = [0, payload];
  for (; message >= (designs[response].limit as number); response++) message -= designs[response].limit as number;
  return [response, message];
}

function unaryClaim(plan: Plan, bits: Uint8Array): Claim {
  const { true_threshold: truth, false_threshold: lie } = plan.parameters as Record<string, string>;
  const ones = bits.reduce((sum, byte) => sum + byte.toString(2).replaceAll("0", "").length, 0);
  return {
    answers: answersOf(plan),
    names: (answer) => ((bits[answer >> 3] >> (answer & 7)) & 1) === 1,
    share: ones / plan.domain.size,
    own: Number(truth) / WORDS,
    other: Number(lie) / WORDS,
    isModular: false,
    answerTo: Number,
  };
}
