import { hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { isUpstreamError, ServiceError } from "../../../model/errors.ts";
import type { MediaFile, SegmentTiming } from "../../../remux/samples.ts";
import type { AudioLabel, TrackDetails } from "../../../remux/track-details.ts";
import { type Container, sniffContainer, sniffFile } from "../../../remux/sniff.ts";
import { decrypt } from "./encryption.ts";
import type { AbsentSegment, FetchedSegment } from "./fetch-segments.ts";
import type { FetchStats } from "./fetch-stats.ts";
import { checkEnd, type GrowingFile, type GrowingMatroska, readGrowingFragments } from "../partial/growing-file.ts";
import { openFile, readFileStart } from "../../../remux/open-file.ts";
import { readMp3Details } from "../../../remux/packed-audio/mp3-table.ts";
import type { PartialChunk, PartialMedia } from "../partial/partial-file.ts";
import type { Source, SourceName } from "./plan.ts";

/** A source as a stream of bytes in presentation order. */
export interface SourceStream {
  name: SourceName;
  /** Of its audio, as its format says. */
  label: AudioLabel;
  /** From its first bytes; `null`: unknown. */
  container: Container | null;
  /** The file that contains all of it; `null`: it comes in segments. */
  path: string | null;
  chunks: AsyncIterator<MediaChunk | AbsentSegment, unknown>;
  /** Resolves once the file is complete; absent: it is. */
  complete?: Promise<unknown>;
  /** Of a WebM or Matroska file that can be read while it is fetched. */
  growing?: GrowingMatroska;
  /** What else is known of the tracks of an MP4 that this program has converted from another container, or of an MP3 file. */
  details?: readonly TrackDetails[] | undefined;
}

/** Media that a demuxer can read at once. */
export interface MediaChunk {
  /** Bytes, valid until the next chunk is requested; or an MP4 file, which the demuxer reads itself. */
  media: Uint8Array | MediaFile;
  timing: SegmentTiming;
}

/** @throws ServiceError of the request unless the media before it, which reach `reachedS`, are complete. */
export function checkAbsent({ computed, error }: AbsentSegment, reachedS: number): void {
  const { periodEndS, segmentS } = computed;
  if (reachedS <= 0 || reachedS + segmentS <= periodEndS) throw error;
}

/** Streams a complete file. */
export function openFileStream(
  name: SourceName,
  path: string,
  label: AudioLabel = { language: null },
  timing = fileTiming,
): SourceStream {
  const container = sniffFile(path);
  const details = container === "packed-audio" ? readDetails(path) : undefined;
  return { name, label, container, path, chunks: readFileChunks(path, timing), ...(details && { details: [details] }) };
}

/** Streams a file while it is fetched, if it can be read so; else once it is complete. Rejects as the fetch does. */
export async function openGrowingStream(name: SourceName, file: GrowingFile, label: AudioLabel): Promise<SourceStream> {
  const { path, complete } = file;
  const growing = await file.openMatroska();
  if (growing !== null) return { ...openFileStream(name, path, label), complete, growing };
  const mp4 = await file.openMp4();
  if (mp4 === null) return openFileStream(name, (await complete).path, label);
  const media = mp4.isFragmented ? readGrowingFragments(mp4) : [{ path, growth: mp4.growth }];
  async function* chunks(): AsyncGenerator<MediaChunk> {
    for await (const each of media) yield { media: each, timing: fileTiming };
    await complete;
    if (file.end !== undefined) checkEnd(path, file.end);
  }
  return { name, label, container: "mp4", path, complete, chunks: chunks() };
}

/** Streams what has been fetched of a source. */
export function openPartStream(source: Source, { path, chunks, details }: PartialMedia): SourceStream {
  const { name, format } = source;
  const stream = openFileStream(name, path, format);
  if (chunks === undefined) return stream;
  const { timeline, span, ...first } = source.kind === "file" ? fileTiming : source.list.segments[0]!;
  async function* all(parts: readonly PartialChunk[]): AsyncGenerator<MediaChunk> {
    for (const { path: part, skippedS, within, zeroS } of parts) {
      const isTimed = within !== undefined || zeroS !== undefined;
      const offsetS = isTimed ? (first.offsetS ?? 0) + (zeroS ?? 0) : first.offsetS;
      yield {
        media: { path: part, within },
        timing: { timeline, offsetS, ...(span && { span }), ...(skippedS > 0 && { skippedS }) },
      };
    }
  }
  return { ...stream, path: null, chunks: all(chunks), details };
}

/**
 * Streams segments; resolves once the first one with content has been fetched.
 *
 * @param stats Counts the segments that are left out because they have no media, and those whose media were already sent.
 * @throws ServiceError `upstream_invalid` if there is none; what `segments` throws.
 */
export async function openSegmentStream(
  { name, label }: Pick<SourceStream, "name" | "label">,
  segments: AsyncIterable<FetchedSegment | AbsentSegment>,
  stats: FetchStats,
): Promise<SourceStream> {
  const chunks = readSegmentChunks(segments, stats);
  const first = await chunks.next();
  if (first.done === true) throw new ServiceError("upstream_invalid", "the manifest lists nothing that can be fetched");
  const head = first.value;
  if ("error" in head) throw head.error;
  async function* all(): AsyncGenerator<MediaChunk | AbsentSegment> {
    yield head;
    yield* chunks;
  }
  const container = head.media instanceof Uint8Array ? sniffContainer(head.media) : "mp4";
  return { name, label, container, path: null, chunks: all() };
}

const fileTiming: SegmentTiming = { timeline: 0, offsetS: null };
/** Of a file in which media are left out: its times are right, however far apart they are. */
export const partTiming: SegmentTiming = { timeline: 0, offsetS: 0 };

/** Reads a file as chunks: an MP4 file as one, any other cut at arbitrary positions. */
export async function* readFileChunks(path: string, timing = fileTiming): AsyncGenerator<MediaChunk> {
  for await (const media of mediaIn(path)) yield { media, timing };
}

async function* readSegmentChunks(
  segments: AsyncIterable<FetchedSegment | AbsentSegment>,
  stats: FetchStats,
): AsyncGenerator<MediaChunk | AbsentSegment> {
  const read = createFileReader();
  const decryptSegment = createDecrypter(stats);
  const isRepeated = createRepeatFinder();
  const isOther = createContainerCheck();
  for await (const segment of segments) {
    if ("error" in segment) {
      yield segment;
      continue;
    }
    for await (const media of mediaOf(segment, read, decryptSegment)) {
      // A server may replace a live segment by an error page: a gap in the recording, not its end.
      const container = media instanceof Uint8Array ? sniffContainer(media) : "mp4";
      const isMixed = isOther(container);
      if (isMixed && !stats.isLive) throw new ServiceError("upstream_invalid", mixedRule);
      const isGap =
        media instanceof Uint8Array && (media.length === 0 || (stats.isLive && (container === null || isMixed)));
      if (media instanceof Uint8Array && isRepeated(media, container, segment)) stats.repeated += 1;
      if (isGap) stats.missing += 1;
      else yield { media, timing: segment.timing };
    }
  }
}

/** Returns a function that says whether a segment is MP4 where the first one was MPEG-TS, or the other way round. */
function createContainerCheck() {
  let first: Container | null = null;
  return (container: Container | null): boolean => {
    if (container !== "mp4" && container !== "mpeg-ts") return false;
    first ??= container;
    return container !== first;
  };
}

const mixedRule = "a playlist of both MPEG-TS and MP4 segments cannot become one file";

const comparedBytes = 16 * 1024;

/** Creates a finder of segments that the server has already sent for another one of the same timeline. */
function createRepeatFinder() {
  const seen = new Map<string, string>();
  return (media: Uint8Array, container: Container | null, { path, isInit, timing }: FetchedSegment): boolean => {
    // Init sections have no media; packed audio without times may have the same silence twice.
    if (isInit || container === null || container === "packed-audio") return false;
    const [start, end] = [media.subarray(0, comparedBytes), media.subarray(-comparedBytes)];
    const id = `${timing.timeline} ${media.length} ${hash("sha1", start)} ${hash("sha1", end)}`;
    const known = seen.get(id);
    seen.set(id, known ?? path);
    return known !== undefined && known !== path;
  };
}

/** Larger segments are streamed; encrypted ones, which cannot be, are refused. */
const maxSegmentBytes = 128 * 1024 * 1024;

async function* mediaOf(
  segment: FetchedSegment,
  read: ReturnType<typeof createFileReader>,
  decryptSegment: ReturnType<typeof createDecrypter>,
): AsyncGenerator<MediaChunk["media"]> {
  const { path, size, key } = segment;
  if (size <= maxSegmentBytes) {
    yield await decryptSegment(read(path, size), segment);
  } else if (key === null) {
    yield* mediaIn(path);
  } else {
    const rule = `an encrypted segment has ${size} bytes, the limit is ${maxSegmentBytes}`;
    throw new ServiceError("upstream_invalid", rule);
  }
}

/** If more segments of a live stream in a row cannot be decrypted, none can. */
const maxUndecryptable = 5;

/**
 * Creates what decrypts segments. One of a live stream that its keys do not decrypt is empty, a gap in the recording: a run after one that
 * was killed may find another key under the URL.
 */
function createDecrypter({ isLive }: FetchStats) {
  let undecryptable = 0;
  return async (bytes: Buffer, { key, isInit, isOld }: FetchedSegment): Promise<Uint8Array> => {
    if (key === null) return bytes;
    try {
      const plain = await decrypt(bytes, key);
      undecryptable = 0;
      return plain;
    } catch (error) {
      undecryptable += isOld ? 0 : 1;
      if (!isLive || isInit || !isUpstreamError(error) || undecryptable > maxUndecryptable) throw error;
      return new Uint8Array();
    }
  };
}

/**
 * Creates a reader of whole files into one reused buffer: a buffer per file would fragment the heap during a
 * long download. A result is valid until the next call.
 */
function createFileReader() {
  let buffer = Buffer.alloc(0);
  return (path: string, size: number): Buffer => {
    if (buffer.length < size) buffer = Buffer.allocUnsafeSlow(Math.ceil(1.25 * size));
    return readFileStart(path, buffer.subarray(0, size));
  };
}

const chunkBytes = 8 * 1024 * 1024;

async function* mediaIn(path: string): AsyncGenerator<MediaChunk["media"]> {
  if (sniffFile(path) === "mp4") yield { path };
  else yield* createReadStream(path, { highWaterMark: chunkBytes });
}

function readDetails(path: string): TrackDetails | undefined {
  using file = openFile(path);
  return readMp3Details(file);
}
