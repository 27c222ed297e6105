import { execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { extname, isAbsolute } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";
import { findKept, keep, keyOf } from "./kept.ts";

// Many tests expect the same file.
const known = new LRUCache<string, Promise<Output>>({ max: 1000 });
const limits = { encoding: "utf8", maxBuffer: 64 << 20 } as const;

/** To start threads for short media takes longer than they save; what is read stays the same. */
const inOneThread = (program: string, args: readonly string[]): string[] =>
  args.flatMap((arg) => (program === "ffmpeg" && arg === "-i" ? ["-threads", "1", arg] : [arg]));

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
  const { stdout, stderr } = await promisify(execFile)(program, inOneThread(program, args), limits);
  keep(key, JSON.stringify({ stdout, stderr }));
  return { stdout, stderr };
}

/**
 * Reads several files with one run of ffmpeg, as to start it takes longer than most of its work. `outputs`: the options for what
 * is written to `pipe` of the input of that number.
 *
 * @returns What is written of each file: the same as if it was read alone.
 */
export async function readTogether(
  paths: readonly string[],
  outputs: (input: number, pipe: string) => readonly string[],
  ...options: readonly string[]
): Promise<string[]> {
  const keys = paths.map((path) => keyOf("ffmpeg", [...options, "-i", path, ...outputs(0, "pipe:1")]));
  const kept = keys.map((key) => findKept(key)?.toString());
  const missing = paths.filter((_, i) => kept[i] === undefined);
  const written = missing.length === 0 ? [] : await writeTogether(missing, outputs, options);
  return kept.map((found, i) => {
    if (found !== undefined) return found;
    const made = written.shift()!;
    keep(keys[i], made);
    return made;
  });
}

async function writeTogether(
  paths: readonly string[],
  outputs: (input: number, pipe: string) => readonly string[],
  options: readonly string[],
): Promise<string[]> {
  // 2 is for complaints.
  const pipes = paths.map((_, i) => (i === 0 ? 1 : i + 2));
  const inputs = paths.flatMap((path) => ["-i", path]);
  const args = [...options, ...inputs, ...pipes.flatMap((pipe, i) => outputs(i, `pipe:${pipe}`))];
  const stdio = ["ignore", "pipe", "pipe", ...pipes.slice(1).map(() => "pipe" as const)] as const;
  const child = spawn("ffmpeg", inOneThread("ffmpeg", args), { stdio: [...stdio] });
  const ended = once(child, "close");
  const [complaints, ...written] = await Promise.all([2, ...pipes].map((pipe) => text(child.stdio[pipe] as Readable)));
  const [code] = await ended;
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}: ${complaints}`);
  return written;
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
  const { stdout, stderr, status, error } = spawnSync(program, inOneThread(program, args), limits);
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
  if (kept !== undefined) return (JSON.parse(kept.toString()) as string[]).map((each) => Buffer.from(each, "base64"));
  const { status, output } = spawnSync("ffmpeg", inOneThread("ffmpeg", args), {
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
