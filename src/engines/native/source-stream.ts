import { createReadStream } from "node:fs";
import { ServiceError } from "../../errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { DownloadJob } from "../engine.ts";
import { readFileStart } from "./file-start.ts";
import type { Meter } from "./meter.ts";
import type { FetchedPart, Part, PartStore } from "./part-store.ts";
import { decipher, fetchSegments, type FetchedSegment } from "./fetch-segments.ts";
import type { Source, SourceName } from "./plan.ts";
import type { SegmentTiming } from "../../remux/samples.ts";
import { type Container, sniffContainer } from "../../remux/sniff.ts";

export interface SourceStreamContext {
  job: DownloadJob;
  client: HttpClient;
  parts: PartStore;
  meter: Meter;
  signal: AbortSignal;
  /** Requests at a time. */
  concurrentFragments: number;
}

/** A source as a stream of bytes in the order of the presentation. */
export interface SourceStream {
  name: SourceName;
  /** What its first bytes are; `null`: nothing known. */
  container: Container | null;
  /** The file that all of it is in already; `null`: it comes in segments. */
  path: string | null;
  chunks: AsyncIterator<MediaChunk, unknown>;
}

/** What a demuxer can take at once. */
export interface MediaChunk {
  /** Bytes, valid until the next chunk is requested; or an MP4 file, which the demuxer reads itself. */
  media: Uint8Array | MediaFile;
  place: SegmentTiming;
}

export interface MediaFile {
  path: string;
}

type FileSource = Extract<Source, { kind: "file" }>;
type SegmentSource = Extract<Source, { kind: "segments" }>;

/** Begins to fetch; the promise gives the lane once its kind is known. */
export function openSourceStream(
  source: Source,
  context: SourceStreamContext,
): Promise<SourceStream> {
  return source.kind === "file"
    ? openFileStream(source, context)
    : openSegmentStream(source, context);
}

async function openFileStream(
  source: FileSource,
  context: SourceStreamContext,
): Promise<SourceStream> {
  const { path } = await fetchFile(source, context);
  return { name: source.name, container: sniffFile(path), path, chunks: readFileChunks(path) };
}

function sniffFile(path: string): Container | null {
  return sniffContainer(readFileStart(path, Buffer.alloc(8192)));
}

async function openSegmentStream(
  source: SegmentSource,
  context: SourceStreamContext,
): Promise<SourceStream> {
  const chunks = segmentChunks(source, context);
  const first = await chunks.next();
  if (first.done === true) {
    throw new ServiceError("upstream_invalid", "the manifest lists nothing that can be fetched");
  }
  async function* whole(head: MediaChunk): AsyncGenerator<MediaChunk> {
    yield head;
    yield* chunks;
  }
  const { media } = first.value;
  const container = media instanceof Uint8Array ? sniffContainer(media) : "mp4";
  return { name: source.name, container, path: null, chunks: whole(first.value) };
}

/** Fetches a progressive file whole. */
export function fetchFile(
  { name, url }: FileSource,
  context: SourceStreamContext,
): Promise<FetchedPart> {
  return fetchPart({ name, url, range: null }, name, context);
}

async function fetchPart(
  part: Part,
  source: SourceName,
  context: SourceStreamContext,
): Promise<FetchedPart> {
  const { parts, meter, signal } = context;
  const fetched = await parts.fetch(part, {
    signal,
    onStart: ({ total }) => meter.expect(source, total),
    onBytes: () => meter.tick(),
  });
  meter.tick();
  return fetched;
}

const wholeFile: SegmentTiming = { timeline: 0, offsetS: null };

/** The medium that is all in the file at `path`. */
export async function* readFileChunks(path: string): AsyncGenerator<MediaChunk> {
  for await (const media of mediaIn(path)) yield { media, place: wholeFile };
}

async function* segmentChunks(
  source: SegmentSource,
  context: SourceStreamContext,
): AsyncGenerator<MediaChunk> {
  const { client, signal, job, concurrentFragments, meter } = context;
  const pieces = fetchSegments(source, {
    fetch: (part) => fetchPart(part, source.name, context),
    client,
    signal,
    maxLiveS: job.maxLiveS,
    ahead: 2 * concurrentFragments,
    onPiece: (seconds, bytes) => meter.add(source.name, seconds, bytes),
  });
  const read = createReader();
  for await (const piece of pieces) {
    for await (const media of mediaOf(piece, read)) {
      // What a live stream shows in place of a segment is a gap in the recording, not its end.
      const isGap =
        media instanceof Uint8Array &&
        (media.length === 0 || (source.liveMemory !== null && sniffContainer(media) === null));
      if (!isGap) yield { media, place: piece.place };
    }
  }
}

/** A bigger piece is not read at once, as one that is encrypted must be. */
const maxPieceBytes = 128 * 1024 * 1024;

async function* mediaOf(
  { path, size, cipher }: FetchedSegment,
  read: ReturnType<typeof createReader>,
): AsyncGenerator<Uint8Array | MediaFile> {
  if (size <= maxPieceBytes) {
    const bytes = read(path, size);
    yield cipher === null ? bytes : decipher(bytes, cipher);
  } else if (cipher === null) {
    yield* mediaIn(path);
  } else {
    const rule = `an encrypted segment may have ${maxPieceBytes} bytes, this one has ${size}`;
    throw new ServiceError("upstream_invalid", rule);
  }
}

/**
 * Reads whole files into one and the same memory: a buffer for each would leave holes behind in which the
 * memory of a long download grows. What it gives holds until it is called again.
 */
function createReader() {
  let memory = Buffer.alloc(0);
  return (path: string, size: number): Buffer => {
    if (memory.length < size) memory = Buffer.allocUnsafeSlow(Math.ceil(1.25 * size));
    return readFileStart(path, memory.subarray(0, size));
  };
}

const chunkBytes = 8 * 1024 * 1024;

/** All containers but MP4 can be cut anywhere. */
async function* mediaIn(path: string): AsyncGenerator<Uint8Array | MediaFile> {
  if (sniffFile(path) === "mp4") yield { path };
  else yield* createReadStream(path, { highWaterMark: chunkBytes });
}
