import { Client, type ClientConfig } from "pg";

/** Limit of a statement; a new connection has half of it. A stalled network is noticed by then. */
const queryTimeoutMs = 8_000;

/** Limit of the time between two statements of a transaction: all other writes may wait for it. */
const idleInTransactionMs = 3_000;

export type Connection = ReturnType<typeof connectionConfig>;

/**
 * Returns the settings of every connection to the database that `url` names.
 *
 * @throws Error that names STORE_URL if `url` does not name a database; without the URL, which may hold a
 * password.
 */
export function connectionConfig(url: string) {
  if (!namesDatabase(url)) {
    throw new Error("STORE_URL must name a database, as in postgres://user@host/database");
  }
  const connection = {
    connectionString: url,
    application_name: "unreel",
    connectionTimeoutMillis: queryTimeoutMs / 2,
    query_timeout: queryTimeoutMs,
    statement_timeout: queryTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionMs,
    keepAlive: true,
  } satisfies ClientConfig;
  createClient(connection);
  return connection;
}

/** Returns database, host and port, for messages. */
export function describeDatabase(config: ClientConfig): string {
  const { host, port, database } = createClient(config);
  return `${database} at ${host}:${port}`;
}

/** A `/` or `@` in the path usually belongs to a password that is not percent-encoded. */
function namesDatabase(url: string): boolean {
  return /^\/[^/@]+$/.test(URL.parse(url)?.pathname ?? "");
}

/** The client is not connected; it parses the URL. */
function createClient(config: ClientConfig): Client {
  try {
    return new Client(config);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`STORE_URL must be the URL of a database: ${reason}`, { cause: error });
  }
}
