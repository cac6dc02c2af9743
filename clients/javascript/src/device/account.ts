/** What a device keeps of one attribute: what it spent, where it reported, and the reports to send and to repeat. */

import { add, type Fraction, fractionText, parseEpsilon } from "../epsilon.js";
import { check, shown, StoreError } from "../errors.js";

/** The ε spent on one report. `entry` identifies the value and its plan without revealing them. */
export interface Debit {
  readonly entry: string;
  readonly epsilon: string;
}

/** A report in the outbox. */
export interface QueuedReport {
  readonly id: string;
  readonly attribute: string;
  readonly address: string;
  readonly body: Uint8Array;
  /** When it was queued, in milliseconds since 1970. */
  readonly queuedAt: number;
  /** Whether it is one of several of its epoch, so that it is not the one that `reported` holds. */
  readonly several?: true | undefined;
  /** The single-use token that it spends. */
  readonly token?: string | undefined;
  /** The public groups that it names, such as `country=DE,release=124`. */
  readonly groups?: string | undefined;
}

/** The state of one attribute. Stores read and write it as a whole. */
export interface Account {
  readonly attribute: string;
  readonly debits: readonly Debit[];
  /** The canonical addresses of the epochs that have a report. */
  readonly reported: readonly string[];
  /** The fingerprints of the plans whose budget has ended for good. */
  readonly ended: readonly string[];
  /** The device that made the following; they are void for any other, which has another key. */
  readonly device?: string | undefined;
  /** The latest report under each plan, by fingerprint. */
  readonly latest: Readonly<Record<string, Uint8Array>>;
  /** The reports to send, oldest first. */
  readonly outbox: readonly QueuedReport[];
}

const ZERO: Fraction = { numerator: 0n, denominator: 1n };

/** The account of an attribute that has never reported. */
export function newAccount(attribute: string): Account {
  return { attribute, debits: [], reported: [], ended: [], latest: {}, outbox: [] };
}

/** What is kept when a device is turned off: nothing that it could send, and nothing that was made with its key. */
export function withoutReports(account: Account): Account {
  return { ...account, device: undefined, latest: {}, outbox: [] };
}

/**
 * Without a report that was acknowledged, or rejected for good: then its epoch may get another one. Undefined if the
 * report is no longer in the outbox.
 */
export function settled(account: Account, report: QueuedReport, isRejected: boolean): Account | undefined {
  // A later report of the same epoch has the same id.
  const outbox = account.outbox.filter(({ id, queuedAt }) => id !== report.id || queuedAt !== report.queuedAt);
  if (outbox.length === account.outbox.length) return undefined;
  const epoch = epochOf(report.address);
  const isFree = isRejected && !report.several;
  return { ...account, outbox, reported: account.reported.filter((each) => !isFree || each !== epoch) };
}

/** The epoch of a report, by its address. */
export function epochOf(address: string): string {
  return address.replace(/\/[^/]*$/, "");
}

/** The sum of debits. Throws a StoreError if one was damaged or edited, so that it is never credited. */
export function sumOf(debits: readonly Debit[]): Fraction {
  return debits.reduce((total, { epsilon }) => {
    const debit = parseEpsilon(epsilon, StoreError);
    check(fractionText(debit) === epsilon, `the ledger is damaged: a debit is ${shown(epsilon)}`, StoreError);
    return add(total, debit);
  }, ZERO);
}

/** The sum of debits, such as "3/2". */
export function spentBy(debits: readonly Debit[]): string {
  return fractionText(sumOf(debits));
}
