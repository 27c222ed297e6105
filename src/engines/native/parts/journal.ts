import { randomUUID } from "node:crypto";
import { type FileHandle, lstat, open, readdir, readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { createBatches } from "../../../async/batches.ts";
import { diskError, unlessMissing, withDiskError } from "../../../files/disk-error.ts";
import { assertKind, noFollow } from "../../../files/no-follow.ts";
import { syncFile, writeAll } from "./disk-writes.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { Representation } from "./representation.ts";

/**
 * Opens the journal of `folder` (NDJSON) and cuts off a torn end. Empties the folder first if it has no
 * journal or one of another identity.
 *
 * @throws ServiceError `disk_full`, `unavailable`
 */
export async function openJournal(folder: string, identity: string): Promise<Journal> {
  try {
    assertKind(folder, await lstat(folder), "folder");
    const path = join(folder, "journal.ndjson");
    const boot = await readBootId();
    const found = await unlessMissing(readFile(path, { flag: noFollow.read }));
    const known = parseJournal(found ?? Buffer.alloc(0));
    const isKnown = known?.identity === identity;
    const unknown = isKnown ? [] : await readdir(folder);
    for (const name of unknown) await rm(join(folder, name), { recursive: true, force: true });
    const state = isKnown ? known : { identity, boot, parts: new Map(), length: 0 };
    const file = await open(path, isKnown ? noFollow.update : noFollow.overwrite);
    try {
      await file.truncate(state.length);
      const journal = new Journal(file, path, state, boot);
      if (!isKnown) await journal.add({ type: "open", version: 1, identity, boot });
      return journal;
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    throw diskError(`open the journal of ${basename(folder)}`, error);
  }
}

/** Records which representation the bytes of each file in a folder belong to. */
export class Journal {
  /** As recorded by earlier runs. */
  readonly state: JournalState;
  /** Id of this boot of the machine. Bytes written since then are still there, flushed or not. */
  readonly boot: string;
  readonly #file: FileHandle;
  readonly #path: string;
  #end: number;
  readonly #append = createBatches<string>((lines) => this.#write(lines));
  /** The append of the latest record. */
  #last = Promise.resolve();

  constructor(file: FileHandle, path: string, state: JournalState, boot: string) {
    this.#file = file;
    this.#path = path;
    this.state = state;
    this.boot = boot;
    this.#end = state.length;
  }

  /**
   * Appends a record; once it resolves, the record survives the end of the process. After a failure the
   * next record overwrites it.
   *
   * @throws ServiceError `disk_full`, `unavailable`
   */
  async add(record: JournalRecord): Promise<void> {
    this.#last = this.#append(`${JSON.stringify(record)}\n`);
    await withDiskError(writing, () => this.#last);
  }

  /** Flushes all records, which then survive a power loss. @throws ServiceError as `add` */
  async sync(): Promise<void> {
    // A file handle of its own: close() of this one would wait for the flush.
    await withDiskError(writing, () => this.#last.then(() => syncFile(this.#path)));
  }

  /** Closes the file after pending records; safe to call twice. */
  async close(): Promise<void> {
    await this.#last.catch(() => {});
    await this.#file.close();
  }

  async #write(lines: readonly string[]): Promise<void> {
    const bytes = Buffer.from(lines.join(""));
    await writeAll(this.#file, [bytes], this.#end);
    this.#end += bytes.length;
  }
}

const writing = "write the journal of the parts";

/** Without a boot id of the system, each run counts as a new boot. */
async function readBootId(): Promise<string> {
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(randomUUID);
  return id.trim();
}

type JournalRecord =
  /** The first line. */
  | { type: "open"; version: 1; identity: string; boot: string }
  /** The machine was restarted, and each file was cut to its flushed bytes. */
  | { type: "boot"; boot: string }
  /** The part is empty; bytes written from now on, requested at `from`, belong to the representation `of`. */
  | { type: "begin"; part: string; from: string; range: ByteRange | null; of: Representation }
  /** Its bytes have been found at another URL. */
  | { type: "moved"; part: string; from: string; of: Representation }
  | { type: "end"; part: string; size: number }
  /** Its first `bytes` have been flushed. */
  | { type: "synced"; part: string; bytes: number }
  /** Its bytes must not be used. */
  | { type: "lost"; part: string };

export interface PartState {
  /** URL requested, without query. */
  from: string;
  range: ByteRange | null;
  of: Representation;
  /** Bytes; `null`: not complete. */
  size: number | null;
  synced: number;
}

interface JournalState {
  identity: string;
  boot: string;
  parts: Map<string, PartState>;
  /** Bytes of the valid lines; a torn end follows. */
  length: number;
}

/** Parses a journal up to the first torn line; `undefined` if that is its first line. */
function parseJournal(text: Buffer): JournalState | undefined {
  let state: JournalState | undefined;
  let start = 0;
  for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10, start)) {
    const record = parseRecord(text.toString("utf8", start, end));
    if (record === undefined) break;
    if (record.type === "open") state = { ...record, parts: new Map(), length: 0 };
    if (state === undefined) break;
    apply(record, state);
    start = end + 1;
    state.length = start;
  }
  return state;
}

function apply(record: JournalRecord, state: JournalState): void {
  const { parts } = state;
  if (record.type === "boot") {
    state.boot = record.boot;
    for (const part of parts.values()) if (part.synced !== part.size) part.size = null;
  } else if (record.type === "begin") {
    const { from, range, of } = record;
    parts.set(record.part, { from, range, of, size: null, synced: 0 });
  } else if (record.type === "lost") {
    parts.delete(record.part);
  } else if (record.type !== "open") {
    const part = parts.get(record.part);
    if (part !== undefined && record.type === "end") part.size = record.size;
    if (part !== undefined && record.type === "synced") part.synced = record.bytes;
    if (part !== undefined && record.type === "moved") {
      part.from = record.from;
      part.of = record.of;
    }
  }
}

/** Only this program writes the journal: a complete line is also valid. */
function parseRecord(line: string): JournalRecord | undefined {
  try {
    const value: JournalRecord | null = JSON.parse(line);
    return typeof value === "object" && value !== null && "type" in value ? value : undefined;
  } catch {
    return undefined;
  }
}
