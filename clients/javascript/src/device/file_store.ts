/**
 * A store in a directory, for Node. It is safe across processes and crashes without a lock.
 *
 * Every debit is a file, numbered 1, 2, 3 … within its attribute and never deleted. A process reads all debits,
 * decides, and links its own file under the next number. If another process was faster, the link fails and it starts
 * over. The file of a debit also contains its report until that is acknowledged, so both become durable together.
 * The ids of acknowledged reports stay in these files, so that none is queued twice.
 *
 * Files are written in `unfinished` and linked to their names when they are complete. Leftovers of crashes contain
 * secrets; opening the store removes those older than an hour. A process that paused that long between the two steps
 * finds its file gone, and no report was made.
 */

import { createHash } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

import { check, StoreError } from "../errors.js";
import { GROUPS } from "../groups.js";
import type { DeviceKey } from "../platform.js";
import { randomBytes } from "../randomness.js";
import { freshId } from "../uploading.js";
import { importDeviceKey } from "./memoising.js";
import { charge, type Debit, type QueuedReport, type Store } from "./store.js";

const UNFINISHED_MILLISECONDS = 3_600_000;
const KEY_BYTES = 32;
const ID = /^[\da-f]{32}$/;
const DIGEST = /^[\da-f]{64}$/;

interface Entry {
  debit?: Debit;
  /** The id of its report, unless that was rejected. */
  id?: string;
  report?: Omit<QueuedReport, "body"> & { body: string; queuedAt: number };
}

/** Keeps everything in one directory. Only its owner can read the key. */
export class FileStore implements Store {
  /** The directories whose names are known to be on disk. */
  readonly #durable = new Set<string>();
  /** The files of the reports that this process has seen. */
  readonly #paths = new Map<string, string>();

  constructor(readonly directory: string) {}

  async key(): Promise<DeviceKey> {
    await this.#clean();
    const path = join(this.directory, "key");
    if (!(await exists(path))) await this.#create(path, randomBytes(32));
    const bytes = await readFile(path).catch((error) => {
      throw failure(path, error);
    });
    check(bytes.length === KEY_BYTES, `${path} is damaged: it has ${bytes.length} bytes`, StoreError);
    const key = await importDeviceKey(bytes);
    bytes.fill(0);
    return key;
  }

  async commit(debit: Debit, cap: string, queued: QueuedReport): Promise<string | undefined> {
    const { id } = queued;
    const report = {
      ...queued,
      body: Buffer.from(queued.body).toString("hex"),
      queuedAt: performance.timeOrigin + performance.now(),
    };
    const queuedPath = join(this.directory, "outbox", id);
    for (;;) {
      const entries = await this.#debitEntries(debit.attribute);
      if (entries.some((entry) => entry.id === id) || (await this.#read(queuedPath))) return undefined;
      const cost = charge(debitsIn(entries), debit, cap);
      const path = cost !== "0" ? this.#debitPath(debit.attribute, entries.length + 1) : queuedPath;
      const entry: Entry = cost !== "0" ? { debit, id, report } : { id, report };
      if (await this.#create(path, JSON.stringify(entry))) {
        this.#paths.set(id, path);
        return cost;
      }
    }
  }

  async debits(attribute: string): Promise<Debit[]> {
    return debitsIn(await this.#debitEntries(attribute));
  }

  /** All debits of an attribute. They are numbered without gaps, so a missing one is damage: it would be credited. */
  async #debitEntries(attribute: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    const names = (await list(dirname(this.#debitPath(attribute, 1)))).map((path) => basename(path));
    const last = Math.max(0, ...names.filter((name) => /^[1-9]\d*$/.test(name)).map(Number));
    while (entries.length < last) {
      const path = this.#debitPath(attribute, entries.length + 1);
      const entry = await this.#read(path);
      check(entry?.debit?.attribute === attribute, `${path} is damaged: it is no debit of its attribute`, StoreError);
      entries.push(entry);
    }
    return entries;
  }

  async waiting(): Promise<QueuedReport[]> {
    const reports = (await this.#entries()).flatMap(({ report }) => report ?? []);
    reports.sort((left, right) => left.queuedAt - right.queuedAt);
    return reports.map(({ id, address, body, token, groups }) => {
      return { id, address, body: Uint8Array.from(Buffer.from(body, "hex")), token, groups };
    });
  }

  async settle(id: string, isRejected = false): Promise<void> {
    if (!this.#paths.has(id)) await this.#entries();
    const path = this.#paths.get(id);
    if (!path) return;
    const { debit } = (await this.#read(path)) ?? {};
    if (debit || !isRejected) await this.#replace(path, JSON.stringify({ debit, id: isRejected ? undefined : id }));
    else await rm(path, { force: true });
    this.#paths.delete(id);
  }

  #debitPath(attribute: string, number: number): string {
    return join(this.directory, "debits", createHash("sha256").update(attribute).digest("hex"), String(number));
  }

  /** The contents of all files; also records the paths of all reports. */
  async #entries(): Promise<Entry[]> {
    const found: Entry[] = [];
    const attributes = await list(join(this.directory, "debits"));
    for (const directory of [...attributes, join(this.directory, "outbox")]) {
      for (const path of await list(directory)) {
        const entry = (await this.#read(path)) ?? {};
        if (entry.report) this.#paths.set(entry.report.id, path);
        found.push(entry);
      }
    }
    return found;
  }

  /** Remove the leftovers of crashes. */
  async #clean(): Promise<void> {
    for (const path of await list(join(this.directory, "unfinished"))) {
      const found = await stat(path).catch(() => undefined); // its process may have finished it in the meantime
      if (found && Date.now() - found.mtimeMs > UNFINISHED_MILLISECONDS) await rm(path, { force: true });
    }
  }

  /** The content of a file, checked; undefined if it does not exist. */
  async #read(path: string): Promise<Entry | undefined> {
    try {
      const entry = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path)));
      check(isEntry(entry), "the file is damaged: it is no debit and no report", StoreError);
      return entry;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw failure(path, error);
    }
  }

  /** Create a file atomically and durably; returns false if it exists. */
  async #create(path: string, content: Uint8Array | string): Promise<boolean> {
    const temporary = await this.#write(path, content);
    try {
      await link(temporary, path);
      await flush(dirname(path));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw failure(path, error);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async #replace(path: string, content: string): Promise<void> {
    const temporary = await this.#write(path, content);
    await rename(temporary, path).catch((error) => {
      throw failure(path, error);
    });
    await flush(dirname(path));
  }

  /** Create a directory and its parents durably, even if another process has just created them. */
  async #make(directory: string): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (let made = directory; made !== dirname(made) && !this.#durable.has(made); made = dirname(made)) {
      await flush(dirname(made));
      this.#durable.add(made);
    }
  }

  /** Write a temporary file to disk and return its path. */
  async #write(path: string, content: Uint8Array | string): Promise<string> {
    const unfinished = join(this.directory, "unfinished");
    try {
      for (const directory of [unfinished, dirname(path)]) await this.#make(directory);
      const temporary = join(unfinished, freshId());
      const file = await open(temporary, "wx", 0o600);
      await file.writeFile(content);
      await file.sync();
      await file.close();
      return temporary;
    } catch (error) {
      throw failure(path, error);
    }
  }
}

function failure(path: string, cause: unknown): StoreError {
  return new StoreError(`${path}: ${cause}`, { cause });
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

const isText = (value: unknown, form: RegExp): boolean => typeof value === "string" && form.test(value);

/** Whether this is the content of a file: an id, a debit or a report, each in its form. */
function isEntry(value: unknown): value is Entry {
  const { debit, id, report } = Object(value) as Record<string, Record<string, unknown> | undefined>;
  const checks = [
    id === undefined || isText(id, ID),
    !debit || (isText(debit.attribute, /./s) && isText(debit.entry, DIGEST) && isText(debit.epsilon, /./)),
    !report || (isText(report.id, ID) && isText(report.address, /^https?:\/\/./) && Number.isFinite(report.queuedAt)),
    !report || (isText(report.body, /^(?:[\da-f]{2})+$/) && (!("token" in report) || isText(report.token, DIGEST))),
    !report || !("groups" in report) || isText(report.groups, GROUPS),
    [debit, report].every((part) => part === undefined || Object(part) === part),
  ];
  return checks.every(Boolean) && Boolean(id ?? debit ?? report);
}

function debitsIn(entries: readonly Entry[]): Debit[] {
  return entries.map(({ debit }) => debit as Debit);
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
