/** One directory for the temporary files of all tests, removed at the end. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export default function setup(): () => void {
  const directory = mkdtempSync(join(tmpdir(), "sunzi-tests-"));
  process.env.TMPDIR = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
