import { constants } from "node:fs";
import { access, open } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { messageOf } from "../../model/errors.ts";

/** A yt-dlp that this machine has. */
export interface Installation {
  /** Absolute path of the program `yt-dlp`: a Python script, or a zip archive that Python runs. */
  script: string;
  /** The Python that it names: an absolute path, or a name to be found on PATH, then its arguments. */
  python: readonly [command: string, ...args: string[]];
}

/**
 * Finds yt-dlp at `path`, or on `searchPath` (a list as PATH has) if `path` is empty. Returns undefined
 * if it is not on `searchPath`. Runs nothing.
 *
 * @throws Error that begins with "must be", if the file cannot be read or names no Python
 */
export async function findInstallation(path: string, searchPath: string): Promise<Installation | undefined> {
  const script = path === "" ? await findOnPath(searchPath) : resolve(path);
  if (script === undefined) return undefined;
  return { script, python: parsePython(await readStart(script), script) };
}

async function findOnPath(searchPath: string): Promise<string | undefined> {
  for (const folder of searchPath.split(delimiter).filter((entry) => entry !== "")) {
    const file = resolve(join(folder, "yt-dlp"));
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return file;
  }
  return undefined;
}

/** Longest shebang of Linux is 255 bytes; that of pip's form for longer ones may be a path of 4096. */
const startBytes = 8_192;

async function readStart(file: string): Promise<string> {
  try {
    await using handle = await open(file);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(startBytes), 0, startBytes, 0);
    return buffer.toString("latin1", 0, bytesRead);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new Error(`must be the path of the program yt-dlp: ${reason}`, { cause });
  }
}

/** Reads which Python a script names, in the forms that installers write. */
function parsePython(start: string, script: string): Installation["python"] {
  // For long paths and for those with blanks: /bin/sh runs the second line, which Python reads as text.
  const [, viaShell] = /^#!\/bin\/sh\n'''exec' "?([^"\n]+?)"? "\$0" "\$@"\n/.exec(start) ?? [];
  if (viaShell !== undefined) return [viaShell];
  const [, shebang = ""] = /^#! *([^\n]*)/.exec(start) ?? [];
  const [interpreter = "", ...args] = shebang.trim().split(/\s+/);
  const words = /(^|\/)env$/.test(interpreter)
    ? args.filter((word) => word !== "-S" && !word.includes("="))
    : [interpreter, ...args];
  const [command = "", ...rest] = words;
  if (/(^|\/)(python|pypy)[\d.]*$/.test(command)) return [command, ...rest];
  throw new Error(
    `must be the path of a yt-dlp that a Python of this machine runs, as pipx installs it (pipx install "yt-dlp[default,curl-cffi]"); ${script} ${shebang === "" ? "is a program of its own" : "names no Python"}`,
  );
}

/** Older ones let a page choose how requests are sent, or need no JavaScript where sites now do. */
const leastVersion = "2025.11.12";

/** Sites change all the time; an extractor seldom works longer. */
const maxAgeDays = 90;

/** Returns the rule that a version of yt-dlp breaks; undefined if it may be used. */
export function findVersionProblem(version: string): string | undefined {
  return releaseTime(version) >= releaseTime(leastVersion)
    ? undefined
    : `must be yt-dlp ${leastVersion} or newer, as older ones are unsafe; it is ${version}`;
}

/** Returns how many days ago a version was released if that is too long, else undefined. */
export function findExcessiveAge(version: string, now: number): number | undefined {
  const days = Math.floor((now - releaseTime(version)) / 86_400_000);
  return days > maxAgeDays ? days : undefined;
}

/** A version is the day of its release: `2025.11.12`, with a fourth number for nightly builds. */
function releaseTime(version: string): number {
  const [year = Number.NaN, month = 1, day = 1] = version.split(".").map(Number);
  return Date.UTC(year, month - 1, day);
}
