import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { delimiter, extname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

// What ffmpeg makes of the same bytes and options stays the same, and its runs take a large part of the processor time of the
// tests. Hence what it made is kept, for all processes and for later runs.

const folder = fileURLToPath(new URL("../../node_modules/.cache/test-media/", import.meta.url));
const longestMs = 7 * 86_400_000;

/**
 * Returns what a run of a program depends on: the program, its options, and the bytes of the files that it reads, whatever these are
 * called. Undefined if the program is not installed.
 */
export function keyOf(program: string, args: readonly string[]): string | undefined {
  const folders = isAbsolute(program) ? [""] : (process.env["PATH"] ?? "").split(delimiter);
  const installed = folders
    .map((each) => statSync(join(each, program), { throwIfNoEntry: false }))
    .find((stats) => stats !== undefined);
  if (installed === undefined) return undefined;
  const parts = args.map((arg) => (isFile(arg) ? contentOf(arg) : arg));
  return digest([program, `${installed.size}`, `${installed.mtimeMs}`, ...parts].join("\0"));
}

/** Returns what is kept under the key. */
export function findKept(key: string | undefined): Buffer | undefined {
  if (key === undefined) return undefined;
  try {
    const bytes = readFileSync(join(folder, key));
    utimesSync(join(folder, key), new Date(), new Date());
    return bytes;
  } catch {
    return undefined;
  }
}

/** Keeps what a run that succeeded has made. */
export function keep(key: string | undefined, bytes: Uint8Array | string): void {
  if (key === undefined) return;
  const unfinished = join(folder, randomUUID());
  mkdirSync(folder, { recursive: true });
  writeFileSync(unfinished, bytes);
  renameSync(unfinished, join(folder, key));
}

/** Removes what no run of the tests has used for a week, before the tests. */
export function setup(): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    const stats = statSync(join(folder, name), { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > longestMs) rmSync(join(folder, name), { force: true });
  }
}

export function digest(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function isFile(arg: string): boolean {
  return isAbsolute(arg) && statSync(arg, { throwIfNoEntry: false })?.isFile() === true;
}

function contentOf(path: string): string {
  return digest(readFileSync(path)) + extname(path);
}
