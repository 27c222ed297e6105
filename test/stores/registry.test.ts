import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/stores/registry.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDatabase } from "../postgres/database.ts";
import { makeFolder } from "../folder.ts";

test("memory: is the memory store, which writes no file", async () => {
  const dataDir = join(makeFolder(), "data");
  const store = await open("memory:", dataDir);
  await store.close();
  await expect(store.ping()).rejects.toThrow("the memory task store is closed");
  expect(existsSync(dataDir)).toBe(false);
});

test("sqlite: is the file tasks.db in the data folder", async () => {
  const dataDir = join(makeFolder(), "data");
  await open("sqlite:", dataDir);
  expect(existsSync(join(dataDir, "tasks.db"))).toBe(true);
});

test("sqlite: with a path is that file", async () => {
  const folder = makeFolder();
  const path = join(folder, "a:b", "own.db");
  await open(`sqlite:${path}`, join(folder, "data"));
  expect(existsSync(path)).toBe(true);
  expect(existsSync(join(folder, "data"))).toBe(false);
});

test.each(["postgres:", "postgresql:"])("%s is the database at that address", async (scheme) => {
  const url = new URL(await openDatabase());
  url.protocol = scheme;
  const store = await open(url.href, makeFolder());
  await store.ping();
  await store.close();
  await expect(store.ping()).rejects.toThrow("the postgres task store is closed");
});

test.each(["memory:", "sqlite:"])("%s uses the given clock", async (url) => {
  const now = () => new Date(Date.UTC(2031, 1, 2));
  const store = await openStore(url, { dataDir: makeFolder(), now });
  onTestFinished(() => store.close());
  const { id } = await store.create(newTask("https://video.example.com/", {}, new Date()));
  expect((await store.update(id, { attempts: 1 })).updated_at).toBe("2031-02-02T00:00:00.000Z");
});

test.each([
  ["redis://127.0.0.1", "redis"],
  ["memory", "memory"],
  ["", ""],
  ["constructor:", "constructor"],
  ["C:\\data\\tasks.db", "C"],
])("%j is refused with variable, rule and value", async (url, scheme) => {
  await expect(open(url, makeFolder())).rejects.toThrow(
    `STORE_URL must begin with one of memory:, sqlite:, postgres:, postgresql:; it begins with "${scheme}"`,
  );
});

test.each(["redis://user:secret@127.0.0.1", "postgres://user:secret@127.0.0.1"])(
  "the password of %s, which is refused, stays out of the message",
  async (url) => {
    await expect(open(url, makeFolder())).rejects.not.toThrow("secret");
  },
);

async function open(url: string, dataDir: string) {
  const store = await openStore(url, { dataDir });
  onTestFinished(() => store.close());
  return store;
}
