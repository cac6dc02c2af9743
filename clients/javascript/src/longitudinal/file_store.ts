/**
 * A store in a directory, for Node: safe among processes and crashes without a lock.
 *
 * Every debit is a file of its own, numbered 1, 2, 3 … within its attribute and never deleted. A process reads all
 * debits, decides, and links its own under the next number, which fails if another was faster: then it reads again. The
 * file of a debit holds its report too, until that is acknowledged, so both become durable in the same instant.
 */

import { createHash } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

import { StoreError } from "../errors.js";
import { randomBytes } from "../randomness.js";
import { freshId } from "../uploading.js";
import { importDeviceKey } from "./memoising.js";
import { charge, type Debit, type Store, type Waiting } from "./store.js";

interface Entry {
  debit?: Debit;
  report?: { id: string; address: string; body: string; queuedAt: number };
}

/** Keeps everything in one directory, whose key only its owner can read. */
export class FileStore implements Store {
  constructor(readonly directory: string) {}

  async key(): Promise<CryptoKey> {
    const path = join(this.directory, "key");
    let bytes = await readFile(path).catch(() => undefined);
    if (!bytes) {
      await this.#create(path, randomBytes(32));
      bytes = await readFile(path);
    }
    const key = await importDeviceKey(bytes);
    bytes.fill(0);
    return key;
  }

  async commit(debit: Debit, cap: string, waiting: Waiting): Promise<string> {
    const { id, address } = waiting;
    const report = {
      id,
      address,
      body: Buffer.from(waiting.body).toString("hex"),
      queuedAt: performance.timeOrigin + performance.now(),
    };
    for (;;) {
      const debits = await this.debits(debit.attribute);
      const cost = charge(debits, debit, cap);
      const path =
        cost !== "0" ? this.#debitPath(debit.attribute, debits.length + 1) : join(this.directory, "outbox", id);
      const entry: Entry = cost !== "0" ? { debit, report } : { report };
      if (await this.#create(path, JSON.stringify(entry))) return cost;
    }
  }

  async debits(attribute: string): Promise<Debit[]> {
    const debits: Debit[] = [];
    for (;;) {
      const entry = await this.#read(this.#debitPath(attribute, debits.length + 1));
      if (!entry?.debit) return debits;
      debits.push(entry.debit);
    }
  }

  async waiting(): Promise<Waiting[]> {
    const reports = (await this.#entries()).flatMap(([, { report }]) => report ?? []);
    reports.sort((left, right) => left.queuedAt - right.queuedAt);
    return reports.map(({ id, address, body }) => ({ id, address, body: Uint8Array.from(Buffer.from(body, "hex")) }));
  }

  async settle(id: string): Promise<void> {
    for (const [path, { debit, report }] of await this.#entries()) {
      if (report?.id !== id) continue;
      if (debit) await this.#replace(path, JSON.stringify({ debit }));
      else await rm(path, { force: true });
    }
  }

  #debitPath(attribute: string, number: number): string {
    return join(this.directory, "debits", createHash("sha256").update(attribute).digest("hex"), String(number));
  }

  async #entries(): Promise<[string, Entry][]> {
    const found: [string, Entry][] = [];
    const attributes = await list(join(this.directory, "debits"));
    for (const directory of [...attributes, join(this.directory, "outbox")]) {
      for (const path of await list(directory)) found.push([path, (await this.#read(path)) ?? {}]);
    }
    return found;
  }

  async #read(path: string): Promise<Entry | undefined> {
    try {
      return JSON.parse(await readFile(path, "utf8"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new StoreError(`${path}: ${String(error)}`);
    }
  }

  /** Write a file that does not exist yet, all of it or nothing, durably; false if it exists. */
  async #create(path: string, content: Uint8Array | string): Promise<boolean> {
    const temporary = await this.#write(path, content);
    try {
      await link(temporary, path);
      await flush(dirname(path));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw new StoreError(`${path}: ${String(error)}`);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async #replace(path: string, content: string): Promise<void> {
    await rename(await this.#write(path, content), path);
    await flush(dirname(path));
  }

  /** A temporary file with this content, on disk. */
  async #write(path: string, content: Uint8Array | string): Promise<string> {
    const unfinished = join(this.directory, "unfinished");
    try {
      for (const directory of [dirname(path), unfinished]) await mkdir(directory, { recursive: true, mode: 0o700 });
      const temporary = join(unfinished, freshId());
      const file = await open(temporary, "wx", 0o600);
      await file.writeFile(content);
      await file.sync();
      await file.close();
      return temporary;
    } catch (error) {
      throw new StoreError(`${path}: ${String(error)}`);
    }
  }
}

/** Make a directory's new names durable, where the platform can. */
async function flush(directory: string): Promise<void> {
  const handle = await open(directory).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

/** The paths in a directory; none if it is not there. */
async function list(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.map((name) => join(directory, name));
}
