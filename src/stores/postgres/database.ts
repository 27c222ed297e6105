import {
  Pool,
  type ClientConfig,
  type PoolClient,
  type QueryConfig,
  type QueryResultRow,
} from "pg";
import { isSerializationFailure, isConnectionError } from "./database-errors.ts";

/** Runs statements: on the database, or in one transaction. */
export interface Sql {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** An open transaction. */
export interface Transaction extends Sql {
  /** Runs the last statement and commits, without waiting for its result in between. */
  queryAndCommit<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
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
  const pool = new Pool({ ...config, max: connections, pipeline: true });
  pool.on("error", onWarning);
  // The pool's own listener is off while a client is in use, and for a moment before: without one the
  // process ends. The next statement on a lost client fails, and the pool drops it.
  pool.on("connect", (client) => client.on("error", () => {}));
  return {
    pool,
    async query<Row extends QueryResultRow>(text: string, values?: unknown[]) {
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

  async function query<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const sentBegin = pendingBegin;
    pendingBegin = undefined;
    const [{ rows }] = await Promise.all([client.query<Row>(prepared(text, values)), sentBegin]);
    return rows;
  }

  async function commit(): Promise<void> {
    if (isCommitted) return;
    isCommitted = true;
    await client.query("COMMIT");
  }

  return {
    query,
    commit,
    async queryAndCommit<Row extends QueryResultRow>(text: string, values?: unknown[]) {
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

/** Names of prepared statements, which each connection parses and plans once. */
const names = new Map<string, string>();

function prepared(text: string, values: unknown[] | undefined) {
  if (values === undefined) return { text };
  const name = names.get(text) ?? `s${names.size}`;
  names.set(text, name);
  return { name, text, values };
}

/** Returns an error if the connection cannot be used again. */
async function rollBack(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  if (reason instanceof Error && isConnectionError(reason)) return reason;
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
