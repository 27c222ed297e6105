import { Client, type ClientConfig } from "pg";

/** How long a statement or a new connection may take; a stalled network is noticed by then. */
const queryTimeoutMs = 8_000;

/** How long a transaction may rest between two statements: all other writes may be waiting for it. */
const restMs = 3_000;

export type Connection = ReturnType<typeof connectionConfig>;

/**
 * The settings of every connection to the database that `url` names.
 *
 * @throws Error that names STORE_URL where that is no address of a database; without the address, for
 * it may hold a password.
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
    idle_in_transaction_session_timeout: restMs,
    keepAlive: true,
  } satisfies ClientConfig;
  read(connection);
  return connection;
}

/** Where the database is, fit for messages: host, port and name. */
export function placeOf(config: ClientConfig): string {
  const { host, port, database } = read(config);
  return `${database} at ${host}:${port}`;
}

/** A `/` or `@` in the path is mostly one of a password that should have been percent-encoded. */
function namesDatabase(url: string): boolean {
  return /^\/[^/@]+$/.test(URL.parse(url)?.pathname ?? "");
}

function read(config: ClientConfig): Client {
  try {
    return new Client(config);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`STORE_URL must be an address of a database: ${reason}`, { cause: error });
  }
}
