/** A store for tests and long-running programs; it is lost when the program ends. */

import type { DeviceKey } from "../platform.js";
import { makeDeviceKey } from "./memoising.js";
import { charge, type Debit, type QueuedReport, type Store } from "./store.js";

/** Keeps everything in memory. A commit awaits nothing, so no other can interleave. */
export class MemoryStore implements Store {
  #key: Promise<DeviceKey> | undefined;
  readonly #debits: Debit[] = [];
  readonly #outbox = new Map<string, QueuedReport>();
  readonly #reported = new Set<string>();

  constructor(key?: DeviceKey) {
    if (key) this.#key = Promise.resolve(key);
  }

  key(): Promise<DeviceKey> {
    this.#key ??= makeDeviceKey();
    return this.#key;
  }

  async commit(debit: Debit, cap: string, report: QueuedReport): Promise<string | undefined> {
    if (this.#reported.has(report.id)) return undefined;
    const cost = charge(this.#of(debit.attribute), debit, cap);
    if (cost !== "0") this.#debits.push(debit);
    this.#reported.add(report.id);
    this.#outbox.set(report.id, report);
    return cost;
  }

  async debits(attribute: string): Promise<Debit[]> {
    return this.#of(attribute);
  }

  #of(attribute: string): Debit[] {
    return this.#debits.filter((debit) => debit.attribute === attribute);
  }

  async waiting(): Promise<QueuedReport[]> {
    return [...this.#outbox.values()];
  }

  async settle(id: string, isRejected = false): Promise<void> {
    this.#outbox.delete(id);
    if (isRejected) this.#reported.delete(id);
  }
}
