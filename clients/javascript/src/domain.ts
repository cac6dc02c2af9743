/** The domain of a plan: labels or a bare size, with the indices 0 … k−1 (`docs/format.md`, 2.3). */

import { check, DomainError, ParameterError, PlanError, type SunziError } from "./errors.js";
import { decodeText, encodeText, type Json } from "./json.js";
import { fields, integer, list } from "./plan_fields.js";
import { hexadecimal, sha256 } from "./sha256.js";

export const OUTSIDE = "value is outside the domain";

/** A value to report: a label, or an index if the domain is a bare size. */
export type Value = string | number;

/** The values of one plan. */
export class Domain {
  readonly size: number;
  readonly other: string | undefined;
  /** The labels in the order of their indices; undefined for a bare size. */
  labels: readonly string[] | undefined;
  readonly #digest: string | undefined;
  #positions: Map<unknown, number> | undefined;

  /** Check a plan's domain. If its labels are in a file, they must still be attached. */
  constructor(value: Json | undefined) {
    const record = fields(value, "size", ["labels", "labels_sha256", "other"]);
    const { labels, labels_sha256: digest, other } = record;
    this.size = integer(record, "size", 2, 2 ** 30);
    this.other = other as string | undefined;
    check(typeof (other ?? "") === "string", "other must be a label");
    check(labels === undefined || digest === undefined, "labels given twice");
    if (labels !== undefined) {
      const texts = list(record, "labels");
      check(
        texts.every((label) => typeof label === "string"),
        "labels must be strings",
      );
      this.#adopt(texts, PlanError);
    } else if (digest !== undefined) {
      check(typeof digest === "string" && /^[\da-f]{64}$/.test(digest), "labels_sha256 must be 64 hex digits");
      this.#digest = digest;
    } else check(other === undefined, "other must be a label");
  }

  /** Read the labels from their file. Throws a DomainError if it is not the plan's. @internal */
  attach(file: Uint8Array | string): void {
    const text = (typeof file === "string" ? file : decodeText(file, DomainError)).replaceAll("\r\n", "\n");
    check(text.endsWith("\n") && !text.includes("\r"), "labels must end with LF", DomainError);
    check(hexadecimal(sha256(encodeText(text))) === this.#digest, "not the plan's label file", DomainError);
    this.#adopt(text.slice(0, -1).split("\n"), DomainError);
  }

  /** Use these labels if they are valid. */
  #adopt(labels: string[], kind: new (message: string) => SunziError): void {
    const positions = new Map(labels.map((label, index) => [label, index]));
    const isComplete = positions.size === this.size && labels.length === this.size;
    check(isComplete, "labels must be distinct, one per value", kind);
    check(this.other === undefined || positions.has(this.other), "other must be a label", kind);
    this.labels = labels;
    this.#positions = positions;
  }

  /** The index of a value. Throws a DomainError if it is outside, and a ParameterError if the label file is missing. */
  index(value: unknown): number {
    const positions = this.#positions;
    if (positions) {
      const index = positions.get(value) ?? positions.get(this.other);
      check(index !== undefined, OUTSIDE, DomainError);
      return index;
    }
    check(!this.#digest, "labels are in a file: pass labelFile", ParameterError);
    const isInside = Number.isInteger(value) && (value as number) >= 0 && (value as number) < this.size;
    check(isInside, OUTSIDE, DomainError);
    return value as number;
  }
}
