import { join } from "node:path";
import { createMemoryStore } from "./memory.ts";
import { openSqliteStore } from "./sqlite.ts";
import { createTaskEvents, type TaskEventsOptions, type TaskEvents } from "../task-events.ts";
import { publishChanges } from "./publish-changes.ts";
import type { TaskStore } from "./store.ts";

export interface StoreOptions {
  /** Folder of the stores that keep files and are not told where. */
  dataDir: string;
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** Default: the system's clock. */
  now?: () => Date;
  logger?: TaskEventsOptions["logger"];
}

/** A store and the feed to which all of its changes are published. */
export interface OpenedStore {
  store: TaskStore;
  events: TaskEvents;
}

type Opener = (address: string, options: StoreOptions) => OpenedStore | Promise<OpenedStore>;

/** Each store under its URL's scheme; an opener gets what follows the colon. */
const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  [
    "memory",
    (address, options) => {
      if (address !== "") throw new Error("STORE_URL must end after memory:, nothing is kept");
      return withFeed(createMemoryStore(options), options);
    },
  ],
  [
    "sqlite",
    (address, options) => {
      if (address.startsWith("//")) {
        throw new Error("STORE_URL must have a path after sqlite:, not a host");
      }
      const path = address || join(options.dataDir, "tasks.db");
      return withFeed(openSqliteStore({ ...options, path }), options);
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
export async function openStore(storeUrl: string, options: StoreOptions): Promise<OpenedStore> {
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

/** For a store whose changes are all made by this process. */
function withFeed(store: TaskStore, { logger }: StoreOptions): OpenedStore {
  const events = createTaskEvents(logger && { logger });
  return { store: publishChanges(store, events), events };
}
