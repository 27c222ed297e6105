import type { ClientBase } from "pg";
import type { SharedPause, SharedPauses } from "../../../feed/shared-pauses.ts";
import type { Sql } from "../database.ts";

export const pausesChannel = "unreel_pauses";

/** The pauses in `unreel.host_pauses`. */
export interface PauseRows extends Pick<SharedPauses, "follow"> {
  /** Reads the rows for those that follow them. */
  read(client: Pick<ClientBase, "query">): Promise<void>;
}

export function createPauseRows(pool: Pick<ClientBase, "query">): PauseRows {
  const listeners = new Set<(pause: SharedPause) => void>();

  function tell(pause: SharedPause): void {
    for (const listener of listeners) listener(pause);
  }

  async function readAll(client: Pick<ClientBase, "query">): Promise<SharedPause[]> {
    const { rows } = await client.query<SharedPause>(
      `SELECT host, extract(epoch FROM ends_at - now())::float8 AS seconds FROM unreel.host_pauses WHERE ends_at > now()`,
    );
    return rows;
  }

  return {
    async follow(listener) {
      listeners.add(listener);
      (await readAll(pool)).forEach(listener);
      return () => void listeners.delete(listener);
    },
    async read(client) {
      (await readAll(client)).forEach(tell);
    },
  };
}

/** Writes a pause, and tells the processes if it ends later than the one before. */
export async function writePause(sql: Sql, { host, seconds }: SharedPause): Promise<void> {
  await sql.query(
    `WITH written AS (
       INSERT INTO unreel.host_pauses AS known (host, ends_at) VALUES (:host, now() + :seconds::float8 * interval '1 second')
       ON CONFLICT (host) DO UPDATE SET ends_at = excluded.ends_at WHERE known.ends_at < excluded.ends_at RETURNING ends_at
     ) SELECT pg_notify('${pausesChannel}', '') FROM written`,
    { host, seconds },
  );
}
