import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import type { Task } from "../../src/model/task.ts";
import { openStore } from "../../src/stores/registry.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { openDatabase } from "../postgres/database.ts";
import { entryUrl, playlistUrl } from "../runner/playlists.ts";
import { makeFolder } from "../folder.ts";
import { kill } from "../kill.ts";

const script = join(import.meta.dirname, "collection-child.ts");
const compileCache = join(import.meta.dirname, "../../node_modules/.cache/collections");
const entries = 90;

it("a process that is killed seven times while it makes and runs 90 entries has each exactly once", async () => {
  const dataDir = makeFolder();
  const { id } = await inStore("sqlite:", dataDir, post);
  // Changes of the collection after which it is killed: while it grows, while entries run, and both.
  for (const changes of [1, 2, 5, 13, 31, 1, 7]) {
    await killAfter(start("sqlite:", dataDir), changes);
  }
  const { child, lines } = start("sqlite:", dataDir);
  for await (const line of lines) if (line.startsWith("succeeded")) break;
  await kill(child);
  await inStore("sqlite:", dataDir, (store) => expectWhole(store, id));
});

it("three processes on Postgres that are killed in turn have each of 90 entries exactly once", async () => {
  const [url, dataDir] = [await openDatabase(), makeFolder()];
  const store = await openStore(url, { dataDir });
  onTestFinished(() => store.close());
  const { id } = await post(store);
  const ended = new Promise<void>((resolve) => {
    store.events.subscribe(({ taskId, state }) => {
      if (taskId === id && state === "succeeded") resolve();
    });
  });
  const others = [start(url, dataDir), start(url, dataDir)];
  // The others may be faster than the process that is to be killed.
  for (const changes of [2, 9, 40]) await Promise.race([killAfter(start(url, dataDir), changes), ended]);
  for (const other of others) await kill(other.child);
  start(url, dataDir);
  await ended;
  await expectWhole(store, id);
});

function post(store: TaskStore): Promise<Task> {
  return store.create(newTask(playlistUrl, { entries: "all" }, new Date()));
}

/** Expects that the collection has every entry once, with its file, and that nothing else was made. */
async function expectWhole(store: TaskStore, id: string): Promise<void> {
  const counts = { queued: 0, running: 0, succeeded: entries, failed: 0, canceled: 0 };
  expect(await store.get(id)).toMatchObject({ state: "succeeded", counts });
  const members: Task[] = [];
  let before: number | undefined;
  do {
    const page = await store.list({ limit: 200, parent: id, before });
    members.push(...page.tasks);
    before = page.next;
  } while (before !== undefined);
  expect(members.map(({ url }) => url)).toEqual(Array.from({ length: entries }, (_, n) => entryUrl(n + 1)));
  expect(members.every(({ file }) => file !== null)).toBe(true);
  expect((await store.count()).byState).toEqual({ ...counts, succeeded: entries + 1 });
}

async function inStore<T>(url: string, dataDir: string, use: (store: TaskStore) => Promise<T>): Promise<T> {
  const store = await openStore(url, { dataDir });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

interface Child {
  child: ChildProcess;
  lines: AsyncIterable<string>;
}

function start(url: string, dataDir: string): Child {
  const child = spawn(process.execPath, [script, url, dataDir, `${entries}`], {
    env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => kill(child));
  return { child, lines: createInterface({ input: child.stdout }) };
}

/** Kills the process after it has seen this many changes of the collection. */
async function killAfter({ child, lines }: Child, changes: number): Promise<void> {
  let seen = 0;
  for await (const line of lines) {
    seen += 1;
    if (seen >= changes || line.startsWith("succeeded")) break;
  }
  await kill(child);
}
