import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { createDatabase, openDatabase } from "../../../src/stores/sqlite/database.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { Task } from "../../../src/model/task.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { applicationId, migrate, migrations } from "../../../src/stores/sqlite/migrations.ts";
import { statements } from "../../../src/stores/sqlite/statements.ts";
import { fileOf } from "../../contracts/task-store/files.ts";
import { times } from "../../contracts/task-store/harness.ts";
import { makeFolder } from "../../folder.ts";
import { createTestLog } from "../../log.ts";

test("a database in memory has what the steps leave in an empty one", () => {
  using stepped = new DatabaseSync(":memory:");
  migrate(stepped, migrations);
  using made = createDatabase();
  const schema = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
  const queries = [
    "PRAGMA user_version",
    "SELECT type, name, sql FROM sqlite_schema ORDER BY name",
    ...stepped
      .prepare(schema)
      .all()
      .map(({ name }) => `SELECT * FROM ${String(name)}`),
  ];
  for (const query of queries) expect(made.prepare(query).all(), query).toEqual(stepped.prepare(query).all());
});

describe("opening a file as task store", () => {
  test("turns on the write-ahead log and the exclusive lock, and leaves syncing the log to the store", () => {
    const db = open(join(makeFolder(), "tasks.db"));
    const ask = (pragma: string) => db.prepare(`PRAGMA ${pragma}`).get();
    expect(ask("journal_mode")).toEqual({ journal_mode: "wal" });
    expect(ask("synchronous")).toEqual({ synchronous: 1 });
    expect(ask("locking_mode")).toEqual({ locking_mode: "exclusive" });
  });

  test("migrates an empty file to the current schema version", () => {
    const path = join(makeFolder(), "tasks.db");
    writeFileSync(path, "");
    const db = open(path);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
    expect(db.prepare("SELECT count(*) AS n FROM tasks").get()).toEqual({ n: 0 });
  });

  test("refuses a file that a newer release has written, and leaves it unchanged", () => {
    const path = join(makeFolder(), "tasks.db");
    const version = migrations.length + 1;
    makeDatabase(path, `PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
    expect(() => openDatabase(path)).toThrow(
      `cannot open the task store ${path} (STORE_URL, DATA_DIR): its schema version is ${version}, ` +
        `and this release knows versions up to ${migrations.length}`,
    );
    using db = new DatabaseSync(path);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: version });
  });

  test("refuses another program's database, and does not touch a byte of it", () => {
    const path = join(makeFolder(), "tasks.db");
    makeDatabase(path, "CREATE TABLE tasks (id); PRAGMA user_version = 1");
    const before = readFileSync(path);
    expect(() => openDatabase(path)).toThrow(`${path} (STORE_URL, DATA_DIR): it is the SQLite database of another`);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("refuses a file that is not a database, and does not touch a byte of it", () => {
    const path = join(makeFolder(), "tasks.db");
    const garbage = Buffer.from("not a database, but long enough to look for a header ".repeat(99));
    writeFileSync(path, garbage);
    expect(() => openDatabase(path)).toThrow(`${path} (STORE_URL, DATA_DIR): the file is not a SQLite database`);
    expect(readFileSync(path).equals(garbage)).toBe(true);
  });

  test("refuses a truncated file", () => {
    const path = join(makeFolder(), "tasks.db");
    openDatabase(path).close();
    truncateSync(path, 6000);
    expect(() => openDatabase(path)).toThrow(`${path} (STORE_URL, DATA_DIR): the file is damaged`);
  });

  test("refuses a pipe in the place of its journal, for which SQLite would wait, and takes a journal", () => {
    const path = join(makeFolder(), "tasks.db");
    openDatabase(path).close();
    execFileSync("mkfifo", [`${path}-journal`]);
    expect(() => openDatabase(path)).toThrow(`${path}-journal is a pipe; remove it`);
    rmSync(`${path}-journal`);
    writeFileSync(`${path}-journal`, "");
    open(path);
  });

  test("refuses a path whose folder cannot be created", () => {
    const file = join(makeFolder(), "file");
    writeFileSync(file, "");
    expect(() => openDatabase(join(file, "tasks.db"))).toThrow(/cannot open the task store .*EEXIST|ENOTDIR/);
  });

  test("refuses with unavailable and the original error as cause", () => {
    const path = makeFolder();
    expect(() => openDatabase(path)).toThrow(
      expect.objectContaining({
        name: "ServiceError",
        code: "unavailable",
        message: expect.stringContaining(`${path} (STORE_URL, DATA_DIR): the file cannot be opened or created`),
        cause: expect.objectContaining({ code: "ERR_SQLITE_ERROR" }),
      }),
    );
  });

  test("refuses a second use in the same process, until the first is closed", () => {
    const path = join(makeFolder(), "tasks.db");
    const first = open(path);
    expect(() => openDatabase(path)).toThrow(`${path} (STORE_URL, DATA_DIR): another process has it open`);
    first.exec("BEGIN IMMEDIATE; COMMIT");
    first.close();
    open(path);
  });
});

describe("migrations", () => {
  test("run from the version that the file has, each once", () => {
    const db = open(join(makeFolder(), "tasks.db"));
    const steps = [...migrations, "CREATE TABLE later (n)", "INSERT INTO later VALUES (1)"];
    migrate(db, steps);
    migrate(db, steps);
    expect(db.prepare("SELECT n FROM later").all()).toEqual([{ n: 1 }]);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: steps.length });
  });

  test("take effect all or not at all", () => {
    const db = open(join(makeFolder(), "tasks.db"));
    const steps = [...migrations, "CREATE TABLE later (n)", "INSERT INTO nowhere VALUES (1)"];
    expect(() => migrate(db, steps)).toThrow("no such table: nowhere");
    expect(() => db.prepare("SELECT n FROM later")).toThrow("no such table: later");
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
  });

  test("open a file of schema version 1, whose tasks start with a stalled count of 0", async () => {
    const path = join(makeFolder(), "tasks.db");
    const task = newTask("https://video.example.com/", {}, new Date());
    const document = JSON.stringify({ ...task, state: "running", attempts: 1 });
    makeDatabase(
      path,
      `${migrations[0]}; PRAGMA user_version = 1;
      INSERT INTO tasks (id, state, host, claimable, due_at, lease, document)
      VALUES ('${task.id}', 'running', 'video.example.com', 0, ${Date.now() + 60_000}, 'old', '${document}')`,
    );
    const { log, logger } = createTestLog();
    const store = openSqliteStore({ path, logger });
    const to = migrations.length;
    expect(log).toMatchObject([
      { from: 1, to, msg: "upgrading the task store; with a million tasks this may take minutes" },
      { from: 1, to, ms: expect.any(Number), msg: "the task store is upgraded" },
    ]);
    expect(await store.get(task.id)).toEqual(JSON.parse(document));
    const claim = await store.claim({ leaseMs: 1000 });
    expect(claim).toMatchObject({ stalledCount: 0, task: { id: task.id, attempts: 1 } });
    await store.close();
    const db = open(path);
    expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
  });

  test("open a file of schema version 2, whose tasks belong to nobody", async () => {
    const path = join(makeFolder(), "tasks.db");
    const task = newTask("https://video.example.com/", {}, new Date());
    makeDatabase(
      path,
      `${migrations.slice(0, 2).join(";")}; PRAGMA user_version = 2;
      INSERT INTO tasks (id, state, host, claimable, document)
      VALUES ('${task.id}', 'queued', 'video.example.com', 1, '${JSON.stringify(task)}')`,
    );
    const store = openSqliteStore({ path });
    onTestFinished(() => store.close());
    const hers = await store.create(newTask("https://video.example.com/", {}, new Date(), "anna"));
    expect((await store.list({ limit: 9 })).tasks).toEqual([hers, task]);
    expect((await store.list({ limit: 9, owner: "anna" })).tasks).toEqual([hers]);
    expect(await store.keys.list()).toEqual([]);
    expect(await store.delete(task.id)).toEqual(task);
  });

  test.each([1, 4, 6])("find the files of schema version %d", async (version) => {
    const path = join(makeFolder(), "tasks.db");
    const [old, young, damaged, queued] = times(4, () => newTask("https://video.example.com/", {}, new Date()));
    const row = (task: Task, state: string, document = JSON.stringify({ ...task, state })) =>
      `INSERT INTO tasks (id, state, host, claimable, document)
       VALUES ('${task.id}', '${state}', 'video.example.com', 0, '${document}');`;
    const ended = (task: Task, finished_at: string) => row({ ...task, file: fileOf(10), finished_at }, "succeeded");
    makeDatabase(
      path,
      `${migrations.slice(0, version).join(";")}; PRAGMA user_version = ${version};
      ${ended(young!, "2030-01-02T00:00:00.000Z")} ${ended(old!, "2030-01-01T00:00:00.000Z")}
      ${row(damaged!, "succeeded", "{")} ${row(damaged!, "succeeded", `{"file":{"size":"x"}}`).replace(damaged!.id, "x")}
      ${row(queued!, "queued")}`,
    );
    const store = openSqliteStore({ path });
    onTestFinished(() => store.close());
    const { bytes, oldest } = await store.storedFiles({ limit: 9 });
    expect([bytes, oldest.map(({ id }) => id)]).toEqual([20, [old!.id, young!.id]]);
    await store.update(old!.id, { file: null });
    expect(await store.storedFiles({ limit: 9 })).toMatchObject({
      bytes: 10,
      oldest: [{ id: young!.id, finishedAt: "2030-01-02T00:00:00.000Z" }],
    });
  });

  test("count the whole records of ended tasks, which earlier releases did not", () => {
    const path = join(makeFolder(), "tasks.db");
    const row = (id: string, state: string, length: number) =>
      `INSERT INTO tasks (id, state, host, claimable, owner, document)
       VALUES ('${id}', '${state}', 'a.test', 0, 'anna', '${"ü".repeat(length / 2)}');`;
    const earlier = migrations.slice(0, -1);
    makeDatabase(
      path,
      `${earlier.join(";")}; PRAGMA user_version = ${earlier.length};
      ${row("a", "failed", 400)} ${row("b", "succeeded", 20_000)} ${row("c", "queued", 500)} ${row("d", "running", 16_006)}
      INSERT INTO owners (owner, queued, running, bytes, claimed, records) VALUES ('anna', 1, 1, 0, 0, 4006)`,
    );
    const rows = open(path).prepare("SELECT owner, records FROM owners").all();
    expect(rows).toEqual([{ owner: "anna", records: 20_406 }]);
  });

  test("keep all of a task and the last sequence number of schema version 8", () => {
    const path = join(makeFolder(), "tasks.db");
    makeDatabase(
      path,
      `${migrations.slice(0, 8).join(";")}; PRAGMA user_version = 8;
      INSERT INTO tasks
        (id, state, host, claimable, due_at, lease, document, deaths, owner, bytes, finished_at)
      VALUES ('a', 'running', 'b.test', 1, 2, 'c', '{"id":"a"}', 3, 'anna', 4, '2030'),
        ('z', 'failed', '', 0, NULL, NULL, '{}', 0, NULL, 0, NULL);
      DELETE FROM tasks WHERE id = 'z'`,
    );
    const db = open(path);
    expect(db.prepare("SELECT * FROM tasks").all()).toEqual([
      {
        seq: 1,
        id: "a",
        state: "running",
        host: "b.test",
        claimable: 1,
        due_at: 0,
        lease: "c",
        document: '{"id":"a"}',
        deaths: 3,
        owner: "anna",
        bytes: 4,
        finished_at: "2030",
        listed: 1,
        idle: 0,
        memberships: 0,
        video: null,
        page_video: null,
        site_video: null,
      },
    ]);
    expect(db.prepare(statements.lastSeq).get()).toEqual({ seq: 2 });
  });

  test("keep the tasks of the earlier version", () => {
    const db = open(join(makeFolder(), "tasks.db"));
    const insert = db.prepare(
      "INSERT INTO tasks (id, state, host, claimable, document) VALUES (?, 'failed', '', 0, '{}')",
    );
    for (const id of times(10, String)) insert.run(id);
    migrate(db, [...migrations, "ALTER TABLE tasks ADD COLUMN later TEXT"]);
    expect(db.prepare("SELECT count(*) AS n FROM tasks").get()).toEqual({ n: 10 });
  });
});

function open(path: string): DatabaseSync {
  const db = openDatabase(path);
  onTestFinished(() => {
    if (db.isOpen) db.close();
  });
  return db;
}

function makeDatabase(path: string, sql: string): void {
  using db = new DatabaseSync(path);
  db.exec(sql);
}
