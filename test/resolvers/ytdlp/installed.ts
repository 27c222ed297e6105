import { execFileSync } from "node:child_process";
import {
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { findInstallation } from "../../../src/resolvers/ytdlp/installation.ts";

/** The yt-dlp of this machine: the path in YTDLP, else on PATH; tests that need it are skipped without. */
export const installed = await findInstallation(process.env["YTDLP"] ?? "", process.env["PATH"] ?? "").catch(
  () => undefined,
);

/** Ends the title of a group of tests that needs yt-dlp. */
export const missing = installed === undefined ? ": no yt-dlp (YTDLP)" : "";

/** Absolute path of the Python that runs it. */
export function pythonPath(): string {
  return askPython("import sys; print(sys.executable)");
}

interface VariantOptions {
  /** First line of the script, without `#!`; default the Python of the installed one. */
  interpreter?: string;
  /** Source of further extractors, by the name of their module. */
  extractors?: Readonly<Record<string, string>>;
  version?: string;
}

/** A copy of the installed yt-dlp, changed for tests. Its files are links to the installed ones. */
export interface Variant extends Disposable {
  /** Path of its program. */
  readonly path: string;
  /** Folder of its package. */
  readonly packageFolder: string;
}

export function createVariant(options: VariantOptions = {}): Variant {
  const { interpreter = pythonPath(), extractors = {}, version } = options;
  const folder = mkdtempSync(join(tmpdir(), "yt-dlp-"));
  const path = join(folder, "bin/yt-dlp");
  const packageFolder = join(folder, "lib/yt_dlp");
  mkdirSync(dirname(path));
  writeFileSync(path, `#!${interpreter}\n`, { mode: 0o755 });
  linkFolder(installedPackage(), packageFolder);
  if (version !== undefined) setVersion(packageFolder, version);
  for (const [name, source] of Object.entries(extractors)) {
    writeFileSync(join(packageFolder, "extractor", `${name}.py`), source);
    const list = join(packageFolder, "extractor/_extractors.py");
    replaceFile(list, `${readFileSync(list, "utf8")}from .${name} import *\n`);
  }
  return { path, packageFolder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

/** Writes the file that tells a package's version. */
export function setVersion(packageFolder: string, version: string): void {
  replaceFile(
    join(packageFolder, "version.py"),
    `__version__ = '${version}'\nVARIANT = None\nUPDATE_HINT = None\nCHANNEL = 'stable'\nORIGIN = 'yt-dlp/yt-dlp'\nRELEASE_GIT_HEAD = None\n_pkg_version = '${version}'\n`,
  );
}

/** Also its compiled files, which Python replaces, too. */
function linkFolder(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkFolder(source, target);
    else linkFile(source, target);
  }
}

function linkFile(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    // Another file system, or the file of another user.
    cpSync(source, target, { preserveTimestamps: true });
  }
}

function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function installedPackage(): string {
  const lib = JSON.stringify(resolve(dirname(installed?.script ?? ""), "../lib"));
  return askPython(
    `import sys; sys.path.insert(0, ${lib}); import importlib.util as u; print(u.find_spec('yt_dlp').submodule_search_locations[0])`,
  );
}

/** By the program; they stay the same. */
const answers = new Map<string, string>();

function askPython(program: string): string {
  const [command = "", ...args] = installed?.python ?? [];
  const run = () => execFileSync(command, [...args, "-I", "-c", program], { encoding: "utf8" }).trim();
  return answers.getOrInsertComputed(program, run);
}
