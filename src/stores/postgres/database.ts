import { Pool, type ClientConfig, type PoolClient, type QueryResultRow } from "pg";
import { isClash, isDisconnection } from "./failure.ts";

/** What statements are run on: the database, or one transaction in it. */
export interface Sql {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** The database behind a few connections. */
export interface Database extends Sql {
  readonly pool: Pool;
  /**
   * Runs `work` in a transaction, which is undone where it throws. May run it again from the start,
   * where the transaction stood in another one's way.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** Ends the connections once they are free. */
  close(): Promise<void>;
}

const connections = 10;
const attempts = 3;

/** Connects when the first statement comes. `note` is told of connections that were lost unused. */
export function createDatabase(config: ClientConfig, note: (error: Error) => void): Database {
  const pool = new Pool({ ...config, max: connections });
  pool.on("error", note);
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
          if (attempt === attempts || !isClash(error)) throw error;
        }
      }
    },
    close: () => pool.end(),
  };
}

async function transact<T>(client: PoolClient, work: (sql: Sql) => Promise<T>): Promise<T> {
  let lost: Error | undefined;
  const lose = (error: Error) => void (lost = error);
  // A client that is in use is nobody's to listen to but ours; the next statement on it fails.
  client.on("error", lose);
  try {
    await client.query("BEGIN");
    const result = await work(statementsOf(client));
    await client.query("COMMIT");
    return result;
  } catch (error) {
    lost ??= await rollBack(client, error);
    throw error;
  } finally {
    client.off("error", lose);
    client.release(lost);
  }
}

function statementsOf(client: PoolClient): Sql {
  return {
    async query<Row extends QueryResultRow>(text: string, values?: unknown[]) {
      const { rows } = await client.query<Row>(prepared(text, values));
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
  if (reason instanceof Error && isDisconnection(reason)) return reason;
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
