import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";
import { journalName, movingMark, shiftBytes, type StreamHeader, type StreamRecord } from "./stream-journal.ts";

/** What was sent of a stream does not continue. */
export class StreamBrokenError extends Error {
  override name = "StreamBrokenError";
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
 * Ends the stream of the run in the folder, if there is one, because that run has died: its readers do not go on with a later one.
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
