import { noAdditions } from "../../src/remux/additions.ts";
import { cutMp4 } from "../../src/remux/mp4/cut.ts";
import type { MediaRange } from "../../src/remux/samples.ts";
import { readMedia } from "../media/read-media.ts";

/** Cuts a whole file, without additions. */
export const cut = (source: string, target: string, ranges: readonly MediaRange[]) =>
  cutMp4({
    source,
    target,
    ranges,
    missing: { video: [], audio: [] },
    isWhole: true,
    maxBytes: 1 << 30,
    additions: async () => noAdditions,
    onWritten: () => {},
    signal: new AbortController().signal,
  });

export interface ShownFrame {
  timeS: number;
  md5: string;
}

/** Returns the frames of the first video track as a player that follows edit lists shows them. */
export async function shownFrames(path: string): Promise<ShownFrame[]> {
  const { stdout } = await readMedia("ffmpeg", "-v", "fatal", "-copyts", "-i", path, ...frameHashes);
  return framesOf(stdout);
}

/** Returns the frames that are shown, and the warnings of the decoders of all tracks. */
export async function playThrough(path: string): Promise<{ frames: ShownFrame[]; complaints: string }> {
  const audio = "-map 0:a? -f null -".split(" ");
  const words = ["-v", "warning", "-nostdin", "-copyts", "-i", path, ...frameHashes, ...audio];
  const { stdout, stderr } = await readMedia("ffmpeg", ...words);
  return { frames: framesOf(stdout), complaints: stderr };
}

const frameHashes = "-map 0:v:0 -fps_mode passthrough -enc_time_base 1:90000 -f framemd5 -".split(" ");

function framesOf(hashes: string): ShownFrame[] {
  return hashes
    .split("\n")
    .filter((line) => /^\d/.test(line))
    .map((line) => line.split(",").map((field) => field.trim()))
    .map((fields) => ({ timeS: Number(fields[2]) / 90_000, md5: fields.at(-1)! }));
}

export interface HeardPacket {
  timeS: number;
  durationS: number;
  md5: string;
}

/** Returns the packets of an audio track that are not discarded. */
export async function heardPackets(path: string, track = 0): Promise<HeardPacket[]> {
  const { stdout } = await readMedia(
    "ffprobe",
    ..."-v error -of json -show_packets -show_data_hash md5".split(" "),
    "-select_streams",
    `a:${track}`,
    "-show_entries",
    "packet=pts_time,duration_time,flags,data_hash",
    path,
  );
  const { packets } = JSON.parse(stdout) as {
    packets: { pts_time: string; duration_time: string; flags: string; data_hash: string }[];
  };
  return packets
    .filter(({ flags }) => !flags.includes("D"))
    .map(({ pts_time, duration_time, data_hash }) => {
      return { timeS: Number(pts_time), durationS: Number(duration_time), md5: data_hash };
    });
}

export interface ExpectedCut {
  frames: ShownFrame[];
  /** Of the source, seconds. */
  kept: MediaRange[];
  durationS: number;
}

/** Returns what these ranges of a file with video present, by the frames of the file. */
export function expectedCut(source: readonly ShownFrame[], ranges: readonly MediaRange[], endS: number): ExpectedCut {
  const zeroS = source[0]!.timeS;
  const borders = [...source.map(({ timeS }) => timeS), endS];
  const nearest = (timeS: number) =>
    borders.reduce((best, each) => (Math.abs(each - timeS) <= Math.abs(best - timeS) ? each : best));
  let durationS = 0;
  const frames: ShownFrame[] = [];
  const kept: MediaRange[] = [];
  for (const range of ranges) {
    const startS = nearest(zeroS + range.startS);
    const next = borders.find((each) => each > startS + 1e-6) ?? endS;
    const cutS = Math.max(nearest(zeroS + Math.min(range.endS, endS)), next);
    for (const { timeS, md5 } of source) {
      if (timeS > startS - 1e-6 && timeS < cutS - 1e-6) frames.push({ timeS: durationS + timeS - startS, md5 });
    }
    kept.push({ startS, endS: cutS });
    durationS += cutS - startS;
  }
  return { frames, kept, durationS };
}

/** Returns what is wrong with the audio of a cut: packets at another time than in the source, and times without any. */
export function audioFaults(
  heard: readonly HeardPacket[],
  source: readonly HeardPacket[],
  { kept, durationS }: Pick<ExpectedCut, "kept" | "durationS">,
): string[] {
  const byHash = Map.groupBy(source, ({ md5 }) => md5);
  let atS = 0;
  const parts = kept.map(({ startS, endS }) => {
    const part = { atS, startS, endS };
    atS += endS - startS;
    return part;
  });
  const faults: string[] = [];
  // The audio of the source may start late.
  let reachedS = Math.max(0, source[0]!.timeS - parts[0]!.startS);
  for (const { timeS, durationS: lastsS, md5 } of heard) {
    const times = (byHash.get(md5) ?? []).flatMap((packet) =>
      parts.map((part) => part.atS + packet.timeS - part.startS),
    );
    const off = Math.min(...times.map((each) => Math.abs(each - timeS)));
    if (off > 0.001) faults.push(`a packet at ${timeS} is off by ${off}`);
    if (timeS - reachedS > lastsS) faults.push(`nothing from ${reachedS} to ${timeS}`);
    reachedS = Math.max(reachedS, timeS + lastsS);
  }
  const lastsS = source[1]!.durationS;
  const endS = Math.min(durationS, parts.at(-1)!.atS + source.at(-1)!.timeS + lastsS - parts.at(-1)!.startS);
  if (endS - reachedS > lastsS) faults.push(`nothing from ${reachedS} to ${endS}`);
  return faults;
}

/** Returns ranges within `lengthS`, in order and apart, the same ones for the same seed. */
export function randomRanges(seed: number, count: number, lengthS: number): MediaRange[] {
  let state = (seed + 1) * 2_654_435_761;
  const random = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return state / 2 ** 32;
  };
  const times = Array.from({ length: 2 * count }, () => random() * lengthS).toSorted((a, b) => a - b);
  return Array.from({ length: count }, (_, i) => ({ startS: times[2 * i]!, endS: times[2 * i + 1]! }));
}
