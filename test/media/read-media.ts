import { execFile, execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { extname, isAbsolute } from "node:path";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import { findKept, keep, keyOf } from "./kept.ts";

// Many tests expect the same file.
const known = new LRUCache<string, Promise<Output>>({ max: 1000 });
const limits = { encoding: "utf8", maxBuffer: 64 << 20 } as const;

interface Output {
  stdout: string;
  stderr: string;
}

/** Runs a program that only reads files, once for the same bytes and options; returns what it writes. */
export async function readMedia(program: string, ...args: readonly string[]): Promise<Output> {
  const key = keyOf(program, args);
  const output = (key && known.get(key)) || read(key, program, args);
  if (key !== undefined) known.set(key, output);
  return output;
}

async function read(key: string | undefined, program: string, args: readonly string[]): Promise<Output> {
  const kept = findKept(key);
  if (kept !== undefined) return parse(kept);
  const { stdout, stderr } = await promisify(execFile)(program, args, limits);
  keep(key, JSON.stringify({ stdout, stderr }));
  return { stdout, stderr };
}

/** Runs a program as `readMedia` does, while this process waits; returns its output. */
export function readMediaSync(program: string, ...args: readonly string[]): string {
  return readSync(program, args).stdout;
}

/** Returns what ffmpeg complains of while it reads a file with these options: by default, decodes all of it. */
export function complaintsOf(path: string, ...options: readonly string[]): string {
  return readSync("ffmpeg", ["-v", "error", "-i", path, ...options, "-f", "null", "-"]).stderr;
}

/** Returns the MD5 of the decoded video, audio or both. Throws if the decoder reports a problem. */
export function decodedMd5(path: string, ...kinds: readonly ("video" | "audio")[]): string {
  const outputs = kinds.map((kind) => (kind === "video" ? ["-map", "0:v", "-vsync", "passthrough"] : ["-map", "0:a"]));
  const args = ["-v", "error", "-i", path, ...outputs.flatMap((each) => [...each, "-f", "md5", "-"])];
  const { stdout, stderr } = readSync("ffmpeg", args);
  if (stderr !== "") throw new Error(stderr);
  return stdout;
}

/** @throws Error with what the program complains of if it fails. */
function readSync(program: string, args: readonly string[]): Output {
  const key = keyOf(program, args);
  const kept = findKept(key);
  if (kept !== undefined) return parse(kept);
  const { stdout, stderr, status, error } = spawnSync(program, args, limits);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`);
  keep(key, JSON.stringify({ stdout, stderr }));
  return { stdout, stderr };
}

/** Runs ffmpeg with two outputs, `pipe:1` and `pipe:3`, as to start it takes longer than most of its work; returns what it writes to each. */
export function readOutputs(...options: readonly string[]): Buffer[] {
  const args = ["-v", "error", ...options];
  const key = keyOf("ffmpeg", args);
  const kept = findKept(key);
  if (kept !== undefined) return (JSON.parse(kept.toString()) as string[]).map((text) => Buffer.from(text, "base64"));
  const { status, output } = spawnSync("ffmpeg", args, {
    stdio: ["ignore", "pipe", "inherit", "pipe"],
    maxBuffer: 1e8,
  });
  if (status !== 0) throw new Error(`ffmpeg ended with ${status}`);
  const written = [output[1], output[3]].map((bytes) => bytes ?? Buffer.of());
  keep(key, JSON.stringify(written.map((bytes) => bytes.toString("base64"))));
  return written;
}

const parse = (kept: Buffer): Output => JSON.parse(kept.toString()) as Output;

/** Makes the file `path` with ffmpeg, or writes it as it was made once of the same bytes and options. */
export function makeFile(args: readonly string[], path: string): void {
  const key = keyOfFile(args, path);
  const kept = findKept(key);
  if (kept !== undefined) return writeFileSync(path, kept);
  execFileSync("ffmpeg", ["-v", "error", "-nostdin", "-y", ...args, path]);
  keep(key, readFileSync(path));
}

/** Returns the key of a file that ffmpeg makes; undefined if it makes others, too. */
export function keyOfFile(args: readonly string[], path: string): string | undefined {
  // Another path than that of an input may be one of a second output.
  const areInputs = args.every((arg, i) => !isAbsolute(arg) || args[i - 1] === "-i");
  // Playlists and patterns are made together with segments.
  const isOneFile = areInputs && !/%|\.(?:m3u8|mpd)$/.test(path);
  return isOneFile ? keyOf("ffmpeg", [...args, extname(path)]) : undefined;
}
