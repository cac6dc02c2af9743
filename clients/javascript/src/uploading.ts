/**
 * Uploads over HTTP. Every retry sends the same bytes under the same id, so that an upload is counted once. Only a
 * collector's own response acknowledges or rejects it; responses of proxies and captive portals do neither. Bodies have
 * no content type, and ids and tokens travel in the body, so that cross-origin uploads need no preflight and no proxy
 * logs an id.
 */

import { check, ReportError, StoreError } from "./errors.js";
import { encodeText, type JsonObject, parseJson } from "./json.js";
import { Plan, type PlanOptions } from "./plan.js";
import { randomBytes } from "./randomness.js";
import { hexadecimal } from "./sha256.js";
import { isBatch } from "./wire.js";

/** Whether the collector counted an upload now or had counted it before. */
export type Outcome = "counted" | "repeated";

/** Options of all requests to a collector. */
export interface RequestOptions {
  /** An upload key, sent as a bearer token. */
  secret?: string;
}

/** Options of an upload. */
export interface SendOptions extends RequestOptions {
  /** How many seconds to keep retrying; 60 by default. */
  patience?: number;
  /** A single-use token, if the collector requires one. */
  token?: string;
  /** The upload's id, 32 hexadecimal digits; by default random, and the same whenever this body is sent again. */
  id?: string;
}

/** An epoch of a collection: its plan and address. */
export interface Epoch {
  readonly plan: Plan;
  readonly number: number;
  readonly isOpen: boolean;
  /** Where to send its reports. */
  readonly url: string;
}

const WRONG_PLAN = "the collector has another plan";
/** Statuses that are final, unlike 401 (wrong key), 408, 425 and 429 (try later). */
const FINAL = /^4(?!01|08|25|29)/;
const MAX_PAUSE_SECONDS = 60;
const REQUEST_SECONDS = 30;

/** The ids of bodies that were sent, so that retries use the same id and are counted once. */
const ids = new WeakMap<Uint8Array, string>();

/** A new random upload id. */
export function freshId(): string {
  return hexadecimal(randomBytes(16));
}

/** The current epoch of a collection, with its plan checked. */
export async function fetchEpoch(url: string, options: PlanOptions & RequestOptions = {}): Promise<Epoch> {
  const [envelope, address] = await fetchEnvelope(url, options);
  const plan = new Plan(envelope.plan as JsonObject, options);
  check(plan.fingerprint === envelope.fingerprint, WRONG_PLAN);
  return {
    plan,
    number: Number(envelope.epoch),
    isOpen: envelope.open === true,
    url: address,
  };
}

/** The unchecked description of the current epoch, and its address. */
async function fetchEnvelope(url: string, options: RequestOptions): Promise<[JsonObject, string]> {
  url = url.replace(/\/+$/, "");
  if (!/\/v1\/collections\/[^/]+$/.test(url)) url += "/v1/collections/default";
  const [response, text] = await attempt(`${url}/plan`, {}, options);
  check(response.ok, refusal(response, text), StoreError);
  const envelope = parseJson(text) as JsonObject;
  // The response's address is absolute even if `url` is relative to a page.
  return [envelope, response.url.replace(/plan$/, `epochs/${Number(envelope.epoch)}`)];
}

/** The address of one upload. */
export async function uploadAddress(url: string, plan: Plan, body: Uint8Array, options: SendOptions): Promise<string> {
  if (!/\/epochs\/\d+$/.test(url)) {
    const [envelope, address] = await fetchEnvelope(url, options);
    check(envelope.fingerprint === plan.fingerprint, WRONG_PLAN);
    url = address;
  }
  return addressOf(url, plan, body);
}

/** {@link uploadAddress} within a known epoch. */
export function addressOf(epoch: string, plan: Plan, body: Uint8Array): string {
  return `${epoch}/${isBatch(body) ? "batches" : `reports?plan=${plan.fingerprint}`}`;
}

/** What to send for a report or batch: a line with its id, and its token if there is one, then its bytes. */
export function framed(body: Uint8Array, options: { id?: string; token?: string | undefined } = {}): Uint8Array {
  const id = options.id ?? ids.get(body) ?? freshId();
  ids.set(body, id);
  const line = encodeText(`${options.token ? `${id} ${options.token}` : id}\n`);
  const upload = new Uint8Array(line.length + body.length);
  upload.set(line);
  upload.set(body, line.length);
  return upload;
}

/**
 * Send once. Throws a ReportError if the collector rejects it for good, and a StoreError if it may succeed later. The
 * response, if there was one, is the error's `cause`.
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
  return `the collector returned ${response.status}: ${text.slice(0, 200)}`;
}

/** 50 to 100 % of this many seconds, in milliseconds: random, so that clients do not synchronise. */
export function jittered(seconds: number): number {
  return seconds * (500 + (randomBytes(1)[0] / 255) * 500);
}

/** Retry until it succeeds, patience runs out, or the key is wrong. */
export async function uploadPersistently(address: string, body: Uint8Array, options: SendOptions): Promise<Outcome> {
  const deadline = Date.now() + 1000 * (options.patience ?? 60);
  for (let pause = 0.1; ; pause *= 2) {
    try {
      return await uploadOnce(address, body, options);
    } catch (error) {
      const response = (error as StoreError).cause as Response | undefined;
      pause = Math.min(MAX_PAUSE_SECONDS, Math.max(pause, Number(response?.headers.get("Retry-After")) || 0));
      const wait = jittered(pause);
      if (!(error instanceof StoreError) || response?.status === 401 || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** One request. Throws a StoreError if there is no complete response. */
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
