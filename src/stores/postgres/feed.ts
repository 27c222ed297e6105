import type { ClientBase, ClientConfig, Pool } from "pg";
import type { BaseLogger } from "pino";
import {
  createTaskEvents,
  feedBounds,
  type TaskEvent,
  type TaskEvents,
} from "../../task-events.ts";
import { startListener } from "./listener.ts";

export interface EventFeedOptions {
  /** For what is read once, at the start. */
  pool: Pool;
  /** For the connection that listens. */
  connection: ClientConfig;
  logger?: Pick<BaseLogger, "info" | "error"> | undefined;
}

/** A feed of what all processes write to one database. */
export interface EventFeed {
  /** Only the feed itself publishes here. */
  events: TaskEvents;
  /** Ends it at once, without what is still to be read. */
  close(): Promise<void>;
}

/**
 * Publishes each row of `unreel.task_events` once and in order, whichever process has written it, and
 * under the same id in all of them. What was written while the database was away follows when it is
 * back. Where rows are gone before they were read, or the database has fallen back behind what was
 * read, the feed goes on with what there is and reaches back no further.
 *
 * @throws what the pool throws at the first reading; nothing later.
 */
export async function openEventFeed(options: EventFeedOptions): Promise<EventFeed> {
  const { pool, connection, logger } = options;
  const counters = await readCounters(pool);
  const past = await readPast(pool);
  const events = createTaskEvents({
    origin: { feedId: counters.feedId, number: counters.newest },
    ...(logger && { logger }),
  });
  let newest = counters.newest;

  function publish({ number, type, json }: EventRow): void {
    newest = Number(number);
    events.publish({ type, task: JSON.parse(json) }, newest);
  }

  past.forEach(publish);
  const listener = startListener({
    connection,
    logger,
    channel: "unreel_events",
    async onConnect(client) {
      // Less than before where a standby has taken over that had not got all.
      newest = Math.min(newest, (await readCounters(client)).newest);
    },
    async onNotify(client) {
      let page: EventRow[];
      do {
        page = await readBehind(client, newest);
        page.forEach(publish);
      } while (page.length === pageSize);
    },
  });
  return { events, close: listener.close };
}

type Queryable = Pick<ClientBase, "query">;

interface EventRow {
  number: string;
  type: TaskEvent["type"];
  json: string;
}

const pageSize = 200;

async function readCounters(client: Queryable): Promise<{ feedId: string; newest: number }> {
  const { rows } = await client.query<{ feed_id: string; events: string }>(
    "SELECT feed_id, events FROM unreel.counters",
  );
  const [row] = rows;
  if (row === undefined) throw new Error("unreel.counters must have one row, and has none");
  return { feedId: row.feed_id, newest: Number(row.events) };
}

/** As much as a feed remembers: octets are no fewer than the UTF-16 units it counts. */
async function readPast(client: Queryable): Promise<EventRow[]> {
  const { rows } = await client.query<EventRow>(
    `SELECT number, type, json FROM (
       SELECT *, sum(octet_length(json)) OVER (ORDER BY number DESC) AS length
       FROM unreel.task_events ORDER BY number DESC LIMIT $1
     ) AS newest WHERE length <= $2 ORDER BY number`,
    [feedBounds.maxEvents, feedBounds.maxLength],
  );
  return rows;
}

async function readBehind(client: Queryable, number: number): Promise<EventRow[]> {
  const { rows } = await client.query<EventRow>(
    `SELECT number, type, json FROM unreel.task_events
     WHERE number > $1 ORDER BY number LIMIT ${pageSize}`,
    [number],
  );
  return rows;
}
