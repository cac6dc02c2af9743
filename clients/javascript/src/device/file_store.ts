/**
 * A store in a directory, for Node. It is safe across processes and crashes without a lock.
 *
 * Every attribute has a directory with its account, in versions 1, 2, 3 …; the highest one counts. A process reads it,
 * decides, and links its own file under the next number. If another process was faster, the link fails and it starts
 * over. Earlier versions are removed, but for the name of the last one, by which a missing version is noticed. So a
 * process may link its file under a number that was used before; every version lists its recent changes, and a process
 * that does not find its own in the highest one was too slow and starts over, too.
 *
 * Files are written in `unfinished` and linked to their names when they are complete. Leftovers of crashes contain
 * secrets: turning the device on removes those older than an hour, and turning it off all of them. A process that finds
 * its file gone between the two steps starts over.
 */

import { createHash } from "node:crypto";
import { chmod, link, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { check, StoreError } from "../errors.js";
import { randomBytes } from "../randomness.js";
import { freshId } from "../uploading.js";
import { type Account, newAccount, withoutReports } from "./account.js";
import { parseAccount, serialised } from "./account_file.js";
import { importDeviceKey } from "./memoising.js";
import type { Change, Identity, Store } from "./store.js";

const UNFINISHED_MILLISECONDS = 3_600_000;
const KEY_BYTES = 32;
/** How many changes a version lists. */
const RECENT_CHANGES = 64;
const DIRECTORIES = ["accounts", "unfinished"];

/** Keeps everything in one directory. Only its owner can read it. */
export class FileStore implements Store {
  /** The directories whose names are known to be on disk. */
  readonly #durable = new Set<string>();
  /** The bytes of the keys that were drawn here. */
  readonly #drawn = new WeakMap<Identity, Uint8Array>();
  #isPrivate = false;

  constructor(readonly directory: string) {}

  async draw(): Promise<Identity> {
    const bytes = randomBytes(KEY_BYTES);
    const identity = await identityOf(bytes);
    this.#drawn.set(identity, bytes);
    return identity;
  }

  async identity(): Promise<Identity | undefined> {
    const bytes = await this.#keyBytes();
    return bytes && identityOf(bytes);
  }

  async enable(drawn: Identity): Promise<void> {
    const bytes = this.#drawn.get(drawn);
    check(bytes, "this key was not drawn by this store", StoreError);
    await this.#clean(UNFINISHED_MILLISECONDS);
    while (!(await this.#keyBytes())) await this.#create(this.#keyPath, Buffer.concat([bytes, digestOf(bytes)]));
  }

  async disable(): Promise<void> {
    await guarded(this.#keyPath, () => rm(this.#keyPath, { force: true }));
    await flush(this.directory);
    await this.#clean(-Infinity);
  }

  async accounts(): Promise<Account[]> {
    const found: Account[] = [];
    for (const directory of await list(join(this.directory, "accounts"))) {
      const { account } = await this.#head(directory);
      if (account) found.push(account);
    }
    return found;
  }

  async update(attribute: string, change: Change): Promise<void> {
    const directory = join(this.directory, "accounts", createHash("sha256").update(attribute).digest("hex"));
    for (;;) {
      const { versions, account, changes } = await this.#head(directory);
      // Read after the account: a device that made it is on, or was turned off since.
      const device = await this.#deviceId();
      check(!account || account.attribute === attribute, `${directory} is damaged: it is of another attribute`, StoreError);
      const changed = change(account ?? newAccount(attribute), device);
      if (!changed) return;
      const [own, path] = [freshId(), join(directory, `${(versions.at(-1) ?? 0) + 1}`)];
      const content = serialised(changed, [...changes, own].slice(-RECENT_CHANGES));
      if (!(await this.#create(path, content))) continue;
      const isTooLate = !(await this.#head(directory)).changes.includes(own);
      await guarded(directory, () => (isTooLate ? rm(path, { force: true }) : forget(directory, versions)));
      if (isTooLate) continue;
      // If the device was turned off in the meantime, what it has just made must go.
      if (!changed.device || changed.device === (await this.#deviceId())) return;
      await this.update(attribute, withoutForeignReports);
    }
  }

  get #keyPath(): string {
    return join(this.directory, "key");
  }

  /** The device key; undefined if the device is off. */
  async #keyBytes(): Promise<Uint8Array | undefined> {
    const content = await guarded(this.#keyPath, () => readFile(this.#keyPath).catch(ignoreMissing));
    if (!content) return undefined;
    const bytes = Uint8Array.from(content.subarray(0, KEY_BYTES));
    const isWhole = digestOf(bytes).equals(content.subarray(KEY_BYTES));
    check(isWhole, `${this.#keyPath} is damaged; delete it, and the device is off`, StoreError);
    return bytes;
  }

  async #deviceId(): Promise<string | undefined> {
    const bytes = await this.#keyBytes();
    return bytes && idOf(bytes);
  }

  /** The numbers of all versions of an account, ascending. */
  async #versions(directory: string): Promise<number[]> {
    const names = (await list(directory)).map((path) => basename(path));
    const numbers = names.filter((name) => /^[1-9]\d{0,14}$/.test(name)).map(Number);
    return numbers.sort((left, right) => left - right);
  }

  /** The present version of an account. A version that cannot be read is damage only if it is still the highest one. */
  async #head(directory: string): Promise<{ versions: number[]; account?: Account; changes: readonly string[] }> {
    for (;;) {
      const versions = await this.#versions(directory);
      const last = versions.at(-1);
      if (!last) return { versions, changes: [] };
      const path = join(directory, `${last}`);
      try {
        return { versions, ...parseAccount(await readFile(path)) };
      } catch (error) {
        if ((await this.#versions(directory)).at(-1) === last) throw failure(path, error);
      }
    }
  }

  /** Remove the leftovers of crashes of this age, and all reports of other devices than the present one. */
  async #clean(milliseconds: number): Promise<void> {
    for (const { attribute } of await this.accounts()) await this.update(attribute, withoutForeignReports);
    for (const path of await list(join(this.directory, "unfinished"))) {
      const found = await stat(path).catch(() => undefined); // its process may have finished it in the meantime
      if (found && Date.now() - found.mtimeMs > milliseconds) await rm(path, { force: true });
    }
  }

  /** Create a file atomically and durably; returns false if it exists, or was removed before it was complete. */
  #create(path: string, content: Uint8Array | string): Promise<boolean> {
    return guarded(path, async () => {
      await this.#takePermissions();
      for (const directory of [join(this.directory, "unfinished"), dirname(path)]) await this.#make(directory);
      const temporary = join(this.directory, "unfinished", freshId());
      try {
        const file = await open(temporary, "wx", 0o600);
        await file.writeFile(content);
        await file.sync();
        await file.close();
        await link(temporary, path);
        await flush(dirname(path));
        return true;
      } catch (error) {
        if (["EEXIST", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
        throw error;
      } finally {
        await rm(temporary, { force: true });
      }
    });
  }

  /** Create a directory and its parents durably, even if another process has just created them. */
  async #make(directory: string): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (let made = directory; made !== dirname(made) && !this.#durable.has(made); made = dirname(made)) {
      await flush(dirname(made));
      this.#durable.add(made);
    }
  }

  /** Take the permissions of everybody else from what exists. The directory itself may be shared, as /tmp is. */
  async #takePermissions(): Promise<void> {
    if (this.#isPrivate) return;
    for (const name of ["key", ...DIRECTORIES]) {
      const path = join(this.directory, name);
      const mode = (await stat(path).catch(ignoreMissing))?.mode ?? 0;
      if (mode & 0o077) await chmod(path, mode & 0o700);
    }
    this.#isPrivate = true;
  }
}

/** Run an action on files. Whatever they throw is the cause of a StoreError. */
async function guarded<Result>(path: string, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    throw failure(path, error);
  }
}

/** Empty the latest of these versions, and remove the others. */
async function forget(directory: string, versions: readonly number[]): Promise<void> {
  const paths = versions.map((version) => join(directory, `${version}`));
  for (const path of paths.slice(0, -1)) await rm(path, { force: true });
  for (const path of paths.slice(-1)) await empty(path);
}

/** A change that removes what another device than the present one made. */
function withoutForeignReports(account: Account, present: string | undefined): Account | undefined {
  return account.device === undefined || account.device === present ? undefined : withoutReports(account);
}

async function identityOf(bytes: Uint8Array): Promise<Identity> {
  return { id: idOf(bytes), key: await importDeviceKey(bytes) };
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** The id of a device; nobody can tell the key from it. */
function idOf(bytes: Uint8Array): string {
  return digestOf(bytes).toString("hex", 0, 16);
}

function failure(path: string, cause: unknown): StoreError {
  return new StoreError(`${path}: ${cause instanceof StoreError ? cause.message : cause}`, { cause });
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** Empty a file durably, if it exists. */
async function empty(path: string): Promise<void> {
  const file = await open(path, "r+").catch(ignoreMissing);
  await file?.truncate();
  await file?.sync();
  await file?.close();
}

/** Make the new names in a directory durable, if the platform can. */
async function flush(directory: string): Promise<void> {
  const handle = await open(directory).catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}

/** The paths in a directory; none if it does not exist. */
async function list(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw failure(directory, error);
    return [];
  });
  return names.map((name) => join(directory, name));
}
