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
/** Statuses that are final, unlike 401 (wrong key), 408, 421, 425 and 429 (try later). */
const FINAL = /^4(?!01|08|21|25|29)/;
const MAX_PAUSE_SECONDS = 60;
const REQUEST_SECONDS = 30;
/** The largest answers that are read: to an upload, and a plan. */
const MAX_RECEIPT_BYTES = 2 ** 16;
const MAX_PLAN_BYTES = 2 ** 25;

/** The id of each body that was sent, and the epoch that each URL stood for, so that it is counted once. */
const uploads = new WeakMap<Uint8Array, { id: string; epochs: Map<string, string> }>();

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
    number: envelope.epoch as number,
    isOpen: envelope.open === true,
    url: address,
  };
}

/** The description of the current epoch, with an unchecked plan, and its address. */
async function fetchEnvelope(url: string, options: RequestOptions, deadline?: number): Promise<[JsonObject, string]> {
  url = url.replace(/\/+$/, "");
  if (!/\/v1\/collections\/[^/]+$/.test(url)) url += "/v1/collections/default";
  const [response, text] = await attempt(`${url}/plan`, {}, options, MAX_PLAN_BYTES, deadline);
  let envelope: JsonObject | undefined;
  try {
    envelope = parseJson(text) as JsonObject;
  } catch {
    // The response of another server.
  }
  const isEpoch = response.ok && Number.isInteger(envelope?.epoch) && (envelope?.epoch as number) > 0;
  check(isEpoch && envelope, refusal(response, text), StoreError);
  // The response's address is absolute even if `url` is relative to a page.
  return [envelope, response.url.replace(/plan$/, `epochs/${envelope.epoch}`)];
}

/** The address of an upload to an epoch. */
export function addressOf(epoch: string, plan: Plan, body: Uint8Array): string {
  return `${epoch}/${isBatch(body) ? "batches" : `reports?plan=${plan.fingerprint}`}`;
}

/** What to send for a report or batch: a line with its id, and its token if there is one, then its bytes. */
export function framed({ id, token, body }: { id: string; token?: string | undefined; body: Uint8Array }): Uint8Array {
  const line = encodeText(`${token ? `${id} ${token}` : id}\n`);
  const upload = new Uint8Array(line.length + body.length);
  upload.set(line);
  upload.set(body, line.length);
  return upload;
}

/**
 * Send once. Throws a ReportError if the collector rejects it for good, and a StoreError if it may succeed later. The
 * response, if there was one, is the error's `cause`.
 */
export async function uploadOnce(
  address: string,
  body: Uint8Array,
  options: RequestOptions,
  deadline?: number,
): Promise<Outcome> {
  const init = { method: "POST", body: body as Uint8Array<ArrayBuffer> };
  const [response, text] = await attempt(address, init, options, MAX_RECEIPT_BYTES, deadline);
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

/** Find the epoch if `url` is not one, and upload; retry until patience runs out or the key is wrong. */
export async function uploadPersistently(
  url: string,
  plan: Plan,
  body: Uint8Array,
  options: SendOptions,
): Promise<Outcome> {
  const { id, epochs } = uploads.get(body) ?? { id: freshId(), epochs: new Map<string, string>() };
  uploads.set(body, { id, epochs });
  const deadline = Date.now() + 1000 * (options.patience ?? 60);
  for (let pause = 0.1; ; pause *= 2) {
    try {
      let epoch = /\/epochs\/\d+$/.test(url) ? url : epochs.get(url);
      if (!epoch) {
        const [envelope, address] = await fetchEnvelope(url, options, deadline);
        check(envelope.fingerprint === plan.fingerprint, WRONG_PLAN);
        epoch = address;
        epochs.set(url, epoch);
      }
      const upload = framed({ id, ...options, body });
      return await uploadOnce(addressOf(epoch, plan, body), upload, options, deadline);
    } catch (error) {
      const response = (error as StoreError).cause as Response | undefined;
      pause = Math.min(MAX_PAUSE_SECONDS, Math.max(pause, Number(response?.headers.get("Retry-After")) || 0));
      const wait = jittered(pause);
      if (!(error instanceof StoreError) || response?.status === 401 || Date.now() + wait > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

/** What every request to a collector has in common. */
export function requestInit({ secret }: RequestOptions): RequestInit {
  const headers: HeadersInit = secret ? { Authorization: `Bearer ${secret}` } : {};
  return { headers, credentials: "omit", referrerPolicy: "no-referrer" };
}

/** One request. Throws a StoreError unless there is a complete response of at most `limit` bytes by the deadline. */
async function attempt(
  address: string,
  init: RequestInit,
  options: RequestOptions,
  limit: number,
  deadline = Infinity,
): Promise<[Response, string]> {
  // Even without patience, an attempt gets a second.
  const milliseconds = Math.min(1000 * REQUEST_SECONDS, Math.max(1000, deadline - Date.now()));
  try {
    const signal = AbortSignal.timeout(milliseconds);
    const response = await fetch(address, { ...requestInit(options), ...init, signal });
    return [response, await readText(response, limit)];
  } catch (error) {
    throw new StoreError(`the collector cannot be reached: ${error}`);
  }
}

async function readText({ body }: Response, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  await body?.pipeTo(
    new WritableStream<Uint8Array>({
      write(chunk) {
        limit -= chunk.length;
        check(limit >= 0, "the response is too long"); // which cancels it
        text += decoder.decode(chunk, { stream: true });
      },
    }),
  );
  return text;
}
