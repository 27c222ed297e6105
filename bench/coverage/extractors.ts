import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

/** What yt-dlp's extractors say of a list of URLs. */
export interface Suitable {
  version: string;
  /** Number of extractors that were asked. */
  count: number;
  /** For each URL the name of the first extractor that suits. */
  extractors: (string | null)[];
}

/**
 * Returns the path of yt-dlp: that of `YTDLP`, else `yt-dlp` in one of the folders of `PATH`; undefined if
 * there is none or `YTDLP` is `off`.
 */
export function findYtDlp(): string | undefined {
  const { YTDLP: given = "", PATH: path = "" } = process.env;
  if (given === "off") return undefined;
  const paths = given === "" ? path.split(delimiter).map((folder) => join(folder, "yt-dlp")) : [given];
  return paths.find((each) => existsSync(each));
}

/** Asks the extractors of `script` which suit these URLs, offline and with an empty environment. */
export async function findExtractors(script: string, urls: readonly string[]): Promise<Suitable> {
  const [python = "", ...args] = interpreterOf(script);
  const program = fileURLToPath(new URL("suitable.py", import.meta.url));
  const child = spawn(python, [...args, program, script], {
    env: {},
    stdio: ["pipe", "pipe", "inherit"],
  });
  const failed = new Promise<never>((_resolve, reject) => child.once("error", reject));
  child.stdin.end(JSON.stringify(urls));
  return JSON.parse(await Promise.race([text(child.stdout), failed])) as Suitable;
}

/** Returns the command of the script's first line, `#!`; `env` finds a command in the system's folders. */
function interpreterOf(script: string): string[] {
  const [line = ""] = readFileSync(script, "latin1").split("\n", 1);
  if (line.startsWith("#!")) return line.slice(2).trim().split(/\s+/);
  throw new Error(`${script} must be a Python script or zipapp, beginning with #!`);
}
