import { damagedMatroskaError, type Element, elementAt, ids } from "../../../remux/matroska/elements.ts";
import {
  type ClusterRun,
  type CuePoint,
  findCues,
  readClusterRun,
  readCues,
} from "../../../remux/matroska/clusters.ts";
import { type MatroskaHeader, readHeader } from "../../../remux/matroska/tracks.ts";
import { segmentHeader } from "../../../remux/matroska/writer.ts";
import { numbersInFile } from "../../../remux/mp4/read/number-source.ts";
import { type ByteSpan, type IndexRun, joinRuns, type MediaRange, type TrackKind } from "../../../remux/samples.ts";
import {
  isWorthwhile,
  type PartialFile,
  type PartialMedia,
  type PartialMediaOptions,
  textLeadS,
  writeParts,
} from "./partial-file.ts";

/**
 * Writes a WebM or Matroska file to `target` that has the tracks of `file`, and of its Clusters the first ones and those of
 * the ranges, as the Cues list them. The Clusters themselves decide, not what the Cues say of them. Returns `null` if there are no
 * Cues, or they have over 16 MiB, or do not lead to all that is needed.
 *
 * @throws ServiceError `upstream_invalid` if the file is damaged, or its Cues are wrong; of `file`.
 */
export async function fetchMatroskaPart(
  file: PartialFile,
  target: string,
  { ranges, audioOnly, needsTexts, onTotal, ...options }: PartialMediaOptions,
): Promise<PartialMedia | null> {
  const index = await fetchIndex(file, audioOnly);
  if (index === null) return null;
  const { borders } = index;
  const zeroS = options.zeroS ?? (await fetchZero(file, index));
  if (zeroS === null) return null;
  const wanted = ranges.map(({ startS, endS }) => ({ startS: zeroS + startS, endS: zeroS + endS }));
  let places = [{ from: 0, to: 1 }, ...wanted.map((range) => placeOf(range, borders, needsTexts ? textLeadS : slackS))];
  for (let tries = 0; tries < maxTries; tries += 1) {
    const runs = joinRuns(places);
    const spans = runs.map(({ from, to }) => ({ start: borders[from]!.at, end: borders[to]!.at }));
    const missing = file.missing(spans);
    if (!isWorthwhile(file, missing)) return null;
    onTotal(file.bytesWith(missing));
    await file.fetchMissing(missing);
    const read = spans.map((span) => readClusterRun(numbersInFile(file.fd), index.header, span));
    const wider = places.map((place, i) => {
      const run = read[runs.findIndex(({ from, to }) => from <= place.from && place.to <= to)]!;
      return i === 0 ? place : widened(place, wanted[i - 1]!, run, index);
    });
    if (wider.every((place, i) => place === places[i])) {
      await writeCompact(file, target, index, read);
      const isWhole = runs.at(-1)!.to === borders.length - 1;
      return { path: target, hasHoles: false, isWhole, zeroS, missing: missingOf(read, index, isWhole) };
    }
    places = wider;
  }
  return null;
}

const maxTries = 4;
const maxElements = 64;
const maxElementBytes = 16 << 20;

/** A part of a range: a key frame and a packet of preroll are needed before it, and after it what shows where it ends. */
const slackS = 0.1;

interface Index {
  header: MatroskaHeader;
  /** The EBML header. */
  top: Element;
  /** Where the elements are before the first Cluster that are kept. */
  kept: ByteSpan[];
  /** Numbers of the tracks that are needed, by kind. */
  tracks: Record<TrackKind, readonly number[]>;
  /** Where Clusters begin, in order, and the end. */
  borders: { at: number; timeS: number }[];
}

/** Clusters from one border to another, by their indexes. */
type Place = IndexRun;

async function fetchIndex(file: PartialFile, audioOnly: boolean): Promise<Index | null> {
  const numbers = () => numbersInFile(file.fd);
  const top = elementAt(numbers(), 0, file.size);
  const segment = elementAt(numbers(), top.end, Infinity);
  const end = Math.min(segment.end, file.size);
  const fetchElement = async (at: number): Promise<Element> => {
    await file.fetchNear({ start: at, end: Math.min(at + 16, end) });
    const element = elementAt(numbers(), at, end);
    if (!needed.has(element.id)) return element;
    if (element.end - element.body > maxElementBytes) throw damagedMatroskaError(`the element at ${at} is too large`);
    await file.fetchMissing([{ start: at, end: element.end }]);
    return element;
  };
  const kept: ByteSpan[] = [];
  let at = segment.body;
  let front: Element | undefined;
  let cuesAt: number | undefined;
  for (let count = 0; ; count += 1) {
    const element = await fetchElement(at);
    if (element.id === ids.cluster) break;
    if (element.end >= end || count === maxElements) return null;
    if (element.id === ids.seekHead) cuesAt ??= findCues(numbers(), element, segment.body);
    if (element.id === ids.cues) front = element;
    if (described.has(element.id)) kept.push({ start: at, end: element.end });
    at = element.end;
  }
  const cues = front ?? (cuesAt !== undefined && cuesAt > at && cuesAt < end ? await fetchElement(cuesAt) : undefined);
  const header = readHeader(numbers());
  if (cues?.id !== ids.cues || header === undefined) return null;
  const ofKind = (kind: TrackKind) => header.tracks.filter((track) => track.kind === kind).map(({ number }) => number);
  // As the first of several video tracks is chosen.
  const [video, audio] = [ofKind("video").slice(0, 1), ofKind("audio")];
  const points = readCues(numbers(), cues, segment.body);
  const borders = bordersOf(points, video[0] ?? audio[0], header);
  if (borders.some((border) => border.at < at || border.at >= end)) throw damagedMatroskaError("its Cues are wrong");
  const later = borders.filter((border) => border.at > at);
  if (later.length === 0) return null;
  return {
    header,
    top,
    kept,
    tracks: { video: audioOnly ? [] : video, audio },
    borders: [{ at, timeS: -Infinity }, ...later, { at: end, timeS: Infinity }],
  };
}

const described: ReadonlySet<number> = new Set([ids.info, ids.tracks, ids.chapters, ids.tags]);
const needed: ReadonlySet<number> = new Set([...described, ids.seekHead, ids.cues]);

/** Returns where the Clusters are in which Cues list blocks of a track. @throws ServiceError if their times are not in order. */
function bordersOf(points: readonly CuePoint[], track: number | undefined, { timestampScale }: MatroskaHeader) {
  const borders: Index["borders"] = [];
  const own = points.filter((point) => point.track === track);
  for (const { at, ticks } of own.toSorted((a, b) => a.at - b.at || a.ticks - b.ticks)) {
    const timeS = (ticks * timestampScale) / 1e9;
    const last = borders.at(-1);
    if (last !== undefined && timeS < last.timeS) throw damagedMatroskaError("its Cues are not in order");
    if (last?.at !== at) borders.push({ at, timeS });
  }
  return borders;
}

/** Fetches the first Clusters; returns where the time of ranges counts from, seconds of the file; `null`: it is not there. */
async function fetchZero(file: PartialFile, { header, borders, tracks }: Index): Promise<number | null> {
  const span = { start: borders[0]!.at, end: borders[1]!.at };
  if (!isWorthwhile(file, file.missing([span]))) return null;
  await file.fetchMissing([span]);
  const first = readClusterRun(numbersInFile(file.fd), header, span);
  const own = tracks.video.length > 0 ? tracks.video : tracks.audio;
  const zeroS = Math.min(...own.map((number) => first.tracks.get(number)?.startS ?? Infinity));
  return zeroS === Infinity ? null : zeroS;
}

function placeOf({ startS, endS }: MediaRange, borders: Index["borders"], leadS: number): Place {
  // The first border is before all times.
  const from = borders.findLastIndex(({ timeS }) => timeS <= startS - leadS);
  const to = borders.findIndex(({ timeS }, i) => i > from && timeS >= endS);
  return { from: Math.min(from, borders.length - 2), to };
}

/** Returns the place, or a wider one if the run that has it does not have all that the range needs. */
function widened(place: Place, { startS, endS }: MediaRange, run: ClusterRun, { tracks, borders }: Index): Place {
  const own = [...tracks.video, ...tracks.audio].map((number) => run.tracks.get(number));
  const isEarly = own.every((track) => track !== undefined && track.startS <= startS - slackS);
  const isLate = own.every((track) => track !== undefined && track.endS >= endS + slackS);
  const from = isEarly ? place.from : Math.max(0, place.from - 1);
  const to = isLate ? place.to : Math.min(borders.length - 1, place.to + 1);
  return from === place.from && to === place.to ? place : { from, to };
}

/** Returns what is not there of each kind, seconds of the file. @throws ServiceError if Clusters are not in the order of their times. */
function missingOf(runs: readonly ClusterRun[], { tracks }: Index, isWhole: boolean): PartialMedia["missing"] {
  const of = (kind: TrackKind): MediaRange[] =>
    tracks[kind].flatMap((number) => {
      const own = runs.map((run) => run.tracks.get(number) ?? { startS: Infinity, endS: -Infinity });
      const holes = own.map(({ endS }, i) => ({ startS: endS, endS: own[i + 1]?.startS ?? Infinity }));
      if (holes.some(({ startS, endS }) => startS > endS)) throw damagedMatroskaError("its Clusters are not in order");
      return isWhole ? holes.slice(0, -1) : holes;
    });
  return { video: of("video"), audio: of("audio") };
}

/** Writes the elements that are kept, and the Clusters. */
function writeCompact(
  file: PartialFile,
  target: string,
  { top, kept }: Index,
  runs: readonly ClusterRun[],
): Promise<void> {
  const spans = [...kept, ...runs.flatMap(({ clusters }) => clusters)];
  const bytes = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  return writeParts(file, target, [{ start: 0, end: top.end }, segmentHeader(bytes), ...spans]);
}
