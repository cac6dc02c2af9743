// The collector's API: addresses below the page's own, the admin token, requests, views and downloads.

import { all, element, setAttributes, setHidden, showToast } from "./dom.js";

/**
 * The epoch of a collection that is displayed.
 * @typedef {{ collection: string, epoch: number }} Choice
 *
 * An epoch as the API describes it; times are seconds since 1970.
 * @typedef {Choice & {
 *   open: boolean, reports: number, opened_at: number, closed_at: number, protocol: string, epsilon: string,
 *   domain_size: number, values: string, report_bits: number, attackability: number, guessed: string, choices: number, plan: string,
 * }} Status
 *
 * One row of a histogram. With post-processing it has one more column, `frequency_METHOD`.
 * @typedef {{
 *   label: string | number, frequency: number, low: number, high: number, count: number, standard_error: number,
 *   above_zero: boolean,
 * } & Record<`frequency_${string}`, number>} Row
 *
 * @typedef {{
 *   histogram: Row[], reports: number, domain_size: number, confidence: number, postprocess?: string,
 *   postprocess_effect?: string, group?: string,
 * }} Estimate
 *
 * @typedef {{
 *   values: string[], frequency: number, low: number, high: number, standard_error: number, count: number,
 *   confidence: number,
 * }} Sum
 *
 * The answer to a question about numbers or tables, as a share or in the unit of the values. Only shares within the
 * values of an attribute can have an unbounded interval; its ends are null.
 * @typedef {{
 *   question: string, value: number, low: number, high: number, standard_error: number, is_share: boolean,
 *   unit: string, note: string,
 * }} Answer
 * @typedef {{ answers: Answer[], reports: number, confidence: number }} Answers
 *
 * A plan of numbers or tables.
 * @typedef {{
 *   protocol: "ordered" | "number" | "tables", domain: Domain, parameters: { views?: { attributes: number[] }[] },
 * }} RecordPlan
 *
 * The texts found in an open plan; a threshold without tokens is for a list of candidates.
 * @typedef {{
 *   found: { label: string, frequency: number, low: number, high: number }[], reports: number, candidates: number,
 *   accepted: number, false_share: number, group: string | null,
 *   thresholds: { tokens: number | null, frequency: number }[],
 * }} Discovery
 *
 * A public group of users, `ATTRIBUTE=VALUE`; `published` if it has enough reports.
 * @typedef {{ group: string, attribute: string, value: string, reports: number, published: boolean }} Group
 *
 * @typedef {{
 *   label: string | number, before: number, after: number, change: number, low: number, high: number,
 *   standard_error: number, changed: boolean,
 * }} Change
 * @typedef {Choice & { reports: number, opened_at: number, group: string | null }} Side
 * @typedef {{
 *   before: Side, after: Side, domain_size: number, confidence: number, verdict: "any" | "discoveries", p_value: number,
 *   changed: number, changes: Change[],
 * }} Difference
 *
 * The series of one value, with an entry per epoch.
 * @typedef {{
 *   label: string, frequency: number[], low: number[], high: number[], standard_error: number[], changed: boolean,
 *   change: number, change_at: number,
 * }} Series
 * @typedef {{ label: string, moment: number, since: number, direction: "up" | "down", before: number, after: number
 * }} Alarm
 * @typedef {{
 *   epochs: Status[], values: Series[], alarms: Alarm[], confidence: number, one_in: number, domain_size: number,
 *   held_back: number[], other_domain: number[],
 * }} Trend
 * @typedef {{ computed: number, epochs: number }} Progress while the epochs of a trend are estimated
 *
 * The reports of one minute, which starts at `minute` (seconds since 1970).
 * @typedef {{ minute: number, reports: number }} Minute
 *
 * @typedef {{ verdict: string, alarm: boolean, p_value: number | null, expected?: string }} HealthTest
 * @typedef {HealthTest & { tests: HealthTest[], too_few: boolean }} Health
 *
 * What readers of an epoch can learn, or why no guarantee is claimed.
 * @typedef {{
 *   batch_guarantee: { meaning: string, conditions: string[] } | null, no_batch_guarantee?: string,
 *   facts: { name: string, text: string }[],
 * }} Guarantee
 *
 * What clients of a collection receive: the open epoch and its plan.
 * @typedef {{
 *   collection: string, epoch: number, plan: { protocol: string, epsilon: string, domain: Domain },
 * }} Envelope
 * @typedef {{
 *   size: number, labels?: string[], labels_sha256?: string, other?: string,
 *   range?: { low: string, high: string, unit?: string }, attributes?: { name: string, domain: Domain }[],
 *   symbols?: "bytes" | string[],
 * }} Domain
 */

const TOKEN_KEY = "sunzi-admin-token";
// A view pauses for this many times the duration of its last request, so that slow requests do not overload the collector.
const REST_FACTOR = 10;

export const BASE = new URL(".", location.href);

/** @param {Choice} choice */
export const epochPath = ({ collection, epoch }) => `v1/collections/${collection}/epochs/${epoch}`;

/** The admin token, kept until the tab closes; empty if there is none. */
export const token = {
  get value() {
    return sessionStorage.getItem(TOKEN_KEY) ?? "";
  },
  set value(text) {
    if (text) sessionStorage.setItem(TOKEN_KEY, text);
    else sessionStorage.removeItem(TOKEN_KEY);
  },
};

/** The collector answered with an error. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The collector did not answer. */
export class LostConnection extends Error {}

/**
 * Send a GET request with the admin token. Throws a Refusal or a LostConnection unless it succeeds.
 * @param {string} path
 * @param {AbortSignal | null} signal
 */
export async function request(path, signal = null) {
  /** @type {HeadersInit} */
  const headers = token.value ? { Authorization: `Bearer ${token.value}` } : {};
  /** @type {RequestInit} */
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  const response = await fetch(new URL(path, BASE), options).catch((error) => {
    throw signal?.aborted ? error : new LostConnection();
  });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refusal(response.status, body.message ?? `the collector returned status ${response.status}`);
}

/**
 * @param {string} path
 * @param {AbortSignal} signal
 */
export const requestJson = async (path, signal) => (await request(path, signal)).json();

/**
 * A part of the page that is drawn from one request, repeated when the epoch has changed.
 * @template T
 */
export class View {
  #key = "";
  #address = "";
  #requestedAt = -Infinity;
  #duration = 0;
  /** @type {T | null} */
  #answer = null;

  /**
   * @param {(status: Status) => string | null} path null if the view is not shown
   * @param {(answer: T, status: Status, query: URLSearchParams) => void} draw
   * @param {(message: string, status: Status) => void} drawNothing
   * @param {boolean} movesWithTime whether to draw at every poll
   */
  constructor(path, draw, drawNothing, movesWithTime = false) {
    this.path = path;
    this.draw = draw;
    this.drawNothing = drawNothing;
    this.movesWithTime = movesWithTime;
  }

  /**
   * @param {Status} status
   * @param {AbortSignal} signal
   */
  async refresh(status, signal) {
    const address = this.path(status);
    if (address === null) {
      this.#key = ""; // when it is shown again, draw it again
      return;
    }
    const key = `${address} ${status.reports} ${status.open}`;
    const rested = performance.now() - this.#requestedAt >= REST_FACTOR * this.#duration;
    const isDue = key !== this.#key && (rested || address !== this.#address);
    if (isDue) await this.#request(address, key, status, signal);
    if (this.#answer === null || !(isDue || this.movesWithTime)) return;
    this.draw(this.#answer, status, new URL(this.#address, BASE).searchParams);
  }

  /**
   * @param {string} address
   * @param {string} key
   * @param {Status} status
   * @param {AbortSignal} signal
   */
  async #request(address, key, status, signal) {
    const start = performance.now();
    try {
      const response = await request(address, signal);
      this.#answer = await response.json();
      if (response.status === 202) key = ""; // not ready: ask again at the next poll
    } catch (error) {
      if (!(error instanceof Refusal) || [401, 404, 503].includes(error.status)) throw error;
      this.#answer = null;
      this.drawNothing(error.message, status);
    }
    this.#key = key;
    this.#address = address;
    this.#requestedAt = performance.now();
    this.#duration = key ? this.#requestedAt - start : 0;
  }
}

/** @type {Record<string, string[]>} */
const DOWNLOADS = {
  status: ["status.json", "status.csv"],
  estimate: ["estimate.json", "estimate.csv", "estimate.parquet", "estimate.png", "tally"],
  sum: ["sum.json", "sum.csv"],
  texts: ["discover.json", "discover.csv", "tally"],
  records: ["records.json", "records.csv", "records.png"],
  difference: ["difference.json", "difference.csv", "difference.png"],
  trend: ["trend.json", "trend.csv", "trend.png"],
  plan: ["plan"],
  progress: ["progress.json", "progress.csv"],
  health: ["health.json", "health.csv"],
};
/** @type {Record<string, string>} */
const FORMATS = { json: "JSON", csv: "CSV", parquet: "Parquet", png: "PNG", tally: "Tally file", plan: "Plan file" };

/** Create the download links of every view. */
export function makeDownloads() {
  for (const place of all(".downloads")) {
    const view = place.dataset.view ?? "";
    const links = DOWNLOADS[view].map((file) => {
      const format = FORMATS[file.slice(file.lastIndexOf(".") + 1)];
      const link = element("a", "download", format);
      link.dataset.file = file;
      link.setAttribute("aria-label", `Download ${view} as ${format}`);
      link.addEventListener("click", download);
      return link;
    });
    place.append(element("span", "soft", "Download "), ...links);
  }
}

/**
 * Point the download links to what is shown, and hide links to files that the collector does not have.
 * @param {(file: string) => string | null} pathOf
 * @param {string} name the beginning of the files' names
 */
export function addressDownloads(pathOf, name) {
  for (const link of all(".download")) {
    const path = pathOf(link.dataset.file ?? "");
    setHidden(link, path === null);
    if (path !== null) setAttributes(link, { href: new URL(path, BASE).href, "data-name": name });
  }
}

/**
 * Fetch the file and save it: a plain link cannot send the token.
 * @param {MouseEvent} event
 */
async function download(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // open a new tab, as with any link
  event.preventDefault();
  const link = /** @type {HTMLAnchorElement} */ (event.currentTarget);
  const { file = "", name } = link.dataset;
  /** @type {Record<string, string>} */
  const endings = { plan: ".plan.json", tally: ".tally" };
  try {
    const content = await (await request(link.href)).blob();
    saveAs(content, `${name}${endings[file] ?? `-${file}`}`);
  } catch (error) {
    showToast(error instanceof Refusal ? `Not available: ${error.message}.` : "Connection lost; try again.");
  }
}

/**
 * @param {Blob} content
 * @param {string} name
 */
function saveAs(content, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
