import type { ClientBase } from "pg";
import type { SharedPause } from "../../../feed/processes.ts";
import type { Sql } from "../database.ts";

export const pausesChannel = "unreel_pauses";

/** Hosts that a process reads when it starts or reconnects: those whose pauses end last. */
const maxHosts = 10_000;

/** Rows of pauses that have ended which a write removes. */
const maxPruned = 100;

/** Creates the pauses in `unreel.host_pauses`, as the listener hears of them. */
export function createPauseRows(pool: Pick<ClientBase, "query">) {
  const listeners = new Set<(pause: SharedPause) => void>();

  function tell(pause: SharedPause): void {
    for (const listener of listeners) listener(pause);
  }

  return {
    /** As `follow` of `SharedPauses`. */
    async follow(listener: (pause: SharedPause) => void): Promise<() => void> {
      listeners.add(listener);
      (await readRows(pool)).forEach(listener);
      return () => void listeners.delete(listener);
    },
    /** Reads those that were written while nobody listened. */
    async readAll(client: Pick<ClientBase, "query">): Promise<void> {
      (await readRows(client)).forEach(tell);
    },
    /** Takes the payload of a notification. */
    onMessage(payload: string): void {
      const [seconds = "", host = ""] = payload.split(" ");
      tell({ host, seconds: Number(seconds) });
    },
  };
}

async function readRows(client: Pick<ClientBase, "query">): Promise<SharedPause[]> {
  const { rows } = await client.query<SharedPause>(
    `SELECT host, extract(epoch FROM ends_at - now())::float8 AS seconds FROM unreel.host_pauses
     WHERE ends_at > now() ORDER BY ends_at DESC LIMIT ${maxHosts}`,
  );
  return rows;
}

/** Writes a pause, and announces it to the processes if it ends later than the one before; removes some that have ended. */
export async function writePause(sql: Sql, { host, seconds }: SharedPause): Promise<void> {
  await sql.query(
    `WITH ended AS (
       DELETE FROM unreel.host_pauses WHERE host IN (SELECT host FROM unreel.host_pauses
         WHERE ends_at <= now() AND host <> :host ORDER BY ends_at LIMIT ${maxPruned} FOR UPDATE SKIP LOCKED)
     ), written AS (
       INSERT INTO unreel.host_pauses AS known (host, ends_at) VALUES (:host, now() + :seconds::float8 * interval '1 second')
       ON CONFLICT (host) DO UPDATE SET ends_at = excluded.ends_at WHERE known.ends_at < excluded.ends_at RETURNING ends_at
     ) SELECT pg_notify('${pausesChannel}', :payload) FROM written`,
    { host, seconds, payload: `${seconds} ${host}` },
  );
}
