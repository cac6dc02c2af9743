/** The domain of a plan: labels, a bare size, a range, records or texts (`docs/format.md`, 2.3). */

import { check, DomainError, type ErrorKind, MissingExtraError, ParameterError, PlanError, shown } from "./errors.js";
import { decodeText, encodeText, type Json, type JsonObject } from "./json.js";
import { fields, integer, list } from "./plan_fields.js";
import type { BlockResponse } from "./protocols/block_response.js";
import type { Index, Protocol } from "./protocols/protocol.js";
import { hexadecimal, sha256 } from "./sha256.js";

/** A single value: a label or another text, an index if the domain is a bare size, or a number or date of a range. */
export type SingleValue = string | number | Date;

/** A value to report: a single one, or a record with a value per attribute. */
export type Value = SingleValue | { readonly [attribute: string]: SingleValue | null | undefined };

/** The range of numbers; or of dates, if its unit is "days since 1970-01-01". */
export interface Range {
  readonly low: string;
  readonly high: string;
  /** Whether numbers outside are reported as the nearest end. */
  readonly clamp?: true;
  readonly unit?: string;
}

/** An attribute of records. */
export interface Attribute {
  readonly name: string;
  readonly domain: Domain;
}

/** What an extra knows of a domain: its properties, and the index of a value. */
export interface ReadDomain {
  readonly properties: object;
  readonly indexOf: (value: unknown) => Index;
  /** The choices that make a random value, and the index that they make; by default, attribute by attribute. */
  readonly sizes?: readonly number[];
  readonly joined?: (choices: readonly number[]) => Index;
}

/** Reads some domains. */
export interface DomainReader {
  /** @internal */
  readDomain(record: JsonObject): ReadDomain;
}

/** Reads the domains and protocols of some plans. */
export interface PlanReader extends DomainReader {
  /** @internal */
  readProtocol(
    name: string,
    parameters: JsonObject,
    domain: Domain,
    readResponse: (record: Json | undefined) => BlockResponse,
  ): Protocol;
}

/** Parts of this library that are imported separately. */
export interface Extras<Reader = PlanReader> {
  /** `records` from `sunzi/records`, for plans about numbers, dates and records. */
  records?: Reader;
  /** `texts` from `sunzi/texts`, for plans of texts without a list. */
  texts?: Reader;
}

/** An extra that a plan needs. */
export function needed<Reader>(extras: Extras<Reader>, name: keyof Extras): Reader {
  const reader = extras[name];
  check(reader, `import { ${name} } from "sunzi/${name}" and pass it as an option`, MissingExtraError);
  return reader;
}

/** What to do about a value that cannot be reported: silence would reveal that. */
export const SEND_BACKGROUND = "send reportBackground()";

/** Throw if a value is missing. */
export function checkGiven(value: unknown): void {
  check((value ?? "") !== "", `a value is missing, got ${shown(value)}; fill it in, or ${SEND_BACKGROUND}`, DomainError);
}

/** The values of one plan. */
export class Domain {
  /** The number of values; infinite for texts without a list. */
  declare readonly size: number;
  /** The labels in the order of their indices; undefined for a bare size, and if they are in a file still to be given. */
  declare readonly labels?: readonly string[];
  /** The hash of the label file. */
  declare readonly labels_sha256?: string;
  /** The label of all values outside the domain. */
  declare readonly other?: string;
  /** The range, if values are numbers or dates. */
  declare readonly range?: Range;
  /** The attributes, if values are records. */
  declare readonly attributes?: readonly Attribute[];
  /** The alphabet, if values are texts without a list. */
  declare readonly symbols?: "bytes" | readonly string[];
  /** The token of characters that begin no other token. */
  declare readonly unknown?: string;
  /** The maximum length of a text in tokens. */
  declare readonly longest?: number;
  /** What the application does to texts before it reports them. */
  declare readonly note?: string;
  #positions: Map<unknown, number> | undefined;
  readonly #read: ReadDomain | undefined;

  /**
   * Check a plan's domain. If its labels are in a file, they must still be attached.
   *
   * @param extras read ranges, records and texts, if they are allowed here
   */
  constructor(value: Json | undefined, extras: Extras<DomainReader>) {
    const has = (key: string) => Object.hasOwn(Object(value), key);
    const extra = has("symbols") ? "texts" : (has("range") || has("attributes")) && "records";
    if (extra) {
      this.#read = needed(extras, extra).readDomain(value as JsonObject);
      // Not enumerable, so that copies of a domain of texts remain those of the plan.
      if (has("symbols")) Object.defineProperty(this, "size", { value: Infinity });
      Object.assign(this, this.#read.properties);
      return;
    }
    const record = fields(value, "size", ["labels", "labels_sha256", "other"]);
    const { labels, labels_sha256: digest, other } = record;
    integer(record, "size", 2, 2 ** 30);
    check(typeof (other ?? "") === "string", `other must be a label, got ${shown(other)}`);
    check(labels === undefined || digest === undefined, "labels given twice");
    Object.assign(this, record);
    if (labels !== undefined) {
      const texts = list(record, "labels");
      const wrong = texts.find((label) => typeof label !== "string");
      check(wrong === undefined, `labels must be strings, got ${shown(wrong)}`);
      this.#adopt(texts as string[], PlanError);
    } else if (digest !== undefined) {
      const isDigest = typeof digest === "string" && /^[\da-f]{64}$/.test(digest);
      check(isDigest, `labels_sha256 must be 64 hex digits, got ${shown(digest)}`);
    } else check(other === undefined, `other ${shown(other)} is not a label`);
  }

  /** Read the labels from their file. Throws a DomainError if it is not the plan's. @internal */
  attach(file: Uint8Array | string): void {
    const exact = typeof file === "string" ? file : decodeText(file, DomainError);
    // As editors and spreadsheets save it: with a byte order mark, CR LF, spaces and blank lines.
    const tidy = exact.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n").replace(/[ \t]+(?=\n|$)/g, "").replace(/\n*$/, "\n");
    const digestOf = (each: string) => hexadecimal(sha256(encodeText(each)));
    const wanted = this.labels_sha256 ?? "none";
    const text = digestOf(exact) === wanted ? exact : tidy;
    const digest = digestOf(text);
    check(digest === wanted, `not the plan's label file: its hash is ${digest}, the plan has ${wanted}`, DomainError);
    check(text.endsWith("\n") && !text.includes("\r"), "labels must end with LF", DomainError);
    const labels = text.slice(0, -1).split("\n");
    this.#adopt(labels, DomainError);
    // Not enumerable, so that copies of the domain remain those of the plan.
    Object.defineProperty(this, "labels", { value: labels, configurable: true });
  }

  /** Use these labels if they are valid. */
  #adopt(labels: string[], kind: ErrorKind): void {
    const positions = new Map(labels.map((label, index) => [label, index]));
    const { length } = labels;
    check(length === this.size, `expected ${this.size} labels, got ${length}`, kind);
    const repeated = labels.find((label, index) => positions.get(label) !== index);
    check(repeated === undefined, `label ${shown(repeated)} is repeated`, kind);
    check(this.other === undefined || positions.has(this.other), `other ${shown(this.other)} is not a label`, kind);
    this.#positions = positions;
  }

  /** The choices that make a value: the number of values; of records, that of every attribute. @internal */
  get sizes(): readonly number[] {
    return this.#read?.sizes ?? this.attributes?.map(({ domain }) => domain.size) ?? [this.size];
  }

  /** The index of the value with one choice below each of the {@link sizes}. @internal */
  joined(choices: readonly number[]): Index {
    const { sizes } = this;
    return this.#read?.joined?.(choices) ?? choices.reduce((sum, choice, place) => sum * sizes[place] + choice, 0);
  }

  /**
   * The index of a value; of a text that nobody has listed, its digits. Throws a DomainError if the value is outside,
   * and a ParameterError if the label file is missing.
   */
  index(value: unknown): Index {
    if (this.#read) return this.#read.indexOf(value);
    const positions = this.#positions;
    if (positions) {
      // Texts and missing values are reported as "other". Anything else is likely a mistake.
      const index = positions.get(value) ?? positions.get(typeof (value ?? "") === "string" && this.other);
      if (index === undefined) {
        checkGiven(value);
        throw new DomainError(`label ${shown(value)} is not in the domain; plan with it or an "other", or ${SEND_BACKGROUND}`);
      }
      return index;
    }
    check(!this.labels_sha256, "labels are in a file: pass labelFile", ParameterError);
    const isInside = Number.isInteger(value) && (value as number) >= 0 && (value as number) < this.size;
    if (!isInside) {
      checkGiven(value);
      throw new DomainError(`value ${shown(value)} is not in the domain 0 … ${this.size - 1}; ${SEND_BACKGROUND}`);
    }
    return value as number;
  }
}
