/**
 * A store in the browser's IndexedDB. Its read-write transactions run one after the other across all tabs of an origin
 * and complete only when they are on disk. Reading creates no database. If the user clears the site's data, the device
 * is off.
 *
 * The device key is a DeviceKey that cannot be extracted: scripts on the page can use it but cannot copy it.
 */

import { check, StoreError, SunziError } from "../errors.js";
import { freshId } from "../uploading.js";
import { type Account, newAccount, withoutReports } from "./account.js";
import { makeDeviceKey } from "./memoising.js";
import type { Change, Identity, Store } from "./store.js";

const VERSION = 1;

/** Keeps everything in one database of the page's origin. */
export class BrowserStore implements Store {
  #database: IDBDatabase | undefined;

  constructor(readonly name = "sunzi") {}

  async draw(): Promise<Identity> {
    return { id: freshId(), key: await makeDeviceKey() };
  }

  identity(): Promise<Identity | undefined> {
    return this.#run("readonly", undefined, (device) => result<Identity | undefined>(device.get("identity")));
  }

  async enable(drawn: Identity): Promise<void> {
    await this.#run("create", undefined, async (device) => {
      // The first one wins.
      if (!(await result(device.getKey("identity")))) device.put(drawn, "identity");
    });
  }

  disable(): Promise<void> {
    return this.#run("readwrite", undefined, async (device, accounts) => {
      device.delete("identity");
      for (const account of await result<Account[]>(accounts.getAll())) accounts.put(withoutReports(account));
    });
  }

  accounts(): Promise<Account[]> {
    return this.#run("readonly", [], (_, accounts) => result<Account[]>(accounts.getAll()));
  }

  update(attribute: string, change: Change): Promise<void> {
    return this.#run("readwrite", undefined, async (device, accounts) => {
      const account = await result<Account | undefined>(accounts.get(attribute));
      const identity = await result<Identity | undefined>(device.get("identity"));
      const changed = change(account ?? newAccount(attribute), identity?.id);
      if (changed) accounts.put(changed);
    });
  }

  /** Open the database. Undefined if it does not exist and is not to be created. */
  async #open(isCreated: boolean): Promise<IDBDatabase | undefined> {
    const request = this.#request();
    let isMissing = false;
    request.onupgradeneeded = () => {
      isMissing = !isCreated;
      if (isMissing) request.transaction?.abort(); // which leaves no database behind
      else {
        request.result.createObjectStore("device");
        request.result.createObjectStore("accounts", { keyPath: "attribute" });
      }
    };
    const database = await result(request).catch((error: Error) => {
      if (isMissing) return undefined;
      throw error;
    });
    if (!database) return undefined;
    const forget = (): void => {
      database.close();
      if (this.#database === database) this.#database = undefined;
    };
    database.onversionchange = forget; // another tab deletes the database
    database.onclose = forget; // the user has cleared the site's data
    this.#database = database;
    return database;
  }

  #request(): IDBOpenDBRequest {
    try {
      check(globalThis.indexedDB, "IndexedDB is missing: pass your own store", StoreError);
      return indexedDB.open(this.name, VERSION);
    } catch (error) {
      throw failure(error); // such as a SecurityError, where storage is not allowed
    }
  }

  /**
   * Run one transaction. It is rolled back if anything fails, and the promise resolves when it is durable. Without a
   * database the result is `otherwise`, unless the mode creates one.
   */
  async #run<T>(
    mode: "readonly" | "readwrite" | "create",
    otherwise: T,
    action: (device: IDBObjectStore, accounts: IDBObjectStore) => Promise<T>,
  ): Promise<T> {
    const isCreated = mode === "create";
    let transaction: IDBTransaction;
    try {
      const database = this.#database ?? (await this.#open(isCreated));
      if (!database) return otherwise;
      const writing = isCreated ? "readwrite" : mode;
      transaction = database.transaction(["device", "accounts"], writing, { durability: "strict" });
    } catch (error) {
      this.#database = undefined; // try with a new connection next time
      throw failure(error);
    }
    const finished = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(failure(transaction.error));
    });
    finished.catch(() => undefined);
    try {
      const outcome = await action(transaction.objectStore("device"), transaction.objectStore("accounts"));
      await finished;
      return outcome;
    } catch (error) {
      try {
        transaction.abort();
      } catch {
        // It has already ended.
      }
      throw failure(error);
    }
  }
}

/** The error to throw if IndexedDB fails. */
function failure(cause: unknown): SunziError {
  return cause instanceof SunziError ? cause : new StoreError(`IndexedDB failed: ${cause}`, { cause });
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(failure(request.error));
  });
}
