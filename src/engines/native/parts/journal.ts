import { randomUUID } from "node:crypto";
import { type FileHandle, lstat, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { diskError, isMissing } from "../../../files/disk-error.ts";
import { assertKind, noFollow } from "../../../files/no-follow.ts";
import { type JournalRecord, type JournalState, parseJournal } from "./journal-records.ts";
import { syncFile, writeAll } from "./disk-writes.ts";

/** Records which representation the bytes of each file in a folder belong to. */
export interface Journal {
  /** As recorded by earlier runs. */
  readonly state: JournalState;
  /** Id of this boot of the machine. Bytes written since then are still there, flushed or not. */
  readonly boot: string;
  /**
   * Appends a record; once it resolves, the record survives the end of the process. After a failure the
   * next record overwrites it.
   *
   * @throws ServiceError `disk_full`, `unavailable`
   */
  add(record: JournalRecord): Promise<void>;
  /** Flushes all records, which then survive a power loss. @throws ServiceError as `add` */
  sync(): Promise<void>;
  /** Closes the file after pending records; safe to call twice. */
  close(): Promise<void>;
}

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
    const known = parseJournal(await readOrEmpty(path));
    const isKnown = known?.identity === identity;
    if (!isKnown) await emptyFolder(folder);
    const state = isKnown ? known : { identity, boot, parts: new Map(), length: 0 };
    const file = await open(path, isKnown ? noFollow.update : noFollow.overwrite);
    try {
      await file.truncate(state.length);
      const journal = createJournal(file, path, state, boot);
      if (!isKnown) await journal.add({ type: "open", version: 1, identity, boot });
      return journal;
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    throw diskError(`open the journal of ${folder}`, error);
  }
}

function createJournal(file: FileHandle, path: string, state: JournalState, boot: string): Journal {
  let end = state.length;
  let lines = "";
  let next: Promise<void> | undefined;
  let last = Promise.resolve();

  /** Writes all pending records at once. */
  async function write(): Promise<void> {
    const bytes = Buffer.from(lines);
    lines = "";
    next = undefined;
    await writeAll(file, [bytes], end);
    end += bytes.length;
  }

  async function withDiskError<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw diskError("write the journal of the parts", error);
    }
  }

  return {
    state,
    boot,
    add(record) {
      lines += `${JSON.stringify(record)}\n`;
      next ??= last.then(write, write);
      last = next;
      return withDiskError(() => last);
    },
    async sync() {
      await withDiskError(async () => {
        await last;
        // Its own file handle: close() of this one would wait for the flush.
        await syncFile(path);
      });
    },
    async close() {
      await last.catch(() => {});
      await file.close();
    },
  };
}

/** Without a boot id of the system, each run counts as a new boot. */
async function readBootId(): Promise<string> {
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(randomUUID);
  return id.trim();
}

async function readOrEmpty(path: string): Promise<Buffer> {
  try {
    return await readFile(path, { flag: noFollow.read });
  } catch (error) {
    if (isMissing(error)) return Buffer.alloc(0);
    throw error;
  }
}

async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}
