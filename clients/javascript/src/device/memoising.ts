/**
 * A client that sends the same bytes whenever it reports the same value, so that its noise cannot be averaged away.
 *
 * All randomness of a report, including the choice of a modulus, is derived by HMAC-SHA256 from a device key, the
 * attribute, the plan and the value. The name of a collection is not used: renaming a collection gives no fresh noise.
 * Another plan or another value does; each costs its ε once, which a ledger can cap.
 *
 * Under plans that draw a question for every report (the level of an ordered value, a table of a record, a view of a
 * text, the rounding of a number) the device draws it once for all values, and derives the noise from the cell that
 * answers it instead of the value. So values with the same cell give the same bytes and cost ε together.
 *
 * This is local differential privacy against adversaries who cannot break HMAC-SHA256 and do not have the key. With the
 * key and a report, the value can be found by trying all of them.
 */

import { Client, type ClientOptions, type Limits, randomIndex } from "../client.js";
import type { Value } from "../domain.js";
import { check, ParameterError, RandomnessError } from "../errors.js";
import { encodeText } from "../json.js";
import type { Plan, PlanSource } from "../plan.js";
import type { Bytes, DeviceKey } from "../platform.js";
import type { Index, Protocol } from "../protocols/protocol.js";
import { hexadecimal } from "../sha256.js";
import { encodeReport } from "../wire.js";
import { DerivedSource } from "./derived_source.js";

const PURPOSE = "sunzi memoised report, version 1\0";
const QUESTION_PURPOSE = "sunzi memoised question, version 1\0";
const ID_PURPOSE = "sunzi report id, version 1\0";
const ID_BYTES = 16;
const OUTSIDE = 0xffffffff;
const ALGORITHM = { name: "HMAC", hash: "SHA-256", length: 256 };

/** Use Web Crypto's key functions, which exist only on pages served over HTTPS or from this machine. */
async function withKeys<Result>(action: (subtle: SubtleCrypto) => Promise<Result>): Promise<Result> {
  const subtle = globalThis.crypto?.subtle;
  check(subtle, "a device key needs Web Crypto: serve the page over HTTPS", RandomnessError);
  return action(subtle).catch((cause: unknown) => {
    throw new RandomnessError(`Web Crypto failed: ${cause}`, { cause });
  });
}

/** A new device key that cannot be extracted, not even by this page. */
export function makeDeviceKey(): Promise<DeviceKey> {
  return withKeys((subtle) => subtle.generateKey(ALGORITHM, false, ["sign"]));
}

/** A device key from 32 secret bytes that were generated elsewhere. Wipe the bytes afterwards. */
export async function importDeviceKey(bytes: Uint8Array): Promise<DeviceKey> {
  check(bytes.length === 32, `a device key must have 32 bytes, got ${bytes.length}`, ParameterError);
  return withKeys((subtle) => subtle.importKey("raw", bytes as Bytes, ALGORITHM, false, ["sign"]));
}

/**
 * The one spelling of an epoch's URL from which ids are derived: absolute, scheme and host in lower case, without the
 * host's last dot, default port, user name, empty steps and a slash at its end.
 */
export function canonicalEpoch(url: string): string {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url, globalThis.document?.baseURI);
  } catch {
    // It is refused below.
  }
  const path = parsed?.pathname.replace(/\/+/g, "/").replace(/\/$/, "") ?? "";
  const isEpoch = !/[?#]/.test(url) && /\/v1\/collections\/[^/]+\/epochs\/[1-9]\d*$/.test(path);
  const wanted = "an epoch's URL is http(s)://HOST/v1/collections/NAME/epochs/N";
  check(parsed && /^https?:/.test(parsed.protocol) && isEpoch, `${wanted}, got ${url}`, ParameterError);
  // A name that ends with a dot is the same host.
  return `${parsed.protocol}//${parsed.host.replace(/(?<=.)\.(?=:|$)/, "")}${path}`;
}

/** Reports one attribute of one device under one plan. Equal values give equal bytes as long as the key exists. */
export class MemoisingClient {
  readonly plan: Plan;
  readonly attribute: string;
  readonly #key: DeviceKey;
  readonly #limits: Limits;

  /** @param attribute the name of what is measured, the same in all collections that measure it */
  constructor(plan: Plan | PlanSource, key: DeviceKey, attribute: string, options: ClientOptions) {
    check(attribute, "attribute must not be empty", ParameterError);
    this.plan = new Client(plan, options).plan;
    const { domain } = this.plan;
    check(domain.labels || !domain.labels_sha256, "labels are in a file: pass labelFile", ParameterError);
    this.attribute = attribute;
    this.#key = key;
    this.#limits = { maxBits: options.maxBits, maxWork: options.maxWork };
  }

  /** The report of this value. */
  async report(value: Value): Promise<Bytes> {
    return this.reportIndex(this.plan.domain.index(value));
  }

  /** {@link report} for the index of a value; for undefined, the background report of all values outside the domain. */
  async reportIndex(index: Index | undefined): Promise<Bytes> {
    return this.reportDerived(index, await this.derive(index));
  }

  /** {@link reportIndex} with the result of {@link derive}. */
  async reportDerived(index: Index | undefined, secret: Uint8Array): Promise<Bytes> {
    const source = new DerivedSource(secret);
    const { mechanism, epsilon } = this.plan;
    const kept = await this.#keptFor(index);
    if (kept && mechanism.respond) return encodeReport(mechanism.layout, mechanism.respond(...kept, source));
    const client = new Client(this.plan, { ...this.#limits, maxEpsilon: epsilon, source });
    return index === undefined ? client.reportBackground() : client.reportIndex(index);
  }

  /**
   * The key of one report's randomness: HMAC(device key, purpose, fingerprint, attribute, value). Strings are prefixed
   * with their lengths, so that different inputs never give the same message. If the plan draws a question for every
   * report, the numbers of the question and the cell take the place of the value.
   */
  async derive(index: Index | undefined): Promise<Uint8Array> {
    const kept = await this.#keptFor(index);
    if (kept) return this.#secret(PURPOSE, withLength(kept.join(" ")));
    if (index === undefined) return this.#secret(PURPOSE, [length(OUTSIDE)]);
    return this.#secret(PURPOSE, withLength(this.plan.domain.labels?.[index as number] ?? String(index)));
  }

  /**
   * The question that this device keeps, and the cell of a value; undefined if the plan draws no question.
   *
   * @internal
   */
  async kept(): Promise<((index: Index) => [question: number, cell: number]) | undefined> {
    const { mechanism } = this.plan;
    if (!mechanism.drawCell) return undefined;
    const secret = await this.#secret(QUESTION_PURPOSE, []);
    return (index) => (mechanism as Required<Protocol>).drawCell(index, new DerivedSource(secret));
  }

  /** {@link kept} for one value; a random one, which is kept as well, stands for all values outside the domain. */
  async #keptFor(index: Index | undefined): Promise<[number, number] | undefined> {
    const kept = await this.kept();
    index ??= kept && randomIndex(this.plan.domain, new DerivedSource(await this.#secret(PURPOSE, [length(OUTSIDE)])));
    return kept?.(index as Index);
  }

  #secret(purpose: string, value: Uint8Array[]): Promise<Uint8Array> {
    return this.#sign(purpose, this.plan.fingerprintBytes, ...withLength(this.attribute), ...value);
  }

  /**
   * The id of this attribute's report in an epoch, 32 hexadecimal digits: HMAC(device key, purpose, attribute, epoch).
   * It does not depend on the plan or the value, so that a collector counts one report of a device per epoch.
   *
   * @param epoch the epoch's URL; all spellings give the same id
   */
  async reportId(epoch: string): Promise<string> {
    const parts = [...withLength(this.attribute), ...withLength(canonicalEpoch(epoch))];
    return hexadecimal((await this.#sign(ID_PURPOSE, ...parts)).subarray(0, ID_BYTES));
  }

  async #sign(purpose: string, ...parts: Uint8Array[]): Promise<Uint8Array> {
    const message = await new Blob([purpose, ...(parts as Bytes[])]).arrayBuffer();
    return new Uint8Array(await withKeys((subtle) => subtle.sign("HMAC", this.#key, message)));
  }
}

function length(count: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, count, true);
  return bytes;
}

function withLength(text: string): Uint8Array[] {
  const bytes = encodeText(text);
  return [length(bytes.length), bytes];
}
