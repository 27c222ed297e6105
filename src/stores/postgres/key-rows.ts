import { duplicateKeyError, keyNotFoundError, type KeyStore, parseKeys } from "../key-store.ts";
import type { Sql } from "./database.ts";

/** The table `unreel.keys`; `run` runs a job on the database. */
export function createKeyRows(sql: Sql, run: <T>(job: () => Promise<T>) => Promise<T>): KeyStore {
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
  };
}
