/**
 * A store in the browser's IndexedDB. Its read-write transactions run one after the other across all tabs of an origin
 * and complete only when they are on disk. If the user clears the site's data, the next transaction opens a new, empty
 * database.
 *
 * The device key is a DeviceKey that cannot be extracted: scripts on the page can use it but cannot copy it.
 */

import { check, StoreError, SunziError } from "../errors.js";
import type { DeviceKey } from "../platform.js";
import { makeDeviceKey } from "./memoising.js";
import { charge, type Debit, type QueuedReport, type Store } from "./store.js";

const VERSION = 2;

/** Keeps everything in one database of the page's origin. */
export class BrowserStore implements Store {
  #database: IDBDatabase | undefined;

  private constructor(readonly name: string) {}

  /** Open the database, or create it. */
  static async open(name = "sunzi"): Promise<BrowserStore> {
    const store = new BrowserStore(name);
    await store.#open();
    return store;
  }

  async #open(): Promise<IDBDatabase> {
    const request = this.#request();
    request.onupgradeneeded = ({ oldVersion }) => {
      const database = request.result;
      database.createObjectStore("reported");
      if (oldVersion) return;
      database.createObjectStore("device");
      database.createObjectStore("debits", { keyPath: ["attribute", "entry"] }).createIndex("attribute", "attribute");
      database.createObjectStore("outbox", { autoIncrement: true }).createIndex("id", "id", { unique: true });
    };
    const database = await result(request);
    const forget = (): void => {
      database.close();
      if (this.#database === database) this.#database = undefined;
    };
    database.onversionchange = forget; // another tab has a newer version, or deletes the database
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

  async key(): Promise<DeviceKey> {
    // Create the key before the transaction, which cannot await anything else; the first one stored wins.
    const known = await this.#run(["device"], "readonly", (device) => result<DeviceKey>(device.get("key")));
    if (known) return known;
    const made = await makeDeviceKey();
    return this.#run(["device"], "readwrite", async (device) => {
      const other = await result<DeviceKey | undefined>(device.get("key"));
      if (!other) device.put(made, "key");
      return other ?? made;
    });
  }

  commit(debit: Debit, cap: string, report: QueuedReport): Promise<string | undefined> {
    return this.#run(["debits", "outbox", "reported"], "readwrite", async (debits, outbox, reported) => {
      if (await result(reported.getKey(report.id))) return undefined;
      const cost = charge(await result(debits.index("attribute").getAll(debit.attribute)), debit, cap);
      if (cost !== "0") debits.add(debit);
      outbox.add(report);
      reported.add(true, report.id);
      return cost;
    });
  }

  debits(attribute: string): Promise<Debit[]> {
    return this.#run(["debits"], "readonly", (debits) => result(debits.index("attribute").getAll(attribute)));
  }

  waiting(): Promise<QueuedReport[]> {
    return this.#run(["outbox"], "readonly", (outbox) => result(outbox.getAll()));
  }

  settle(id: string, isRejected = false): Promise<void> {
    return this.#run(["outbox", "reported"], "readwrite", async (outbox, reported) => {
      const place = await result(outbox.index("id").getKey(id));
      if (isRejected) reported.delete(id);
      if (place !== undefined) outbox.delete(place);
    });
  }

  /** Run one transaction. It is rolled back if anything fails, and the promise resolves when it is durable. */
  async #run<T>(
    names: string[],
    mode: IDBTransactionMode,
    action: (...stores: IDBObjectStore[]) => Promise<T>,
  ): Promise<T> {
    let transaction: IDBTransaction;
    try {
      const database = this.#database ?? (await this.#open());
      transaction = database.transaction(names, mode, { durability: "strict" });
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
      const outcome = await action(...names.map((name) => transaction.objectStore(name)));
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
