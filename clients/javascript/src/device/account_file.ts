/** The file of an account in a FileStore: JSON, checked when it is read. */

import { check, StoreError } from "../errors.js";
import { GROUPS } from "../groups.js";
import { encodeText } from "../json.js";
import { hexadecimal } from "../sha256.js";
import type { Account } from "./account.js";

const ID = /^[\da-f]{32}$/;
const DIGEST = /^[\da-f]{64}$/;
const BYTES = /^(?:[\da-f]{2})+$/;
const ADDRESS = /^https?:\/\/./;

/** What the file holds: the account, and the ids of the changes that led to it, the latest one last. */
export interface AccountFile {
  readonly account: Account;
  readonly changes: readonly string[];
}

/** The content of the file. Bytes become their hexadecimal digits. */
export function serialised(account: Account, changes: readonly string[]): Uint8Array {
  const digits = (_: string, value: unknown): unknown => (value instanceof Uint8Array ? hexadecimal(value) : value);
  return encodeText(JSON.stringify({ account, changes }, digits));
}

const bytesOf = (digits: unknown): Uint8Array => Uint8Array.from(Buffer.from(digits as string, "hex"));
const isText = (value: unknown, form: RegExp): boolean => typeof value === "string" && form.test(value);
const isMissing = (value: unknown): boolean => value === undefined;

/** Whether every item of a list is an object whose properties pass the checks. */
function areRecords(value: unknown, checks: Record<string, (value: unknown) => boolean>): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((item) => Object.entries(checks).every(([name, isGood]) => isGood(Object(item)[name])));
}

function areTexts(value: unknown, form: RegExp): boolean {
  return Array.isArray(value) && value.every((item) => isText(item, form));
}

const DEBIT = { entry: (value: unknown) => isText(value, DIGEST), epsilon: (value: unknown) => isText(value, /./) };
const REPORT = {
  id: (value: unknown) => isText(value, ID),
  attribute: (value: unknown) => isText(value, /./s),
  address: (value: unknown) => isText(value, ADDRESS),
  body: (value: unknown) => isText(value, BYTES),
  queuedAt: Number.isFinite,
  several: (value: unknown) => isMissing(value) || value === true,
  token: (value: unknown) => isMissing(value) || isText(value, DIGEST),
  groups: (value: unknown) => isMissing(value) || isText(value, GROUPS),
};

/** Read the file. Throws a StoreError if it is damaged. */
export function parseAccount(content: Uint8Array): AccountFile {
  // biome-ignore lint/suspicious/noExplicitAny: it is checked below
  let found: any;
  try {
    found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch (cause) {
    throw new StoreError("the file is damaged: it is not JSON", { cause }); // without the text, which is secret
  }
  const { account, changes } = Object(found);
  const { attribute, debits, reported, ended, device, latest, outbox } = Object(account);
  const checks = [
    areTexts(changes, ID),
    isText(attribute, /./s),
    areRecords(debits, DEBIT),
    areTexts(reported, ADDRESS),
    areTexts(ended, DIGEST),
    isMissing(device) || isText(device, ID),
    areTexts(Object.keys(Object(latest)), DIGEST) && areTexts(Object.values(Object(latest)), BYTES),
    areRecords(outbox, REPORT) && outbox.every((report: { attribute: string }) => report.attribute === attribute),
  ];
  check(checks.every(Boolean), "the file is damaged: it is no account", StoreError);
  const bodies = Object.entries(latest).map(([fingerprint, body]) => [fingerprint, bytesOf(body)]);
  const reports = outbox.map((report: { body: string }) => ({ ...report, body: bytesOf(report.body) }));
  return { account: { ...account, latest: Object.fromEntries(bodies), outbox: reports }, changes };
}
