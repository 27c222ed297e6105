import { beforeEach, expect, onTestFinished, test } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { type KeyRing, openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { buildApp } from "./app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postJson } from "./requests.ts";
import { makeFolder } from "../folder.ts";

/** More than the buffers between the service and its client take. */
const content = Buffer.alloc(64 * 1024 * 1024, "film");

let store: TaskStore;
let keys: KeyRing;
let get: (owner: string, path: string, headers?: Record<string, string>) => Promise<Response>;
/** Returns the path of a link to the owner's file. */
let makeLink: (owner: string) => Promise<string>;
let tasks: Record<string, { file: string; queued: string }>;

beforeEach(async () => {
  const folder = makeFolder();
  store = createMemoryStore();
  const files = openDiskFiles({ folder });
  const secrets: Record<string, Record<string, string>> = {};
  tasks = {};
  for (const owner of ["anna", "bert"]) {
    ({ headers: secrets[owner] } = await addKey(store, owner));
    const { id: file } = await addFinishedTask({ store, files }, content, {}, owner);
    const { id: queued } = await store.create(newTask(pageUrl, {}, new Date(), owner));
    tasks[owner] = { file, queued };
  }
  keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await buildApp({ store, files, keys });
  onTestFinished(() => app.close());
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  makeLink = async (owner) => {
    const body = { file: "A film.mp4", expires_in: 60 };
    return (await postJson(app, `/tasks/${tasks[owner]?.file}/links`, body, secrets[owner])).json().url;
  };
  get = (owner, path, headers) => fetch(`${url}${path}`, { headers: { ...secrets[owner], ...headers } });
});

async function removeAnna(): Promise<void> {
  await store.keys.remove("anna");
  await keys.refresh();
}

test("a file that is being sent to a key is broken off when the key is removed, and no other", async () => {
  const [hers, his] = await Promise.all(
    ["anna", "bert"].map((owner) => get(owner, `/tasks/${tasks[owner]?.file}/file`)),
  );
  await removeAnna();
  const sizeOf = async (response: Response | undefined) => (await response?.arrayBuffer())?.byteLength;
  await expect(sizeOf(hers)).rejects.toThrow("terminated");
  expect(await sizeOf(his)).toBe(content.length);
});

test("a file that is being sent by a link is broken off when the key that made the link is removed, and no other", async () => {
  const [hers, his] = await Promise.all(["anna", "bert"].map(async (owner) => get("nobody", await makeLink(owner))));
  await removeAnna();
  const sizeOf = async (response: Response | undefined) => (await response?.arrayBuffer())?.byteLength;
  await expect(sizeOf(hers)).rejects.toThrow("terminated");
  expect(await sizeOf(his)).toBe(content.length);
});

test("a request that waits for the end of a task is broken off when its key is removed, and no other", async () => {
  const wait = (owner: string) => get(owner, `/tasks/${tasks[owner]?.queued}`, { prefer: "wait=60" });
  const [hers, his] = [wait("anna"), wait("bert")];
  const end = hers.catch((error: unknown) => error);
  // Answered after those above have begun, which are on connections of their own.
  expect((await get("anna", "/tasks/")).status).toBe(200);
  await removeAnna();
  expect(await end).toMatchObject({ message: "fetch failed" });
  for (const { queued } of Object.values(tasks)) await store.update(queued, { state: "canceled" });
  expect(await (await his).json()).toMatchObject({ state: "canceled" });
});
