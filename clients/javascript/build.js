/**
 * Builds dist/: one minified ES module per entry, with shared chunks, and `sunzi.script.js` for script tags, all with
 * source maps. `--sizes` prints their sizes.
 */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";
import { minify } from "terser";

const ENTRIES = ["index", "subsets", "records", "texts", "device", "reading", "node"];
/** What `sunzi.script.js` defines, as properties of one global `sunzi`. */
const SCRIPT_ENTRIES = ["index", "subsets", "records", "texts", "device"];
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
  sourcemap: "external",
  outdir: "dist",
  // Internal properties, which may be renamed; all others keep their names.
  mangleProps: new RegExp(
    "^(attach|bits|blockSize|bounds|cellOf|cells|denominator|drawCell|epsilonFraction|exponents|fingerprintBytes|high|isField|joined|kind|" +
      "layout|limit|low|mechanism|members|multiply|numerator|ownWords|payloads|points|powers|prepare|properties|randomize|read|readDomain|readProtocol|respond|row|selectors|" +
      "threshold|truths|variates|work)$",
  ),
};

/** The scripts of a bundle, minified again by terser, with their source maps. */
async function bundle(options) {
  const { outputFiles } = await build({ ...BUNDLING, ...options });
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]));
  const scripts = [...texts].filter(([path]) => path.endsWith(".js"));
  return Promise.all(
    scripts.map(async ([path, text]) => {
      const module = options.format !== "iife";
      const sourceMap = { content: texts.get(`${path}.map`), includeSources: true, url: `${basename(path)}.map` };
      // Arrows are unsafe only for function expressions that are called with `new`; there are none.
      const compress = { passes: 3, unsafe_arrows: true };
      const { code, map } = await minify(text, { module, ecma: 2022, compress, sourceMap });
      return { path, code, map };
    }),
  );
}

/** A module that exports everything from these entries. */
function reexporting(entries) {
  const contents = entries.map((entry) => `export * from "./src/${entry}.ts";`).join("\n");
  return { contents, resolveDir: import.meta.dirname };
}

/** The size in bytes of a program that imports only these entries, minified and gzipped. */
export async function gzippedSize(...entries) {
  const [{ code }] = await bundle({ stdin: reexporting(entries) });
  return gzipSync(code.replace(/\n\/\/# sourceMappingURL=.*/, ""), { level: 9 }).length;
}

async function printSizes() {
  const programs = {
    "client and sending": ["index"],
    "with subsets": ["index", "subsets"],
    "with records": ["index", "records"],
    "with texts": ["index", "texts"],
    "with records and texts": ["index", "records", "texts"],
    "with memoising, ledger and outbox": ["index", "device"],
    everything: ["index", "subsets", "records", "texts", "device"],
  };
  for (const [name, entries] of Object.entries(programs))
    console.log(`${name}: ${await gzippedSize(...entries)} bytes`);
}

async function writeBundles() {
  const entryPoints = ENTRIES.map((name) => `src/${name}.ts`);
  const modules = await bundle({ entryPoints, splitting: true, chunkNames: "shared-[hash]" });
  const script = { stdin: reexporting(SCRIPT_ENTRIES), format: "iife", globalName: "sunzi", entryNames: "sunzi.script" };
  const scripts = await bundle(script);
  await rm("dist", { recursive: true, force: true });
  for (const { path, code, map } of [...modules, ...scripts]) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, `${code}\n`);
    await writeFile(`${path}.map`, map);
  }
}

if (process.argv[1] === import.meta.filename) await (process.argv.includes("--sizes") ? printSizes() : writeBundles());
