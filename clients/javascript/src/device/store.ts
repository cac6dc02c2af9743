/**
 * What a device keeps: its key, the ledger of what each attribute has spent, and the reports still to be sent.
 *
 * A store makes {@link Store.commit} one durable step: a report is debited and queued, or neither, whatever other tabs
 * or processes do and whenever the machine stops.
 */

import { add, exceeds, type Fraction, fractionText, parseEpsilon } from "../epsilon.js";
import { BudgetError, check } from "../errors.js";

/** What one value of one attribute has cost under one plan; `entry` tells it apart without telling what it is. */
export interface Debit {
  readonly attribute: string;
  readonly entry: string;
  readonly epsilon: string;
}

/** A report to be sent: the same bytes to the same address, which holds its id, until it is acknowledged. */
export interface Waiting {
  readonly id: string;
  readonly address: string;
  readonly body: Uint8Array;
}

/** Where a device keeps what it must not forget. */
export interface Store {
  /** The device's key, made when it is first asked for. */
  key(): Promise<CryptoKey>;
  /**
   * Debit and queue in one durable step; return what {@link charge} says that it costs. The debit is kept unless that is
   * "0". Nothing happens if the cap would be passed.
   */
  commit(debit: Debit, cap: string, report: Waiting): Promise<string>;
  /** All debits of an attribute. */
  debits(attribute: string): Promise<Debit[]>;
  /** The reports that wait, oldest first. */
  waiting(): Promise<Waiting[]>;
  /** Forget a report that was acknowledged, or refused for good. */
  settle(id: string): Promise<void>;
}

const NOTHING: Fraction = { numerator: 0n, denominator: 1n };

function sum(debits: readonly Debit[]): Fraction {
  return debits.reduce((total, { epsilon }) => add(total, parseEpsilon(epsilon)), NOTHING);
}

/** The sum of debits, such as "3/2". */
export function spentBy(debits: readonly Debit[]): string {
  return fractionText(sum(debits));
}

/**
 * What a debit costs beside those of the same attribute: "0" if it is among them, since its bytes are the same;
 * else its ε, or a BudgetError. To be called inside a store's transaction.
 */
export function charge(debits: readonly Debit[], debit: Debit, cap: string): string {
  if (debits.some(({ entry }) => entry === debit.entry)) return "0";
  check(
    !exceeds(sum([...debits, debit]), parseEpsilon(cap)),
    `"${debit.attribute}" has spent epsilon ${spentBy(debits)} of ${cap} in its lifetime; ` +
      `this report would cost ${debit.epsilon}`,
    BudgetError,
  );
  return debit.epsilon;
}
