/**
 * The storage of a device: its key, the ledger of what each attribute has spent, and the outbox.
 *
 * {@link Store.commit} is atomic and durable: a report is both debited and queued or neither, even with concurrent tabs
 * or processes and across crashes.
 */

import { add, exceeds, type Fraction, fractionText, parseEpsilon } from "../epsilon.js";
import { BudgetError, check, StoreError } from "../errors.js";
import type { DeviceKey } from "../platform.js";

/** The ε spent on one value of one attribute under one plan. `entry` identifies the value without revealing it. */
export interface Debit {
  readonly attribute: string;
  readonly entry: string;
  readonly epsilon: string;
}

/** A report in the outbox. Its address contains its id. */
export interface QueuedReport {
  readonly id: string;
  readonly address: string;
  readonly body: Uint8Array;
  /** The single-use token that it spends. */
  readonly token?: string | undefined;
  /** The public groups that it names, such as `country=DE,release=124`. */
  readonly groups?: string | undefined;
}

/** The interface of stores. */
export interface Store {
  /** The device's key, generated on the first call. */
  key(): Promise<DeviceKey>;
  /**
   * Debit and queue in one durable step; return the cost by {@link charge}. The debit is stored unless the cost is "0".
   * If the cap would be exceeded, nothing is stored. If a report with this id was queued before and not rejected since,
   * nothing is stored and the result is undefined.
   */
  commit(debit: Debit, cap: string, report: QueuedReport): Promise<string | undefined>;
  /** All debits of an attribute. */
  debits(attribute: string): Promise<Debit[]>;
  /** The reports in the outbox, oldest first. */
  waiting(): Promise<QueuedReport[]>;
  /** Delete a report that was acknowledged, or rejected for good: then its id can be used again. */
  settle(id: string, isRejected?: boolean): Promise<void>;
}

const ZERO: Fraction = { numerator: 0n, denominator: 1n };

/** Throws a StoreError if a debit was damaged or edited, so that it is never credited. */
function sum(debits: readonly Debit[]): Fraction {
  return debits.reduce((total, { epsilon }) => {
    const debit = parseEpsilon(epsilon, StoreError);
    check(fractionText(debit) === epsilon, `the ledger is damaged: a debit is ${epsilon}`, StoreError);
    return add(total, debit);
  }, ZERO);
}

/** The sum of debits, such as "3/2". */
export function spentBy(debits: readonly Debit[]): string {
  return fractionText(sum(debits));
}

/**
 * The cost of a debit, given those of the same attribute: "0" if it is among them, since its bytes are the same, else
 * its ε. Throws a BudgetError if that exceeds the cap. Call it inside a store's transaction.
 */
export function charge(debits: readonly Debit[], debit: Debit, cap: string): string {
  if (debits.some(({ entry }) => entry === debit.entry)) return "0";
  check(
    !exceeds(sum([...debits, debit]), parseEpsilon(cap)),
    `"${debit.attribute}" has spent ${spentBy(debits)} of its lifetime epsilon ${cap}; ` +
      `this report would cost ${debit.epsilon}`,
    BudgetError,
  );
  return debit.epsilon;
}
