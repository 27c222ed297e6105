import { Client, type ClientConfig, type CustomTypesConfig } from "pg";
import { Pool, type PoolClient, type QueryConfig, type QueryResultRow, types } from "pg";
import { isAfterFailure, isSerializationFailure, isConnectionError } from "./database-errors.ts";
import { asError, messageOf } from "../../model/errors.ts";

/** The values of a statement, by their names in it (`:name`), or by their numbers (`$1`). */
type Values = Readonly<Record<string, unknown>> | readonly unknown[];

/** Runs a statement; each connection prepares one with `values` once. A `bigint` comes as a number. */
export type Query = <Row extends QueryResultRow>(text: string, values?: Values) => Promise<Row[]>;

/** Runs statements: on the database, or in one transaction. */
export interface Sql {
  query: Query;
}

export interface Transaction extends Sql {
  /** Runs the last statement and commits, without waiting for its result in between. */
  queryAndCommit: Query;
  /**
   * Runs statements that may take half an hour, where others may take some seconds. From then on the transaction may
   * also pause for so long.
   */
  runLong(statements: string): Promise<void>;
}

/** A database and its pool of connections. */
export interface Database extends Sql {
  readonly pool: Pool;
  /**
   * Runs `work` in a transaction and commits it, unless `work` has; rolls back if `work` throws. Runs
   * `work` again from the start, three times at most, if the transaction conflicted with another one.
   */
  transaction<T>(work: (sql: Transaction) => Promise<T>): Promise<T>;
  /** Closes the connections once they are free. */
  close(): Promise<void>;
}

const connections = 10;
const attempts = 3;
const longMs = 30 * 60_000;

/** Creates the pool, which connects with the first statement. `onWarning` gets errors of idle connections. */
export function createDatabase(config: ClientConfig, onWarning: (error: Error) => void): Database {
  const pool = new Pool({ ...config, types: numbers, max: connections, pipeline: true });
  pool.on("error", onWarning);
  // The pool's own listener is off while a client is in use, and for a moment before: without one the
  // process ends. The next statement on a lost client fails, and the pool drops it.
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    pool,
    async query<Row extends QueryResultRow>(text: string, values?: Values) {
      const { rows } = await pool.query<Row>(prepared(text, values));
      return rows;
    },
    async transaction(work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await transact(await pool.connect(), work);
        } catch (error) {
          if (attempt === attempts || !isSerializationFailure(error)) throw error;
        }
      }
    },
    close: () => pool.end(),
  };
}

async function transact<T>(client: PoolClient, work: (sql: Transaction) => Promise<T>): Promise<T> {
  let lost: Error | undefined;
  try {
    const transaction = begin(client);
    const result = await work(transaction);
    await transaction.commit();
    return result;
  } catch (error) {
    lost = await rollBack(client, error);
    throw error;
  } finally {
    client.release(lost);
  }
}

/** Sends BEGIN with the first statement and COMMIT with the last one: the locks are held for less time. */
function begin(client: PoolClient): Transaction & { commit(): Promise<void> } {
  let pendingBegin: Promise<unknown> | undefined = client.query("BEGIN");
  // The first statement throws its error.
  pendingBegin.catch(() => {});
  let isCommitted = false;
  let firstError: unknown;

  async function query<Row extends QueryResultRow>(text: string, values?: Values) {
    const sentBegin = pendingBegin;
    pendingBegin = undefined;
    try {
      const [{ rows }] = await Promise.all([client.query<Row>(prepared(text, values)), sentBegin]);
      return rows;
    } catch (error) {
      firstError ??= error;
      throw isAfterFailure(error) ? firstError : error;
    }
  }

  async function commit(): Promise<void> {
    if (isCommitted) return;
    isCommitted = true;
    await client.query("COMMIT");
  }

  return {
    query,
    commit,
    async queryAndCommit<Row extends QueryResultRow>(text: string, values?: Values) {
      // A COMMIT after a failed statement rolls the transaction back.
      const [rows] = await Promise.all([query<Row>(text, values), commit()]);
      return rows;
    },
    async runLong(statements) {
      await query(`SET LOCAL statement_timeout = ${longMs}`);
      await query(`SET LOCAL idle_in_transaction_session_timeout = ${longMs}`);
      const limits: QueryConfig & { query_timeout: number } = {
        text: statements,
        query_timeout: longMs,
      };
      await client.query(limits);
    },
  };
}

/** Object id of the type `bigint`. */
const bigintType = 20;

/** Reads `bigint`s as numbers: all of them are safe integers. */
export const numbers: CustomTypesConfig = {
  getTypeParser: (type: number) => (type === bigintType ? Number : types.getTypeParser(type, "text")),
};

/** What was prepared, by text; a name is for one text. */
const statements = new Map<string, { name: string; text: string; names: readonly string[] }>();

function prepared(text: string, values: Values | undefined) {
  if (values === undefined) return { text };
  const statement = statements.get(text) ?? prepare(text, isList(values) ? undefined : values);
  const list = isList(values) ? [...values] : statement.names.map((name) => values[name]);
  return { name: statement.name, text: statement.text, values: list };
}

function isList(values: Values): values is readonly unknown[] {
  return Array.isArray(values);
}

/** A name in a statement; not a cast (`::type`). */
const parameter = /(?<!:):([a-z]\w*)/gi;

/** @throws Error if there is no value for a name. */
function prepare(text: string, named: object | undefined) {
  const found = named === undefined ? [] : text.matchAll(parameter).map(([, name = ""]) => name);
  const names = [...new Set(found)];
  const missing = names.find((name) => !Object.hasOwn(named ?? {}, name));
  if (missing !== undefined) throw new Error(`there is no value for :${missing} in ${text}`);
  const numbered = text.replaceAll(parameter, (all, name: string) => {
    return names.includes(name) ? `$${names.indexOf(name) + 1}` : all;
  });
  const statement = { name: `s${statements.size}`, text: numbered, names };
  statements.set(text, statement);
  return statement;
}

/** Postgres refuses NUL in text. The replacement makes such an id unknown, as no id has that character. */
export function asText(id: string): string {
  return id.replaceAll("\0", "\uFFFD");
}

/** Returns an error if the connection cannot be used again. */
async function rollBack(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  if (reason instanceof Error && isConnectionError(reason)) return reason;
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return asError(error);
  }
}

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
    const reason = messageOf(error);
    throw new Error(`STORE_URL must be the URL of a database: ${reason}`, { cause: error });
  }
}

/** Postgres 15, as `server_version_num`. */
const oldestServer = 150_000;

/** @throws Error if the server is too old. */
export async function requireServer(sql: Sql): Promise<void> {
  const [row] = await sql.query<{ number: number; name: string }>(
    `SELECT current_setting('server_version_num')::int AS number,
            current_setting('server_version') AS name`,
  );
  if (row === undefined || row.number >= oldestServer) return;
  throw new Error(`Postgres must be version 15 or newer; the server is version ${row.name}`);
}
