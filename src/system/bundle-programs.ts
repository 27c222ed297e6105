import { existsSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { yieldMemory } from "./child-process.ts";
import { bundleFolder } from "./load-program.js";

// Puts every program of the service into one file each, which Node loads sooner than hundreds of sources.

const programs = ["main.ts", "engines/native/worker/worker.ts", "resolvers/page/reader/reader-program.ts"];

/** A program of its own, and `pg-native`, without which `pg` does well. */
const external = ["esbuild", "pg-native"];

/** Lets the sources, and the packages that have such, find files beside them, as if they were not bundled. */
const ownFiles: Plugin = {
  name: "own-files",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      return { loader: "ts", contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)) };
    });
    onLoad(
      { filter: /[\\/]node_modules[\\/](?:@fastify[\\/]swagger-ui|pino|thread-stream)[\\/].*\.js$/ },
      async ({ path }) => {
        const text = await readFile(path, "utf8");
        return { loader: "js", contents: text.replaceAll("__dirname", JSON.stringify(dirname(path))) };
      },
    );
  },
};

/** Loads `node:http` without the WebSocket that it has, too: an import of it would take that from all of undici. */
const lazyHttp: Plugin = {
  name: "lazy-http",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:node:)?http$/ }, () => ({ path: "http", namespace: "lazy-http" }));
    onLoad({ filter: /./, namespace: "lazy-http" }, () => ({
      contents: 'module.exports = process.getBuiltinModule("node:http")',
    }));
  },
};

// The service, which starts this program, lets only its user read what it writes.
process.umask(0o022);
// esbuild takes over 300 MiB, and has it from this process.
yieldMemory();
await bundlePrograms(fileURLToPath(new URL("../../", import.meta.url))).catch((error: NodeJS.ErrnoException) => {
  // An installation of another user: only speed is lost, as without the compile cache. ENOENT is what `mkdir` fails with on a
  // disk that is read-only.
  if (error.code === "EACCES" || error.code === "EROFS" || (error.code === "ENOENT" && error.syscall === "mkdir"))
    return;
  process.stderr.write(`unreel: programs cannot be bundled: ${error.message}\n`);
  process.exitCode = 1;
});

/** Writes the bundles of the service in the folder `root`, if they are not there, and removes those of earlier sources. */
async function bundlePrograms(root: string): Promise<void> {
  const folder = bundleFolder(root);
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  const others = (await readdir(parent)).filter((name) => join(parent, name) !== folder);
  const unfinished = await mkdtemp(join(parent, "unfinished-"));
  try {
    await bundle(join(root, "src"), unfinished);
    await chmod(unfinished, 0o755);
    // Not if a source was changed meanwhile.
    if (bundleFolder(root) === folder) await rename(unfinished, folder);
  } catch (error) {
    // Another process may have been first.
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  await Promise.all(others.map((name) => removeIfOld(join(parent, name))));
}

async function bundle(src: string, outdir: string): Promise<void> {
  const { outputFiles } = await build({
    write: false,
    absWorkingDir: src,
    entryPoints: programs,
    outbase: ".",
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    external,
    plugins: [ownFiles, lazyHttp],
    // CommonJS packages load parts of Node.
    banner: { js: 'import { createRequire as from } from "node:module"; const require = from(import.meta.url);' },
    // For debuggers, and for stack traces with --enable-source-maps.
    sourcemap: true,
    sourcesContent: false,
    tsconfigRaw: {},
    logLevel: "silent",
  });
  for (const { path, text } of outputFiles) {
    await mkdir(dirname(path), { recursive: true });
    // Otherwise a power failure could leave an empty program, which starts nothing.
    await writeFile(path, path.endsWith(".mjs") ? escapeNonAscii(text) : text, { flush: true });
  }
}

/** V8 keeps a program in one byte for each character if all are ASCII, else in two. esbuild leaves others in regular expressions. */
function escapeNonAscii(program: string): string {
  return program.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Another process may be writing a new one. */
async function removeIfOld(folder: string): Promise<void> {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats && Date.now() - stats.mtimeMs > 60_000) await rm(folder, { recursive: true, force: true });
}
