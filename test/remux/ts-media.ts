import { createHash } from "node:crypto";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { extname, isAbsolute, join } from "node:path";
import { LRUCache } from "lru-cache";
import { makeSharedFolder } from "../folder.ts";
import { readMediaSync } from "../media/read-media.ts";

export const hasFfmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

export const videoInput = (seconds = 2, size = "160x120"): string[] =>
  `-f lavfi -i testsrc2=size=${size}:rate=25:duration=${seconds}`.split(" ");
export const audioInput = (seconds = 2, rate = 44_100): string[] =>
  `-f lavfi -i sine=frequency=440:sample_rate=${rate}:duration=${seconds}`.split(" ");
export const x264 = "-c:v libx264 -preset ultrafast -bf 2 -g 25".split(" ");

/** What is made of nothing but its arguments, which many tests share. */
const made = new LRUCache<string, Buffer>({ maxSize: 100 << 20, sizeCalculation: ({ length }) => length + 1 });

/** A folder of media made with ffmpeg, removed after the tests. */
export interface MediaFolder {
  path(name: string): string;
  /** Writes a file, and returns its bytes: made by ffmpeg for the first test that asks for it. */
  make(name: string, ...args: readonly string[]): Buffer;
}

export function createMediaFolder(folder = makeSharedFolder()): MediaFolder {
  const path = (name: string): string => join(folder, name);
  return {
    path,
    make(name, ...args) {
      const key = args.some((arg) => isAbsolute(arg)) ? undefined : [...args, extname(name)].join("\0");
      const known = key === undefined ? undefined : made.get(key);
      if (known === undefined) run("ffmpeg", "-v", "error", "-y", ...args, path(name));
      else writeFileSync(path(name), known);
      const bytes = readFileSync(path(name));
      // Tests damage what they get.
      if (key !== undefined && known === undefined) made.set(key, Buffer.from(bytes));
      return bytes;
    },
  };
}

export interface ProbedPacket {
  codec_type: string;
  pts: number;
  dts: number;
  duration: number;
  size: string;
  flags: string;
}

export function probePackets(path: string): { video: ProbedPacket[]; audio: ProbedPacket[] } {
  const json = readMediaSync("ffprobe", "-v", "error", "-show_packets", "-of", "json", path);
  const { packets } = JSON.parse(json) as { packets: ProbedPacket[] };
  const { video = [], audio = [] } = Object.groupBy(packets, ({ codec_type }) => codec_type);
  return { video, audio };
}

/** Returns the values of `fields` of every stream. */
export function probeStreams(path: string, fields: string): string[] {
  const entries = ["-show_entries", `stream=${fields}`];
  const values = ["-of", "default=noprint_wrappers=1:nokey=1"];
  return readMediaSync("ffprobe", "-v", "error", ...entries, ...values, path)
    .trim()
    .split(/\s+/);
}

const decoded = new LRUCache<string, string>({ max: 1_000 });

/** Returns the MD5 of the decoded video, audio or both; of the same file only once. Throws if the decoder reports a problem. */
export function decodedMd5(path: string, ...kinds: readonly ("video" | "audio")[]): string {
  const outputs = kinds.map((kind) => (kind === "video" ? ["-map", "0:v", "-vsync", "passthrough"] : ["-map", "0:a"]));
  const key = [createHash("sha256").update(readFileSync(path)).digest("hex"), ...kinds].join(" ");
  const known = decoded.get(key);
  if (known !== undefined) return known;
  const args = ["-v", "error", "-i", path, ...outputs.flatMap((each) => [...each, "-f", "md5", "-"])];
  const { stdout, stderr } = spawnSync("ffmpeg", args, { encoding: "utf8" });
  if (stderr !== "") throw new Error(stderr);
  decoded.set(key, stdout);
  return stdout;
}

export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: "utf8", maxBuffer: 64 << 20 });
}
