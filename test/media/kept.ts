import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { delimiter, extname, isAbsolute, join } from "node:path";

// What ffmpeg makes of the same bytes and options stays the same, and its runs take a large part of the processor time of the
// tests. Hence what it made is kept, for all processes and for later runs.

/** Not below `node_modules`, which `npm ci` removes. All checkouts share it: a file is named after all that it depends on. */
export const keptFolder =
  process.env["TEST_MEDIA_CACHE"] ||
  join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "unreel-test-media");
const longestMs = 7 * 86_400_000;

/**
 * Returns what a run of a program depends on: the program, its options, and the bytes of the files that it reads, whatever these are
 * called. `inputs` are those of the folder in which it runs, if that is its own. Undefined if that is not all: the program is not
 * installed, or reads something else, such as a URL, a pipe, or the files that a list or a pattern names.
 */
export function keyOf(
  program: string,
  args: readonly string[],
  inputs: ReadonlyMap<string, { body: Uint8Array }> = new Map(),
): string | undefined {
  const folders = isAbsolute(program) ? [""] : (process.env["PATH"] ?? "").split(delimiter);
  const path = folders.map((each) => join(each, program)).find((each) => existsSync(each));
  if (path === undefined) return undefined;
  const installed = statSync(path);
  const parts: string[] = [];
  for (const [i, arg] of args.entries()) {
    const bytes = isFile(arg) ? readFileSync(arg) : inputs.get(arg)?.body;
    const isUnknown = bytes === undefined ? namesOther(arg, args.slice(0, i)) : namesOthers(bytes);
    if (isUnknown) return undefined;
    parts.push(bytes === undefined ? arg : digest(bytes) + extname(arg));
  }
  const all = [...inputs].flatMap(([name, { body }]) => [name, digest(body)]);
  return digest([program, `${installed.size}`, `${installed.mtimeMs}`, ...parts, ...all].join("\0"));
}

/** Whether a file begins as those that name others: playlists, MPDs and other XML, lists of ffmpeg, descriptions of sessions. */
function namesOthers(bytes: Uint8Array): boolean {
  return /^\s*(?:#EXTM3U|<|ffconcat|v=0|(?:#.*\n\s*)*file\s)/.test(
    Buffer.from(bytes.subarray(0, 4096)).toString("latin1"),
  );
}

/** Whether an argument that is no known file names what is read: as an input that no filter makes, or by a path in it, or a URL. */
function namesOther(arg: string, before: readonly string[]): boolean {
  if (before.at(-1) === "-i") {
    const options = before.slice(before.slice(0, -1).lastIndexOf("-i") + 1);
    if (!options.includes("lavfi")) return true;
  }
  if (arg.includes("://")) return true;
  const words = arg.split(/[\s:=|,;'"[\]]/);
  return words.some((word) => isAbsolute(word) || (/[./%]/.test(word) && existsSync(word)));
}

/** Returns what is kept under the key, unless it is damaged. */
export function findKept(key: string | undefined): Buffer | undefined {
  if (key === undefined) return undefined;
  try {
    const kept = readFileSync(join(keptFolder, key));
    const bytes = kept.subarray(digestLength);
    if (kept.toString("latin1", 0, digestLength) !== digest(bytes)) return undefined;
    utimesSync(join(keptFolder, key), new Date(), new Date());
    return bytes;
  } catch {
    return undefined;
  }
}

const digestLength = 64;

/** Keeps what a run that succeeded has made, behind a digest of it. */
export function keep(key: string | undefined, bytes: Uint8Array | string): void {
  if (key === undefined) return;
  const unfinished = join(keptFolder, randomUUID());
  mkdirSync(keptFolder, { recursive: true });
  writeFileSync(unfinished, Buffer.concat([Buffer.from(digest(bytes)), Buffer.from(bytes)]));
  renameSync(unfinished, join(keptFolder, key));
}

/** Removes what no run of the tests has used for a week, before the tests. */
export function setup(): void {
  mkdirSync(keptFolder, { recursive: true });
  for (const name of readdirSync(keptFolder)) {
    const stats = statSync(join(keptFolder, name), { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > longestMs) rmSync(join(keptFolder, name), { force: true });
  }
}

export function digest(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function isFile(arg: string): boolean {
  return isAbsolute(arg) && statSync(arg, { throwIfNoEntry: false })?.isFile() === true;
}
