import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { addFile } from "../../contracts/task-store/files.ts";
import { openDatabase } from "../../postgres/database.ts";
import { query } from "./query.ts";
import { closedPort, listen } from "../../net/listen.ts";

test.each([
  ["postgres:", "STORE_URL must name a database, as in postgres://user@host/database"],
  ["postgres://", "STORE_URL must name a database"],
  ["postgres://u:secret@db.test", "STORE_URL must name a database"],
  ["postgres://u:secret@db.test/", "STORE_URL must name a database"],
  ["postgres://u:12/secret@db.test/d", "STORE_URL must name a database"],
  ["postgres://u:12/secret@db.test", "STORE_URL must name a database"],
  ["postgres:u:secret@db.test/d", "STORE_URL must name a database"],
  ["postgres:///u:secret@db.test/d", "STORE_URL must name a database"],
  ["postgres://u:secret@db.test:99999/name", "STORE_URL must name a database"],
  ["postgres://u:secret@db.test/name?sslcert=/none", "STORE_URL must be the URL of a database: ENOENT"],
])("%j is refused, and the error names STORE_URL", async (url, message) => {
  const failure = await failureOf(url);
  expect(failure).toMatch(message);
  expect(failure).not.toMatch("secret");
});

test("a server that does not listen is named with host and port, without the password", async () => {
  const port = await closedPort();
  const failure = await failureOf(`postgres://u:secret@127.0.0.1:${port}/name`);
  expect(failure).toBe(`cannot open the database name at 127.0.0.1:${port} (STORE_URL): connect ECONNREFUSED`);
});

test("an unknown host is named", async () => {
  const failure = await failureOf("postgres://u:secret@nowhere.invalid/name");
  expect(failure).toMatch(/^cannot open the database name at nowhere\.invalid:5432 \(STORE_URL\): get/);
  expect(failure).not.toMatch("secret");
});

test("a database that does not exist is named", async () => {
  const url = new URL(inject("postgresUrl"));
  url.pathname = "nowhere";
  expect(await failureOf(url.href)).toMatch('there is no such database (database "nowhere" does not exist)');
});

test("a user without the right to create tables is reported", async () => {
  const url = new URL(await openDatabase());
  const role = `guest${url.pathname.slice(1)}`;
  await query(url.href, `CREATE ROLE ${role} LOGIN`);
  onTestFinished(async () => {
    await query(inject("postgresUrl"), `DROP ROLE ${role}`);
  });
  url.username = role;
  expect(await failureOf(url.href)).toMatch(
    "the user may not create schemas and tables (permission denied for database",
  );
});

test("a server that takes no writes is reported", async () => {
  const url = await openDatabase();
  await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`);
  expect(await failureOf(url)).toMatch("the server takes no writes: it is read-only, or a standby (cannot execute");
});

test("a pooler that lets connections share a session is refused", async () => {
  const url = await openDatabase();
  // Each connection finds the session that a pooler would give to all.
  await query(
    url,
    `CREATE SCHEMA pooled;
     CREATE FUNCTION pooled.pg_backend_pid() RETURNS integer LANGUAGE sql AS $$ SELECT 7 $$;`,
  );
  await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = pooled, pg_catalog`);
  expect(await failureOf(url)).toMatch(/: connections share a session of the server: a pooler must give each its own/);
});

test("tables of a newer version are refused", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  await store.close();
  await query(url, "INSERT INTO unreel.migrations (version) VALUES (99)");
  expect(await failureOf(url)).toMatch(/: its schema version is 99, and this release knows versions up to \d+$/);
});

test("a server that speaks HTTP is no database", async () => {
  const server = createServer((socket) =>
    socket.on("error", () => {}).once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")),
  );
  const port = await listen(server);
  onTestFinished(() => void server.close());
  const failure = await failureOf(`postgres://u:secret@127.0.0.1:${port}/d`);
  expect(failure).toMatch(/terminated/);
  expect(failure).not.toMatch("secret");
});

test("a server that is too old is refused", async () => {
  const url = await openDatabase();
  // The service calls this function for the version; Postgres finds it before its own.
  await query(
    url,
    `CREATE SCHEMA older;
     CREATE FUNCTION older.current_setting(name text) RETURNS text LANGUAGE sql
       AS $$ SELECT CASE name WHEN 'server_version_num' THEN '140019' ELSE '14.19' END $$;`,
  );
  const { pathname } = new URL(url);
  await query(url, `ALTER DATABASE ${pathname.slice(1)} SET search_path = older, pg_catalog`);
  expect(await failureOf(url)).toMatch(/Postgres must be version 15 or newer; the server is version 14\.19$/);
});

test.each([
  "CREATE SCHEMA unreel CREATE TABLE tasks (id int)",
  "CREATE SCHEMA unreel CREATE TABLE migrations (id int)",
  "CREATE SCHEMA unreel CREATE VIEW migrations AS SELECT 0 AS version",
  "CREATE SCHEMA unreel_jobs CREATE TABLE version (id int)",
  "CREATE SCHEMA unreel_jobs CREATE TABLE job (id int)",
])("tables of other programs under our names are left alone: %s", async (statement) => {
  const url = await openDatabase();
  await query(url, statement);
  const columns = `SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema LIKE 'unreel%'`;
  const before = await query<{ table_name: string }>(url, columns);
  expect(await failureOf(url)).toMatch(/cannot open .*unreel/);
  const after = await query<{ table_name: string }>(url, columns);
  expect(after.filter((each) => each.table_name === before[0]?.table_name)).toEqual(before);
});

test("a database opened again has its tasks", async () => {
  const url = await openDatabase();
  const before = await openPostgresStore({ url });
  const task = await before.create(newTask("https://a.test/", {}, new Date()));
  await before.close();
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  expect(await store.get(task.id)).toEqual(task);
});

/** Undoes the steps that have made the tables and columns of collections, videos and pauses; columns take their indexes with them. */
const dropLater = `
  DROP TABLE unreel.members, unreel.host_pauses;
  ALTER TABLE unreel.tasks DROP COLUMN listed, DROP COLUMN idle, DROP COLUMN memberships, DROP COLUMN video,
    DROP COLUMN page_video, DROP COLUMN site_video;
  CREATE INDEX tasks_by_state ON unreel.tasks (state, seq DESC);
  CREATE INDEX tasks_by_owner ON unreel.tasks (owner, seq DESC) WHERE owner IS NOT NULL;
  CREATE INDEX tasks_by_owner_and_state ON unreel.tasks (owner, state, seq DESC) WHERE owner IS NOT NULL;`;

test("tables of version 1 are migrated; their tasks belong to nobody", async () => {
  const url = await openDatabase();
  const before = await openPostgresStore({ url });
  const task = await before.create(newTask("https://a.test/", {}, new Date()));
  await before.close();
  await query(
    url,
    `${dropLater}
     ALTER TABLE unreel.tasks DROP COLUMN owner;
     ALTER TABLE unreel.task_events DROP COLUMN owner;
     DROP TABLE unreel.keys, unreel.owners, unreel.request_counts, unreel.outbox_lines,
       unreel.outbox_messages;
     ALTER TABLE unreel.tasks DROP COLUMN bytes, DROP COLUMN finished_at;
     ALTER TABLE unreel.counters DROP COLUMN running, DROP COLUMN succeeded, DROP COLUMN failed,
       DROP COLUMN canceled, DROP COLUMN counted_events;
     DELETE FROM unreel.migrations WHERE version > 1`,
  );
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const hers = await store.create(newTask("https://a.test/", {}, new Date(), "anna"));
  expect((await store.list({ limit: 9 })).tasks).toEqual([hers, task]);
  expect((await store.list({ limit: 9, owner: "anna" })).tasks).toEqual([hers]);
  expect(await store.keys.list()).toEqual([]);
  expect((await store.count()).byState).toMatchObject({ queued: 2, running: 0 });
  const claims = [await store.claim({ leaseMs: 1 }), await store.claim({ leaseMs: 1 })];
  expect(claims.map((claim) => claim?.task.id)).toEqual([task.id, hers.id]);
});

test("a process that starts while another one migrates waits, longer than any other statement may", async () => {
  const url = await openDatabase();
  const other = new Client({ connectionString: url });
  await other.connect();
  await other.query("SELECT pg_advisory_lock(7261983450)");
  const opening = openPostgresStore({ url });
  const first = await Promise.race([opening, sleep(9_000, "waits")]);
  await other.end();
  const store = await opening;
  onTestFinished(() => store.close());
  expect(first).toBe("waits");
  await store.ping();
});

test("tables from before files were counted are migrated; damaged records are left alone", async () => {
  const url = await openDatabase();
  const before = await openPostgresStore({ url });
  const harness = { store: before, add: addTo(before) };
  const [young, old] = [await addFile(harness, 10), await addFile(harness, 20, "anna")];
  const [damaged, queued] = [await addFile(harness, 40), await harness.add()];
  await before.close();
  const earlier = { ...old, finished_at: "2020-01-01T00:00:00.000Z" };
  await query(
    url,
    `${dropLater}
     UPDATE unreel.tasks SET document = '${JSON.stringify(earlier)}' WHERE id = '${old.id}';
     UPDATE unreel.tasks SET document = '{' WHERE id = '${damaged.id}';
     ALTER TABLE unreel.tasks DROP COLUMN finished_at;
     UPDATE unreel.tasks SET bytes = 0;
     UPDATE unreel.owners SET bytes = 0;
     ALTER TABLE unreel.owners DROP COLUMN records;
     DELETE FROM unreel.migrations WHERE version > 7`,
  );
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const { bytes, oldest } = await store.storedFiles({ limit: 9 });
  expect([bytes, oldest.map(({ id }) => id)]).toEqual([30, [old.id, young.id]]);
  expect(await store.get(queued.id)).toEqual(queued);
  await store.update(old.id, { file: null });
  expect(await store.storedFiles({ limit: 9 })).toMatchObject({
    bytes: 10,
    oldest: [{ id: young.id, finishedAt: young.finished_at }],
  });
});

test("a file that an earlier release has finished meanwhile counts as the newest", async () => {
  const url = await openDatabase();
  const before = await openPostgresStore({ url });
  const harness = { store: before, add: addTo(before) };
  const [theirs, ours] = [await addFile(harness, 10), await addFile(harness, 20)];
  await before.close();
  await query(url, `UPDATE unreel.tasks SET finished_at = NULL WHERE id = '${theirs.id}'`);
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const { oldest } = await store.storedFiles({ limit: 9 });
  expect(oldest.map(({ id }) => id)).toEqual([ours.id, theirs.id]);
  expect(oldest[1]?.finishedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

function addTo(store: TaskStore) {
  return (url = "https://a.test/", options = {}, owner?: string) =>
    store.create(newTask(url, options, new Date(), owner));
}

/** Returns the error's message, which has one line. */
async function failureOf(url: string): Promise<string> {
  const opening = openPostgresStore({ url });
  const { message } = await opening.then(
    () => new Error("it was opened"),
    (error: Error) => error,
  );
  expect(message).not.toMatch("\n");
  return message;
}
