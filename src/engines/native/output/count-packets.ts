import { unlessUnreadable } from "../../../model/errors.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import type { CopiedAudio } from "../../../remux/audio-files/extract.ts";
import { countFlacFrames } from "../../../remux/audio-files/flac.ts";
import { chosenBlocks, selectAll } from "../../../remux/matroska/blocks.ts";
import { createKeyCheck } from "../../../remux/matroska/key-pictures.ts";
import { readBytes } from "../../../remux/matroska/elements.ts";
import { framesIn, isLaced } from "../../../remux/matroska/frames.ts";
import { readSampleLists } from "../../../remux/mp4/read/sample-list.ts";
import { listSamples } from "../../../remux/mp4/read/listed-samples.ts";
import { countOggPackets } from "../../../remux/audio-files/ogg-pages.ts";
import { createFileWindow, type FileWindow, openFile, type ReadFile } from "../../../remux/open-file.ts";
import { countFrames } from "../../../remux/packed-audio/breaks.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import type { SourceStream } from "../sources/source-stream.ts";
import type { WrittenTrack } from "./demux-session.ts";

/** What a track has; absent: it is not counted. */
interface TrackCount {
  packets?: number | undefined;
  bytes?: number;
}

/** By the numbers that mediabunny has for the tracks. */
type TrackCounts = ReadonlyMap<number, TrackCount>;

/**
 * Counts what the tracks of a Matroska, MP4, Ogg, FLAC, WAV, MP3, AAC or AC-3 file have, without the code that copies them. Of video in Matroska,
 * what comes before its first key picture does not count. None of another file, and of one that is damaged.
 * @throws the file system's own errors.
 */
export function countPackets(file: ReadFile): TrackCounts {
  const window = createFileWindow(file);
  const head = window.at(0).subarray(0, headBytes);
  const start = head.toString("latin1", 0, 4);
  const none: TrackCounts = new Map();
  const counts = unlessUnreadable((): TrackCounts => {
    if (start === "OggS") return ofPackets(countOggPackets(window));
    if (start === "RIFF") return ofOnlyTrack("bytes", waveBytes(window));
    const container = sniffContainer(head);
    if (container === "webm") return countBlocks(file);
    if (container === "mp4") return ofSamples(listSamples(file));
    if (container === "packed-audio") return ofOnlyTrack("packets", countFrames(window));
    return container === null ? ofOnlyTrack("packets", countFlacFrames(window)?.frames) : none;
  });
  return counts ?? none;
}

const headBytes = 4096;

/** Describes what a copy of a track lacks: packets, or bytes if it is not known how many packets both have. */
export function lostPackets(kind: string, copy: TrackCount | undefined, source: TrackCount | undefined): FileWarning[] {
  for (const unit of ["packets", "bytes"] as const) {
    const [has, had] = [copy?.[unit], source?.[unit]];
    if (has === undefined || had === undefined) continue;
    const message = `the ${kind} has ${has} ${unit}, that of its source ${had}`;
    return has < had ? [{ code: "frames_missing", message }] : [];
  }
  return [];
}

/** Whether a copy of a file with all of its tracks has all that they have. */
export function hasAllPackets(copy: string, source: string): boolean {
  const [made, had] = [packetsIn(copy), packetsIn(source)];
  return had.every((packets, i) => (made[i] ?? 0) >= packets);
}

/** Whether an audio file has what was copied into it, and that is all that its source has; of an MP4 that was cut, all that it presents. */
export function hasCopied(target: string, { packets, tables }: CopiedAudio, source: string, isCut: boolean): boolean {
  const [made = Infinity] = packetsIn(target);
  const [had = 0] = isCut ? presentedPackets(source) : packetsIn(source);
  return made >= packets - tables && packets >= had;
}

/** What is presented of a packet is rounded to ticks of the movie, often milliseconds, seconds. */
const leastPresentedS = 0.002;

/** Returns how many packets of each track of an MP4 that is not fragmented are presented by its edits. */
function presentedPackets(path: string): number[] {
  using file = openFile(path);
  return readSampleLists(file).map((list) => {
    const edits = list.track.formats[0]?.edits ?? [{ mediaTicks: 0, durationTicks: Infinity }];
    let presented = 0;
    for (let i = 0; i < list.length; i++) {
      const start = list.dts(i) - list.dts(0);
      const isPresented = edits.some(({ mediaTicks, durationTicks }) => {
        const ticks = Math.min(start + list.duration(i), mediaTicks + durationTicks) - Math.max(start, mediaTicks);
        return ticks > leastPresentedS * list.timescale;
      });
      presented += isPresented ? 1 : 0;
    }
    return presented;
  });
}

/** Returns how many packets the tracks of a file have, the most first. */
function packetsIn(path: string): number[] {
  using file = openFile(path);
  const known = [...countPackets(file).values()].flatMap(({ packets }) => packets ?? []);
  return known.toSorted((a, b) => b - a);
}

/** Describes of which of these tracks a file from which they were read has more; none of them has what another one had. */
export function lostSamples({ name, path }: SourceStream, written: readonly WrittenTrack[]): FileWarning[] {
  if (path === null) return [];
  const left = packetsIn(path);
  const own = written.filter(({ source }) => source === name);
  return own.flatMap(({ kind, samples }) => {
    const found = left.indexOf(samples);
    if (found >= 0) left.splice(found, 1);
    const more = left.filter((packets) => packets > samples);
    return found >= 0 || more.length === 0
      ? []
      : lostPackets(kind, { packets: samples }, { packets: Math.min(...more) });
  });
}

function countBlocks({ fd }: ReadFile): TrackCounts {
  const file = selectAll(fd);
  if (file === undefined) return new Map();
  const tracks = file.tracks.filter(({ kind }) => kind !== null);
  const counts = new Map(
    tracks.map((track) => [
      track.number,
      {
        packets: 0,
        bytes: 0,
        isPcm: track.codecId.startsWith("A_PCM"),
        isStart: track.kind === "video" ? createKeyCheck(file, track) : () => true,
      },
    ]),
  );
  for (const block of chosenBlocks({ ...file, tracks })) {
    const { flags, body, end } = block;
    const count = counts.get(block.track)!;
    // mediabunny begins there.
    if (count.packets === 0 && !count.isStart(block)) continue;
    count.packets += isLaced(flags) ? file.source.u8(body) + 1 : 1;
    // Bytes count of PCM only.
    const frames = count.isPcm && isLaced(flags) ? unlessUnreadable(() => framesIn(readBytes(fd, block), flags)) : [];
    count.bytes += frames?.reduce((bytes, { length }) => bytes + length, 0) || end - body;
  }
  return counts;
}

const ofSamples = (listed: ReturnType<typeof listSamples>): TrackCounts =>
  new Map([...listed].map(([id, { packets, bytes, isPcm }]) => [id, isPcm ? { bytes } : { packets, bytes }]));

const ofPackets = (counts: ReadonlyMap<number, number>): TrackCounts =>
  new Map([...counts].map(([track, packets]) => [track, { packets }]));

/** A file with one track has this number for it. */
function ofOnlyTrack(unit: keyof TrackCount, count: number | undefined): TrackCounts {
  return new Map(count === undefined ? [] : [[1, { [unit]: count }]]);
}

/** Returns how many bytes the samples of a WAV file have; undefined if it has none. */
function waveBytes(file: FileWindow): number | undefined {
  let frameBytes = 1;
  for (let at = 12; at + 8 <= file.size;) {
    const chunk = file.at(at);
    const [type, body] = [chunk.toString("latin1", 0, 4), at + 8];
    const size = Math.min(chunk.readUInt32LE(4), file.size - body);
    if (type === "fmt " && size >= 14) frameBytes = Math.max(1, file.at(body).readUInt16LE(12));
    if (type === "data") return size - (size % frameBytes);
    at = body + size + (size % 2);
  }
  return undefined;
}
