import type { ClientConfig, Pool } from "pg";
import type { BaseLogger } from "pino";
import type { Broadcast, SharedPauses } from "../../../feed/processes.ts";
import type { HostPause } from "../../../model/url-parts.ts";
import { createTaskEvents, type TaskEvents } from "../../../feed/task-events.ts";
import type { Sql } from "../database.ts";
import { type EventRow, type Queryable, readCounters, readNext, readOlder, readPast, toEvent } from "./event-rows.ts";
import { startListener } from "./listener.ts";

interface EventFeedOptions {
  /** For the queries of `openEventFeed`. */
  pool: Pool;
  /** Of the connection that listens. */
  connection: ClientConfig;
  logger?: Pick<BaseLogger, "info" | "error"> | undefined;
}

/** A feed of what all processes write to one database. */
export interface EventFeed {
  events: TaskEvents;
  /** The hosts that have asked for a pause. */
  pauses: Pick<SharedPauses, "follow">;
  /** What other processes and this one announce. */
  broadcast: Pick<Broadcast, "follow">;
  /** Ends the feed at once, without reading further. */
  close(): Promise<void>;
}

/**
 * Publishes each row of `unreel.task_events` once and in order, whichever process wrote it, under the same
 * id in all processes. Rows written during an outage follow when the connection is back. If rows were
 * deleted before they were read, or the database lost rows that were read, the feed continues with the rows
 * that exist and reaches back no further.
 *
 * @throws the pool's error if the first queries fail; later errors are logged and retried.
 */
export async function openEventFeed(options: EventFeedOptions): Promise<EventFeed> {
  const { pool, connection, logger } = options;
  const counters = await readCounters(pool);
  const past = await readPast(pool);
  let newest = past[0] === undefined ? counters.newest : past[0].number - 1;
  const older = (await readOlder(pool, newest)).map((row) => ({ number: row.number, event: toEvent(row) }));
  const events = createTaskEvents({ origin: { feedId: counters.feedId, number: newest, older }, logger });

  function publish(row: EventRow): void {
    newest = row.number;
    events.publish(toEvent(row), newest);
  }

  past.forEach(publish);
  const pauses = createPauseRows(pool);
  const listeners = new Set<(text: string) => void>();
  const listener = startListener({
    connection,
    logger,
    channel: "unreel_events",
    otherChannels: [pausesChannel, broadcastChannel],
    onMessage(channel, payload) {
      if (channel === pausesChannel) pauses.onMessage(payload);
      else for (const listen of listeners) listen(payload);
    },
    async onConnect(client) {
      await pauses.readAll(client);
      // Lower than before if a standby took over that had not received all rows.
      newest = Math.min(newest, (await readCounters(client)).newest);
    },
    async onNotify(client) {
      for await (const page of readNext(client, () => newest)) page.forEach(publish);
    },
  });
  const broadcast: EventFeed["broadcast"] = {
    follow(listen) {
      listeners.add(listen);
      return () => void listeners.delete(listen);
    },
  };
  return { events, pauses, broadcast, close: listener.close };
}

const broadcastChannel = "unreel_broadcast";

/** Sends a text as `Broadcast` says. */
export async function sendText(sql: Sql, text: string): Promise<void> {
  await sql.query(`SELECT pg_notify('${broadcastChannel}', :text)`, { text });
}

const pausesChannel = "unreel_pauses";

/** Hosts that a process reads when it starts or reconnects: those whose pauses end last. */
const maxHosts = 10_000;

/** Rows of pauses that have ended which a write removes. */
const maxPruned = 100;

/** Creates the pauses in `unreel.host_pauses`, as the listener hears of them. */
function createPauseRows(pool: Queryable) {
  const listeners = new Set<(pause: HostPause) => void>();

  function tell(pause: HostPause): void {
    for (const listener of listeners) listener(pause);
  }

  return {
    /** As `follow` of `SharedPauses`. */
    async follow(listener: (pause: HostPause) => void): Promise<() => void> {
      listeners.add(listener);
      (await readRows(pool)).forEach(listener);
      return () => void listeners.delete(listener);
    },
    /** Reads those that were written while the listener was disconnected. */
    async readAll(client: Queryable): Promise<void> {
      (await readRows(client)).forEach(tell);
    },
    /** Takes the payload of a notification. */
    onMessage(payload: string): void {
      const [seconds = "", host = ""] = payload.split(" ");
      tell({ host, seconds: Number(seconds) });
    },
  };
}

async function readRows(client: Queryable): Promise<HostPause[]> {
  const { rows } = await client.query<HostPause>(
    `SELECT host, extract(epoch FROM ends_at - now())::float8 AS seconds FROM unreel.host_pauses
     WHERE ends_at > now() ORDER BY ends_at DESC LIMIT ${maxHosts}`,
  );
  return rows;
}

/** Writes a pause, and announces it to the processes if it ends later than the one before; removes some that have ended. */
export async function writePause(sql: Sql, { host, seconds }: HostPause): Promise<void> {
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
