import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readMediaSync } from "../media/read-media.ts";

export const hasFfmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

export const videoInput = (seconds = 2, size = "160x120"): string[] =>
  `-f lavfi -i testsrc2=size=${size}:rate=25:duration=${seconds}`.split(" ");
export const audioInput = (seconds = 2, rate = 44_100): string[] =>
  `-f lavfi -i sine=frequency=440:sample_rate=${rate}:duration=${seconds}`.split(" ");
export const x264 = "-c:v libx264 -preset ultrafast -bf 2 -g 25".split(" ");

/** A temporary folder of media made with ffmpeg. */
export interface MediaFolder {
  path(name: string): string;
  make(name: string, ...args: readonly string[]): Buffer;
  remove(): void;
}

export function createMediaFolder(): MediaFolder {
  const folder = mkdtempSync(join(tmpdir(), "ts-media-"));
  const path = (name: string): string => join(folder, name);
  return {
    path,
    make(name, ...args) {
      run("ffmpeg", "-v", "error", "-y", ...args, path(name));
      return readFileSync(path(name));
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export interface ProbedPacket {
  codec_type: string;
  pts: number;
  dts: number;
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

/** Returns the MD5 of the decoded video, audio or both. Throws if the decoder reports a problem. */
export function decodedMd5(path: string, ...kinds: readonly ("video" | "audio")[]): string {
  const outputs = kinds.map((kind) => (kind === "video" ? ["-map", "0:v", "-vsync", "passthrough"] : ["-map", "0:a"]));
  const args = ["-v", "error", "-i", path, ...outputs.flatMap((each) => [...each, "-f", "md5", "-"])];
  const result = spawnSync("ffmpeg", args, { encoding: "utf8" });
  if (result.stderr !== "") throw new Error(result.stderr);
  return result.stdout;
}

export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: "utf8", maxBuffer: 64 << 20 });
}
