import { randomUUID } from "node:crypto";
import { type FileHandle, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { diskError, isMissing } from "../../../files/disk-error.ts";
import { type JournalRecord, type JournalState, readRecords } from "./journal-records.ts";
import { syncFile } from "./sync-file.ts";
import { writeAll } from "./write-all.ts";

/** Says of the files in a folder what they can't say themselves: what their bytes are of. */
export interface Journal {
  /** What earlier runs wrote. */
  readonly state: JournalState;
  /** Which start of the machine this is. What was written since then is still there, flushed or not. */
  readonly boot: string;
  /**
   * Writes a record behind all that were added before; once it resolves, the record survives the end
   * of the process. After a failure the next record takes its place.
   *
   * @throws ServiceError `disk_full`, `unavailable`
   */
  add(record: JournalRecord): Promise<void>;
  /** Makes what was added survive a loss of power too. @throws ServiceError as `add` */
  sync(): Promise<void>;
  /** Behind all that was added; safe to call twice. */
  close(): Promise<void>;
}

/**
 * Opens the journal of `folder`, NDJSON, and cuts off a torn end. Where there is none, or one of
 * another identity, everything in the folder is removed first.
 *
 * @throws ServiceError `disk_full`, `unavailable`
 */
export async function openJournal(folder: string, identity: string): Promise<Journal> {
  try {
    const path = join(folder, "journal.ndjson");
    const boot = await readBootId();
    const known = readRecords(await readIfThere(path));
    const isKnown = known?.identity === identity;
    if (!isKnown) await empty(folder);
    const file = await open(path, isKnown ? "r+" : "w");
    try {
      if (isKnown) {
        await file.truncate(known.length);
        return createJournal(file, path, known, boot);
      }
      const state = { identity, boot, entries: new Map(), length: 0 };
      const journal = createJournal(file, path, state, boot);
      await journal.add({ type: "open", version: 1, identity, boot });
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

  /** All that waits goes in one write. */
  async function write(): Promise<void> {
    const bytes = Buffer.from(lines);
    lines = "";
    next = undefined;
    await writeAll(file, [bytes], end);
    end += bytes.length;
  }

  async function settled<T>(call: () => Promise<T>): Promise<T> {
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
      return settled(() => last);
    },
    async sync() {
      await settled(async () => {
        await last;
        // A handle of its own, for close() would wait for it.
        await syncFile(path);
      });
    },
    async close() {
      await last.catch(() => {});
      await file.close();
    },
  };
}

/** Where a system does not tell its starts apart, each run is taken to come after one. */
async function readBootId(): Promise<string> {
  const id = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(randomUUID);
  return id.trim();
}

async function readIfThere(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    if (isMissing(error)) return Buffer.alloc(0);
    throw error;
  }
}

async function empty(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}
