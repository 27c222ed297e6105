import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { BaseLogger } from "pino";
import { ServiceError } from "../../model/errors.ts";
import { createFolder } from "../../system/create-folder.ts";
import { maxDelayMs } from "../store.ts";
import { applicationId, migrate, migrations, readPragma } from "./migrations.ts";

/** Returns the file that `location` names; default: `tasks.db` in `dataDir`. */
export function sqlitePath(location: string, dataDir: string): string {
  return location || join(dataDir, "tasks.db");
}

/**
 * Opens the file, created with its folder if missing, and locks it until `close` or the end of the
 * process. So no worker of another process holds a lease, and all leases expire. Later commits are not
 * synced to the disk: `createWalSync` does that.
 *
 * @throws ServiceError `unavailable` that names the file and the reason: another process has it open,
 * it is not a task store, it is damaged, or a newer release has written it.
 */
export function openDatabase(path: string, logger?: Pick<BaseLogger, "info">): DatabaseSync {
  const file = resolve(path);
  let db: DatabaseSync | undefined;
  try {
    createFolder(dirname(file));
    assertNoPipe(`${file}-journal`);
    for (const each of [file, `${file}-wal`]) assertWritable(each);
    db = new DatabaseSync(file);
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    assertOurs(db);
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    migrate(db, migrations, logger);
    db.exec(countQueued);
    db.exec(endLeases);
    db.exec(endOutboxLeases);
    db.exec(`PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ${checkpointPages}`);
    return db;
  } catch (error) {
    db?.close();
    throw new ServiceError(
      "unavailable",
      `cannot open the task store ${file} (STORE_URL, DATA_DIR): ${reason(error)}`,
      { cause: error },
    );
  }
}

/** Creates a database in memory, as all steps make one: their result takes a quarter of their time. */
export function createDatabase(): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  db.exec((result ??= resultOf(migrations)));
  return db;
}

let result: string | undefined;

/** Returns what makes the tables, indexes and rows that the steps leave in an empty database. */
function resultOf(steps: readonly string[]): string {
  using db = new DatabaseSync(":memory:");
  migrate(db, steps);
  const names = "name NOT LIKE 'sqlite_%'";
  const parts = db.prepare(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND ${names} ORDER BY rowid`).all();
  const made = parts.map(({ sql }) => `${String(sql)};`).join("");
  const seq = Number(db.prepare("SELECT seq FROM last_seq").get()?.["seq"]);
  return `BEGIN; ${made} INSERT INTO last_seq VALUES (${seq}); PRAGMA user_version = ${steps.length}; COMMIT`;
}

/** A checkpoint waits for the disk; of 32 MiB it does not take noticeably longer than of less. */
const checkpointPages = 8192;

/** Counts again what the last process may not have written: see `OwnerTable`. */
const countQueued = `
  UPDATE owners SET queued = 0 WHERE queued <> 0;
  INSERT INTO owners (owner, queued, running, bytes, claimed)
    SELECT ifnull(owner, ''), count(*), 0, 0, 0 FROM tasks WHERE state = 'queued' GROUP BY ifnull(owner, '')
    ON CONFLICT (owner) DO UPDATE SET queued = excluded.queued`;

export const endLeases = "UPDATE tasks SET due_at = 0 WHERE state = 'running' AND lease IS NOT NULL";

const endOutboxLeases = "UPDATE outbox_lines SET due_at = 0, lease = NULL WHERE lease IS NOT NULL";

/**
 * Ends delays, of tasks and of the outbox's messages, that were stored by a clock that was ahead: they end later than `maxDelayMs` from
 * now, or began later than now.
 */
export function endImpossibleDelays(db: DatabaseSync, nowMs: number): void {
  const tasks = `UPDATE tasks SET due_at = 0 WHERE claimable = 0 AND lease IS NULL AND due_at > ?
    AND (due_at > ? OR CASE WHEN json_valid(document) THEN document ->> '$.updated_at' > ? END)`;
  db.prepare(tasks).run(nowMs, nowMs + maxDelayMs, new Date(nowMs).toISOString());
  const messages = `UPDATE outbox_lines SET due_at = 0 WHERE due_at > ?1
    AND (due_at > ?2 OR EXISTS (SELECT 1 FROM outbox_messages AS message
      WHERE message.line = outbox_lines.line AND created_at > ?1))`;
  db.prepare(messages).run(nowMs, nowMs + maxDelayMs);
}

/** Rows among the newest 10,000 that are no JSON object with an id: 50 ms, where all of a million take 4 s. */
export const suspectRows = `SELECT seq, id, document
  FROM (SELECT seq, id, document FROM tasks ORDER BY seq DESC LIMIT 10000)
  WHERE CASE WHEN json_valid(document) THEN document ->> '$.id' IS NULL ELSE 1 END`;

/** Of a file of another user, SQLite says that the disk has failed. @throws Error that says what is not permitted */
function assertWritable(path: string): void {
  if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
}

/** SQLite would wait for its other end. */
function assertNoPipe(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isFIFO() === true) throw new Error(`${path} is a pipe; remove it`);
}

/** Called before the first write, so that another program's database stays unchanged. */
function assertOurs(db: DatabaseSync): void {
  const id = readPragma(db, "application_id");
  const tables = Number(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.["n"]);
  if (id === applicationId || (id === 0 && tables === 0)) return;
  throw new Error(`it is the SQLite database of another program: its application_id is ${id}, not ${applicationId}`);
}

/** Primary result codes, https://sqlite.org/rescode.html. */
const reasons: ReadonlyMap<number, string> = new Map([
  [5, "another process has it open, and only one at a time may use a SQLite task store"],
  [8, "the file may only be read"],
  [10, "the disk failed to read or write it"],
  [11, "the file is damaged"],
  [13, "the disk is full"],
  [14, "the file cannot be opened or created"],
  [26, "the file is not a SQLite database"],
]);

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const known = "errcode" in error ? reasons.get(Number(error.errcode) & 0xff) : undefined;
  return known === undefined ? error.message : `${known} (${error.message})`;
}
