import { rm, writeFile } from "node:fs/promises";
import { join as joinPath } from "node:path";
import * as fc from "fast-check";
import { ServiceError } from "../../../src/model/errors.ts";
import { join } from "../../media/rendition.ts";
import { defineTarget } from "../target.ts";
import { type Downloader, openDownloader } from "./download.ts";
import { stopFfmpeg } from "./ffmpeg.ts";
import { createFrameReader, type Frames } from "./frames.ts";
import { listChanges, maxNumberChange, type Mutated, mutate, mutation, type Mutation } from "./mutations.ts";
import { findFault, type Run } from "./oracle.ts";
import { createSources, type Sources } from "./sources.ts";
import { listStreams, type Part, type Stream } from "./streams.ts";

const streams = listStreams();
const input = fc.record({ stream: fc.nat(streams.length - 1), change: mutation });

interface Tools {
  sources: Sources;
  downloader: Downloader;
}
const readFrames = createFrameReader();
let tools: Promise<Tools> | undefined;
const openTools = () => (tools ??= openDownloader().then((downloader) => ({ sources: createSources(), downloader })));
const known = new Map<Stream, Promise<Known>>();

/** A right stream. Most runs need no more of it than its parts: what costs runs of ffmpeg is made for the first that needs it. */
interface Known {
  parts: readonly Part[];
  /** What other code finds in it. */
  frames(): Promise<Frames>;
  /** The stream without one of its tracks, if it has both in one part. */
  others: readonly (() => Promise<readonly Part[]>)[];
}

type Outcome = "right" | "refused" | "warned" | "unchanged";
/** How many runs ended so. */
const counts: Record<Outcome, number> = { right: 0, refused: 0, warned: 0, unchanged: 0 };

/** Changed streams: the result is right, refused, or has a warning. */
export const streamsTarget = defineTarget({
  name: "streams",
  input,
  prepare: (value) => value,
  run: ({ stream, change }) => compareWithOracle(streams[stream]!, change),
  check(outcome) {
    if ("error" in outcome) throw outcome.error;
    counts[outcome.value] += 1;
  },
  stallFactor: Infinity,
  atOnce: 12,
  shortRuns: 6,
  summary: () => JSON.stringify(counts),
  async close() {
    const open = await tools;
    open?.sources.remove();
    await open?.downloader.close();
    stopFfmpeg();
    tools = undefined;
    known.clear();
  },
});

/** @throws Error if the result is wrong, and nothing says so. */
async function compareWithOracle(stream: Stream, change: Mutation): Promise<Outcome> {
  const { downloader } = await openTools();
  const right = await read(stream);
  const silent = change.kind === "silent" ? await right.others[change.other % right.others.length]?.() : undefined;
  const mutated = mutate(right.parts, change, silent);
  if (
    (change.hasLength && isEqual(mutated, right.parts)) ||
    isBeyondEnd(stream, change) ||
    hasOtherPieces(stream, change)
  )
    return "unchanged";
  const hasLength = !stream.isFile || change.hasLength;
  const folder = await downloader.newFolder();
  try {
    const laid = { ...lay(stream, mutated), hasLength };
    const { made, listed } = await downloader.run(laid, { options: stream.options, folder });
    if (made.warnings.length > 0) {
      if (isRight(stream, change, mutated))
        throw new Error(`${describe(stream, change)}: ${JSON.stringify(made.warnings)}`);
      return "warned";
    }
    const rightFrames = await right.frames();
    const kinds = (["video", "audio"] as const).filter(
      (kind) =>
        rightFrames[kind].length > 0 && listed[kind] !== "none" && !(kind === "video" && stream.options.audioOnly),
    );
    const frames = await readFrames(made.path, {
      video: kinds.includes("video"),
      audio: kinds.includes("audio"),
      ...audioKind(stream, isReordered(change)),
    });
    const source = hasOtherNumbers(stream, change)
      ? await readFiles(stream, right.parts, folder, { kinds, isRenumbered: true })
      : rightFrames;
    const fault = await findFaultOf(frames, {
      stream,
      change,
      mutated,
      right: { parts: right.parts, frames: source },
      kinds,
      folder,
    });
    if (fault === null) return "right";
    throw new Error(`${describe(stream, change)}: ${fault}`);
  } catch (error) {
    if (error instanceof ServiceError && error.code !== "internal") return "refused";
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const describe = ({ name }: Stream, change: Mutation): string => `${name}: ${JSON.stringify(change)}`;

/** Whether the manifest says everything that is unusual in the media: a warning would be a false alarm. */
const isRight = (stream: Stream, change: Mutation, mutated: Mutated): boolean =>
  change.isAnnounced && isReordered(change) && stream.name.startsWith("HLS ") && runsOf(stream, mutated) !== null;

interface Case {
  stream: Stream;
  change: Mutation;
  mutated: Mutated;
  right: { parts: readonly Part[]; frames: Frames };
  kinds: readonly ("video" | "audio")[];
  folder: string;
}

/** Compares with the right stream, or with what other code finds in a stream that says something else. */
async function findFaultOf(
  made: Frames,
  { stream, change, mutated, right, kinds, folder }: Case,
): Promise<string | null> {
  const saysOther = change.kind === "number" || (stream.isFile && change.kind !== "end");
  // A track that is not asked for may be damaged: ffmpeg would stop there.
  const found = saysOther
    ? await readFiles(stream, mutated.parts, folder, { kinds, isRenumbered: isReordered(change) })
    : right.frames;
  // What ffmpeg refuses, others may play; and of fragments it does not read all edits.
  const whole = kinds.every((kind) => found[kind].length > 0) ? found : right.frames;
  const source = change.kind === "end" && isCutBetweenFrames(stream, mutated, right) ? startOf(whole, made) : whole;
  const slackSamples = change.kind === "number" ? slackOfNumber(stream) : 0;
  const isBetween = mutated.parts[0]?.rendition.pieces.at(-1)?.data.length === 0;
  const fault = findFault(made, source, kinds, stream.isFile ? null : runsOf(stream, mutated), slackSamples);
  return fault !== null && isUnstated(stream, change, { made, source: right.frames, isBetween, kinds }) ? null : fault;
}

/**
 * Of audio whose edit list has changed. ffmpeg ends an edit after a whole packet; Opus that was extracted ends where the edit does, within
 * a packet of 20 ms (ISO/IEC 14496-12 §8.6.6, RFC 7845 §4.4).
 */
function slackOfNumber({ isFile, codecs, options }: Stream): number {
  if (!isFile) return maxNumberChange;
  return codecs.includes("opus") && options.audioOnly === true ? 960 : 0;
}

/** What a file has after the end that it states is none of it. */
const isBeyondEnd = ({ isFile, options }: Stream, { kind }: Mutation): boolean =>
  isFile && Object.keys(options).length > 0 && ["double", "repeat", "swap", "replace"].includes(kind);

/** What is listed of each track is of other times. */
const hasOtherPieces = ({ audioPieceS, options }: Stream, { kind }: Mutation): boolean =>
  audioPieceS !== undefined && options.audioOnly !== true && listChanges.includes(kind);

/** Frames of audio in no container, each of which begins with such a word: nothing says how many there are. */
const bareFrame = /^(?:\xff[\xe0-\xff]|\x0b\x77)/;

function isCutBetweenFrames({ name }: Stream, { parts }: Mutated, right: Case["right"]): boolean {
  if (!/^(?:aac|ac3) |xing 0/.test(name)) return false;
  const cut = join(parts[0]!.rendition).length;
  return bareFrame.test(join(right.parts[0]!.rendition).toString("latin1", cut, cut + 2));
}

const startOf = (whole: Frames, { audio, samples }: Frames): Frames => ({
  ...whole,
  audio: whole.audio.slice(0, audio.length),
  samples,
});

const audioKind = ({ codecs }: Stream, isRenumbered: boolean) => ({
  isAac: codecs.some((codec) => codec.startsWith("aac")),
  isFlac: codecs.includes("flac") && isRenumbered,
});

const hasOtherNumbers = ({ codecs }: Stream, change: Mutation): boolean =>
  isReordered(change) && codecs.includes("flac");

/** Whether frames that are numbered may get other numbers. */
const isReordered = ({ kind }: Mutation): boolean => listChanges.includes(kind);

/**
 * MPEG-TS does not say how many packets its last PES packets have, and no list says to 0.25 s where each of its tracks ends: what
 * is lost of that is less than a list is exact. Of a file of MPEG-TS, nothing says where it ends, of fragments nothing says
 * how many there are. Tracks apart may end so far
 * from each other, too: that the last piece of one of them is not listed, has nothing of it, or does not exist, is nothing that
 * a list says.
 */
function isUnstated(
  { name, isFile }: Stream,
  { kind }: Mutation,
  { made, source, isBetween, kinds }: { made: Frames; source: Frames; isBetween: boolean; kinds: Case["kinds"] },
): boolean {
  const isEnd = ["cut", "end", "hole", "silent", "drop"].includes(kind) && /TS|mpegts|^ts/.test(name);
  const isUnlisted = ["drop", "missing", "silent"].includes(kind) && /apart|^DASH|fMP4/.test(name);
  const isCounted = !(isFile && isBetween && name.includes("frag"));
  if (!isEnd && !isUnlisted && isCounted) return false;
  return kinds.every((track) => {
    const lost = source[track].findIndex(({ hash }, index) => hash !== made[track][index]?.hash);
    return lost < 0 || isFile || source[track].at(-1)!.atS - source[track][lost]!.atS < 0.25;
  });
}

function read(stream: Stream): Promise<Known> {
  const found = known.get(stream) ?? readNew(stream);
  known.set(stream, found);
  return found;
}

async function readNew(stream: Stream): Promise<Known> {
  const { sources, downloader } = await openTools();
  const parts = await stream.make(sources);
  const { makeWithout } = stream;
  // A segment of audio alone begins elsewhere.
  const left = (["video", "audio"] as const).slice(stream.options.audioOnly === true ? 1 : 0);
  return {
    parts,
    frames: once(async () => {
      const folder = await downloader.newFolder();
      const frames = await readFiles(stream, parts, folder);
      await rm(folder, { recursive: true });
      return frames;
    }),
    others: makeWithout === undefined ? [] : left.map((kind) => once(() => makeWithout(kind, sources))),
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

interface Wanted {
  kinds: Case["kinds"];
  /** Frames of audio are compared without their numbers. */
  isRenumbered: boolean;
}

/** Returns what ffmpeg finds of `kinds` in parts, of which each is joined to a file. */
async function readFiles(
  stream: Stream,
  parts: readonly Part[],
  folder: string,
  wanted: Wanted = { kinds: ["video", "audio"], isRenumbered: false },
): Promise<Frames> {
  const frames: Frames = { video: [], audio: [], samples: 0 };
  for (const [index, part] of parts.entries()) {
    const path = joinPath(folder, `source-${index}.${part.ext}`);
    await writeFile(path, join(part.rendition));
    const own = await readFrames(path, kindsOf(stream, part, wanted));
    if (own.video.length > 0) frames.video = own.video;
    if (own.audio.length > 0) Object.assign(frames, { audio: own.audio, samples: own.samples });
  }
  return frames;
}

const kindsOf = (stream: Stream, { kind }: Part, { kinds, isRenumbered }: Wanted) => ({
  video: kind !== "audio" && kinds.includes("video"),
  audio: kind !== "video" && kinds.includes("audio"),
  ...audioKind(stream, isRenumbered),
});

function lay(stream: Stream, { parts }: Mutated) {
  const laid = stream.lay(parts);
  for (const { rendition } of parts) {
    for (const { data, isMissing } of rendition.pieces) {
      if (!isMissing) continue;
      for (const [path, { body }] of laid.resources) if (body.equals(data)) laid.resources.delete(path);
    }
  }
  return laid;
}

/** What is listed, in runs; `null`: not the same of all tracks, or the server has something else. */
function runsOf(stream: Stream, { parts, isListing }: Mutated): Run[] | null {
  const { options, audioPieceS = stream.pieceS } = stream;
  const pieceS = options.audioOnly === true ? audioPieceS : stream.pieceS;
  const wanted = options.audioOnly === true ? parts.filter(({ kind }) => kind !== "video") : parts;
  const [first, ...others] = wanted.map(({ rendition }) => rendition.pieces.map(({ index }) => index));
  if (!isListing || others.some((each) => each.join() !== first?.join())) return null;
  const runs: Run[] = [];
  let previous: number | undefined;
  for (const index of first ?? []) {
    if (previous !== undefined && index === previous + 1) runs.at(-1)!.toS += pieceS;
    else runs.push({ fromS: index * pieceS, toS: (index + 1) * pieceS });
    previous = index;
  }
  return runs;
}

function isEqual({ parts }: Mutated, right: readonly Part[]): boolean {
  return (
    parts.length === right.length &&
    parts.every(({ rendition }, index) => {
      const { pieces, init } = right[index]!.rendition;
      const isInitEqual = init === null || rendition.init!.equals(init);
      return (
        isInitEqual &&
        rendition.pieces.length === pieces.length &&
        rendition.pieces.every(({ data, isMissing }, i) => !isMissing && data.equals(pieces[i]!.data))
      );
    })
  );
}
