/** Builds dist/: one minified ES module per entry, with shared chunks. `--sizes` prints their sizes. */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";
import { minify } from "terser";

const ENTRIES = ["index", "subsets", "device", "reading", "node"];
const BUNDLING = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  write: false,
  format: "esm",
  target: ["es2022", "chrome107", "firefox104", "safari16.4"],
  external: ["node:*"],
  legalComments: "none",
  logLevel: "warning",
  minify: true,
  // Internal properties, which may be renamed; all others keep their names.
  mangleProps: new RegExp(
    "^(accepts|attach|bits|blockSize|bounds|denominator|epsilonFraction|exponents|fingerprintBytes|high|isField|kind|" +
      "layout|limit|low|multiply|numerator|payloads|points|powers|prepare|randomize|read|respond|row|selectors|" +
      "threshold|truths|variates)$",
  ),
};

/** The output files of a bundle, minified again by terser. */
async function bundle(options) {
  const { outputFiles } = await build({ ...BUNDLING, ...options });
  return Promise.all(
    outputFiles.map(async ({ path, text }) => {
      const { code } = await minify(text, { module: true, ecma: 2022, compress: { passes: 3 } });
      return { path, code };
    }),
  );
}

/** The size in bytes of a program that imports only these entries, minified and gzipped. */
export async function gzippedSize(...entries) {
  const contents = entries.map((entry) => `export * from "./src/${entry}.ts";`).join("\n");
  const [{ code }] = await bundle({ stdin: { contents, resolveDir: import.meta.dirname } });
  return gzipSync(code, { level: 9 }).length;
}

async function printSizes() {
  const programs = {
    "client and sending": ["index"],
    "with subsets": ["index", "subsets"],
    "with memoising, ledger and outbox": ["index", "device"],
    everything: ["index", "subsets", "device"],
  };
  for (const [name, entries] of Object.entries(programs))
    console.log(`${name}: ${await gzippedSize(...entries)} bytes`);
}

async function writeBundles() {
  const entryPoints = ENTRIES.map((name) => `src/${name}.ts`);
  const files = await bundle({ entryPoints, outdir: "dist", splitting: true, chunkNames: "shared-[hash]" });
  await rm("dist", { recursive: true, force: true });
  for (const { path, code } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, `${code}\n`);
  }
}

if (process.argv[1] === import.meta.filename) await (process.argv.includes("--sizes") ? printSizes() : writeBundles());
