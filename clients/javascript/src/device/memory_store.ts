/** A store for tests and long-running programs; it is lost when the program ends. */

import type { DeviceKey } from "../platform.js";
import { freshId } from "../uploading.js";
import { type Account, newAccount, withoutReports } from "./account.js";
import { makeDeviceKey } from "./memoising.js";
import type { Change, Identity, Store } from "./store.js";

/** Keeps everything in memory. An update awaits nothing, so no other can interleave. */
export class MemoryStore implements Store {
  #given: DeviceKey | undefined;
  #identity: Identity | undefined;
  readonly #accounts = new Map<string, Account>();

  /** @param key the key to use when the device is turned on for the first time; by default a random one */
  constructor(key?: DeviceKey) {
    this.#given = key;
  }

  async draw(): Promise<Identity> {
    return { id: freshId(), key: this.#given ?? (await makeDeviceKey()) };
  }

  async identity(): Promise<Identity | undefined> {
    return this.#identity;
  }

  async enable(drawn: Identity): Promise<void> {
    this.#identity ??= drawn;
  }

  async disable(): Promise<void> {
    this.#identity = this.#given = undefined;
    for (const [attribute, account] of this.#accounts) this.#accounts.set(attribute, withoutReports(account));
  }

  async accounts(): Promise<Account[]> {
    return [...this.#accounts.values()];
  }

  async update(attribute: string, change: Change): Promise<void> {
    const account = change(this.#accounts.get(attribute) ?? newAccount(attribute), this.#identity?.id);
    if (account) this.#accounts.set(attribute, account);
  }
}
