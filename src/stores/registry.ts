import { join } from "node:path";
import { createMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { TaskStore } from "./store.ts";

export interface StoreOptions {
  /** Folder of the stores that keep files and are not told where. */
  dataDir: string;
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** Default: the system's clock. */
  now?: () => Date;
}

type Opener = (address: string, options: StoreOptions) => TaskStore | Promise<TaskStore>;

/** Each store under its URL's scheme; an opener gets what follows the colon. */
const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  [
    "memory",
    (address, options) => {
      if (address !== "") throw new Error("STORE_URL must end after memory:, nothing is kept");
      return createMemoryStore(options);
    },
  ],
  [
    "sqlite",
    (address, { dataDir, ...options }) => {
      if (address.startsWith("//")) {
        throw new Error("STORE_URL must have a path after sqlite:, not a host");
      }
      return openSqliteStore({ ...options, path: address || join(dataDir, "tasks.db") });
    },
  ],
]);

/**
 * Opens the store that `storeUrl` names: `memory:`, `sqlite:` (`tasks.db` in `dataDir`) or
 * `sqlite:path`.
 *
 * @throws Error that names STORE_URL where it leads to no store; ServiceError `unavailable` where the
 * store cannot be opened.
 */
export async function openStore(storeUrl: string, options: StoreOptions): Promise<TaskStore> {
  const [scheme = "", ...address] = storeUrl.split(":");
  const open = address.length === 0 ? undefined : openers.get(scheme);
  if (open === undefined) {
    const known = [...openers.keys()].map((name) => `${name}:`).join(", ");
    throw new Error(
      `STORE_URL must begin with one of ${known}; it begins with ${JSON.stringify(scheme)}`,
    );
  }
  return open(address.join(":"), options);
}
