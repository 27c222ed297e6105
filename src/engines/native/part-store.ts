import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { createKeyedMutex } from "../../keyed-mutex.ts";
import type { HttpClient } from "../../net/client.ts";
import { createCheckpoints } from "./parts/checkpoints.ts";
import { fetchPart } from "./parts/fetch-part.ts";
import { createStoredPart, type StoredPart } from "./parts/stored-part.ts";
import { openJournal } from "./parts/journal.ts";
import type { FetchedPart, FetchOptions, Part } from "./parts/part.ts";
import { restoreParts } from "./parts/restore.ts";
import { createQuota } from "./parts/quota.ts";

export type { FetchedPart, FetchOptions, Part, PartResponse } from "./parts/part.ts";

/** Fetched files in a folder, which outlive the process. */
export interface PartStore {
  /** On the disk now, those of earlier runs included; fewer again where a part begins anew. */
  readonly bytes: number;
  /**
   * Gives a part once all of it is in its file: without a request if an earlier run had it whole; else
   * from where that one stopped, provided that the server vouches with a validator that the rest is of
   * the same (RFC 9110 §13.1.5, §14.2), else from its first byte. Bytes of two representations never
   * meet in a file. Any number may be fetched at the same time; of calls for one name each waits for
   * the one before.
   *
   * A connection that is lost, stalls, or answers 408, 425, 429 or 5xx is tried again, after
   * `Retry-After` if that is 30 s at most; 3 failures in a row without a new byte, and the error goes out.
   *
   * @throws ServiceError the client's errors; `upstream_invalid` (the resource is shorter than the
   *   range, or keeps changing); `too_large`; `disk_full`; `unavailable` (the file system failed). What
   *   `checkFreeSpace` and `onResponse` throw. `signal.reason`. What was fetched is kept.
   */
  fetch(part: Part, options: FetchOptions): Promise<FetchedPart>;
  /** Once the fetches under way have ended; nothing is touched afterwards. Safe to call twice. */
  close(): Promise<void>;
}

export interface PartStoreOptions {
  /** Exists, and belongs to this alone: where `identity` is new, everything in it is removed. */
  folder: string;
  client: HttpClient;
  /** Says what is fetched, so that parts of one name can only be the same. */
  identity: string;
  /** Limit for all parts together. */
  maxBytes: number;
  /** Throws where there is no room for so many bytes more; called as a part begins and every 16 MiB. */
  checkFreeSpace: (bytes: number) => Promise<void>;
  /** Wait after a first failure; doubles with every further one. Default 500. */
  backOffMs?: number;
}

/**
 * Opens the parts that earlier runs left in the folder. Which bytes are to be trusted is in a journal:
 * all that the process wrote, as long as the machine has not started again since; afterwards what had
 * been flushed, which happens every 16 MiB, at most once in 2 s.
 *
 * @throws ServiceError `disk_full`, `unavailable`
 */
export async function openPartStore(options: PartStoreOptions): Promise<PartStore> {
  const { folder, identity, client, backOffMs = 500 } = options;
  const journal = await openJournal(folder, identity);
  const held = await restoreParts(folder, journal).catch(async (error: unknown) => {
    await journal.close();
    throw error;
  });
  const checkpoints = createCheckpoints(journal);
  const mutex = createKeyedMutex();
  const heldBytes = held.values().reduce((sum, { size }) => sum + size, 0);
  const room = createQuota(options.maxBytes, options.checkFreeSpace, heldBytes);
  const context = { client, backOffMs, journal, checkpoints, room };
  let closing: Promise<void> | undefined;

  function heldPart(name: string): StoredPart {
    if (!/^[a-z\d-]{1,64}$/.test(name)) throw new TypeError(`no name for a part: ${name}`);
    const part = held.get(name) ?? createStoredPart(name, join(folder, name));
    held.set(name, part);
    return part;
  }

  async function close(): Promise<void> {
    await mutex.onIdle();
    checkpoints.stop();
    await journal.close();
  }

  return {
    get bytes() {
      return room.bytes;
    },

    async fetch(part, fetchOptions) {
      if (closing !== undefined) throw new ServiceError("unavailable", "the parts are closed");
      const one = heldPart(part.name);
      return mutex.runExclusive(part.name, () => fetchPart(one, part, fetchOptions, context));
    },

    close: () => (closing ??= close()),
  };
}
