import { execFile, execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { extname, isAbsolute } from "node:path";
import { promisify } from "node:util";
import { LRUCache } from "lru-cache";

// Many tests expect the same file. What ffmpeg says of it stays the same, and asking takes longer than most of these tests.
const outputs = new LRUCache<string, Promise<Output>>({ max: 1000 });
const texts = new LRUCache<string, string>({ max: 1000 });
const options = { encoding: "utf8", maxBuffer: 64 << 20 } as const;

interface Output {
  stdout: string;
  stderr: string;
}

/** Runs a program that only reads files, once for the same bytes and options; returns what it writes. */
export function readMedia(program: string, ...args: readonly string[]): Promise<Output> {
  const key = keyOf(program, args);
  const output = outputs.get(key) ?? promisify(execFile)(program, args, options);
  outputs.set(key, output);
  return output;
}

/** Runs a program as `readMedia` does, while this process waits; returns its output. */
export function readMediaSync(program: string, ...args: readonly string[]): string {
  const key = keyOf(program, args);
  const text = texts.get(key) ?? execFileSync(program, args, options);
  texts.set(key, text);
  return text;
}

function keyOf(program: string, args: readonly string[]): string {
  return [program, ...args.map((arg) => (isFile(arg) ? contentOf(arg) : arg))].join("\0");
}

function isFile(arg: string): boolean {
  return isAbsolute(arg) && statSync(arg, { throwIfNoEntry: false })?.isFile() === true;
}

function contentOf(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex") + extname(path);
}
