/**
 * Uploading to a collector over HTTP. An upload keeps its id and its bytes however often it is sent, so that it is
 * counted once. Only a collector's own words count, as an acknowledgement and as a refusal: what a proxy or a hotel's
 * portal says is neither. Bodies have no content type: then a page of another origin needs no preflight.
 */

import { check, ReportError, StoreError } from "./errors.js";
import { type JsonObject, parseJson } from "./json.js";
import { Plan, type PlanOptions } from "./plan.js";
import { randomBytes } from "./randomness.js";
import { hexadecimal } from "./sha256.js";
import { isBatch } from "./wire.js";

/** What a collector says of an upload: counted now, or counted before. */
export type Outcome = "counted" | "repeated";

/** How to reach a collector. */
export interface RequestOptions {
  /** The key of an uploader, sent as a bearer token. */
  secret?: string;
}

/** How to send. */
export interface SendOptions extends RequestOptions {
  /** For how many seconds to try again what may succeed later; 60 unless told. */
  patience?: number;
  /** A single-use token, where the collector asks for one. */
  token?: string;
  /** The upload's id, 32 hexadecimal digits; unless told, random at first and then that of the same bytes before. */
  id?: string;
}

/** An epoch of a collection: what a client must know to report. */
export interface Epoch {
  readonly plan: Plan;
  readonly number: number;
  readonly isOpen: boolean;
  /** Where its reports go. */
  readonly url: string;
}

const FOREIGN = "the collector names another fingerprint";
/** Refusals that time cannot mend: not those for want of the right key, of speed or of patience. */
const FINAL = /^4(?!01|08|25|29)/;
const LONGEST_WAIT = 60;
const REQUEST_SECONDS = 30;

/** The id of every body that was sent: whoever sends it again sends it under the same one, and it is counted once. */
const ids = new WeakMap<Uint8Array, string>();

/** A fresh id for an upload. */
export function freshId(): string {
  return hexadecimal(randomBytes(16));
}

/** The epoch that is open now in a collection, with its plan checked. */
export async function fetchEpoch(url: string, options: PlanOptions & RequestOptions = {}): Promise<Epoch> {
  const [envelope, address] = await fetchEnvelope(url, options);
  const plan = new Plan(envelope.plan as JsonObject, options);
  check(plan.fingerprint === envelope.fingerprint, FOREIGN);
  return {
    plan,
    number: Number(envelope.epoch),
    isOpen: envelope.open === true,
    url: address,
  };
}

/** What a collector says of its open epoch, unchecked, and the epoch's address. */
async function fetchEnvelope(url: string, options: RequestOptions): Promise<[JsonObject, string]> {
  url = url.replace(/\/+$/, "");
  if (!/\/v1\/collections\/[^/]+$/.test(url)) url += "/v1/collections/default";
  const [response, text] = await attempt(`${url}/plan`, {}, options);
  check(response.ok, refusal(response, text), StoreError);
  const envelope = parseJson(text) as JsonObject;
  // The answer's own address is complete, even if `url` was relative to a page.
  return [envelope, response.url.replace(/plan$/, `epochs/${Number(envelope.epoch)}`)];
}

/** The full address of one upload, its id included. */
export async function uploadAddress(url: string, plan: Plan, body: Uint8Array, options: SendOptions): Promise<string> {
  if (!/\/epochs\/\d+$/.test(url)) {
    const [envelope, address] = await fetchEnvelope(url, options);
    check(envelope.fingerprint === plan.fingerprint, FOREIGN);
    url = address;
  }
  return addressOf(url, plan, body, options);
}

/** {@link uploadAddress} within a known epoch. */
export function addressOf(epoch: string, plan: Plan, body: Uint8Array, options: SendOptions = {}): string {
  const id = options.id ?? ids.get(body) ?? freshId();
  ids.set(body, id);
  const query = new URLSearchParams({ id });
  const kind = isBatch(body) ? "batches" : "reports";
  if (kind === "reports") query.set("plan", plan.fingerprint);
  if (options.token) query.set("token", options.token);
  return `${epoch}/${kind}?${query}`;
}

/**
 * Send once. A ReportError: the collector refused it for good. A StoreError: it may succeed later, since there was no
 * answer, or this one (its `cause`), which asks for patience or another key, or is not a collector's.
 */
export async function uploadOnce(address: string, body: Uint8Array, options: RequestOptions): Promise<Outcome> {
  const init = { method: "POST", body: body as Uint8Array<ArrayBuffer> };
  const [response, text] = await attempt(address, init, options);
  const receipt = response.ok && /^{"outcome":"(counted|repeated)"/.exec(text);
  if (receipt) return receipt[1] as Outcome;
  const isFinal = FINAL.test(`${response.status}`) && /^{"error":.*"message":/.test(text);
  throw new (isFinal ? ReportError : StoreError)(refusal(response, text), { cause: response });
}

function refusal(response: Response, text: string): string {
  return `the collector answers ${response.status}: ${text.slice(0, 200)}`;
}

/** This many seconds in milliseconds, half of them random: so that clients do not come in step. */
export function partlyRandom(seconds: number): number {
  return seconds * (500 + (randomBytes(1)[0]! / 255) * 500);
}

/** Send again and again while it may still succeed without another key. */
export async function uploadPersistently(address: string, body: Uint8Array, options: SendOptions): Promise<Outcome> {
  const deadline = Date.now() + 1000 * (options.patience ?? 60);
  for (let pause = 0.1; ; pause *= 2) {
    try {
      return await uploadOnce(address, body, options);
    } catch (error) {
      const response = (error as StoreError).cause as Response | undefined;
      pause = Math.min(LONGEST_WAIT, Math.max(pause, Number(response?.headers.get("Retry-After")) || 0));
      const wait = partlyRandom(pause);
      if (!(error instanceof StoreError) || response?.status === 401 || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** One request; a StoreError if there is no answer, or not all of it. */
async function attempt(address: string, init: RequestInit, options: RequestOptions): Promise<[Response, string]> {
  const headers = options.secret ? { Authorization: `Bearer ${options.secret}` } : {};
  try {
    const response = await fetch(address, {
      ...init,
      headers,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(1000 * REQUEST_SECONDS),
    });
    return [response, await response.text()];
  } catch (error) {
    throw new StoreError(`the collector cannot be reached: ${error}`);
  }
}
