import { duplicateKeyError, keyNotFoundError, type KeyStore, parseKeys } from "../key-store.ts";
import { countWindowMs } from "../request-counter.ts";
import type { Sql } from "./database.ts";

/** The tables `unreel.keys` and `unreel.request_counts`; `run` runs a job on the database. */
export function createKeyRows(
  sql: Sql,
  now: () => Date,
  run: <T>(job: () => Promise<T>) => Promise<T>,
): KeyStore {
  return {
    add(key) {
      const { name } = key;
      const values = [name, JSON.stringify(key)];
      return run(async () => {
        const added = await sql.query(
          `INSERT INTO unreel.keys (name, document) VALUES ($1, $2)
           ON CONFLICT (name) DO NOTHING RETURNING 1`,
          values,
        );
        if (added.length === 0) throw duplicateKeyError(name);
      });
    },
    list: () =>
      run(async () => {
        const rows = await sql.query<{ document: string }>("SELECT document FROM unreel.keys", []);
        return parseKeys(rows.map(({ document }) => document));
      }),
    remove: (name) =>
      run(async () => {
        const removed = await sql.query("DELETE FROM unreel.keys WHERE name = $1 RETURNING 1", [
          name.replaceAll("\0", "\uFFFD"),
        ]);
        if (removed.length === 0) throw keyNotFoundError(name);
      }),
    countRequest: (name) =>
      run(async () => {
        const at = now();
        const [row] = await sql.query<{ count: number; ends_at: Date }>(
          `INSERT INTO unreel.request_counts AS known (name, count, ends_at) VALUES ($1, 1, $3)
           ON CONFLICT (name) DO UPDATE
           SET count = CASE WHEN known.ends_at > $2 THEN known.count + 1 ELSE 1 END,
             ends_at = CASE WHEN known.ends_at > $2 THEN known.ends_at ELSE excluded.ends_at END
           RETURNING count, ends_at`,
          [name, at, new Date(at.getTime() + countWindowMs)],
        );
        const { count = 1, ends_at = at } = row ?? {};
        return { count, endsInMs: ends_at.getTime() - at.getTime() };
      }),
  };
}
