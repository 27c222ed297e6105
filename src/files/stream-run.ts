import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./disk-error.ts";
import { noFollow } from "./no-follow.ts";
import { journalName, movingMark, shiftBytes, type StreamHeader, type StreamRecord } from "./stream-journal.ts";

/** The journal of one run, and the file with its media. */
export interface StreamRun {
  journal: JournalReader;
  header: StreamHeader;
  file: FileHandle;
  inode: number;
}

/** Opens the run whose journal is in the folder; undefined if there is none, or its file is not there. */
export async function openRun(folder: string): Promise<StreamRun | undefined> {
  const journal = await openJournal(folder);
  if (journal === undefined) return undefined;
  try {
    const header = await journal.next();
    if (header?.type !== "open") return await closed(journal);
    const file = await unlessMissing(open(join(folder, header.file), noFollow.read));
    if (file === undefined) return await closed(journal);
    const { ino: inode } = await file.stat();
    if (header.inode === null || header.inode === inode) return { journal, header, file, inode };
    await file.close();
    return await closed(journal);
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function closed(journal: JournalReader): Promise<undefined> {
  await journal.close();
}

/** Closes the files of a run. */
export async function closeRun({ journal, file }: StreamRun): Promise<void> {
  await journal.close();
  await file.close();
}

const journalChunkBytes = 64 * 1024;

/** Reads the records of a journal while it grows. */
class JournalReader {
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

  close(): Promise<void> {
    return this.#file.close();
  }
}

async function openJournal(folder: string): Promise<JournalReader | undefined> {
  const file = await unlessMissing(open(join(folder, journalName), noFollow.read));
  return file && new JournalReader(file, (await file.stat()).ino);
}

/** Writes the time into the journal in the folder, if there is one. */
export async function markStream(folder: string): Promise<void> {
  const journal = await unlessMissing(open(join(folder, journalName), noFollow.read));
  try {
    await journal?.utimes(new Date(), new Date());
  } finally {
    await journal?.close();
  }
}

/**
 * Ends the stream of the run in the folder, if there is one, because that run has died: its readers do not go on with a later one.
 *
 * @throws the file system's own errors
 */
export async function breakStream(folder: string): Promise<void> {
  const journal = await unlessMissing(open(join(folder, journalName), noFollow.update));
  try {
    await journal?.truncate(0);
  } finally {
    await journal?.close();
  }
}

/** Returns the bytes there, fewer at the end of the file. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  // Of its own memory: part of a shared pool would keep the whole pool.
  const buffer = Buffer.allocUnsafeSlow(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}
