import { join } from "node:path";
import { createTaskEvents } from "../task-events.ts";
import { createMemoryStore } from "./memory.ts";
import { openPostgresStore, type PostgresStoreOptions } from "./postgres.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { TaskStore } from "./store.ts";

/** `heartbeatS` is for a store that processes share. */
export interface StoreDeps extends Omit<PostgresStoreOptions, "url" | "clock"> {
  /** Where a store keeps its files if its URL does not say. */
  dataDir: string;
}

type Opener = (address: string, options: StoreDeps) => TaskStore | Promise<TaskStore>;

/** By the URL's scheme; an opener gets what follows the colon. */
const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  [
    "memory",
    (address, { logger, ...options }) => {
      if (address !== "") throw new Error("STORE_URL must end after memory:, nothing is kept");
      return createMemoryStore({ ...options, events: createTaskEvents({ logger }) });
    },
  ],
  [
    "sqlite",
    (address, { logger, ...options }) => {
      if (address.startsWith("//")) {
        throw new Error("STORE_URL must have a path after sqlite:, not a host");
      }
      const path = address || join(options.dataDir, "tasks.db");
      return openSqliteStore({ ...options, path, events: createTaskEvents({ logger }) });
    },
  ],
  ...["postgres", "postgresql"].map((scheme): [string, Opener] => [
    scheme,
    (address, options) => openPostgresStore({ ...options, url: `${scheme}:${address}` }),
  ]),
]);

/**
 * Opens the store that `storeUrl` names: `memory:`, `sqlite:` (`tasks.db` in `dataDir`),
 * `sqlite:path`, `postgres://…` or `postgresql://…`.
 *
 * @throws Error that names STORE_URL if it names no store; ServiceError `unavailable` if the store
 * cannot be opened.
 */
export async function openStore(storeUrl: string, options: StoreDeps): Promise<TaskStore> {
  const [scheme = "", ...address] = storeUrl.split(":");
  const open = address.length === 0 ? undefined : openers.get(scheme);
  if (open === undefined) {
    const known = [...openers.keys()].map((name) => `${name}:`).join(", ");
    // No more of the URL: without a scheme it may hold a password anywhere.
    const [beginning] = /^[\w+.-]*/.exec(scheme) ?? [];
    throw new Error(
      `STORE_URL must begin with one of ${known}; it begins with ${JSON.stringify(beginning)}`,
    );
  }
  return open(address.join(":"), options);
}
