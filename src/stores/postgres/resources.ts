import { DatabaseError } from "pg";
import type { ClientConfig } from "pg";
import { ServiceError } from "../../model/errors.ts";
import { describeDatabase } from "./connection.ts";
import { createDatabase, type Database } from "./database.ts";
import { reasonOf } from "./database-errors.ts";
import { type EventFeed, openEventFeed } from "./feed.ts";
import { type JobQueue, type JobQueueOptions, openJobQueue } from "./job-queue.ts";
import { migrate } from "./migrations.ts";

export interface PostgresResources {
  database: Database;
  jobs: JobQueue;
  feed: EventFeed;
  /** Closes all of them. */
  close(): Promise<void>;
}

export interface PostgresResourcesOptions extends JobQueueOptions {
  logger?: Parameters<typeof openEventFeed>[0]["logger"];
}

/**
 * Connects to the database and migrates its tables.
 *
 * @throws ServiceError `unavailable` that says in one line why the database cannot be used.
 */
export async function openPostgresResources(
  options: PostgresResourcesOptions,
): Promise<PostgresResources> {
  const { connection, logger, onWarning } = options;
  const database = createDatabase(connection, onWarning);
  const closers = [database.close];
  const close = async () => {
    for (const end of closers) await end();
  };
  try {
    await migrate(database);
    const jobs = await openJobQueue(options);
    closers.unshift(jobs.close);
    const feed = await openEventFeed({ pool: database.pool, connection, logger });
    closers.unshift(feed.close);
    return { database, jobs, feed, close };
  } catch (error) {
    await close();
    throw openingFailure(connection, error);
  }
}

function openingFailure(connection: ClientConfig, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  return new ServiceError(
    "unavailable",
    `cannot open the database ${describeDatabase(connection)} (STORE_URL): ${ruleOf(error)}`,
    { cause: error },
  );
}

/** Says what is wrong, in plainer words than the server's if there are any. */
function ruleOf(error: Error): string {
  const rule = error instanceof DatabaseError && rules.get(error.code ?? "");
  return rule ? `${rule} (${error.message})` : reasonOf(error);
}

const rules: ReadonlyMap<string, string> = new Map([
  ["28P01", "the user or the password is wrong"],
  ["28000", "the server does not let this user in"],
  ["3D000", "there is no such database"],
  ["42501", "the user may not create schemas and tables"],
]);
