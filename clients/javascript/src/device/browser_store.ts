/**
 * A store in the browser's IndexedDB. Its read-write transactions run one after the other, across all tabs of an
 * origin, and are complete only when they are on disk.
 *
 * The device key is a CryptoKey that cannot be read: a script of the page can use it while it runs there, but cannot
 * carry it away.
 */

import { check, StoreError } from "../errors.js";
import { makeDeviceKey } from "./memoising.js";
import { charge, type Debit, type Store, type Waiting } from "./store.js";

const VERSION = 1;

/** Keeps everything in one database of the page's origin. */
export class BrowserStore implements Store {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
    database.onversionchange = () => database.close();
  }

  /** Open the database, or make it. */
  static async open(name = "sunzi"): Promise<BrowserStore> {
    check(globalThis.indexedDB, "IndexedDB is missing here: pass a store of your own", StoreError);
    const request = indexedDB.open(name, VERSION);
    request.onupgradeneeded = () => {
      const database = request.result;
      database.createObjectStore("device");
      database.createObjectStore("debits", { keyPath: ["attribute", "entry"] }).createIndex("attribute", "attribute");
      database.createObjectStore("outbox", { autoIncrement: true }).createIndex("id", "id", { unique: true });
    };
    return new BrowserStore(await result(request));
  }

  async key(): Promise<CryptoKey> {
    // Made before the transaction, which does not wait for anything else; whoever comes first is stored.
    const known = await this.#run(["device"], "readonly", (device) => result<CryptoKey>(device!.get("key")));
    if (known) return known;
    const made = await makeDeviceKey();
    return this.#run(["device"], "readwrite", async (device) => {
      const other = await result<CryptoKey | undefined>(device!.get("key"));
      if (!other) device!.put(made, "key");
      return other ?? made;
    });
  }

  commit(debit: Debit, cap: string, report: Waiting): Promise<string> {
    return this.#run(["debits", "outbox"], "readwrite", async (debits, outbox) => {
      const cost = charge(await result(debits!.index("attribute").getAll(debit.attribute)), debit, cap);
      if (cost !== "0") debits!.add(debit);
      outbox!.add(report);
      return cost;
    });
  }

  debits(attribute: string): Promise<Debit[]> {
    return this.#run(["debits"], "readonly", (debits) => result(debits!.index("attribute").getAll(attribute)));
  }

  waiting(): Promise<Waiting[]> {
    return this.#run(["outbox"], "readonly", (outbox) => result(outbox!.getAll()));
  }

  settle(id: string): Promise<void> {
    return this.#run(["outbox"], "readwrite", async (outbox) => {
      const place = await result(outbox!.index("id").getKey(id));
      if (place !== undefined) outbox!.delete(place);
    });
  }

  /** One transaction, which is undone if anything in it fails and is over only when it is durable. */
  async #run<T>(
    names: string[],
    mode: IDBTransactionMode,
    action: (...stores: IDBObjectStore[]) => Promise<T>,
  ): Promise<T> {
    let transaction: IDBTransaction;
    try {
      transaction = this.#database.transaction(names, mode, { durability: "strict" });
    } catch (error) {
      throw new StoreError(`the browser's database cannot be used: ${String(error)}`);
    }
    const finished = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(new StoreError(`the browser's database failed: ${transaction.error}`));
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
        // It is over already.
      }
      throw error;
    }
  }
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new StoreError(`the browser's database failed: ${request.error}`));
  });
}
