// A client program for the displayed collection, in Python and in JavaScript, ready to copy.

import { BASE, requestJson } from "./api.js";
import { all, byId, element, inputById, setHidden, setText } from "./dom.js";

/** @import { Choice, Domain, Envelope, Status } from "./api.js" */
/** @typedef {[code: string, comment?: string]} Line */
/**
 * How to write the program in one language.
 * @typedef {{
 *   name: string, comment: string, literal: (text: string) => string,
 *   lines: (envelope: Envelope, example: string) => Line[],
 * }} Language
 */

/** @type {Language} */
const PYTHON = { name: "Python", comment: "#", literal: pythonLiteral, lines: pythonLines };
/** @type {Language} */
const JAVASCRIPT = { name: "JavaScript", comment: "//", literal: javascriptLiteral, lines: javascriptLines };
const LANGUAGES = [PYTHON, JAVASCRIPT];
/** The unit of ranges of dates. */
const DAYS = "days since 1970-01-01";

/** @type {Envelope | undefined} what clients of the displayed collection receive */
let envelope;
/** The collection and its epochs at the time the envelope was fetched. */
let fetchedFor = "";

/** Create the buttons that select a language. */
export function makeLanguages() {
  for (const [index, { name }] of LANGUAGES.entries()) {
    const radio = element("input", "");
    Object.assign(radio, { type: "radio", name: "language", id: `language-${name}`, checked: index === 0 });
    radio.addEventListener("change", drawSnippet);
    const label = element("label", "", name);
    label.htmlFor = radio.id;
    byId("languages").append(radio, label);
  }
}

/**
 * Update the program when an epoch of the collection was opened or closed.
 * @param {Choice} choice
 * @param {Status[]} epochs of all collections
 * @param {AbortSignal} signal
 */
export async function refreshSnippet(choice, epochs, signal) {
  const { collection } = choice;
  const siblings = epochs.filter((each) => each.collection === collection);
  const wanted = `${collection} ${siblings.map((each) => `${each.epoch}${each.open}`)}`;
  if (!envelope || fetchedFor !== wanted) {
    /** @type {Envelope} */
    const fetched = await requestJson(`v1/collections/${collection}/plan`, signal);
    [envelope, fetchedFor] = [fetched, wanted];
    drawSnippet();
    const { size, labels, labels_sha256: hash } = envelope.plan.domain;
    inputById("search").placeholder = labels || hash ? "any part" : `0 to ${size - 1}`;
  }
  setHidden(byId("elsewhere"), envelope.epoch === choice.epoch);
  setText(byId("elsewhere"), `New clients report to epoch ${envelope.epoch}; this is epoch ${choice.epoch}.`);
}

function drawSnippet() {
  if (!envelope) return;
  const language = inputById(`language-${JAVASCRIPT.name}`).checked ? JAVASCRIPT : PYTHON;
  const lines = language.lines(envelope, exampleValue(envelope.plan.domain, language.literal));
  const parts = lines.flatMap(([code, comment], index) => {
    const ending = index < lines.length - 1 ? "\n" : "";
    if (!comment) return [code + ending];
    return [code ? `${code}  ` : "", element("span", "comment", `${language.comment} ${comment}`), ending];
  });
  byId("code").replaceChildren(...parts);
  for (const note of all("[data-language]")) setHidden(note, note.dataset.language !== language.name);
}

export async function copySnippet() {
  const code = byId("code");
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
    setText(byId("copy"), "Copied");
  } catch { // only secure pages may use the clipboard: select the text so that Ctrl+C copies it
    getSelection()?.selectAllChildren(code);
    setText(byId("copy"), "Press Ctrl+C");
  }
  setTimeout(() => setText(byId("copy"), "Copy"), 3000);
}

/**
 * @param {Domain} domain
 * @param {(text: string) => string} literal
 * @returns {string}
 */
function exampleValue({ labels, labels_sha256: hash, range, attributes, symbols }, literal) {
  if (attributes) {
    const values = attributes.map(({ name, domain }) => `${literal(name)}: ${exampleValue(domain, literal)}`);
    return `{${values.join(", ")}}`;
  }
  if (range) return range.unit === DAYS ? literal(dayText(Number(range.low))) : range.low;
  if (labels) return literal(labels[0]);
  if (symbols) return literal("any text");
  return hash ? '"ONE OF YOUR LABELS"' : "0";
}

/**
 * A budget for the lifetime of a device: four different answers, but no more than the largest budget.
 * @param {string} epsilon a fraction in lowest terms
 */
function lifetimeOf(epsilon) {
  const [numerator, denominator = 1n] = epsilon.split("/").map(BigInt);
  if (numerator > 8n * denominator) return "32";
  const shared = denominator % 4n === 0n ? 4n : denominator % 2n === 0n ? 2n : 1n;
  const rest = denominator / shared;
  return `${(numerator * 4n) / shared}${rest === 1n ? "" : `/${rest}`}`;
}

/**
 * The first day that is not before this many days after 1970-01-01.
 * @param {number} days
 */
function dayText(days) {
  return new Date(Math.ceil(days) * 86_400_000).toISOString().slice(0, 10);
}

/**
 * @param {Envelope} envelope
 * @param {string} example
 * @returns {Line[]}
 */
function pythonLines({ collection, plan }, example) {
  const address = pythonLiteral(new URL(`v1/collections/${collection}`, BASE).href);
  const epsilon = pythonLiteral(plan.epsilon);
  const lifetime = pythonLiteral(lifetimeOf(plan.epsilon));
  const labels = plan.domain.labels_sha256 ? '.with_labels("labels.txt")' : "";
  return [
    ["", "pip install sunzi-client"],
    ["from sunzi_client import Device, RemoteCollection"],
    [""],
    [`remote = RemoteCollection(${address}, max_epsilon=${epsilon})`],
    ["epoch = remote.current()", "the plan, checked here"],
    [`plan = epoch.plan${labels}`, labels ? "the label file of this plan" : ""],
    [`device = Device("device.db", lifetime_epsilon=${lifetime}, max_epsilon=${epsilon})`, "keep this file"],
    ["device.enable()", "once the user has agreed"],
    [""],
    [`device.queue(plan, ${pythonLiteral(collection)}, ${example}, epoch.url)`, "randomised here; once per epoch"],
    ["print(device.flush())", "the number of acknowledged reports"],
    ["remote.close()"],
  ];
}

/**
 * An ES module for browsers, with the client in clients/javascript; in Node, it needs a store.
 * @param {Envelope} envelope
 * @param {string} example
 * @returns {Line[]}
 */
function javascriptLines({ collection, plan }, example) {
  const address = javascriptLiteral(new URL(`v1/collections/${collection}`, BASE).href);
  const needsSubsets = ["ss", "mss"].includes(plan.protocol);
  const needsRecords = plan.domain.range || ["number", "ordered", "tables"].includes(plan.protocol);
  const needsTexts = plan.protocol === "prefixes";
  const needsLabels = plan.domain.labels_sha256 !== undefined;
  const epsilon = javascriptLiteral(plan.epsilon);
  const lifetime = javascriptLiteral(lifetimeOf(plan.epsilon));
  const names = [
    needsSubsets && "designs: [subsets]",
    needsRecords && "records",
    needsTexts && "texts",
    needsLabels && "labelFile",
  ].filter(Boolean);
  const options = names.length ? `, { ${names.join(", ")} }` : "";
  /** @type {Line[]} */
  const imports = needsSubsets ? [['import { subsets } from "sunzi/subsets";']] : [];
  if (needsRecords) imports.push(['import { records } from "sunzi/records";']);
  if (needsTexts) imports.push(['import { texts } from "sunzi/texts";']);
  /** @type {Line[]} */
  const labels = needsLabels
    ? [['const labelFile = await (await fetch("labels.txt")).text();', "the label file of this plan"]]
    : [];
  return [
    ["", "npm install sunzi"],
    ['import { fetchEpoch } from "sunzi";'],
    ['import { Device } from "sunzi/device";'],
    ...imports,
    [""],
    [`const collection = ${address};`],
    ...labels,
    [`const epoch = await fetchEpoch(collection${options});`, "the plan, checked here"],
    [`const device = await Device.open({ lifetimeEpsilon: ${lifetime}, maxEpsilon: ${epsilon} });`],
    ["await device.enable();", "once the user has agreed"],
    [""],
    [
      `await device.queue(epoch.plan, ${javascriptLiteral(collection)}, ${example}, epoch.url);`,
      "randomised here; once per epoch",
    ],
    ["const { acknowledged } = await device.flush();"],
    ["console.log(acknowledged);"],
  ];
}

/**
 * A string literal in which invisible characters are escaped.
 * @param {string} text
 * @param {(code: string) => string} escapeLong escapes a code point of more than four hexadecimal digits
 */
function stringLiteral(text, escapeLong) {
  return JSON.stringify(text).replace(/[\p{C}\p{Z}]/gu, (character) => {
    if (character === " ") return character;
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? escapeLong(code) : `\\u${code.padStart(4, "0")}`;
  });
}

/** @param {string} text */
export function pythonLiteral(text) {
  return stringLiteral(text, (code) => `\\U${code.padStart(8, "0")}`);
}

/**
 * Safe in a script within HTML: it contains no start of a tag or comment.
 * @param {string} text
 */
export function javascriptLiteral(text) {
  return stringLiteral(text, (code) => `\\u{${code}}`).replace(/<(?=[!/a-z])/gi, "\\x3c");
}
