import type { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import { startUpgrade } from "../rules.ts";

/** "unrl" in the file's header. */
export const applicationId = 0x756e726c;

/**
 * The steps from an empty file to the current schema. `PRAGMA user_version` counts the steps that were
 * applied to a file: append, never edit.
 */
export const migrations: readonly string[] = [
  `
  PRAGMA application_id = ${applicationId};

  -- document: the task as JSON; the other columns say what is looked up by.
  -- due_at: while waiting or running, when that ends, in Unix milliseconds.
  -- claimable: 1 while a claim may take it; claims turn it on once due_at is reached.
  CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    host TEXT NOT NULL,
    claimable INTEGER NOT NULL,
    due_at INTEGER,
    lease TEXT,
    document TEXT NOT NULL
  ) STRICT;
  CREATE INDEX tasks_by_state ON tasks (state, seq);
  CREATE INDEX tasks_claimable ON tasks (host, seq) WHERE claimable = 1;
  CREATE INDEX tasks_waiting ON tasks (due_at) WHERE claimable = 0 AND due_at IS NOT NULL;

  -- Each host's oldest claimable task: a claim passes over a host in one step, however long its queue.
  CREATE TABLE queue_heads (host TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX queue_heads_by_seq ON queue_heads (seq);

  CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    answer TEXT NOT NULL,
    ends_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX idempotency_keys_by_end ON idempotency_keys (ends_at);
  `,
  // deaths: workers in a row that died with the task.
  "ALTER TABLE tasks ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0",
  // Partial: without keys, no task has an owner and the indexes cost nothing.
  `
  ALTER TABLE tasks ADD COLUMN owner TEXT;
  CREATE INDEX tasks_by_owner ON tasks (owner, seq) WHERE owner IS NOT NULL;
  CREATE INDEX tasks_by_owner_and_state ON tasks (owner, state, seq) WHERE owner IS NOT NULL;

  -- document: the key as JSON.
  CREATE TABLE keys (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
  `,
  // The owner '' has the tasks without an owner. claimed: number of the owner's last claim; 0: it had none.
  `
  CREATE TABLE owners (
    owner TEXT PRIMARY KEY,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    claimed INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX owners_by_turn ON owners (running, claimed) WHERE queued + running > 0;
  INSERT INTO owners
    SELECT ifnull(owner, ''), sum(state = 'queued'), sum(state = 'running'), 0 FROM tasks
    WHERE state IN ('queued', 'running') GROUP BY ifnull(owner, '');

  DROP INDEX tasks_claimable;
  CREATE INDEX tasks_claimable ON tasks (ifnull(owner, ''), host, state, seq) WHERE claimable = 1;

  -- The oldest claimable task of each owner, host and state: a claim passes over a host, and over the queued
  -- tasks of an owner that may run no more, in one step.
  DROP TABLE queue_heads;
  CREATE TABLE queue_heads (
    owner TEXT NOT NULL,
    host TEXT NOT NULL,
    state TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (owner, host, state)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX queue_heads_by_seq ON queue_heads (owner, seq);
  INSERT INTO queue_heads SELECT ifnull(owner, ''), host, state, min(seq) FROM tasks
    WHERE claimable = 1 GROUP BY ifnull(owner, ''), host, state;
  `,
  // bytes: size of the task's file; of the files of all tasks of the owner. There were no owners before.
  `
  ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE owners ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  `,
  // A line has the messages about one task for one endpoint, to be sent one after the other; never none.
  // due_at: when its first message may be sent or, under a lease, when that ends, in Unix milliseconds.
  `
  CREATE TABLE outbox_lines (
    line INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    task TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    refusals INTEGER NOT NULL DEFAULT 0,
    lease TEXT,
    UNIQUE (endpoint, task)
  ) STRICT;
  CREATE INDEX outbox_lines_by_due ON outbox_lines (endpoint, due_at);
  CREATE TABLE outbox_messages (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    line INTEGER NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX outbox_messages_by_line ON outbox_messages (line, seq);
  `,
  // finished_at: when a task with a file has finished, as in its document. Files of before there were keys were not
  // counted in bytes.
  `
  ALTER TABLE tasks ADD COLUMN finished_at TEXT;
  UPDATE tasks SET bytes = document ->> '$.file.size', finished_at = document ->> '$.finished_at'
    WHERE state = 'succeeded' AND CASE WHEN json_valid(document) THEN
      json_type(document, '$.file.size') = 'integer' AND json_type(document, '$.finished_at') = 'text'
    END;
  -- The record of a file that was counted is damaged: as if it was the first that finished.
  UPDATE tasks SET finished_at = '' WHERE bytes > 0 AND finished_at IS NULL;
  CREATE INDEX tasks_with_files ON tasks (finished_at, seq) WHERE bytes > 0;
  INSERT INTO owners (owner, queued, running, bytes, claimed)
    SELECT ifnull(owner, ''), 0, 0, sum(bytes), 0 FROM tasks WHERE bytes > 0 GROUP BY ifnull(owner, '')
    ON CONFLICT (owner) DO UPDATE SET bytes = excluded.bytes;
  `,
  // A new task is queued, so it is written to one index by owner instead of two.
  `
  DROP INDEX tasks_by_owner;
  CREATE INDEX tasks_by_owner_not_queued ON tasks (owner, seq)
    WHERE owner IS NOT NULL AND state <> 'queued';
  `,
  // Without AUTOINCREMENT, which writes a page of its own in each transaction that adds a task.
  // last_seq: the number of the newest task if that was deleted, so that it is not used again.
  `
  CREATE TABLE last_seq (seq INTEGER NOT NULL) STRICT;
  INSERT INTO last_seq SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'tasks'), 0);

  CREATE TABLE new_tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    host TEXT NOT NULL,
    claimable INTEGER NOT NULL,
    due_at INTEGER,
    lease TEXT,
    document TEXT NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    bytes INTEGER NOT NULL DEFAULT 0,
    finished_at TEXT
  ) STRICT;
  INSERT INTO new_tasks
    SELECT seq, id, state, host, claimable, due_at, lease, document, deaths, owner, bytes, finished_at
    FROM tasks ORDER BY seq;
  DROP TABLE tasks;
  ALTER TABLE new_tasks RENAME TO tasks;
  CREATE INDEX tasks_by_state ON tasks (state, seq);
  CREATE INDEX tasks_claimable ON tasks (ifnull(owner, ''), host, state, seq) WHERE claimable = 1;
  CREATE INDEX tasks_waiting ON tasks (due_at) WHERE claimable = 0 AND due_at IS NOT NULL;
  CREATE INDEX tasks_by_owner_and_state ON tasks (owner, state, seq) WHERE owner IS NOT NULL;
  CREATE INDEX tasks_by_owner_not_queued ON tasks (owner, seq)
    WHERE owner IS NOT NULL AND state <> 'queued';
  CREATE INDEX tasks_with_files ON tasks (finished_at, seq) WHERE bytes > 0;
  `,
  // records: bytes of the records of the owner's tasks, of each what is over 16,000.
  `
  ALTER TABLE owners ADD COLUMN records INTEGER NOT NULL DEFAULT 0;
  INSERT INTO owners (owner, queued, running, bytes, claimed, records)
    SELECT ifnull(owner, ''), 0, 0, 0, 0, sum(octet_length(document) - 16000) FROM tasks
    WHERE octet_length(document) > 16000 GROUP BY ifnull(owner, '')
    ON CONFLICT (owner) DO UPDATE SET records = excluded.records;
  `,
  // listed: 0: a collection has made the task. idle: 1: a collection that waits for its members. memberships: at how many
  // places of collections the task is. video, page_video: 48 bits by which tasks for a video are found; null: unknown.
  // Every page of a list is merged from those of its states.
  `
  ALTER TABLE tasks ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;
  ALTER TABLE tasks ADD COLUMN idle INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks ADD COLUMN memberships INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE tasks ADD COLUMN video INTEGER;
  ALTER TABLE tasks ADD COLUMN page_video INTEGER;
  CREATE INDEX tasks_by_video ON tasks (video) WHERE video IS NOT NULL;
  CREATE INDEX tasks_by_page_video ON tasks (page_video) WHERE page_video IS NOT NULL;

  DROP INDEX tasks_by_state;
  CREATE INDEX tasks_by_state ON tasks (state, listed, seq);
  DROP INDEX tasks_by_owner_and_state;
  CREATE INDEX tasks_by_owner_and_state ON tasks (owner, state, listed, seq) WHERE owner IS NOT NULL;
  DROP INDEX tasks_by_owner_not_queued;

  -- The collection and the task by their seq.
  CREATE TABLE members (
    collection INTEGER NOT NULL,
    place INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (collection, place)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX members_by_task ON members (task, collection);
  `,
  // site_video: as video, of the site's own id of the video.
  `
  ALTER TABLE tasks ADD COLUMN site_video INTEGER;
  CREATE INDEX tasks_by_site_video ON tasks (site_video) WHERE site_video IS NOT NULL;
  `,
  // A page of all tasks is read twice as fast as one that is merged from those of the states.
  `
  CREATE INDEX tasks_listed ON tasks (seq) WHERE listed = 1;
  `,
  // Collections that are canceled or deleted while their members after a place are not yet.
  `
  CREATE TABLE ending_collections (collection INTEGER PRIMARY KEY, place INTEGER NOT NULL) STRICT;
  `,
  // records: of ended tasks the whole records, of the others what is over 16,000 bytes.
  `
  UPDATE owners SET records = 0;
  INSERT INTO owners (owner, queued, running, bytes, claimed, records)
    SELECT ifnull(owner, ''), 0, 0, 0, 0, sum(CASE WHEN state IN ('queued', 'running')
      THEN max(octet_length(document) - 16000, 0) ELSE octet_length(document) END)
    FROM tasks WHERE true GROUP BY ifnull(owner, '')
    ON CONFLICT (owner) DO UPDATE SET records = excluded.records;
  `,
];

/**
 * Applies the steps that the file lacks, all or none.
 *
 * @throws Error if more steps were applied to the file than there are.
 */
export function migrate(db: DatabaseSync, steps: readonly string[], logger?: Pick<BaseLogger, "info">): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = readPragma(db, "user_version");
    const onUpgraded = startUpgrade(version, steps.length, logger);
    for (const step of steps.slice(version)) db.exec(step);
    if (version < steps.length) db.exec(`PRAGMA user_version = ${steps.length}`);
    db.exec("COMMIT");
    onUpgraded();
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** Returns a number of the header of the database. */
export function readPragma(db: DatabaseSync, name: "user_version" | "application_id"): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name]);
}
