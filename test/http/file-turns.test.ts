import type { FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../folder.ts";
import { buildApp } from "./app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";

const requests = 60;
const content = Buffer.alloc(400_000, "film ");

/** Opens a service whose keys, eve's and bob's, have a file each; each chunk of one is read after `onRead`. */
async function openFiles(onRead: () => Promise<void> | void) {
  const disk = openDiskFiles({ folder: makeFolder() });
  const store = createMemoryStore();
  const files: FileStore = {
    ...disk,
    async open(id, number) {
      const file = await disk.open(id, number);
      return file && { ...file, handle: withObserver(file.handle, onRead) };
    },
  };
  const keys = await openKeyRing({ keys: store.keys });
  const app = await buildApp({ store, files, keys });
  onTestFinished(async () => {
    await app.close();
    keys.close();
  });
  const { id: ofEve } = await addFinishedTask({ store, files: disk }, content, {}, "eve");
  const { id: ofBob } = await addFinishedTask({ store, files: disk }, content, {}, "bob");
  const [eve, bob] = [await addKey(store, "eve"), await addKey(store, "bob")];
  await keys.refresh();
  const length = async (url: string, headers = {}) => (await app.inject({ url, headers })).rawPayload.length;
  const fileOf = (id: string, { headers }: typeof eve) => length(`/tasks/${id}/file`, headers);
  const linkOf = async (id: string, { headers }: typeof eve) => {
    const payload = { file: "A film.mp4", expires_in: 60 };
    return (await app.inject({ method: "POST", url: `/tasks/${id}/links`, headers, payload })).json().url as string;
  };
  const [linkOfEve, linkOfBob] = [await linkOf(ofEve, eve), await linkOf(ofBob, bob)];
  return {
    askAsEve: () => fileOf(ofEve, eve),
    askAsBob: () => fileOf(ofBob, bob),
    askByLinkOfEve: () => length(linkOfEve),
    askByLinkOfBob: () => length(linkOfBob),
  };
}

function withObserver(handle: FileHandle, onRead: () => Promise<void> | void): FileHandle {
  return new Proxy(handle, {
    get(target, name) {
      if (name === "read") {
        return async (buffer: Uint8Array, offset: number, length: number, position: number) => {
          await onRead();
          return target.read(buffer, offset, length, position);
        };
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("however many files are sent at a time, few chunks are read in one turn of the event loop", async () => {
  const byTurn = new Map<number, number>();
  let turn = 0;
  const { askAsEve } = await openFiles(() => void byTurn.set(turn, (byTurn.get(turn) ?? 0) + 1));
  const all = Promise.all(Array.from({ length: requests }, askAsEve));
  while ((await Promise.race([all, setImmediate("turn")])) === "turn") turn += 1;
  expect(new Set(await all)).toEqual(new Set([content.length]));
  expect(Math.max(...byTurn.values())).toBeLessThan(20);
});

test.each([
  ["one file of a key is sent while another key asks for sixty", "askAsEve", "askAsBob"],
  ["one link of a key is served while sixty read a link of another key", "askByLinkOfEve", "askByLinkOfBob"],
  ["one file of a key is sent while sixty read a link of another key", "askByLinkOfEve", "askAsBob"],
] as const)("%s", async (_name, asEve, asBob) => {
  const { promise: allBegan, resolve: onAllBegan } = Promise.withResolvers<void>();
  const { promise: bobToo, resolve: onBobToo } = Promise.withResolvers<void>();
  let reads = 0;
  const { [asEve]: askAsEve, [asBob]: askAsBob } = await openFiles(() => {
    reads += 1;
    if (reads === requests) onAllBegan();
    if (reads === requests + 1) onBobToo();
    return bobToo;
  });
  let sent = 0;
  const greedy = Array.from({ length: requests }, async () => {
    const length = await askAsEve();
    sent += 1;
    return length;
  });
  await allBegan;
  expect(await askAsBob()).toBe(content.length);
  expect(sent).toBeLessThan(requests / 2);
  expect(new Set(await Promise.all(greedy))).toEqual(new Set([content.length]));
});
