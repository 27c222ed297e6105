import { type Cue, moveCue } from "../../remux/additions.ts";
import { type Box, boxesIn, childrenOf, damagedError, findChild, firstBox, getChild } from "../../remux/mp4/boxes.ts";
import { readIndexAt } from "../../remux/mp4/read/movie-index.ts";
import { fileBoxes, readFully } from "../../remux/mp4/read/file-boxes.ts";
import { readFileFragments } from "../../remux/mp4/read/listed-samples.ts";
import { chapterTrackIds, readTrackHeader } from "../../remux/mp4/read/headers.ts";
import { createBudget, type IndexedSample, maxFileSamples } from "../../remux/mp4/read/indexed-sample.ts";
import { readMovie, readTrackTimes, type TimedTrack } from "../../remux/mp4/read/init.ts";
import { numbersIn } from "../../remux/mp4/read/number-source.ts";
import { readTrackTables } from "../../remux/mp4/read/sample-tables.ts";
import type { OpenFile } from "../../remux/open-file.ts";
import type { ByteSpan, MediaRange } from "../../remux/samples.ts";
import { joinCues } from "../join.ts";
import { readSample, readTextFormat } from "../mp4-text.ts";
import { readTimedText, readTimedTextFormat, type TextFrame } from "./timed-text-sample.ts";

/** Codecs of text by their sample entries. */
export const mp4TextCodecs: ReadonlySet<string> = new Set(["tx3g", "text", "wvtt", "stpp"]);

const maxSamples = 500_000;

interface Mp4Track extends TimedTrack {
  /** The index (`moov`). */
  index: Uint8Array;
  tables: Box;
  /** Of the picture. */
  frame: TextFrame;
}

/** Gets the number of bytes of text that are read. May throw, to end that. */
export type CountBytes = (bytes: number) => void;

type FiledSample = readonly [IndexedSample<unknown>, OpenFile];

/**
 * Returns a function for each of these text tracks of an MP4 that reads its cues, in order. Their times are those of the presentation. What
 * a file has not fetched, and is filled with zeros, has no cues.
 *
 * @param further Have further fragments of it.
 * @throws ServiceError `upstream_invalid`, here and later, if it is damaged; the file system's own errors.
 */
export function openMp4Tracks(
  file: OpenFile,
  ids: readonly number[],
  further: readonly OpenFile[] = [],
): Map<number, (count: CountBytes) => Iterable<Cue>> {
  const tracks = readTracks(file).filter(({ id }) => ids.includes(id));
  const fragments = readTextFragments([file, ...further], tracks);
  function* all(track: Mp4Track): Generator<FiledSample> {
    for (const sample of samplesOf(file, track)) yield [sample, file];
    yield* fragments.get(track)!;
  }
  return new Map(tracks.map((track) => [track.id, (count) => cuesOf(all(track), track, count)]));
}

/** Returns the samples of tracks of text in fragments, by track. */
function readTextFragments(
  files: readonly OpenFile[],
  tracks: readonly Mp4Track[],
): ReadonlyMap<Mp4Track, FiledSample[]> {
  const found = new Map(tracks.map((track) => [track, [] as FiledSample[]]));
  if (tracks.length === 0) return found;
  let left = maxSamples;
  const nextDts = new Map<Mp4Track, number>();
  for (const file of files) {
    const context = { tracks, nextDts, budget: createBudget(file.size, maxFileSamples) };
    for (const runs of readFileFragments(file, context)) {
      for (const sample of runs.flatMap(({ samples }) => samples)) {
        if (left-- === 0) throw damagedError(`it has over ${maxSamples} samples of text`);
        found.get(sample.track)!.push([sample, file]);
      }
    }
  }
  return found;
}

/**
 * Returns where the samples of the tracks of chapters, and of all other text if that is wanted, are that are shown in these parts of the
 * presentation, seconds. @throws as `openMp4Tracks`
 */
export function textSpansOf(file: OpenFile, ranges: readonly MediaRange[], isTextWanted: boolean): ByteSpan[] {
  const tracks = readTracks(file);
  const source = tracks[0] && numbersIn(tracks[0].index);
  const chapters = source && chapterTrackIds(source, firstBox(tracks[0]!.index));
  return tracks
    .filter(({ id }) => isTextWanted || chapters?.has(id))
    .flatMap((track) =>
      samplesOf(file, track)
        .filter((sample) => {
          const { startS, endS } = shownAt(sample, track);
          return ranges.some((range) => startS < range.endS && endS > range.startS);
        })
        .map(({ offset, size }) => ({ start: offset, end: offset + size }))
        .toArray(),
    );
}

function readTracks(file: OpenFile): Mp4Track[] {
  const moov = fileBoxes(file.fd, file.size).find(({ type }) => type === "moov");
  if (moov === undefined) return [];
  const index = readIndexAt(file, moov);
  const movie = readMovie(index, firstBox(index));
  const traks = childrenOf(index, firstBox(index), "trak");
  const headers = traks.map((trak) => readTrackHeader(index, getChild(index, trak, "tkhd")));
  const [width, height] = (["width", "height"] as const).map((side) => Math.max(...headers.map((each) => each[side])));
  return traks.flatMap((trak, i) => {
    const tables = getChild(index, trak, "mdia", "minf", "stbl");
    if (!mp4TextCodecs.has(entryOf(index, tables)?.type ?? "")) return [];
    const { matrix } = headers[i]!;
    const [left, top] = [matrix[6]! / 65536, matrix[7]! / 65536];
    const frame = { left, top, width: width!, height: height! };
    return [{ index, tables, frame, ...readTrackTimes(index, trak, movie) }];
  });
}

function entryOf(index: Uint8Array, tables: Box): Box | undefined {
  const stsd = findChild(index, tables, "stsd");
  return stsd && boxesIn(index, stsd.body + 8, stsd.end).next().value;
}

function samplesOf(file: OpenFile, track: Mp4Track): Generator<IndexedSample<unknown>> {
  return readTrackTables(track.index, track, createBudget(file.size, maxSamples));
}

function shownAt({ pts, duration }: IndexedSample<unknown>, { timescale, shiftTicks }: Mp4Track): MediaRange {
  return { startS: (pts - shiftTicks) / timescale, endS: (pts + duration - shiftTicks) / timescale };
}

function cuesOf(samples: Iterable<FiledSample>, track: Mp4Track, count: CountBytes): Iterable<Cue> {
  const { index, tables, timescale, shiftTicks, frame } = track;
  const entry = entryOf(index, tables)!;
  const { type: codec } = entry;
  if (codec === "wvtt" || codec === "stpp") {
    const format = readTextFormat(index, getChild(index, tables, "stsd"), codec);
    const shiftS = shiftTicks / timescale;
    const read = ({ pts, duration }: IndexedSample<unknown>, bytes: Uint8Array) => {
      const [startS, endS] = [pts / timescale, (pts + duration) / timescale];
      const cues = readSample(bytes, { start: 0, end: bytes.length, startS, endS }, format);
      return cues.map((cue) => moveCue(cue, -shiftS));
    };
    // A cue that lasts while others begin is in several samples.
    return joinCues([...readSamples(samples, count)].map(([sample, bytes]) => read(sample, bytes)));
  }
  const format = readTimedTextFormat(index, entry, frame);
  return readSamples(samples, count).flatMap(([sample, bytes]) => {
    const shown = readTimedText(bytes, format);
    return shown === null ? [] : [{ ...shown, ...shownAt(sample, track) }];
  });
}

/** Yields the samples that have something, with their bytes. */
function* readSamples(
  samples: Iterable<FiledSample>,
  count: CountBytes,
): Generator<readonly [IndexedSample<unknown>, Uint8Array]> {
  for (const [sample, { fd }] of samples) {
    count(sample.size);
    const bytes = readFully(fd, Buffer.alloc(sample.size), sample.offset);
    if (bytes.some((byte) => byte !== 0)) yield [sample, bytes];
  }
}
