/**
 * Uploads over HTTP. Every retry sends the same bytes under the same id, so that an upload is counted once. Only a
 * collector's own response acknowledges or rejects it; responses of proxies and captive portals do neither. Bodies have
 * no content type, and ids and tokens travel in the body, so that cross-origin uploads need no preflight and no proxy
 * logs an id.
 */

import { check, type ErrorKind, ReportError, shown, StoreError, type SunziError } from "./errors.js";
import { type Groups, namedGroups } from "./groups.js";
import { encodeText, type JsonObject, parseJson } from "./json.js";
import { Plan, type PlanOptions } from "./plan.js";
import type { Bytes, Signal } from "./platform.js";
import { randomBytes } from "./randomness.js";
import { hexadecimal } from "./sha256.js";
import { isBatch } from "./wire.js";

/** Whether the collector counted an upload now or had counted it before. */
export type Outcome = "counted" | "repeated";

/** Options of all requests to a collector. */
export interface RequestOptions {
  /** An upload key, sent as a bearer token. */
  secret?: string;
  /** Stops waiting when it is aborted; the promise is then rejected with the signal's `reason`, as with `fetch`. */
  signal?: Signal;
}

/** Options of an upload. */
export interface SendOptions extends RequestOptions {
  /** How many seconds to keep retrying; 60 by default. */
  patience?: number;
  /** A single-use token, if the collector requires one. */
  token?: string;
  /**
   * The user's public groups, such as `{country: "DE"}`: at most one value for each attribute that the plan declares.
   * Nothing protects them. With a batch, they apply to all of its reports.
   */
  groups?: Groups;
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

/** Statuses that are final, unlike 401 (wrong key), 405 (another method), 408, 421, 425 and 429 (try later). */
const FINAL = /^4(?!01|05|08|21|25|29)/;
const MAX_PAUSE_SECONDS = 60;
const REQUEST_SECONDS = 30;
/** The largest answers that are read: to an upload, and a plan. */
const MAX_RECEIPT_BYTES = 2 ** 16;
const MAX_PLAN_BYTES = 2 ** 25;

/** The id of each body that was sent, and the epoch that each URL stood for, so that it is counted once. */
const uploads = new WeakMap<Uint8Array, { id: string; epochs: Map<string, string> }>();

/** A new random upload id. @internal */
export function freshId(): string {
  return hexadecimal(randomBytes(16));
}

/** The current epoch of a collection, with its plan checked. */
export async function fetchEpoch(url: string, options: PlanOptions & RequestOptions = {}): Promise<Epoch> {
  const [envelope, address] = await fetchEnvelope(url, options);
  const plan = new Plan(envelope.plan as JsonObject, options);
  checkSame(envelope.fingerprint, plan);
  return {
    plan,
    number: envelope.epoch as number,
    isOpen: envelope.open === true,
    url: address,
  };
}

function checkSame(fingerprint: unknown, plan: Plan): void {
  check(fingerprint === plan.fingerprint, `the collector has plan ${shown(fingerprint)}, not ${plan.fingerprint}`);
}

/** The description of the current epoch, with an unchecked plan, and its address. */
async function fetchEnvelope(url: string, options: RequestOptions, deadline?: number): Promise<[JsonObject, string]> {
  url = url.replace(/\/+$/, "");
  if (!/\/v1\/collections\/[^/]+$/.test(url)) url += "/v1/collections/default";
  const [response, text] = await attempt(`${url}/plan`, {}, options, MAX_PLAN_BYTES, deadline);
  const envelope = objectIn(text, parseJson);
  const isEpoch = response.ok && Number.isInteger(envelope.epoch) && (envelope.epoch as number) > 0;
  if (!isEpoch) throw refusal(StoreError, response, envelope);
  // The response's address is absolute even if `url` is relative to a page.
  return [envelope, response.url.replace(/plan$/, `epochs/${envelope.epoch}`)];
}

/** The JSON object in a text; an empty one if it is not JSON, such as the page of a captive portal. */
function objectIn(text: string, parse: (text: string) => unknown): JsonObject {
  try {
    return Object(parse(text));
  } catch {
    return {};
  }
}

/** The address of an upload to an epoch. @internal */
export function addressOf(epoch: string, plan: Plan, body: Uint8Array): string {
  return `${epoch}/${isBatch(body) ? "batches" : `reports?plan=${plan.fingerprint}`}`;
}

interface Framed {
  id: string;
  token?: string | undefined;
  groups?: string | undefined;
  body: Uint8Array;
}

/** What to send for a report or batch: a line with its id, its token and its groups, then its bytes. @internal */
export function framed({ id, token, groups, body }: Framed): Bytes {
  const line = encodeText(`${[id, token, groups].filter(Boolean).join(" ")}\n`);
  const upload = new Uint8Array(line.length + body.length);
  upload.set(line);
  upload.set(body, line.length);
  return upload;
}

/**
 * Send once. Throws a ReportError if the collector rejects it for good, and a StoreError if it may succeed later. The
 * `cause` of the error is the response, or the failure if there was none.
 *
 * @internal
 */
export async function uploadOnce(
  address: string,
  body: Bytes,
  options: RequestOptions,
  deadline?: number,
): Promise<Outcome> {
  const init = { method: "POST", body };
  const [response, text] = await attempt(address, init, options, MAX_RECEIPT_BYTES, deadline);
  const answer = objectIn(text, JSON.parse);
  const { outcome, error, message } = answer;
  if (response.ok && (outcome === "counted" || outcome === "repeated")) return outcome;
  const isFinal = FINAL.test(`${response.status}`) && error !== undefined && message !== undefined;
  throw refusal(isFinal ? ReportError : StoreError, response, answer);
}

/** The collector's own message is quoted, of printable ASCII; nothing else of a response is. */
function refusal(kind: ErrorKind, response: Response, { message }: JsonObject): SunziError {
  const reason = typeof message === "string" ? `: ${message.replace(/[^ -~]+/g, " ").slice(0, 200)}` : "";
  return new kind(`the collector returned ${response.status}${reason}`, { cause: response });
}

/** 50 to 100 % of this many seconds, in milliseconds: random, so that clients do not synchronise. @internal */
export function jittered(seconds: number): number {
  return seconds * (500 + (randomBytes(1)[0] / 255) * 500);
}

/** Find the epoch if `url` is not one, and upload; retry until patience runs out or the key is wrong. @internal */
export async function uploadPersistently(
  url: string,
  plan: Plan,
  body: Uint8Array,
  options: SendOptions,
): Promise<Outcome> {
  const { id, epochs } = uploads.get(body) ?? { id: freshId(), epochs: new Map<string, string>() };
  uploads.set(body, { id, epochs });
  const groups = namedGroups(plan.groups, options.groups);
  const deadline = Date.now() + 1000 * (options.patience ?? 60);
  for (let pause = 0.1; ; pause *= 2) {
    try {
      let epoch = /\/epochs\/\d+$/.test(url) ? url : epochs.get(url);
      if (!epoch) {
        const [envelope, address] = await fetchEnvelope(url, options, deadline);
        checkSame(envelope.fingerprint, plan);
        epoch = address;
        epochs.set(url, epoch);
      }
      const upload = framed({ id, ...options, groups, body });
      return await uploadOnce(addressOf(epoch, plan, body), upload, options, deadline);
    } catch (error) {
      const response = (error as StoreError | undefined)?.cause as Partial<Response> | undefined;
      pause = Math.min(MAX_PAUSE_SECONDS, Math.max(pause, Number(response?.headers?.get("Retry-After")) || 0));
      const wait = jittered(pause);
      if (!(error instanceof StoreError) || response?.status === 401 || Date.now() + wait > deadline) throw error;
      await limited(wait, options.signal, (ended) => new Promise((resolve) => (ended.onabort = resolve)));
      if (options.signal?.aborted) throw options.signal.reason;
    }
  }
}

/**
 * What every request to a collector has in common. A redirect is an error: `fetch` would turn an upload into a GET, and
 * believe the receipt of another server. Nothing is cached: an ETag that the server chose would be an identifier.
 *
 * @internal
 */
export function requestInit({ secret }: RequestOptions): RequestInit {
  const headers: HeadersInit = secret ? { Authorization: `Bearer ${secret}` } : {};
  return { headers, credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store" };
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
  return limited(milliseconds, options.signal, async (signal) => {
    try {
      const response = await fetch(address, { ...requestInit(options), ...init, signal });
      return [response, await readText(response, limit)];
    } catch (cause) {
      if (options.signal?.aborted) throw options.signal.reason;
      throw new StoreError(`the collector cannot be reached, or redirects: ${cause}`, { cause });
    }
  });
}

/** Run an action with a signal that is aborted with the caller's or after this time. */
async function limited<Result>(
  milliseconds: number,
  caller: Signal | undefined,
  action: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(caller?.reason);
  const expire = (): void => controller.abort(new DOMException("it takes too long", "TimeoutError"));
  const timer = setTimeout(expire, milliseconds);
  caller?.addEventListener("abort", abort);
  if (caller?.aborted) abort();
  try {
    return await action(controller.signal);
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener("abort", abort);
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
