import { open, readFile } from "node:fs/promises";
import { ServiceError } from "../../errors.ts";
import type { HttpClient } from "../../net/client.ts";
import type { DownloadJob } from "../engine.ts";
import type { Meter } from "./meter.ts";
import type { FetchedPart, Part, Parts } from "./parts.ts";
import { decipher, fetchPieces, type Piece } from "./pieces.ts";
import type { Source, SourceName } from "./plan.ts";
import { fragmentsOf } from "./remux/fmp4-file.ts";
import type { PiecePlace } from "./remux/samples.ts";
import { type Container, sniffContainer } from "./remux/sniff.ts";

export interface LaneContext {
  job: DownloadJob;
  client: HttpClient;
  parts: Parts;
  meter: Meter;
  signal: AbortSignal;
  /** Requests at a time. */
  concurrentFragments: number;
  /** Hash a file as it comes; default false. */
  hash?: boolean;
}

/** A source as a stream of bytes in the order of the presentation. */
export interface Lane {
  name: SourceName;
  /** What its first bytes are; `null`: nothing known. */
  container: Container | null;
  /** The file that all of it is in already; `null`: it comes in segments. */
  path: string | null;
  chunks: AsyncIterator<Chunk, unknown>;
}

/** Bytes that a demuxer can take at once. */
export interface Chunk {
  bytes: Uint8Array;
  place: PiecePlace;
}

type FileSource = Extract<Source, { kind: "file" }>;
type SegmentSource = Extract<Source, { kind: "segments" }>;

/** Begins to fetch; the promise gives the lane once its kind is known. */
export function openLane(source: Source, context: LaneContext): Promise<Lane> {
  return source.kind === "file" ? openFileLane(source, context) : openSegmentLane(source, context);
}

async function openFileLane(source: FileSource, context: LaneContext): Promise<Lane> {
  const { path } = await fetchFile(source, context);
  const file = await open(path, "r");
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(8192) });
    const container = sniffContainer(buffer.subarray(0, bytesRead));
    return { name: source.name, container, path, chunks: readFragments(path) };
  } finally {
    await file.close();
  }
}

async function openSegmentLane(source: SegmentSource, context: LaneContext): Promise<Lane> {
  const chunks = segmentChunks(source, context);
  const first = await chunks.next();
  if (first.done === true) {
    throw new ServiceError("upstream_invalid", "the manifest lists nothing that can be fetched");
  }
  async function* whole(head: Chunk): AsyncGenerator<Chunk> {
    yield head;
    yield* chunks;
  }
  const container = sniffContainer(first.value.bytes);
  return { name: source.name, container, path: null, chunks: whole(first.value) };
}

/** Fetches a progressive file whole. */
export function fetchFile({ name, url }: FileSource, context: LaneContext): Promise<FetchedPart> {
  return fetchPart({ name, url, range: null }, name, context);
}

async function fetchPart(
  part: Part,
  source: SourceName,
  context: LaneContext,
): Promise<FetchedPart> {
  const { parts, meter, signal, hash = false } = context;
  const fetched = await parts.fetch(part, {
    signal,
    hash,
    onStart: ({ total }) => meter.expect(source, total),
    onBytes: () => meter.tick(),
  });
  meter.tick();
  return fetched;
}

const wholeFile: PiecePlace = { timeline: 0, offsetS: null };

/** The MP4 file at `path`, a fragment at a time. */
export async function* readFragments(path: string): AsyncGenerator<Chunk> {
  for (const bytes of fragmentsOf(path)) yield { bytes, place: wholeFile };
}

async function* segmentChunks(source: SegmentSource, context: LaneContext): AsyncGenerator<Chunk> {
  const { client, signal, job, concurrentFragments, meter } = context;
  const pieces = fetchPieces(source, {
    fetch: (part) => fetchPart(part, source.name, context),
    client,
    signal,
    maxLiveS: job.maxLiveS,
    ahead: 2 * concurrentFragments,
    onPiece: (seconds, bytes) => meter.add(source.name, seconds, bytes),
  });
  for await (const piece of pieces) {
    for await (const bytes of bytesOf(piece)) yield { bytes, place: piece.place };
  }
}

/** A bigger piece is read a fragment at a time, which only MP4 allows. */
const maxPieceBytes = 128 * 1024 * 1024;

async function* bytesOf({ path, size, cipher }: Piece): AsyncGenerator<Uint8Array> {
  if (size <= maxPieceBytes) {
    const bytes = await readFile(path);
    yield cipher === null ? bytes : decipher(bytes, cipher);
  } else if (cipher === null) {
    yield* fragmentsOf(path);
  } else {
    const rule = `an encrypted segment may have ${maxPieceBytes} bytes, this one has ${size}`;
    throw new ServiceError("upstream_invalid", rule);
  }
}
