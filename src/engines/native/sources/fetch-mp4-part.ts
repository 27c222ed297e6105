import { type FileHandle, open } from "node:fs/promises";
import { ServiceError } from "../../../model/errors.ts";
import { readBoxHeader, viewOf } from "../../../remux/mp4/boxes.ts";
import { type ByteSpan, bytesOfCut } from "../../../remux/mp4/cut.ts";
import { readChunks, openFile } from "../../../remux/open-file.ts";
import type { MediaRange } from "../../../remux/samples.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { writeAll } from "../parts/disk-writes.ts";
import { isResumable, isSameRepresentation, type Representation } from "../parts/representation.ts";
import type { FetchedPart } from "../parts/stored-part.ts";

export interface Mp4PartOptions {
  /** Path of the file that is made. */
  path: string;
  /** What is wanted of the MP4, as in `CutOptions`. */
  ranges: readonly MediaRange[];
  /** Fetches a range of the resource; its failure `upstream_invalid` says that the server does not serve it. */
  fetch: (range: { offset: number; length: number }) => Promise<FetchedPart>;
  /** Told how many bytes will be fetched. */
  onTotal: (bytes: number) => void;
}

/**
 * Fetches what `cutMp4` needs of an MP4 that is not fragmented: its boxes without the media, and the samples of the ranges.
 * The file at `path` has them where the resource has them, and holes elsewhere.
 *
 * Returns whether it is there. It is not if the server sends no parts (RFC 9110 §14), or nothing shows that they belong to one
 * representation (§13.1.5); if the resource is no such MP4, has over 64 boxes, an index over 256 MiB or over 1 TiB; or if the
 * parts are over 1,024, or most of it.
 *
 * @throws ServiceError of `fetch`, but `upstream_invalid`; the file system's own errors.
 */
export async function fetchMp4Part({ path, ranges, fetch, onTotal }: Mp4PartOptions): Promise<boolean> {
  await using handle = await open(path, "w+");
  const file = new PartialFile(handle, fetch);
  try {
    if (!(await fetchBoxes(file))) return false;
    // A sample shows only once it is there whether a range may start at it.
    for (let tries = 0; tries < maxTries; tries += 1) {
      const missing = file.missing(bytesOfCut(path, ranges, (span) => file.missing([span]).length === 0));
      if (missing.length === 0) return true;
      if (missing.length > maxParts) return false;
      const bytes = file.bytes + missing.reduce((sum, { start, end }) => sum + end - start, 0);
      if (tries === 0 && bytes > maxShare * file.size) return false;
      onTotal(bytes);
      for (const span of missing) await file.fetch(span);
    }
    return false;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "upstream_invalid") return false;
    throw error;
  }
}

const headBytes = 64 << 10;
const maxBoxes = 64;
const maxTries = 8;
const maxIndexBytes = 256 << 20;
const maxFileBytes = 2 ** 40;

/** Twice as many as ranges need whose sound and picture lie apart; samples may be scattered all over a file. */
const maxParts = 1_024;

/** Above it, one request for all is better. */
const maxShare = 0.8;

/** What lies between two spans is fetched too if it has no more bytes: a request costs more. */
const maxGapBytes = 64 << 10;

/** Fetches the headers of the boxes of the top level, and the index (`moov`). Returns whether it lists all samples. */
async function fetchBoxes(file: PartialFile): Promise<boolean> {
  await file.fetch({ start: 0, end: headBytes });
  if (sniffContainer(await file.read({ start: 0, end: headBytes })) !== "mp4") return false;
  let hasIndex = false;
  let start = 0;
  for (let count = 0; start < file.size; count += 1) {
    const header = { start, end: Math.min(start + 16, file.size) };
    const near = { start, end: Math.min(start + headBytes, file.size) };
    for (const span of file.missing([header]).length > 0 ? file.missing([near]) : []) await file.fetch(span);
    const box = readBoxHeader(viewOf(await file.read(header)), 0, file.size - start);
    if (box.type === "moof" || count === maxBoxes) return false;
    if (box.type === "moov") {
      if (box.size > maxIndexBytes) return false;
      for (const span of file.missing([{ start, end: start + box.size }])) await file.fetch(span);
      hasIndex = true;
    }
    start += box.size;
  }
  return hasIndex;
}

/** A file with some bytes of a resource, each where the resource has it. */
class PartialFile {
  /** Of the resource; 0 until something of it has been fetched. */
  size = 0;
  /** How many bytes have been fetched. */
  bytes = 0;
  readonly #handle: FileHandle;
  readonly #fetch: Mp4PartOptions["fetch"];
  #representation: Representation | null = null;
  /** What is there, in order, apart from each other. */
  #spans: ByteSpan[] = [];

  constructor(handle: FileHandle, fetch: Mp4PartOptions["fetch"]) {
    this.#handle = handle;
    this.#fetch = fetch;
  }

  /** Returns what is not there of these spans, and of short gaps between them, in order. */
  missing(spans: readonly ByteSpan[]): ByteSpan[] {
    return joined(spans, maxGapBytes).flatMap(({ start, end }) => {
      const found: ByteSpan[] = [];
      for (const there of this.#spans) {
        if (there.end <= start || there.start >= end) continue;
        if (there.start > start) found.push({ start, end: there.start });
        start = there.end;
      }
      return start < end ? [...found, { start, end }] : found;
    });
  }

  /** @throws ServiceError `upstream_invalid` if the bytes may belong to another representation than those before. */
  async fetch({ start, end }: ByteSpan): Promise<void> {
    const { path, size, representation } = await this.#fetch({ offset: start, length: end - start });
    const first = (this.#representation ??= representation);
    if (first === null || representation === null || !isResumable(first)) {
      throw refused("it has no ETag and no Last-Modified");
    }
    if (!isSameRepresentation(first, representation, false)) throw refused("it has changed, or may have");
    if (first.total === null || first.total > maxFileBytes) throw refused(`its length is ${first.total} bytes`);
    if (this.size === 0) await this.#handle.truncate((this.size = first.total));
    using part = openFile(path);
    let at = start;
    for (const chunk of readChunks(part, size)) {
      await writeAll(this.#handle, [chunk], at);
      at += chunk.length;
    }
    this.bytes += size;
    this.#spans = joined([...this.#spans, { start, end: at }], 0);
  }

  async read({ start, end }: ByteSpan): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(end - start), 0, end - start, start);
    return buffer.subarray(0, bytesRead);
  }
}

/** Returns the spans in order, as one where at most `maxGap` bytes are between them. */
function joined(spans: readonly ByteSpan[], maxGap: number): ByteSpan[] {
  const found: ByteSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = found.at(-1);
    if (last !== undefined && span.start <= last.end + maxGap) last.end = Math.max(last.end, span.end);
    else found.push({ ...span });
  }
  return found;
}

function refused(rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `a file cannot be fetched in parts: ${rule}`);
}
