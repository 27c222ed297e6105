import { join } from "node:path";
import type { BaseLogger } from "pino";
import { createMemoryStore } from "./memory.ts";
import { openPostgresStore } from "./postgres.ts";
import { withFeed } from "./publish-changes.ts";
import { openSqliteStore } from "./sqlite.ts";
import type { OpenedStore } from "./store.ts";

export interface StoreDeps {
  /** Folder of the stores that keep files and are not told where. */
  dataDir: string;
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** How long a worker may be silent, seconds, where several processes share the store; default 10. */
  heartbeatS?: number;
  /** Default: the system's clock. */
  now?: () => Date;
  logger?: Pick<BaseLogger, "info" | "warn" | "error">;
}

type Opener = (address: string, options: StoreDeps) => OpenedStore | Promise<OpenedStore>;

/** Each store under its URL's scheme; an opener gets what follows the colon. */
const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  [
    "memory",
    (address, options) => {
      if (address !== "") throw new Error("STORE_URL must end after memory:, nothing is kept");
      return withFeed(createMemoryStore(options), options.logger);
    },
  ],
  [
    "sqlite",
    (address, options) => {
      if (address.startsWith("//")) {
        throw new Error("STORE_URL must have a path after sqlite:, not a host");
      }
      const path = address || join(options.dataDir, "tasks.db");
      return withFeed(openSqliteStore({ ...options, path }), options.logger);
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
 * @throws Error that names STORE_URL where it leads to no store; ServiceError `unavailable` where the
 * store cannot be opened.
 */
export async function openStore(storeUrl: string, options: StoreDeps): Promise<OpenedStore> {
  const [scheme = "", ...address] = storeUrl.split(":");
  const open = address.length === 0 ? undefined : openers.get(scheme);
  if (open === undefined) {
    const known = [...openers.keys()].map((name) => `${name}:`).join(", ");
    // No more of it, for without a scheme it may hold a password anywhere.
    const [beginning] = /^[\w+.-]*/.exec(scheme) ?? [];
    throw new Error(
      `STORE_URL must begin with one of ${known}; it begins with ${JSON.stringify(beginning)}`,
    );
  }
  return open(address.join(":"), options);
}
