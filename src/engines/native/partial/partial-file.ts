import { type FileHandle, open } from "node:fs/promises";
import { ServiceError } from "../../../model/errors.ts";
import { openFile, readChunks } from "../../../remux/open-file.ts";
import { type ByteSpan, joinSpans, type MediaRange, type TrackKind } from "../../../remux/samples.ts";
import type { TrackDetails } from "../../../remux/track-details.ts";
import { writeAll } from "../parts/disk-writes.ts";
import { isResumable, isSameRepresentation, type Representation } from "../parts/representation.ts";
import type { FetchedPart } from "../parts/stored-part.ts";

/** Fetches a range of a resource; its failure `upstream_invalid` says that the server does not serve it. */
type FetchRange = (range: { offset: number; length: number }) => Promise<FetchedPart>;

export interface PartialMediaOptions {
  /** What is wanted of the media, as in `CutOptions`. */
  ranges: readonly MediaRange[];
  /** Only audio is wanted, so that ranges count from its start. */
  audioOnly: boolean;
  /** Where the time of ranges counts from, seconds of the file; `null`: the media of the file themselves say so. */
  zeroS: number | null;
  /** An MP4 with holes is of use. */
  acceptsHoles: boolean;
  /** Tracks of text are wanted, too. */
  needsTexts: boolean;
  fetch: FetchRange;
  /** Called with how many bytes will be fetched. */
  onTotal: (bytes: number) => void;
}

export interface PartialChunk {
  path: string;
  /** How long what is left out before it lasts, seconds. */
  skippedS: number;
  /** Of an MP4 whose index lists all samples: where those are that it has; default: it has all. */
  within?: readonly ByteSpan[];
  /** Of the source, where the times in the file count from, seconds; default: the first one of the source is its start. */
  zeroS?: number;
}

/** What has been fetched of a file for ranges of its media. */
export interface PartialMedia {
  path: string;
  /** The files that have it, one after the other, of MP4: the first one at `path`. Default: that is the only one, and has no holes. */
  chunks?: readonly PartialChunk[];
  /** The file is an MP4 whose index lists all samples, and has none that are not needed: `cutMp4` can cut it. */
  hasHoles: boolean;
  /** Media that it lacks, seconds of the file. */
  missing: Readonly<Record<TrackKind, readonly MediaRange[]>>;
  /** Where the time of ranges counts from, seconds of the file; `null`: unknown. */
  zeroS: number | null;
  /** It has the end of the media. */
  isWhole: boolean;
  /** What else is known of its tracks if it has been converted into an MP4. */
  details?: readonly TrackDetails[];
}

/** How much earlier a text may begin that is shown when a part begins, seconds. */
export const textLeadS = 10;

/** Of the start of a file, and around what is looked at. */
export const headBytes = 64 << 10;
const maxFileBytes = 2 ** 40;

/** What lies between two spans is fetched too if it has no more bytes: a request costs more. */
const maxGapBytes = 64 << 10;

/** Above this share, one request for everything is better. */
const maxShare = 0.8;

/** Whether to fetch these spans too, rather than all of the resource. */
export function isWorthwhile(file: PartialFile, missing: readonly ByteSpan[]): boolean {
  return file.bytesWith(missing) <= maxShare * file.size;
}

/** Replaces the file at `path` by an empty one; disposing closes it. */
export async function openPartialFile(path: string, fetch: FetchRange): Promise<PartialFile> {
  return new PartialFile(path, await open(path, "w+"), fetch);
}

/** Writes bytes, and spans of the file, one after the other to `target`. */
export async function writeParts(
  { path }: PartialFile,
  target: string,
  parts: readonly (ByteSpan | Uint8Array)[],
): Promise<void> {
  using source = openFile(path);
  await using copy = await open(target, "w");
  let at = 0;
  for (const part of parts) {
    for (const chunk of part instanceof Uint8Array ? [part] : readChunks(source, part.end, part.start)) {
      await writeAll(copy, [chunk], at);
      at += chunk.length;
    }
  }
}

/** A file with some bytes of a resource, each where the resource has it. */
export class PartialFile implements AsyncDisposable {
  readonly path: string;
  /** Of the resource; 0 until something of it has been fetched. */
  size = 0;
  /** How many bytes have been fetched. */
  bytes = 0;
  readonly #handle: FileHandle;
  readonly #fetch: FetchRange;
  #representation: Representation | null = null;
  /** What is there, in order, apart from each other. */
  #spans: ByteSpan[] = [];

  constructor(path: string, handle: FileHandle, fetch: FetchRange) {
    this.path = path;
    this.#handle = handle;
    this.#fetch = fetch;
  }

  get fd(): number {
    return this.#handle.fd;
  }

  /** Returns how many bytes will have been fetched after these spans. */
  bytesWith(missing: readonly ByteSpan[]): number {
    return missing.reduce((sum, { start, end }) => sum + end - start, this.bytes);
  }

  /** Returns what is missing of these spans, and of short gaps between them, in order. */
  missing(spans: readonly ByteSpan[]): ByteSpan[] {
    return joinSpans(spans, maxGapBytes).flatMap(({ start, end }) => {
      const found: ByteSpan[] = [];
      for (const there of this.#spans) {
        if (there.end <= start || there.start >= end) continue;
        if (there.start > start) found.push({ start, end: there.start });
        start = there.end;
      }
      return start < end ? [...found, { start, end }] : found;
    });
  }

  /** Fetches what is missing of these spans. @throws as `fetch` */
  async fetchMissing(spans: readonly ByteSpan[]): Promise<void> {
    for (const span of this.missing(spans)) await this.fetch(span);
  }

  /** Fetches 64 KiB from the start of the span on, unless it has been fetched. @throws as `fetch` */
  async fetchNear(span: ByteSpan): Promise<void> {
    if (this.missing([span]).length === 0) return;
    await this.fetchMissing([{ start: span.start, end: Math.min(span.start + headBytes, this.size) }]);
  }

  /** @throws ServiceError `upstream_invalid` if the bytes may belong to another representation than those before. */
  async fetch({ start, end }: ByteSpan): Promise<void> {
    const { path, size, representation } = await this.#fetch({ offset: start, length: end - start });
    const first = (this.#representation ??= representation);
    if (first === null || representation === null || !isResumable(first)) {
      throw refused("it has no strong ETag and no Last-Modified");
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
    this.#spans = joinSpans([...this.#spans, { start, end: at }]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle.close();
  }

  async read({ start, end }: ByteSpan): Promise<Buffer> {
    const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(end - start), 0, end - start, start);
    return buffer.subarray(0, bytesRead);
  }
}

function refused(rule: string): ServiceError {
  return new ServiceError("upstream_invalid", `a file cannot be fetched in parts: ${rule}`);
}
