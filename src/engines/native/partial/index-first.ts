import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { box, type Box, childrenOf, findChild, firstBox, unlessDamaged } from "../../../remux/mp4/boxes.ts";
import { plainIndex } from "../../../remux/mp4/read/movie-index.ts";
import { hasOtherOffsets, moveChunks, withWideOffsets } from "../../../remux/mp4/positions.ts";
import { checkSampleTables } from "../../../remux/mp4/read/check-tables.ts";
import { boxAt, childBoxes, numbersIn } from "../../../remux/mp4/read/number-source.ts";
import type { FileType } from "../../../parsers/media-type.ts";
import type { ByteSpan } from "../../../remux/samples.ts";
import { openFile, readAt } from "../../../remux/open-file.ts";
import { checkEnd, type EndOfMp4 } from "./growing-file.ts";

/**
 * Fetches the end of a file before the rest of it; resolves with the path of a file with these bytes, or `null` if they cannot be had, or seem
 * to belong to another file.
 */
export type FetchEnd = (end: ByteSpan) => Promise<string | null>;

interface IndexFirstDeps {
  journal: StreamJournal;
  /** Returns what a file is that begins so; `null`: none that is wanted. */
  typeOf: (head: Buffer) => FileType | null;
  fetchEnd: FetchEnd;
  /** Gets the end of a file that is not wanted as it is, and what it begins with once it has its index in front. */
  onUnwanted: (end: EndOfMp4, head: Buffer) => void;
}

/** An MP4 of which only the first bytes are there. */
interface StartOfMp4 {
  head: Buffer;
  /** The first media data, whose header is there. */
  media: Box;
  totalBytes: number;
}

/** Returns the first media data of an MP4 if they come before its index. */
export function mediaBeforeIndex(head: Buffer): Box | undefined {
  for (let at = 0; at + 16 <= head.length;) {
    const found = boxAt(numbersIn(head), at, Infinity);
    if (found === undefined || found.type === "moov") return undefined;
    // Some files have an empty one in front.
    if (found.type === "mdat" && found.end > found.body) return found;
    at = found.end;
  }
  return undefined;
}

/** Longer ones have more than an index, as have those that are most of the file. */
const maxEndBytes = 32 << 20;
const leastRecordBytes = 64 << 10;
const headRecordBytes = 48 << 10;
const lookEveryMs = 250;
const nothing = new Uint8Array();

/**
 * Puts an MP4 whose index is at its end into a journal while it is fetched, with the index in front. Its end is fetched first, once
 * somebody wants the stream. Without the end, there is none, but for readers of an earlier run.
 */
export class IndexFirst {
  readonly #deps: IndexFirstDeps;
  readonly #start: StartOfMp4;
  readonly #end: ByteSpan;
  #nextLookMs = 0;
  /** Resolves once the stream has begun, or never will. */
  #opening: Promise<void> | undefined;
  #opened: OpenedStream | undefined;
  #isOver: boolean;

  constructor(start: StartOfMp4, deps: IndexFirstDeps) {
    this.#deps = deps;
    this.#start = { ...start, head: Buffer.from(start.head.subarray(0, start.media.start)) };
    this.#end = { start: start.media.end, end: start.totalBytes };
    const endBytes = start.totalBytes - start.media.end;
    this.#isOver = endBytes <= 0 || endBytes > Math.min(maxEndBytes, start.totalBytes / 2);
  }

  /** Call this when the file has grown. */
  onBytes(path: string): void {
    this.#attempt(() => {
      if (this.#opened !== undefined) this.#opened.send();
      else if (this.#opening === undefined && this.#isWanted()) this.#opening = this.#fetch(path);
    });
  }

  /** Call this when the file is complete. */
  end(path: string): void {
    this.#attempt(() => {
      const { journal } = this.#deps;
      // Readers of an earlier run go on.
      if (this.#opened === undefined && journal.isLater && journal.findRequest(0) !== undefined) {
        using file = openFile(path);
        this.#open(path, readAt(file, this.#end.start, this.#end.end - this.#end.start));
      }
      this.#opened?.end();
    });
    this.#isOver = true;
  }

  /** Call this when the file becomes another one. */
  break(): void {
    this.#isOver = true;
    if (this.#opened !== undefined) this.#deps.journal.break();
    this.#opened = undefined;
  }

  #attempt(call: () => void): void {
    if (this.#isOver) return;
    try {
      call();
    } catch {
      // Whoever reads the complete file says what is wrong with it.
      this.break();
    }
  }

  #isWanted(): boolean {
    const now = performance.now();
    if (now < this.#nextLookMs) return false;
    this.#nextLookMs = now + lookEveryMs;
    return this.#deps.journal.findRequest(0) !== undefined;
  }

  async #fetch(path: string): Promise<void> {
    // Whoever fetches the file says why it cannot be.
    const endPath = await this.#deps.fetchEnd(this.#end).catch(() => null);
    if (endPath !== null) this.#attempt(() => this.#open(path, readFileSync(endPath)));
  }

  #open(path: string, bytes: Buffer): void {
    const moved = moveIndex(this.#start, bytes);
    if (moved === undefined) return this.break();
    const end = { start: this.#end.start, bytes };
    const type = this.#deps.typeOf(moved.head);
    if (type === null) {
      this.break();
      return this.#deps.onUnwanted({ ...end, index: moved.index }, moved.head);
    }
    this.#opened = new OpenedStream(path, { ...moved, type, end }, this.#deps.journal);
    this.#opened.send();
  }
}

interface MovedMp4 {
  /** What comes before the media, with the index. */
  head: Buffer;
  /** Where they are in the file. */
  media: ByteSpan;
  /** As it is in the file, without compression. */
  index: Buffer;
}

/** A stream that has begun: readers get its head, then the media from the file. */
class OpenedStream {
  readonly #path: string;
  readonly #inode: number;
  readonly #media: ByteSpan;
  readonly #end: Pick<EndOfMp4, "start" | "bytes">;
  readonly #journal: StreamJournal;
  #sentTo: number;

  constructor(
    path: string,
    { head, media, type, end }: MovedMp4 & { type: FileType; end: Pick<EndOfMp4, "start" | "bytes"> },
    journal: StreamJournal,
  ) {
    this.#path = path;
    this.#inode = statSync(path).ino;
    this.#media = media;
    this.#end = end;
    this.#journal = journal;
    this.#sentTo = media.start;
    const file = join(basename(dirname(path)), basename(path));
    journal.open({ ...type, bytes: head.length + media.end - media.start, file }, false);
    const heads = Array.from({ length: Math.ceil(head.length / headRecordBytes) }, (_, i) => {
      return head.subarray(i * headRecordBytes, (i + 1) * headRecordBytes);
    });
    journal.add(heads.map((part) => ({ head: part, offset: media.start, bytes: 0 })));
  }

  /** Adds the media that are there, but for a few bytes. */
  send(): void {
    const { ino, size } = statSync(this.#path);
    if (ino !== this.#inode) throw new Error("the file was fetched again from its start");
    const { end } = this.#media;
    const offset = this.#sentTo;
    const bytes = Math.min(size, end) - offset;
    if (bytes <= 0 || (bytes < leastRecordBytes && size < end)) return;
    this.#journal.add([{ head: nothing, offset, bytes }]);
    this.#sentTo += bytes;
  }

  /** Ends the stream, if the file that is complete has the same end. */
  end(): void {
    this.send();
    if (this.#sentTo < this.#media.end) throw new Error("the file is too short");
    checkEnd(this.#path, this.#end);
    this.#journal.end();
  }
}

/** Returns an MP4 with its index in front of its media; undefined if it has none there, or one that cannot be moved. */
function moveIndex({ head, media }: StartOfMp4, end: Buffer): MovedMp4 | undefined {
  const found = childBoxes(numbersIn(end), { body: 0, end: end.length }, "moov").next().value;
  if (found === undefined) return undefined;
  const index = unlessDamaged(() => plainIndex(end.subarray(found.start, found.end), media.end + end.length));
  if (index === undefined || hasOtherOffsets(Buffer.concat([head, index]))) return undefined;
  const mediaEnd = media.end + found.start;
  return unlessDamaged(() => {
    const moov = firstBox(index);
    if (findChild(index, moov, "mvex") !== undefined) return undefined;
    const isWide = mediaEnd + index.length > 0xffffffff;
    const children = childrenOf(index, moov).map((child) => {
      return isWide ? withWideOffsets(index, child) : index.subarray(child.start, child.end);
    });
    // Its header may be shorter than that in the file.
    const front = Buffer.from(box("moov", ...children));
    for (const { start, end: trackEnd } of childrenOf(front, firstBox(front), "trak")) {
      moveChunks(front.subarray(start, trackEnd), front.length, media.start);
    }
    const moved = Buffer.concat([head, front]);
    checkSampleTables(numbersIn(moved, moved.length + mediaEnd - media.start), moved.length);
    return { head: moved, media: { start: media.start, end: mediaEnd }, index };
  });
}
