import { hash } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../folder.ts";
import { openDatabase } from "../postgres/database.ts";
import { query } from "./postgres/query.ts";

const page = "https://video.example.com/";
const options = { audio_only: false };
const video = { extractor: "Films", id: "1" };
const task = (url = page) => ({ ...newTask(url, options, new Date()), video });

/** As it was written while options that state their default were not as absent ones. */
const keyOf = (name: string) =>
  Number.parseInt(hash("sha256", `\n${name}\n${JSON.stringify(options)}`, "hex").slice(0, 12), 16);

test("SQLite finds a task by the keys that earlier versions wrote of its options", async () => {
  const path = join(makeFolder(), "tasks.db");
  const before = openSqliteStore({ path });
  const { id } = await before.create(task());
  await before.close();
  using db = new DatabaseSync(path);
  db.prepare("UPDATE tasks SET video = ?, site_video = ?").run(keyOf(page), keyOf("Films 1"));
  db.close();
  const store = openSqliteStore({ path });
  onTestFinished(() => store.close());
  await expectFound(store, id);
});

test("Postgres finds a task by the keys that earlier versions wrote of its options", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const { id } = await store.create(task());
  const keys = [keyOf(page), keyOf("Films 1")];
  await query(url, "UPDATE unreel.tasks SET video = $1, site_video = $2", keys);
  await expectFound(store, id);
});

async function expectFound(store: TaskStore, id: string): Promise<void> {
  expect((await store.reuse(newTask(page, options, new Date()))).task.id).toBe(id);
  expect((await store.reuse(task(`${page}other`))).task.id).toBe(id);
  const others = newTask(page, { audio_only: true }, new Date());
  expect(await store.reuse(others)).toMatchObject({ isNew: true, task: { id: others.id } });
}
