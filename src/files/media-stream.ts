import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./disk-error.ts";
import { journalName, lookEveryMs, markStreamMs, type MediaRecord, type StreamRecord } from "./stream-journal.ts";
import { RecordDigest } from "./record-digest.ts";
import { FetchedAgain, layOut, openRun, refetchedError, StreamBrokenError, type StreamRun } from "./stream-run.ts";
import { haveSameStart } from "./same-start.ts";

/**
 * Reads the stream of a file that a task is making, from its first byte on, in any process. It can be read on after the work folder was
 * removed. If a later run makes the file again, the stream continues with that if it has the same media so far.
 */
export interface MediaStream {
  readonly mimeType: string;
  /** Of a file name, without the dot. */
  readonly ext: string;
  /** How many bytes it is said to have; `null`: unknown. */
  readonly bytes: number | null;
  /**
   * Reads the next bytes into this memory; returns how many they are, `null` if there are none now, `"end"` if there will be none.
   *
   * @throws StreamBrokenError if what was sent does not continue
   */
  read(into: Buffer): Promise<number | "end" | null>;
  /**
   * When its run was last seen to write or to mark it, by `performance.now()`; at first: when it was opened. Infinity of a run that marks
   * nothing, which may be alive.
   */
  readonly aliveMs: number;
  /** Safe to call twice. */
  close(): Promise<void>;
}

/** Opens the stream in a work folder; undefined if there is none now. @throws the file system's own errors */
export async function openMediaStream(folder: string): Promise<MediaStream | undefined> {
  const run = await openRun(folder);
  return run && new JournalStream(folder, run);
}

class JournalStream implements MediaStream {
  readonly mimeType: string;
  readonly ext: string;
  readonly bytes: number | null;
  #aliveMs = performance.now();
  readonly #folder: string;
  #run: StreamRun;
  /** The newest run, if it is another one; kept open, as its folder goes when it has succeeded. */
  #later: StreamRun | undefined;
  /** A later run has begun: the end of this one is not that of the task. */
  #isSuperseded = false;
  /** A later run that succeeds takes its journal with it, and a client may read nothing for long. */
  readonly #looks = setInterval(() => this.#look(), lookEveryMs).unref();
  /** What is done with the files comes one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Bytes that were returned of the file if that is the stream itself, else of the first of `#records`. */
  #position = 0;
  /** The records of media that were found and not returned in full. */
  readonly #records: MediaRecord[] = [];
  /** The record after them that ends the journal; undefined: it may go on. */
  #last: "end" | "broken" | undefined;
  /** If the file is the stream itself: inode of the one that is complete; undefined: it may grow. */
  #endInode: number | undefined;
  readonly #again = new FetchedAgain();
  /** By how many bytes the media data were moved up, which happens once at most; `null`: that must be read. */
  #shift: number | null = null;
  /** All records that were found. */
  #found = new RecordDigest();
  /** When the newest journal was written or marked, by its file system. */
  #markedMs = 0;
  /** When it was last looked for, by `performance.now()`. */
  #lookedMs = performance.now();
  /** The later run's records, as far as they were read. */
  #laterFound = new RecordDigest();
  #closing: Promise<void> | undefined;

  constructor(folder: string, run: StreamRun) {
    this.#folder = folder;
    this.#run = run;
    this.mimeType = run.header.mime_type;
    this.ext = run.header.ext;
    this.bytes = run.header.bytes ?? null;
  }

  get aliveMs(): number {
    return (this.#later ?? this.#run).header.is_marked === true ? this.#aliveMs : Infinity;
  }

  read(into: Buffer): Promise<number | "end" | null> {
    return this.#inTurn(() => (this.#run.header.inode === null ? this.#readFile(into) : this.#readRecords(into)));
  }

  close(): Promise<void> {
    clearInterval(this.#looks);
    return (this.#closing ??= this.#inTurn(async () => {
      await this.#run[Symbol.asyncDispose]();
      await this.#later?.[Symbol.asyncDispose]();
      await this.#again.close();
    }));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  #look(): void {
    // What keeps it from looking, `read` meets at the end of the run.
    this.#inTurn(async () => {
      await this.#findLater();
      if (this.#run.header.inode === null) await this.#again.find(this.#folder, this.#run);
    }).catch(() => {});
  }

  async #readFile(into: Buffer): Promise<number | "end" | null> {
    const { file, journal, inode } = this.#run;
    const { bytesRead } = await file.read(into, 0, into.length, this.#position);
    this.#position += bytesRead;
    if (bytesRead > 0) return bytesRead;
    const record = this.#endInode === undefined ? await journal.next() : undefined;
    if (record !== undefined) {
      if (record.type !== "end") throw new StreamBrokenError("the run made another file");
      this.#endInode = record.inode;
      // What is there after the end is all of it.
      return this.#readFile(into);
    }
    await this.#again.find(this.#folder, this.#run);
    const again = await this.#again.take(this.#run, this.#position);
    if (again !== undefined) {
      // The end of an earlier run is not that of this file.
      if (this.#endInode !== again.inode) this.#endInode = undefined;
      this.#run = again;
      return this.#readFile(into);
    }
    if (await this.#follow()) return this.#readFile(into);
    if (this.#endInode !== undefined && this.#endInode !== inode) throw refetchedError();
    return this.#endInode === undefined || this.#isSuperseded ? null : "end";
  }

  async #readRecords(into: Buffer): Promise<number | "end" | null> {
    await this.#findRecords(into.length);
    if (this.#records.length === 0) {
      if (this.#last === "broken") throw brokenOffError();
      if (await this.#follow()) return this.#readRecords(into);
      return this.#last === undefined || this.#isSuperseded ? null : "end";
    }
    const { filled, media, mediaAt, sent, position } = layOut(this.#records, this.#position, into);
    if (media.length > 0 && !(await this.#readMedia(media, mediaAt))) return null;
    this.#records.splice(0, sent);
    this.#position = position;
    return filled;
  }

  /** Fills the buffers with what follows there; returns false if the media data are being moved. */
  async #readMedia(buffers: readonly Buffer[], at: number): Promise<boolean> {
    const { file, journal } = this.#run;
    if (this.#shift === null) {
      const shift = await journal.shift();
      if (shift === undefined) throw brokenOffError();
      this.#shift = shift;
    }
    if (this.#shift === null) return false;
    const { bytesRead } = await file.readv(buffers, at + this.#shift);
    if (this.#shift === 0 && (await journal.shift()) !== 0) {
      this.#shift = null;
      return false;
    }
    if (bytesRead === buffers.reduce((sum, { length }) => sum + length, 0)) return true;
    throw new StreamBrokenError("the file is shorter than its journal says");
  }

  /** Reads records until they have this many bytes, or there are no more. */
  async #findRecords(bytes: number): Promise<void> {
    let found = this.#records.reduce((sum, record) => sum + record.head.length + record.bytes, -this.#position);
    while (found < bytes && this.#last === undefined) {
      const record = await this.#run.journal.next();
      if (record === undefined) return;
      if (record.type === "end" || record.type === "broken") this.#last = record.type;
      if (record.type !== "media") return;
      const media = toMediaRecord(record);
      this.#records.push(media);
      this.#found.add(media);
      found += media.head.length + media.bytes;
    }
  }

  /** Goes over to a later run, once that has come as far; returns whether it has. @throws StreamBrokenError */
  async #follow(): Promise<boolean> {
    await this.#findLater();
    const later = this.#later;
    if (later === undefined || !(await this.#continuesIn(later))) return false;
    if (this.#laterFound.bytes > this.#found.bytes) this.#records.push(this.#laterFound.after(this.#found.bytes));
    this.#found = this.#laterFound;
    await this.#run[Symbol.asyncDispose]();
    this.#run = later;
    this.#later = undefined;
    this.#shift = null;
    this.#last = undefined;
    this.#endInode = undefined;
    this.#isSuperseded = false;
    return true;
  }

  async #findLater(): Promise<void> {
    const now = await unlessMissing(lstat(join(this.#folder, journalName)));
    // A process that was suspended has seen no marks, and a worker that was suspended with it has yet to write its next one.
    const wasSuspended = performance.now() - this.#lookedMs > markStreamMs;
    this.#lookedMs = performance.now();
    // Without one, its folder went with the success of the run, or another one begins.
    if (now === undefined || now.mtimeMs !== this.#markedMs || wasSuspended) this.#aliveMs = this.#lookedMs;
    if (now === undefined) return;
    this.#markedMs = now.mtimeMs;
    if (now.ino === (this.#later ?? this.#run).journal.inode) return;
    this.#isSuperseded = true;
    const found = await openRun(this.#folder);
    if (found === undefined) return;
    await this.#later?.[Symbol.asyncDispose]();
    this.#later = found;
    this.#laterFound = new RecordDigest();
  }

  /** Returns whether the run has all that was sent; false if it may still come. @throws StreamBrokenError */
  async #continuesIn({ header, inode, journal, file }: StreamRun): Promise<boolean> {
    const isGrowing = header.inode === null;
    if (header.mime_type !== this.mimeType || isGrowing !== (this.#run.header.inode === null)) throw changedError();
    if (isGrowing) {
      if (inode !== this.#run.inode && inode !== this.#again.inode) throw changedError();
      return inode === this.#run.inode;
    }
    while (this.#laterFound.bytes < this.#found.bytes) {
      const record = await journal.next();
      if (record === undefined) return false;
      if (record.type !== "media") throw changedError();
      this.#laterFound.add(toMediaRecord(record));
    }
    if (!this.#laterFound.hasSameHeads(this.#found)) throw changedError();
    // A file that is sent as it is fetched says how long it is: fetched again, it may have other media under the same index.
    if (header.bytes === undefined || inode === this.#run.inode) return true;
    if (!(await haveSameStart(file, this.#run.file, this.#found.mediaEnd))) throw changedError();
    return true;
  }
}

const brokenOffError = (): StreamBrokenError => new StreamBrokenError("the run cannot send the rest");

const changedError = (): StreamBrokenError => new StreamBrokenError("a later run of the task made another file");

const toMediaRecord = ({ head, offset, bytes }: Extract<StreamRecord, { type: "media" }>): MediaRecord => {
  return { head: Buffer.from(head, "base64"), offset, bytes };
};
