import type { BaseLogger } from "pino";
import { countedRecord } from "../quotas.ts";
import { startUpgrade } from "../rules.ts";
import { type Database, requireServer, type Sql } from "./database.ts";

/** Created here, empty, for the tables of pg-boss. */
export const jobsSchema = "unreel_jobs";

export const jobName = "downloads";

/** Of the advisory lock; the same in all processes. */
const lock = 7_261_983_450;

/** A database's version is the number of steps that were applied to it: append, never edit. */
const migrations: readonly string[] = [
  `
  CREATE TABLE unreel.tasks (
    seq bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    state text NOT NULL,
    host text NOT NULL,
    document text NOT NULL,
    lease text,
    deaths integer NOT NULL,
    job uuid
  );
  CREATE INDEX tasks_by_state ON unreel.tasks (state, seq DESC);
  CREATE TABLE unreel.idempotency_keys (
    key text COLLATE "C" PRIMARY KEY,
    fingerprint text NOT NULL,
    answer text NOT NULL,
    ends_at timestamptz NOT NULL
  );
  CREATE INDEX idempotency_keys_by_end ON unreel.idempotency_keys (ends_at);
  CREATE TABLE unreel.task_events (
    number bigint PRIMARY KEY,
    type text NOT NULL,
    task_id text NOT NULL,
    json text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE unreel.counters (
    feed_id text NOT NULL,
    seq bigint NOT NULL,
    events bigint NOT NULL,
    queued bigint NOT NULL
  );
  INSERT INTO unreel.counters VALUES (left(gen_random_uuid()::text, 8), 0, 0, 0);
  `,
  // Partial: without keys, no task has an owner and the indexes cost nothing.
  `
  ALTER TABLE unreel.tasks ADD COLUMN owner text COLLATE "C";
  CREATE INDEX tasks_by_owner ON unreel.tasks (owner, seq DESC) WHERE owner IS NOT NULL;
  CREATE INDEX tasks_by_owner_and_state ON unreel.tasks (owner, state, seq DESC)
    WHERE owner IS NOT NULL;
  ALTER TABLE unreel.task_events ADD COLUMN owner text;
  CREATE TABLE unreel.keys (name text COLLATE "C" PRIMARY KEY, document text NOT NULL);
  `,
  // The owner '' has the tasks without an owner. claimed: number of the event of the owner's last claim; 0: it had none.
  // Space for new versions of a row in its page, as each change of a task's state makes one.
  `
  CREATE TABLE unreel.owners (
    owner text COLLATE "C" PRIMARY KEY,
    queued bigint NOT NULL DEFAULT 0,
    running bigint NOT NULL DEFAULT 0,
    claimed bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  CREATE INDEX tasks_with_jobs ON unreel.tasks (coalesce(owner, ''), state, seq)
    WHERE job IS NOT NULL;
  `,
  // bytes: size of the task's file; of the files of all tasks of the owner. There were no owners before.
  `
  ALTER TABLE unreel.tasks ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
  ALTER TABLE unreel.owners ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
  `,
  // Requests of a key in its present minute. A crash of the server may empty the table.
  `
  CREATE UNLOGGED TABLE unreel.request_counts (
    name text COLLATE "C" PRIMARY KEY, count integer NOT NULL, ends_at timestamptz NOT NULL
  ) WITH (fillfactor = 50);
  `,
  // A line has the messages about one task for one endpoint, to be sent one after the other; never none.
  // due_at: when its first message may be sent or, under a lease, when that ends, in Unix milliseconds.
  `
  CREATE TABLE unreel.outbox_lines (
    line bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint text COLLATE "C" NOT NULL,
    task text NOT NULL,
    due_at bigint NOT NULL,
    refusals integer NOT NULL DEFAULT 0,
    lease text,
    UNIQUE (endpoint, task)
  );
  CREATE INDEX outbox_lines_by_due ON unreel.outbox_lines (endpoint, due_at);
  CREATE TABLE unreel.outbox_messages (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    line bigint NOT NULL,
    id text NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL
  );
  CREATE INDEX outbox_messages_by_line ON unreel.outbox_messages (line, seq);
  `,
  // Numbers of tasks. counted_events: equals events unless the tasks must be counted again, because a process of an
  // earlier release has written one, which does not count it.
  `
  ALTER TABLE unreel.counters ADD COLUMN running bigint NOT NULL DEFAULT 0,
    ADD COLUMN succeeded bigint NOT NULL DEFAULT 0, ADD COLUMN failed bigint NOT NULL DEFAULT 0,
    ADD COLUMN canceled bigint NOT NULL DEFAULT 0, ADD COLUMN counted_events bigint NOT NULL DEFAULT -1;
  `,
  // finished_at: when a task with a file has finished, as in its document. Files of before there were keys were not
  // counted in bytes. A damaged document is no JSON, or has other types.
  `
  CREATE FUNCTION unreel.try_json(document text) RETURNS jsonb LANGUAGE plpgsql AS $$
    BEGIN RETURN document::jsonb; EXCEPTION WHEN others THEN RETURN NULL; END
  $$;
  ALTER TABLE unreel.tasks ADD COLUMN finished_at text COLLATE "C";
  UPDATE unreel.tasks SET bytes = (task #>> '{file,size}')::bigint, finished_at = task ->> 'finished_at'
    FROM (SELECT seq AS known, unreel.try_json(document) AS task FROM unreel.tasks
      WHERE state = 'succeeded' OFFSET 0) AS found
    WHERE seq = known AND task #>> '{file,size}' ~ '^[0-9]{1,15}$' AND task ->> 'finished_at' IS NOT NULL;
  DROP FUNCTION unreel.try_json;
  CREATE INDEX tasks_with_files ON unreel.tasks (finished_at, seq) WHERE bytes > 0;
  INSERT INTO unreel.owners AS known (owner, bytes)
    SELECT coalesce(owner, ''), sum(bytes) FROM unreel.tasks WHERE bytes > 0 GROUP BY coalesce(owner, '')
    ON CONFLICT (owner) DO UPDATE SET bytes = excluded.bytes;
  `,
  // records: bytes of the records of the owner's tasks, of each what is over 16,000. They are counted below.
  `
  ALTER TABLE unreel.owners ADD COLUMN records bigint NOT NULL DEFAULT 0;
  UPDATE unreel.counters SET counted_events = -1;
  `,
  // An insert leaves out what all new tasks have alike.
  "ALTER TABLE unreel.tasks ALTER COLUMN deaths SET DEFAULT 0",
  // listed: 0: a collection has made the task. idle: 1: a collection that waits for its members. memberships: at how many
  // places of collections the task is. video, page_video: 48 bits by which tasks for a video are found; null: unknown.
  // Every page of a list is merged from those of its states. members: the collection and the task by their seq.
  `
  ALTER TABLE unreel.tasks ADD COLUMN listed integer NOT NULL DEFAULT 1, ADD COLUMN idle integer NOT NULL DEFAULT 0,
    ADD COLUMN memberships integer NOT NULL DEFAULT 0, ADD COLUMN video bigint, ADD COLUMN page_video bigint;
  CREATE INDEX tasks_by_video ON unreel.tasks (video) WHERE video IS NOT NULL;
  CREATE INDEX tasks_by_page_video ON unreel.tasks (page_video) WHERE page_video IS NOT NULL;
  DROP INDEX unreel.tasks_by_state, unreel.tasks_by_owner, unreel.tasks_by_owner_and_state;
  CREATE INDEX tasks_by_state ON unreel.tasks (state, listed, seq DESC);
  CREATE INDEX tasks_by_owner_and_state ON unreel.tasks (owner, state, listed, seq DESC) WHERE owner IS NOT NULL;
  CREATE TABLE unreel.members (
    collection bigint NOT NULL, place integer NOT NULL, task bigint NOT NULL, PRIMARY KEY (collection, place));
  CREATE INDEX members_by_task ON unreel.members (task, collection);
  `,
  // site_video: as video, of the site's own id of the video.
  `
  ALTER TABLE unreel.tasks ADD COLUMN site_video bigint;
  CREATE INDEX tasks_by_site_video ON unreel.tasks (site_video) WHERE site_video IS NOT NULL;
  `,
  // Hosts that have asked for no requests. A crash of the server may empty the table.
  `
  CREATE UNLOGGED TABLE unreel.host_pauses (host text COLLATE "C" PRIMARY KEY, ends_at timestamptz NOT NULL);
  CREATE INDEX host_pauses_by_end ON unreel.host_pauses (ends_at);
  `,
  // The whole records of ended tasks count. They are counted below.
  "UPDATE unreel.counters SET counted_events = -1",
];

/** Processes of an earlier release may have finished files meanwhile, and the record of one may be damaged. */
const setMissingTimes = `
  UPDATE unreel.tasks SET finished_at = to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  WHERE bytes > 0 AND finished_at IS NULL`;

/** Processes of an earlier release may have written tasks without counting them. */
const countOwnersAgain = `
  INSERT INTO unreel.owners AS known (owner, queued, running)
  SELECT owner, coalesce(sum(queued), 0), coalesce(sum(running), 0) FROM (
    SELECT owner, 0 AS queued, 0 AS running FROM unreel.owners
    UNION ALL
    SELECT coalesce(owner, ''), (state = 'queued')::int, (state = 'running' AND idle = 0)::int
    FROM unreel.tasks WHERE state IN ('queued', 'running')
  ) AS found GROUP BY owner
  ON CONFLICT (owner) DO UPDATE SET queued = excluded.queued, running = excluded.running`;

const countRecordsAgain = `
  INSERT INTO unreel.owners AS known (owner, records)
  SELECT owner, sum(bytes) FROM (
    SELECT owner, 0 AS bytes FROM unreel.owners
    UNION ALL
    SELECT coalesce(owner, ''), ${countedRecord} FROM unreel.tasks
  ) AS found GROUP BY owner
  ON CONFLICT (owner) DO UPDATE SET records = excluded.records`;

const countTasksAgain = `
  UPDATE unreel.counters SET counted_events = events,
    (queued, running, succeeded, failed, canceled) = (
      SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'),
        count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
        count(*) FILTER (WHERE state = 'canceled')
      FROM unreel.tasks
    )`;

/**
 * Migrates the tables to the version that this release uses; processes that start together wait for each
 * other.
 *
 * @throws Error if the server is too old or a newer release has migrated the tables.
 */
export async function migrate(database: Database, logger?: Pick<BaseLogger, "info">): Promise<void> {
  await database.transaction(async (sql) => {
    await requireServer(sql);
    await sql.runLong(`SELECT pg_advisory_xact_lock(${lock})`);
    const version = await readVersion(sql);
    const onUpgraded = startUpgrade(version, migrations.length, logger);
    for (const [index, statements] of migrations.entries()) {
      if (index < version) continue;
      await sql.runLong(statements);
      await sql.query("INSERT INTO unreel.migrations (version) VALUES (:version)", {
        version: index + 1,
      });
    }
    onUpgraded();
    await sql.query(setMissingTimes);
    const [counters] = await sql.query<{ isExact: boolean }>(
      `SELECT counted_events = events AS "isExact" FROM unreel.counters FOR UPDATE`,
    );
    if (counters?.isExact === false) {
      await sql.query(countTasksAgain);
      await sql.query(countRecordsAgain);
    }
    await sql.query(countOwnersAgain);
  });
}

async function readVersion(sql: Sql): Promise<number> {
  for (const schema of ["unreel", jobsSchema]) await createSchema(sql, schema);
  await sql.query(
    `CREATE TABLE IF NOT EXISTS unreel.migrations (
       version integer PRIMARY KEY,
       applied_at timestamptz NOT NULL DEFAULT now()
     )`,
  );
  const [row] = await sql.query<{ version: number }>(
    "SELECT coalesce(max(version), 0) AS version FROM unreel.migrations",
  );
  return row?.version ?? 0;
}

/** `IF NOT EXISTS` needs the right to create schemas even if the schema exists. */
async function createSchema(sql: Sql, schema: string): Promise<void> {
  const [row] = await sql.query<{ exists: boolean }>('SELECT to_regnamespace(:schema) IS NOT NULL AS "exists"', {
    schema,
  });
  if (row?.exists === false) await sql.query(`CREATE SCHEMA ${schema}`);
}
