import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { createMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { TaskStore } from "./store.ts";

export interface StoreOptions {
  /** Folder of the stores that keep files and are not told where. */
  dataDir: string;
  /** Default: the system's clock. */
  now?: () => Date;
}

type Opener = (address: string, options: StoreOptions) => TaskStore | Promise<TaskStore>;

/** Each store under its URL's scheme; an opener gets what follows the colon. */
const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  ["memory", (_address, options) => createMemoryStore(options)],
  [
    "sqlite",
    (address, { dataDir, ...options }) =>
      openSqliteStore({ ...options, path: address || join(dataDir, "tasks.db") }),
  ],
]);

/**
 * Opens the store that `storeUrl` names: `memory:`, `sqlite:` (`tasks.db` in `dataDir`) or
 * `sqlite:path`.
 *
 * @throws ServiceError `unavailable` where the scheme is unknown or the store cannot be opened.
 */
export async function openStore(storeUrl: string, options: StoreOptions): Promise<TaskStore> {
  const [scheme = "", ...address] = storeUrl.split(":");
  const open = address.length === 0 ? undefined : openers.get(scheme);
  if (open === undefined) {
    const known = [...openers.keys()].map((name) => `${name}:`).join(", ");
    throw new ServiceError(
      "unavailable",
      `STORE_URL must begin with one of ${known}; it begins with ${JSON.stringify(scheme)}`,
    );
  }
  return open(address.join(":"), options);
}
