/** What a report answers, in words: the values; or under plans that draw a question, its possible answers. */

import type { Attribute, Domain } from "../domain.js";
import type { JsonObject } from "../json.js";
import type { Plan } from "../plan.js";

const DAY = 86_400_000;

/** The possible answers to the question of a report. */
export interface Answers {
  readonly count: number;
  readonly noun: "value" | "answer";
  /** Whether consecutive answers are described together. */
  readonly isOrdered: boolean;
  /** The answers from the start to the end; missing if they are numbers made from texts. */
  readonly describe?: (start: number, end: number) => string;
}

/** The answers to the question of this view in the plan, if it draws one; `points` is the number of its points. */
export function answersOf({ protocol, domain }: Plan, view: JsonObject = {}, points = 0): Answers {
  const isOrdered = domain.range !== undefined;
  if (protocol === "prefixes") return { count: points, noun: "answer", isOrdered };
  if (protocol === "tables") {
    const chosen = (view.attributes as number[]).map((place) => (domain.attributes as readonly Attribute[])[place]);
    const count = chosen.reduce((product, each) => product * each.domain.size, 1);
    return { count, noun: "answer", isOrdered, describe: (cell) => describeRecord(chosen, cell) };
  }
  if (protocol === "ordered") {
    const count = 2 ** (view.level as number);
    const width = domain.size / count;
    const describe = (start: number, end: number) => describeRun(domain, start * width, (end + 1) * width - 1);
    return { count, noun: "answer", isOrdered: true, describe };
  }
  if (protocol === "number") {
    const describe = (point: number) => describeNumber(domain, (point / (points - 1)) * domain.size);
    return { count: points, noun: "answer", isOrdered: false, describe };
  }
  return { count: domain.size, noun: "value", isOrdered, describe: (start, end) => describeRun(domain, start, end) };
}

function describeRecord(attributes: readonly Attribute[], cell: number): string {
  const parts: string[] = [];
  for (const { name, domain } of [...attributes].reverse()) {
    const index = cell % domain.size;
    parts.unshift(`${name} ${describeRun(domain, index, index)}`);
    cell = Math.floor(cell / domain.size);
  }
  return `(${parts.join(", ")})`;
}

/** The values from the start to the end. */
function describeRun(domain: Domain, start: number, end: number): string {
  const { labels, range } = domain;
  if (range) return `${describeNumber(domain, start)} to ${describeNumber(domain, end + 1, true)}`;
  const [first, last] = [start, end].map((index) => labels?.[index] ?? String(index));
  return start === end ? first : `${first} to ${last}`;
}

/** The number or date at a place between the bins of a range; as an end, the last day before it. */
function describeNumber({ range, size }: Domain, place: number, isEnd = false): string {
  // Names in quotes, which the build does not rename.
  const [low, high] = ["low", "high"].map((name) => Number(range?.[name as "low" | "high"]));
  const number = low + (place / size) * (high - low);
  const date = new Date((isEnd ? Math.ceil(number) - 1 : Math.floor(number)) * DAY);
  const isDate = range?.unit?.startsWith("days since 1970") && !Number.isNaN(date.getTime());
  return isDate ? date.toISOString().slice(0, 10) : `${Number(number.toPrecision(6))}`;
}
