import { DatabaseError } from "pg";
import type { ClientConfig } from "pg";
import { ServiceError } from "../../errors.ts";
import { placeOf } from "./connection.ts";
import { createDatabase, type Database } from "./database.ts";
import { reasonOf } from "./failure.ts";
import { type EventFeed, openEventFeed } from "./feed.ts";
import { type Jobs, type JobsOptions, openJobs } from "./jobs.ts";
import { migrate } from "./migrations.ts";

export interface Parts {
  database: Database;
  jobs: Jobs;
  feed: EventFeed;
  /** Ends all of them. */
  close(): Promise<void>;
}

export interface PartsOptions extends JobsOptions {
  logger?: Parameters<typeof openEventFeed>[0]["logger"];
}

/** @throws ServiceError `unavailable` that says in one line why the database cannot be used. */
export async function openParts(options: PartsOptions): Promise<Parts> {
  const { connection, logger, note } = options;
  const database = createDatabase(connection, note);
  const closers = [database.close];
  const close = async () => {
    for (const end of closers) await end();
  };
  try {
    await migrate(database);
    const jobs = await openJobs(options);
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
    `the Postgres store cannot be opened, ${placeOf(connection)}: ${ruleOf(error)}`,
    { cause: error },
  );
}

/** What must be otherwise, where that is known. */
function ruleOf(error: Error): string {
  const rule = error instanceof DatabaseError && rules.get(error.code ?? "");
  return rule ? `${rule} (${error.message})` : reasonOf(error);
}

const rules: ReadonlyMap<string, string> = new Map([
  ["28P01", "STORE_URL must have the right user and password"],
  ["28000", "STORE_URL must have a user whom the server lets in"],
  ["3D000", "STORE_URL must name a database that is there"],
  ["42501", "its user must have the right to make schemas and tables"],
]);
