import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeSharedFolder } from "../folder.ts";
import { makeFile, readMediaSync } from "../media/read-media.ts";

export const hasFfmpeg = spawnSync("ffmpeg", ["-version"]).status === 0;

export const videoInput = (seconds = 2, size = "160x120"): string[] =>
  `-f lavfi -i testsrc2=size=${size}:rate=25:duration=${seconds}`.split(" ");
export const audioInput = (seconds = 2, rate = 44_100): string[] =>
  `-f lavfi -i sine=frequency=440:sample_rate=${rate}:duration=${seconds}`.split(" ");
export const x264 = "-c:v libx264 -preset ultrafast -bf 2 -g 25".split(" ");

/** A folder of media made with ffmpeg, removed after the tests. */
interface MediaFolder {
  path(name: string): string;
  /** Writes a file that ffmpeg makes, and returns its bytes. */
  make(name: string, ...args: readonly string[]): Buffer;
}

export function createMediaFolder(folder = makeSharedFolder()): MediaFolder {
  const path = (name: string): string => join(folder, name);
  return {
    path,
    make(name, ...args) {
      makeFile(args, path(name));
      return readFileSync(path(name));
    },
  };
}

interface ProbedPacket {
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

export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, {
    encoding: "utf8",
    maxBuffer: 64 << 20,
    env: { ...process.env, LC_ALL: "C.UTF-8" },
  });
}
