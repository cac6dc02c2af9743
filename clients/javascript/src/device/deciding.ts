/**
 * What happens when an attribute is to report: one decision for all stores, which run it inside a transaction.
 *
 * When the budget ends, the default is to repeat the latest report for good, whatever the value is: to choose a stored
 * report by value would go on revealing changes. "background" lets every later value send a report that was paid for in
 * advance and says nothing about it. "refuse" sends nothing more, which reveals when the budget ended.
 */

import { exceeds, parseEpsilon } from "../epsilon.js";
import { BudgetError, check } from "../errors.js";
import { type Account, type Debit, epochOf, type QueuedReport, spentBy, sumOf } from "./account.js";

/** What a device sends once the budget of an attribute has ended. */
export type WhenSpent = "keep" | "background" | "refuse";

/**
 * What became of a report: it is in the outbox ("queued"; or after the end of the budget "kept" or "background"), the
 * attribute had reported in this epoch ("repeated"), the budget has ended ("silent"), or the device is off ("off").
 */
export type QueueOutcome = "queued" | "repeated" | "kept" | "background" | "silent" | "off";

/** A report that could be queued, and what it costs unless it was paid before. */
export interface Choice {
  readonly body: Uint8Array;
  readonly debit: Debit;
}

/** All that the decision depends on besides the account. */
export interface Request {
  /** The device whose key made the reports. */
  readonly device: string;
  readonly fingerprint: string;
  readonly cap: string;
  readonly whenSpent: WhenSpent;
  /** The report of the value; that of the background if the value is outside the domain. */
  readonly own: Choice;
  /** The report that says nothing about the value; needed for "background". */
  readonly background?: Choice | undefined;
  /** The report to queue, but for its bytes. */
  readonly report: Omit<QueuedReport, "body">;
}

/** What became of the report, the account afterwards if it changed, and the debits that were made. */
export interface Decision {
  readonly outcome: QueueOutcome;
  readonly account?: Account;
  readonly report?: QueuedReport;
  readonly debits: readonly Debit[];
}

/** The debits that have not been made. */
function unpaid(account: Account, choices: readonly (Choice | undefined)[]): Debit[] {
  const known = new Map(account.debits.map((debit) => [debit.entry, debit]));
  const missing: Debit[] = [];
  for (const choice of choices) {
    if (!choice || known.has(choice.debit.entry)) continue;
    known.set(choice.debit.entry, choice.debit);
    missing.push(choice.debit);
  }
  return missing;
}

/** Decide. `device` is the one that the store holds at this moment, undefined while it is off. */
export function decide(account: Account, request: Request, device: string | undefined): Decision {
  if (device !== request.device) return { outcome: "off", debits: [] };
  // Reports of an earlier device are void.
  if (account.device !== device) account = { ...account, device, latest: {}, outbox: [] };
  const { fingerprint, whenSpent, own, background, report } = request;
  const epoch = epochOf(report.address);
  if (!report.several && account.reported.includes(epoch)) return { outcome: "repeated", debits: [] };
  const latest = Object.hasOwn(account.latest, fingerprint) ? account.latest[fingerprint] : undefined;

  const queue = (outcome: QueueOutcome, body: Uint8Array, debits: readonly Debit[], ended = account.ended): Decision => {
    const queued: QueuedReport = { ...report, body };
    const changed: Account = {
      ...account,
      debits: [...account.debits, ...debits],
      reported: report.several ? account.reported : [...account.reported, epoch],
      ended,
      latest: { ...account.latest, [fingerprint]: body },
      outbox: [...account.outbox, queued],
    };
    return { outcome, account: changed, report: queued, debits };
  };
  const keep = (ended: readonly string[]): Decision => {
    if (whenSpent === "keep" && latest) return queue("kept", latest, [], ended);
    return { outcome: "silent", account: { ...account, ended }, debits: [] };
  };
  const canPay = (debits: readonly Debit[]): boolean =>
    !debits.length || !exceeds(sumOf([...account.debits, ...debits]), parseEpsilon(request.cap));

  if (whenSpent !== "background" && account.ended.includes(fingerprint)) return keep(account.ended);
  const debits = unpaid(account, [whenSpent === "background" ? background : undefined, own]);
  if (canPay(debits)) return queue("queued", own.body, debits);
  const costs = `"${account.attribute}" may spend ${request.cap}, its first report costs ${spentBy(debits)}`;
  check(account.debits.length, `${costs}: raise lifetimeEpsilon or its cap`, BudgetError);
  if (whenSpent !== "background" || !background) return keep([...account.ended, fingerprint]);
  const aside = unpaid(account, [background]);
  return canPay(aside) ? queue("background", background.body, aside) : { outcome: "silent", debits: [] };
}
