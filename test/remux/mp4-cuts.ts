import { type Additions, noAdditions } from "../../src/remux/additions.ts";
import { cutMp4 } from "../../src/remux/mp4/cut.ts";
import type { MediaRange } from "../../src/remux/samples.ts";
import { readMedia, readTogether } from "../media/read-media.ts";

/** Cuts a whole file. */
export const cut = (source: string, target: string, ranges: readonly MediaRange[], added: Additions = noAdditions) =>
  cutMp4({
    source,
    target,
    ranges,
    missing: { video: [], audio: [] },
    isWhole: true,
    maxBytes: 1 << 30,
    additions: async () => added,
    additionBytes: () => 0,
    onWritten: () => {},
    signal: new AbortController().signal,
  });

/** A decoded picture. */
interface ShownFrame {
  timeS: number;
  hash: string;
}

/** A packet of audio that is not discarded. */
interface HeardPacket {
  timeS: number;
  durationS: number;
  hash: string;
}

/** What a player that follows edit lists presents of a file. */
export interface Presented {
  /** Of the first video track. */
  frames: ShownFrame[];
  /** Of the first audio track. */
  packets: HeardPacket[];
}

/** Returns what a player that follows edit lists presents of a file, and the warnings of the decoders of both tracks. */
export async function present(path: string): Promise<Presented & { complaints: string }> {
  const tracks = "-map 0:v:0? -map 0:a:0? -fps_mode passthrough";
  const outputs = `${tracks} ${exact} -f framecrc - ${tracks} -f null -`.split(" ");
  const { stdout, stderr } = await readMedia("ffmpeg", "-v", "warning", "-nostdin", "-copyts", "-i", path, ...outputs);
  return { ...presentedIn(stdout), complaints: stderr };
}

/** Returns what a player that follows edit lists presents of each of these files. */
export async function presentAll(...paths: readonly string[]): Promise<Presented[]> {
  const outputs = (input: number, file: string) => {
    const tracks = `-map ${input}:v:0? -map ${input}:a:0? -fps_mode passthrough`;
    return `${tracks} ${exact} -f framecrc ${file}`.split(" ");
  };
  const texts = await readTogether(paths, outputs, "-v", "warning", "-nostdin", "-copyts");
  return texts.map((text) => presentedIn(text));
}

// The order of what is discarded differs from that of its times.
const exact = "-enc_time_base:v 1:90000 -c:a copy -copyinkf:a -copypriorss:a 1 -bsf:a setts=dts=N-1e9";

/** The flag of a packet that is decoded and not presented. */
const discarded = 4;

function presentedIn(listing: string): Presented {
  const kinds: string[] = [];
  /** Of time, as parts of a second. */
  const rates: number[] = [];
  const frames: ShownFrame[] = [];
  const packets: HeardPacket[] = [];
  for (const line of listing.split("\n")) {
    const [, name, stream, value = ""] = /^#(tb|media_type) (\d): (.+)$/.exec(line) ?? [];
    if (name === "media_type") kinds[Number(stream)] = value;
    if (name === "tb") rates[Number(stream)] = Number(value.replace("1/", ""));
    if (!/^\d/.test(line)) continue;
    const [index = "", , pts, duration, size, crc, flags = ""] = line.split(/, */);
    const rate = rates[Number(index)]!;
    const timeS = Number(pts) / rate;
    const hash = `${size} ${crc}`;
    if (kinds[Number(index)] === "video") frames.push({ timeS, hash });
    else if ((Number(/^F=(\w+)/.exec(flags)?.[1] ?? 0) & discarded) === 0) {
      packets.push({ timeS, durationS: Number(duration) / rate, hash });
    }
  }
  return { frames, packets };
}

interface ExpectedCut {
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
    for (const { timeS, hash } of source) {
      if (timeS > startS - 1e-6 && timeS < cutS - 1e-6) frames.push({ timeS: durationS + timeS - startS, hash });
    }
    kept.push({ startS, endS: cutS });
    durationS += cutS - startS;
  }
  return { frames, kept, durationS };
}

/** Matroska has times in milliseconds. */
const roundedS = 0.001;

/** Returns what is wrong with the audio of a cut: packets at another time than in the source, and times without any. */
export function audioFaults(
  heard: readonly HeardPacket[],
  source: readonly HeardPacket[],
  { kept, durationS }: Pick<ExpectedCut, "kept" | "durationS">,
): string[] {
  const byHash = Map.groupBy(source, ({ hash }) => hash);
  let atS = 0;
  const parts = kept.map(({ startS, endS }) => {
    const part = { atS, startS, endS };
    atS += endS - startS;
    return part;
  });
  const faults: string[] = [];
  // The audio of the source may start late.
  let reachedS = Math.max(0, source[0]!.timeS - parts[0]!.startS);
  for (const { timeS, durationS: lastsS, hash } of heard) {
    const times = (byHash.get(hash) ?? []).flatMap((packet) =>
      parts.map((part) => part.atS + packet.timeS - part.startS),
    );
    const off = Math.min(...times.map((each) => Math.abs(each - timeS)));
    if (off > roundedS) faults.push(`a packet at ${timeS} is off by ${off}`);
    if (timeS - reachedS > lastsS + roundedS + 1e-6) faults.push(`nothing from ${reachedS} to ${timeS}`);
    reachedS = Math.max(reachedS, timeS + lastsS);
  }
  const lastsS = source[1]!.durationS;
  const endS = Math.min(durationS, parts.at(-1)!.atS + source.at(-1)!.timeS + lastsS - parts.at(-1)!.startS);
  if (endS - reachedS > lastsS + roundedS + 1e-6) faults.push(`nothing from ${reachedS} to ${endS}`);
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
