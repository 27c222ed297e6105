import { createTaskEvents } from "../feed/task-events.ts";
import { createMemoryStore, openSqliteStore } from "./sqlite/sqlite-store.ts";
import type { PostgresStoreOptions } from "./postgres/postgres-store.ts";
import { sqlitePath } from "./sqlite/database.ts";
import type { TaskStore } from "./store.ts";

/** `heartbeatS` is for a store that processes share. */
interface StoreDeps extends Omit<PostgresStoreOptions, "url" | "clock"> {
  /** Where a store keeps its files if its URL does not say. */
  dataDir: string;
}

/** `location` is what follows the scheme's colon. */
type Opener = (location: string, options: StoreDeps) => TaskStore | Promise<TaskStore>;

/** Its packages are loaded only for it. */
const openPostgres: Opener = async (location, options) => {
  const { openPostgresStore } = await import("./postgres/postgres-store.ts");
  return openPostgresStore({ ...options, url: `postgres:${location}` });
};

/** By the URL's scheme. */
const openers: Readonly<Record<string, Opener>> = {
  memory(location, { logger, ...options }) {
    if (location !== "") throw new Error("STORE_URL must end after memory:, nothing is kept");
    return createMemoryStore({ ...options, events: createTaskEvents({ logger }) });
  },
  sqlite(location, options) {
    if (location.startsWith("//")) {
      throw new Error("STORE_URL must have a path after sqlite:, not a host");
    }
    const path = sqlitePath(location, options.dataDir);
    return openSqliteStore({ ...options, path, events: createTaskEvents(options) });
  },
  postgres: openPostgres,
  postgresql: openPostgres,
};

/**
 * Opens the store that `storeUrl` names: `memory:`, `sqlite:` (`tasks.db` in `dataDir`),
 * `sqlite:path`, `postgres://…` or `postgresql://…`.
 *
 * @throws Error that names STORE_URL if it names no store; ServiceError `unavailable` if the store
 * cannot be opened.
 */
export async function openStore(storeUrl: string, options: StoreDeps): Promise<TaskStore> {
  const [scheme = "", ...location] = storeUrl.split(":");
  const isKnown = location.length > 0 && Object.hasOwn(openers, scheme);
  const open = isKnown ? openers[scheme] : undefined;
  if (open === undefined) {
    const known = Object.keys(openers)
      .map((name) => `${name}:`)
      .join(", ");
    // No more of the URL: without a scheme it may hold a password anywhere.
    const [beginning] = /^[\w+.-]*/.exec(scheme) ?? [];
    throw new Error(`STORE_URL must begin with one of ${known}; it begins with ${JSON.stringify(beginning)}`);
  }
  return open(location.join(":"), options);
}
