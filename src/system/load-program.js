import { createHash } from "node:crypto";
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

// JavaScript: TypeScript is loaded after the compile cache is enabled, and best not at all.

/**
 * Loads a program of the service: from the one file into which `bundle-programs.ts` has put it, if nothing has changed since, else
 * from its sources.
 *
 * @param {URL} source Its TypeScript file.
 * @returns {Promise<boolean>} Whether it was loaded from one file.
 */
export async function loadProgram(source) {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  enableCompileCache(join(root, "node_modules/.cache/unreel"));
  const bundle = join(bundleFolder(root), relative(join(root, "src"), fileURLToPath(source)).replace(/ts$/, "mjs"));
  const isBundled = canRead(bundle);
  await import(isBundled ? bundle : source.href);
  flushCompileCache();
  // Without it V8 may come to allocate requests and responses in the old generation, until the process ends. As an option of the
  // command it would cost each start 25 ms: V8 compiles the modules of Node again if they were compiled with other options.
  setFlagsFromString("--no-allocation-site-pretenuring");
  return isBundled;
}

/**
 * The folder for the bundles of the service in the folder `root`. Its name changes with the path, the size and the time of every
 * source, and with the packages.
 *
 * @param {string} root
 * @returns {string}
 */
export function bundleFolder(root) {
  const src = join(root, "src");
  // Names alone: with the types of the entries it takes half as long again, and every process that starts waits for it.
  const sources = readdirSync(src, { recursive: true, encoding: "utf8" }).map((name) => `${src}/${name}`);
  const packages = ["package.json", "node_modules/.package-lock.json"].map((name) => join(root, name));
  const states = [...sources.toSorted(), ...packages].flatMap((path) => {
    // Other package managers than npm write no such lock file; a source may just have been removed.
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() === true ? [] : `${path} ${stats?.size} ${stats?.mtimeMs}`;
  });
  const name = createHash("sha256").update(states.join("\n")).digest("hex").slice(0, 16);
  return join(root, "node_modules/.cache/unreel-programs", name);
}

/**
 * @param {string} file
 * @returns {boolean}
 */
function canRead(file) {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    // Not there, or another user's.
    return false;
  }
}
