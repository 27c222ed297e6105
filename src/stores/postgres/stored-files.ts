import type { StoredFile, StoredFilesQuery } from "../store.ts";
import type { Sql } from "./database.ts";

/** Returns how many bytes the files of all tasks have together. */
export async function readStoredBytes(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ bytes: string | null }>(
    "SELECT sum(bytes) AS bytes FROM unreel.owners",
  );
  return Number(row?.bytes ?? 0);
}

/** Returns files of tasks, those first that finished first. */
export async function readOldestFiles(
  sql: Sql,
  { limit, after }: StoredFilesQuery,
): Promise<StoredFile[]> {
  const { finishedAt = "", seq = 0 } = after ?? {};
  const rows = await sql.query<FileRow>(
    `SELECT id, seq, bytes, finished_at AS "finishedAt" FROM unreel.tasks
     WHERE bytes > 0 AND (finished_at, seq) > ($2, $3) ORDER BY finished_at, seq LIMIT $1`,
    [limit, finishedAt, seq],
  );
  return rows.map((row) => ({ ...row, seq: Number(row.seq), bytes: Number(row.bytes) }));
}

type FileRow = Omit<StoredFile, "seq" | "bytes"> & { seq: string; bytes: string };
