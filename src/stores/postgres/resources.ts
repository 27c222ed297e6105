import { type ClientConfig, DatabaseError } from "pg";
import type { BaseLogger } from "pino";
import { ServiceError } from "../../model/errors.ts";
import { connectionConfig, createDatabase, type Database, describeDatabase } from "./database.ts";
import { isConnectionLost, reasonOf } from "./database-errors.ts";
import { openEventFeed } from "./feed/feed.ts";
import { type JobQueueOptions, openJobQueue } from "./job-queue.ts";
import { migrate } from "./migrations.ts";

interface PostgresResourcesOptions extends Pick<JobQueueOptions, "heartbeatS" | "clock"> {
  /** Of the database. */
  url: string;
  logger: Pick<BaseLogger, "info" | "warn" | "error"> | undefined;
}

/**
 * Connects to the database and migrates its tables.
 *
 * @throws Error that names STORE_URL if `url` does not name a database; ServiceError `unavailable` that says in one
 * line why the database cannot be used.
 */
export async function openPostgresResources(options: PostgresResourcesOptions) {
  const { url, heartbeatS, clock, logger } = options;
  /** Logs problems of background work. */
  const onWarning = createWarningLog(logger);
  const connection = connectionConfig(url);
  const opened = new AsyncDisposableStack();
  const close = () => opened.disposeAsync();
  const database = createDatabase(connection, onWarning);
  opened.defer(database.close);
  try {
    await requireSessions(database);
    await migrate(database, logger);
    const jobs = await openJobQueue({ connection, heartbeatS, clock, onWarning });
    opened.defer(jobs.close);
    const feed = await openEventFeed({ pool: database.pool, connection, logger });
    opened.defer(feed.close);
    return { database, jobs, feed, onWarning, close };
  } catch (error) {
    await close();
    throw openingFailure(connection, error);
  }
}

/**
 * Prepared statements and notifications need a session of the server for each connection.
 *
 * @throws Error if a pooler lets connections share one.
 */
async function requireSessions({ pool }: Database): Promise<void> {
  const first = await pool.connect();
  try {
    const ofFirst = await first.query("SELECT pg_backend_pid() AS pid");
    const ofSecond = await pool.query("SELECT pg_backend_pid() AS pid");
    if (ofFirst.rows[0].pid !== ofSecond.rows[0].pid) return;
  } finally {
    first.release();
  }
  throw new Error(
    "connections share a session of the server: a pooler must give each its own (PgBouncer: pool_mode=session)",
  );
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
  ["08P01", "connect to the server itself, or see in docs/operations.md what a pooler needs"],
  ["25006", "the server takes no writes: it is read-only, or a standby"],
  ["28P01", "the user or the password is wrong"],
  ["28000", "the server does not let this user in"],
  ["3D000", "there is no such database"],
  ["42501", "the user may not create schemas and tables"],
]);

const warningIntervalMs = 60_000;

/**
 * Logs problems of background work, which is repeated every few seconds, at most once a minute. Leaves out
 * lost connections: the event feed logs when they begin and end.
 */
function createWarningLog(logger: PostgresResourcesOptions["logger"]) {
  let quietUntilMs = 0;
  return (event: { message: string }) => {
    if (event instanceof Error && isConnectionLost(event)) return;
    if (performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + warningIntervalMs;
    logger?.warn({ reason: event.message }, "database or job queue warning");
  };
}
