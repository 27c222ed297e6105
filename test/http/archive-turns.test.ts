import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test, vi } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";
import type { Task } from "../../src/model/task.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { addCollection } from "./finished-collection.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { makeFolder } from "../folder.ts";
import { countListsByTurn } from "../stores/lists-by-turn.ts";
import { listenApp, openApp } from "./open-app.ts";

const content = Buffer.alloc(2_000_000, "film ");

/** A service with a task of each owner, whose archives have not been read; the file of the first one opens once `unblock` is called. */
async function openArchives(owners: readonly string[]) {
  const folder = makeFolder();
  const disk = openDiskFiles({ folder });
  const store = createMemoryStore();
  const tasks: Task[] = [];
  for (const [n, owner] of owners.entries())
    tasks.push(await addFinishedTask({ store, files: disk }, Buffer.concat([content, Buffer.of(n)]), {}, owner));
  const { promise: unblocked, resolve: unblock } = Promise.withResolvers<void>();
  const { promise: blocked, resolve: onBlocked } = Promise.withResolvers<void>();
  const opened: string[] = [];
  let reads = 0;
  const files: FileStore = {
    ...disk,
    async open(id, number) {
      opened.push(id);
      const file = await disk.open(id, number);
      if (id !== tasks[0]!.id || file === undefined) return file;
      onBlocked();
      await unblocked;
      const handle = new Proxy(file.handle, {
        get(target, name) {
          if (name === "read") reads += 1;
          const value: unknown = Reflect.get(target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      return { ...file, handle };
    },
  };
  const app = await openApp({ store, files });
  const port = await listenApp(app);
  /** Asks for the end of an archive, which needs the CRC-32 of its file. */
  const askForEnd = async (n: number, signal?: AbortSignal) => {
    const headers = { range: "bytes=-60", connection: "close" };
    const response = await fetch(`http://127.0.0.1:${port}/tasks/${tasks[n]!.id}/files.zip`, {
      headers,
      ...(signal && { signal }),
    });
    return [response.status, (await response.arrayBuffer()).byteLength];
  };
  /** Does the same as a client that leaves while it waits. */
  const askAndLeave = async (n: number, isServed: Promise<unknown>) => {
    const left = new AbortController();
    const arrived = once(app.server, "request") as Promise<[IncomingMessage, ServerResponse]>;
    const asked = askForEnd(n, left.signal).catch((error: unknown) => error);
    const [, response] = await arrived;
    await isServed;
    const closed = once(response, "close");
    left.abort();
    await Promise.all([asked, closed]);
  };
  const idOf = (n: number) => tasks[n]!.id;
  return { askForEnd, askAndLeave, blocked, unblock, opened, idOf, reads: () => reads };
}

test("the end of an archive does not wait until files of another owner have been read", async () => {
  const { askForEnd, blocked, unblock } = await openArchives(["anna", "bert"]);
  const first = askForEnd(0);
  await blocked;
  expect(await askForEnd(1)).toEqual([206, 60]);
  unblock();
  expect(await first).toEqual([206, 60]);
});

test("files of one owner are read one after the other", async () => {
  const { askForEnd, blocked, unblock, opened, idOf } = await openArchives(["anna", "bert", "anna"]);
  const first = askForEnd(0);
  await blocked;
  const third = askForEnd(2);
  await askForEnd(1);
  expect(opened).toEqual([idOf(0), idOf(1)]);
  unblock();
  expect([await first, await third]).toEqual([
    [206, 60],
    [206, 60],
  ]);
});

test("a file is not read to its end, or at all, for a client that has left", async () => {
  const { askForEnd, askAndLeave, blocked, unblock, opened, idOf, reads } = await openArchives([
    "anna",
    "anna",
    "anna",
  ]);
  await askAndLeave(0, blocked);
  await askAndLeave(1, Promise.resolve());
  const last = askForEnd(2);
  unblock();
  expect(await last).toEqual([206, 60]);
  expect(opened).toEqual([idOf(0), idOf(2)]);
  expect(reads()).toBeLessThan(2);
});

test("however many ask for archives of collections, few pages of members are read in one turn of the event loop", async () => {
  const folder = makeFolder();
  const files = openDiskFiles({ folder });
  const { store, during } = countListsByTurn(createMemoryStore());
  const { id, finish } = await addCollection({ store, files, count: 250 });
  await finish({ title: "A" }, "A");
  const app = await openApp({ store, files });
  const ask = async () => app.inject({ method: "HEAD", url: `/tasks/${id}/files.zip` });
  const { result, pages } = await during(() => Promise.all(Array.from({ length: 20 }, ask)));
  expect([...new Set(result.map(({ statusCode }) => statusCode))]).toEqual([200]);
  expect(pages.reduce((sum, number) => sum + number)).toBe(40);
  expect(Math.max(...pages)).toBeLessThanOrEqual(2);
});

/** Returns a service with a collection of ten members that list 120 files each; those of the first one begin with `content`. */
async function openLongArchive() {
  const folder = makeFolder();
  const files = openDiskFiles({ folder });
  const store = createMemoryStore();
  const { id, finish } = await addCollection({ store, files, count: 10 });
  for (let n = 0; n < 10; n += 1) {
    const member = await finish({ title: "A" }, content.toString());
    const { file } = (await store.get(member))!;
    const other = (number: number) => ({ ...file!, kind: "subtitles" as const, language: `x${number}` });
    const listed = [{ ...file!, kind: "media" as const }, ...Array.from({ length: 119 }, (_, number) => other(number))];
    await store.update(member, { files: listed }, { from: ["succeeded"] });
  }
  const app = await openApp({ store, files });
  return { app, url: `/tasks/${id}/files.zip` };
}

test("other requests have their turns while the files of an archive are named", async () => {
  const { app, url } = await openLongArchive();
  let turns = 0;
  let isCounting = true;
  const count = () => {
    turns += 1;
    if (isCounting) setImmediate(count);
  };
  const asked = app.inject({ method: "HEAD", url });
  setImmediate(count);
  expect((await asked).statusCode).toBe(200);
  isCounting = false;
  expect(turns).toBeGreaterThanOrEqual(10);
});

test("readers of a long archive that wait do not have its headers in memory each", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const { app, url } = await openLongArchive();
  const port = await listenApp(app);
  const left = new AbortController();
  // A response that nobody refers to would be closed.
  const responses: Response[] = [];
  const read = async () => void responses.push(await fetch(`http://127.0.0.1:${port}${url}`, { signal: left.signal }));
  await read();
  collect();
  const before = process.memoryUsage().heapUsed;
  await Promise.all(Array.from({ length: 40 }, read));
  collect();
  // The connections take 3 MB, all headers of the archive would take 0.2 MB for each reader.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(8_000_000);
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 41 }, () => 200));
  left.abort();
});

test("archives that are being sent have so many files at most, of which each key has its share", async () => {
  const files = openDiskFiles({ folder: makeFolder() });
  const store = createMemoryStore();
  const [eve, bob] = [await addKey(store, "eve"), await addKey(store, "bob")];
  const large = await addCollection({ store, files, count: 210, owner: "eve" });
  for (let n = 0; n < 210; n += 1) await large.finish({ title: "A" }, "film ".repeat(20_000));
  const { id: small } = await addFinishedTask({ store, files }, content, {}, "bob");
  const app = await openApp({ store, files, maxArchiveFiles: 500 });
  const port = await listenApp(app);
  const left = new AbortController();
  const ask = (id: string, { headers }: typeof eve, method = "GET") =>
    fetch(`http://127.0.0.1:${port}/tasks/${id}/files.zip`, { method, headers, signal: left.signal });
  // Its 3 of the 5 places, one for each hundred files, are taken until it is read. A response that nobody refers to would be closed.
  const sent = await ask(large.id, eve);
  expect(sent.status).toBe(200);
  const refused = await ask(large.id, eve);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "10"]);
  expect(await refused.json()).toMatchObject({ code: "too_many_requests" });
  expect((await ask(small, bob, "HEAD")).status).toBe(200);
  left.abort();
  await expect(sent.text()).rejects.toThrow("aborted");
  await vi.waitUntil(
    async () =>
      (await app.inject({ method: "HEAD", url: `/tasks/${large.id}/files.zip`, headers: eve.headers })).statusCode ===
      200,
    60_000,
  );
});
