import { countWindowMs, createKeyStore, type KeyStore } from "../key-store.ts";
import { asText, type Sql } from "./database.ts";

/** The tables `unreel.keys` and `unreel.request_counts`; `run` runs a job on the database. */
export function createKeyRows(sql: Sql, now: () => Date, run: <T>(job: () => Promise<T>) => Promise<T>): KeyStore {
  return createKeyStore({
    add: (name, document) =>
      run(async () => {
        const added = await sql.query(
          `INSERT INTO unreel.keys (name, document) VALUES (:name, :document)
           ON CONFLICT (name) DO NOTHING RETURNING 1`,
          { name, document },
        );
        return added.length > 0;
      }),
    list: () =>
      run(async () => {
        const rows = await sql.query<{ document: string }>("SELECT document FROM unreel.keys", {});
        return rows.map(({ document }) => document);
      }),
    remove: (name) =>
      run(async () => {
        const remove = "DELETE FROM unreel.keys WHERE name = :name RETURNING 1";
        return (await sql.query(remove, { name: asText(name) })).length > 0;
      }),
    countRequest: (name) =>
      run(async () => {
        const at = now();
        const end = new Date(at.getTime() + countWindowMs);
        const [row] = await sql.query<{ count: number; ends_at: Date }>(countRequest, {
          name,
          at,
          end,
        });
        const { count = 1, ends_at = at } = row ?? {};
        return { count, endsInMs: ends_at.getTime() - at.getTime() };
      }),
  });
}

const countRequest = `
  INSERT INTO unreel.request_counts AS known (name, count, ends_at) VALUES (:name, 1, :end)
  ON CONFLICT (name) DO UPDATE
  SET count = CASE WHEN known.ends_at > :at THEN known.count + 1 ELSE 1 END,
    ends_at = CASE WHEN known.ends_at > :at THEN known.ends_at ELSE excluded.ends_at END
  RETURNING count, ends_at`;
