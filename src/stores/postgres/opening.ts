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
    `STORE_URL must lead to a database that can be used; cannot open ${placeOf(connection)}: ${ruleOf(error)}`,
    { cause: error },
  );
}

/** What is wrong, in our words where they are plainer. */
function ruleOf(error: Error): string {
  const rule = error instanceof DatabaseError && rules.get(error.code ?? "");
  return rule ? `${rule} (${error.message})` : reasonOf(error);
}

const rules: ReadonlyMap<string, string> = new Map([
  ["28P01", "the user or the password is wrong"],
  ["28000", "the server does not let this user in"],
  ["3D000", "there is no such database"],
  ["42501", "the user may not make schemas and tables"],
]);
