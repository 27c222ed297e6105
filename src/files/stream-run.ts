import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../model/errors.ts";
import { unlessMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";
import {
  journalName,
  type MediaRecord,
  movingMark,
  shiftBytes,
  type StreamHeader,
  type StreamRecord,
} from "./stream-journal.ts";

/** What was sent of a stream does not continue; another request may succeed. */
export class StreamBrokenError extends ServiceError {
  constructor(message: string) {
    super("unavailable", message);
  }
}

/** The journal of one run, and the file with its media. */
export interface StreamRun extends AsyncDisposable {
  journal: JournalReader;
  header: StreamHeader;
  file: FileHandle;
  inode: number;
}

/** Opens the run whose journal is in the folder; undefined if there is none, or its file is not there. */
export async function openRun(folder: string): Promise<StreamRun | undefined> {
  await using opened = new AsyncDisposableStack();
  const journal = opened.use(await openJournal(folder));
  const header = await journal?.next();
  if (journal === undefined || header?.type !== "open") return undefined;
  const file = opened.use(await unlessMissing(open(join(folder, header.file), noFollow.read)));
  if (file === undefined) return undefined;
  const { ino: inode } = await file.stat();
  if (header.inode !== null && header.inode !== inode) return undefined;
  const kept = opened.move();
  return { journal, header, file, inode, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

const journalChunkBytes = 64 * 1024;

/** Reads the records of a journal while it grows. */
class JournalReader implements AsyncDisposable {
  readonly inode: number;
  readonly #file: FileHandle;
  #position = shiftBytes;
  #rest = Buffer.alloc(0);

  constructor(file: FileHandle, inode: number) {
    this.#file = file;
    this.inode = inode;
  }

  /** Returns the next record; undefined if it is not there yet. Of a journal that was emptied, the stream is broken. */
  async next(): Promise<StreamRecord | undefined> {
    for (;;) {
      const end = this.#rest.indexOf(10);
      if (end >= 0) {
        const line = this.#rest.toString("utf8", 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return JSON.parse(line) as StreamRecord;
      }
      const { size } = await this.#file.stat();
      if (size === this.#position) return undefined;
      if (size < this.#position) return { type: "broken" };
      const more = await readAt(this.#file, this.#position, Math.min(size - this.#position, journalChunkBytes));
      this.#position += more.length;
      this.#rest = Buffer.concat([this.#rest, more]);
    }
  }

  /** Returns by how many bytes the media data have been moved up; `null`: they are being moved; undefined: it was emptied. */
  async shift(): Promise<number | null | undefined> {
    const text = (await readAt(this.#file, 0, shiftBytes)).toString().trim();
    if (text === "") return undefined;
    return text === movingMark ? null : Number(text);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file.close();
  }
}

async function openJournal(folder: string): Promise<JournalReader | undefined> {
  const file = await unlessMissing(open(join(folder, journalName), noFollow.read));
  return file && new JournalReader(file, (await file.stat()).ino);
}

/** Writes the time into the journal in the folder, if there is one. */
export async function markStream(folder: string): Promise<void> {
  await using journal = await unlessMissing(open(join(folder, journalName), noFollow.read));
  await journal?.utimes(new Date(), new Date());
}

/**
 * Ends the stream of the run in the folder, if there is one, because that run has died: its readers do not continue with a later one.
 *
 * @throws the file system's own errors
 */
export async function breakStream(folder: string): Promise<void> {
  await using journal = await unlessMissing(open(join(folder, journalName), noFollow.update));
  await journal?.truncate(0);
}

/** Returns the bytes there, fewer at the end of the file. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  // Of its own memory: part of a shared pool would keep the whole pool.
  const buffer = Buffer.allocUnsafeSlow(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}

export const refetchedError = (): StreamBrokenError =>
  new StreamBrokenError("the file was fetched again from its start");

const comparedBytes = 1024 * 1024;

/** The file that takes the place of one that is sent while it grows: a server without ranges makes a run fetch it again from its start. */
export class FetchedAgain {
  #found: { file: FileHandle; inode: number } | undefined;
  /** So many bytes are the same in both files. */
  #sameBytes = 0;

  get inode(): number | undefined {
    return this.#found?.inode;
  }

  /** Looks for a newer file of that name; it is kept open, as its folder goes when the run has succeeded. */
  async find(folder: string, { header, inode }: StreamRun): Promise<void> {
    const path = join(folder, header.file);
    const now = await unlessMissing(lstat(path));
    if (now === undefined || now.ino === (this.inode ?? inode)) return;
    const file = await unlessMissing(open(path, noFollow.read));
    if (file === undefined) return;
    await this.close();
    this.#found = { file, inode: (await file.stat()).ino };
    this.#sameBytes = 0;
  }

  /**
   * Returns the run with that file instead of its own, which is closed, once that has the first `bytes` too; undefined if there is none, or it lacks some so far.
   *
   * @throws StreamBrokenError if they differ
   */
  async take(run: StreamRun, bytes: number): Promise<StreamRun | undefined> {
    const found = this.#found;
    if (found === undefined) return undefined;
    while (this.#sameBytes < bytes) {
      const at = this.#sameBytes;
      const again = await readAt(found.file, at, Math.min(comparedBytes, bytes - at));
      if (again.length === 0) return undefined;
      if (!again.equals(await readAt(run.file, at, again.length))) throw refetchedError();
      this.#sameBytes += again.length;
    }
    this.#found = undefined;
    await run.file.close();
    const close = async (): Promise<void> => {
      await found.file.close();
      await run[Symbol.asyncDispose]();
    };
    return { ...run, ...found, [Symbol.asyncDispose]: close };
  }

  async close(): Promise<void> {
    await this.#found?.file.close();
  }
}

interface Layout {
  /** How many bytes of the memory. */
  filled: number;
  /** The parts of it that media belong in, which follow each other in the file. */
  media: Buffer[];
  /** Where they start. */
  mediaAt: number;
  /** Of how many records this is the rest. */
  sent: number;
  /** How many bytes of the next one have been sent then. */
  position: number;
}

/** Lays out what follows `position` of the first record, with what is in front of media in its place: one call reads the media of many. */
export function layOut(records: readonly MediaRecord[], position: number, into: Buffer): Layout {
  const media: Buffer[] = [];
  let mediaAt = 0;
  let mediaBytes = 0;
  let filled = 0;
  let sent = 0;
  for (const { head, offset, bytes } of records) {
    const part = head.subarray(position, position + into.length - filled);
    into.set(part, filled);
    filled += part.length;
    position += part.length;
    const count = position < head.length ? 0 : Math.min(head.length + bytes - position, into.length - filled);
    if (count > 0) {
      const at = offset + position - head.length;
      if (media.length === 0) mediaAt = at;
      else if (at !== mediaAt + mediaBytes) break;
      media.push(into.subarray(filled, filled + count));
      mediaBytes += count;
      filled += count;
      position += count;
    }
    if (position < head.length + bytes) break;
    sent += 1;
    position = 0;
  }
  return { filled, media, mediaAt, sent, position };
}
