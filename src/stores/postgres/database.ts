import { Pool, type ClientConfig, type PoolClient, type QueryResultRow } from "pg";
import { isSerializationFailure, isConnectionError } from "./database-errors.ts";

/** What statements are run on: the database, or one transaction in it. */
export interface Sql {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** A transaction under way. */
export interface Transaction extends Sql {
  /** Runs the last statement and commits right behind it, in one message to the server. */
  finish<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** The database behind a few connections. */
export interface Database extends Sql {
  readonly pool: Pool;
  /**
   * Runs `work` in a transaction, which is undone where it throws. May run it again from the start,
   * where the transaction stood in another one's way.
   */
  transaction<T>(work: (sql: Transaction) => Promise<T>): Promise<T>;
  /** Ends the connections once they are free. */
  close(): Promise<void>;
}

const connections = 10;
const attempts = 3;

/** Connects when the first statement comes. `onWarning` is told of connections that were lost unused. */
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

/** What is sent before the answer to what is before it has come saves others a wait for our locks. */
function begin(client: PoolClient): Transaction & { commit(): Promise<void> } {
  let begun: Promise<unknown> | undefined = client.query("BEGIN");
  // Its failure is thrown with the first statement's.
  begun.catch(() => {});
  let isCommitted = false;

  async function query<Row extends QueryResultRow>(text: string, values?: unknown[]) {
    const beginning = begun;
    begun = undefined;
    const [{ rows }] = await Promise.all([client.query<Row>(prepared(text, values)), beginning]);
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
    async finish<Row extends QueryResultRow>(text: string, values?: unknown[]) {
      // A COMMIT behind a statement that has failed undoes the transaction.
      const [rows] = await Promise.all([query<Row>(text, values), commit()]);
      return rows;
    },
  };
}

/** Of the statements, which are few; a connection parses and plans each of them once. */
const names = new Map<string, string>();

function prepared(text: string, values: unknown[] | undefined) {
  if (values === undefined) return { text };
  const name = names.get(text) ?? `s${names.size}`;
  names.set(text, name);
  return { name, text, values };
}

/** Gives why the connection cannot be used again. */
async function rollBack(client: PoolClient, reason: unknown): Promise<Error | undefined> {
  if (reason instanceof Error && isConnectionError(reason)) return reason;
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
