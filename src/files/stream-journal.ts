import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";
import { findRequest } from "./stream-request.ts";

/**
 * A journal in a work folder of what can be sent of a file that is being made there, for readers in any process. Its first
 * line says by how many bytes media data were moved up in that file (`moving`: they are being moved); then one record
 * per line. A later run writes another journal in its place.
 */
export const journalName = "stream.ndjson";

/** Bytes of the first line. */
export const shiftBytes = 20;
export const movingMark = "moving";

/** How often a reader looks for the journal of a later run. */
export const lookEveryMs = 1_000;

/** How often a run marks its journal, milliseconds. */
export const markStreamMs = 5_000;

export type StreamRecord =
  /** The first record: what the stream is, and which file of the folder has its media. */
  | StreamHeader
  /** Bytes in front (base64), and the media data after them: `bytes` at `offset` of the file. */
  | { type: "media"; head: string; offset: number; bytes: number }
  /** There is no more. `inode` is the file's. */
  | { type: "end"; inode: number }
  /** What follows cannot be sent. */
  | { type: "broken" };

export interface StreamHeader {
  type: "open";
  mime_type: string;
  /** Of a file name, without the dot. */
  ext: string;
  /** Path in the work folder. */
  file: string;
  /** Of a file that media records refer to; `null`: the stream is the file itself, which grows at its end. */
  inode: number | null;
  /** Of a file that grows: how many bytes its server says that it has; absent: unknown. */
  bytes?: number;
  /** Its run marks the journal; absent: that of an earlier release does not. */
  is_marked?: true;
}

export interface MediaRecord {
  head: Uint8Array;
  offset: number;
  bytes: number;
}

/**
 * Writes the journal of one run. The file does not need it: if the disk fails a call, there is no stream from then on, and
 * functions throw only if they say so. A disk that is full or broken fails what writes the file, too.
 */
export class StreamJournal {
  readonly #folder: string;
  /** There was a journal of an earlier run, which may have readers. */
  readonly isLater: boolean;
  #fd: number | undefined;
  /** When readers of an earlier run could first see that this one has begun, and what it makes. */
  #shownMs = performance.now();
  #file = "";
  #hasFailed = false;
  /** Why the end of the stream could not be written for its readers. */
  #unwrittenEnd: { error: unknown } | undefined;

  /**
   * Empties the journal of an earlier run, whose readers see that by another file in its place.
   *
   * @throws the file system's own errors: that would speak of files that are gone
   */
  constructor(folder: string) {
    this.#folder = folder;
    try {
      unlinkSync(this.#path);
      this.isLater = true;
    } catch (error) {
      this.isLater = !isMissing(error);
    }
    // Without a first record it is none.
    if (this.isLater) closeSync(openSync(this.#path, noFollow.overwrite));
  }

  get #path(): string {
    return join(this.#folder, journalName);
  }

  get isOpen(): boolean {
    return this.#fd !== undefined;
  }

  /** Begins the stream. `isGrowing`: it is the file itself, of which others only add to the end. */
  open(header: Pick<StreamHeader, "mime_type" | "ext" | "file" | "bytes">, isGrowing: boolean): void {
    if (this.#hasFailed) return;
    this.close();
    this.#attempt(() => {
      this.#file = join(this.#folder, header.file);
      const draft = `${this.#path}.new`;
      this.#fd = openSync(draft, noFollow.overwrite);
      this.#writeShift(0);
      this.#append({ type: "open", ...header, inode: isGrowing ? null : this.#inode(), is_marked: true });
      renameSync(draft, this.#path);
      this.#shownMs = performance.now();
    });
  }

  /**
   * Resolves once readers of an earlier run have had the time to find this journal, which goes with the work folder, or to see that there is
   * none: after 2 s at most.
   *
   * @throws AbortError if aborted before
   */
  async untilFound(signal: AbortSignal): Promise<void> {
    if (!this.isLater) return;
    const leftMs = this.#shownMs + 2 * lookEveryMs - performance.now();
    if (leftMs > 0) await sleep(leftMs, undefined, { signal });
  }

  add(records: readonly MediaRecord[]): void {
    this.#attempt(() =>
      this.#append(
        ...records.map(({ head, offset, bytes }) => {
          const { buffer, byteOffset, length } = head;
          const text = Buffer.from(buffer, byteOffset, length).toString("base64");
          return { type: "media" as const, head: text, offset, bytes };
        }),
      ),
    );
  }

  /** As `findRequest`; undefined too if the disk fails: no reader is known then. */
  findRequest(step: number): number | undefined {
    try {
      return findRequest(this.#folder, step);
    } catch {
      return undefined;
    }
  }

  /**
   * Says by how many bytes the media data have been moved up; `null`: they are about to be.
   *
   * @throws the file system's own errors if that cannot be written for the readers
   */
  setShift(bytes: number | null): void {
    this.#attempt(() => this.#writeShift(bytes));
    if (this.#unwrittenEnd !== undefined) throw this.#unwrittenEnd.error;
  }

  /** Says that all of it is there. */
  end(): void {
    this.#attempt(() => {
      if (this.isOpen) this.#append({ type: "end", inode: this.#inode() });
    });
    this.close();
  }

  /** Says that the rest cannot be sent. New readers find no stream. */
  break(): void {
    this.#attempt(() => {
      if (this.isOpen) this.#append({ type: "broken" });
      rmSync(this.#path, { force: true });
    });
    this.close();
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    try {
      if (fd !== undefined) closeSync(fd);
    } catch {
      // It is closed nevertheless, and all that it has was written before.
    }
  }

  /** Ends the stream if `call` throws: readers see that the journal is empty. */
  #attempt(call: () => void): void {
    try {
      call();
    } catch {
      this.#hasFailed = true;
      this.#empty();
      this.close();
    }
  }

  #empty(): void {
    try {
      if (this.#fd !== undefined) ftruncateSync(this.#fd, 0);
    } catch (error) {
      this.#unwrittenEnd = { error };
    }
  }

  #writeShift(bytes: number | null): void {
    if (this.#fd !== undefined) writeSync(this.#fd, `${`${bytes ?? movingMark}`.padEnd(shiftBytes - 1)}\n`, 0);
  }

  #inode(): number {
    return statSync(this.#file).ino;
  }

  #append(...records: StreamRecord[]): void {
    if (this.#fd === undefined) return;
    const lines = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    let at = fstatSync(this.#fd).size;
    for (let done = 0; done < lines.length;) {
      const written = writeSync(this.#fd, lines, done, lines.length - done, at);
      done += written;
      at += written;
    }
  }
}
