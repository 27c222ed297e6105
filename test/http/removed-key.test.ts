import { beforeEach, expect, onTestFinished, test } from "vitest";
import { parseOrigins } from "../../src/config/lists.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { type KeyRing, openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postJson } from "./requests.ts";
import { makeFolder } from "../folder.ts";
import { openApp } from "./open-app.ts";

const page = "https://app.example.com";

/** More than the buffers between the service and its client take. */
const large = Buffer.alloc(64 * 1024 * 1024, "film");

let store: TaskStore;
let files: ReturnType<typeof openDiskFiles>;
let keys: KeyRing;
let get: (owner: string, path: string, headers?: Record<string, string>) => Promise<Response>;
/** Makes a task, and waits for its end. */
let postAndWait: (owner: string) => Promise<Response>;
/** Returns the path of a link, by default to the owner's file. */
let makeLink: (owner: string, task?: "file" | "queued", file?: string) => Promise<string>;
let tasks: Record<string, { file: string; queued: string }>;

beforeEach(async () => {
  const folder = makeFolder();
  store = createMemoryStore();
  files = openDiskFiles({ folder });
  const secrets: Record<string, Record<string, string>> = {};
  tasks = {};
  for (const owner of ["anna", "bert"]) {
    ({ headers: secrets[owner] } = await addKey(store, owner));
    const { id: file } = await addFinishedTask({ store, files }, Buffer.from("film"), {}, owner);
    const { id: queued } = await store.create(newTask(pageUrl, {}, new Date(), owner));
    tasks[owner] = { file, queued };
  }
  keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await openApp({ store, files, keys, allowedOrigins: parseOrigins(page) });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  makeLink = async (owner, task = "file", file = "A film.mp4") => {
    const body = { file, expires_in: 60 };
    return (await postJson(app, `/tasks/${tasks[owner]?.[task]}/links`, body, secrets[owner])).json().url;
  };
  get = (owner, path, headers) => fetch(`${url}${path}`, { headers: { ...secrets[owner], ...headers } });
  postAndWait = (owner) =>
    fetch(`${url}/tasks/`, {
      method: "POST",
      headers: { ...secrets[owner], "content-type": "application/json", prefer: "wait=60" },
      body: JSON.stringify({ url: pageUrl }),
    });
});

/** Gives each owner a file that is large. */
async function addLarge(): Promise<void> {
  for (const [owner, ids] of Object.entries(tasks)) {
    ({ id: ids.file } = await addFinishedTask({ store, files }, large, {}, owner));
  }
}

async function removeAnna(): Promise<void> {
  await store.keys.remove("anna");
  await keys.refresh();
}

test("a file that is being sent to a key is broken off when the key is removed, and no other", async () => {
  await addLarge();
  const [hers, his] = await Promise.all(
    ["anna", "bert"].map((owner) => get(owner, `/tasks/${tasks[owner]?.file}/file`)),
  );
  await removeAnna();
  const sizeOf = async (response: Response | undefined) => (await response?.arrayBuffer())?.byteLength;
  await expect(sizeOf(hers)).rejects.toThrow("terminated");
  expect(await sizeOf(his)).toBe(large.length);
});

test("a file that is being sent by a link is broken off when the key that made the link is removed, and no other", async () => {
  await addLarge();
  const [hers, his] = await Promise.all(["anna", "bert"].map(async (owner) => get("nobody", await makeLink(owner))));
  await removeAnna();
  const sizeOf = async (response: Response | undefined) => (await response?.arrayBuffer())?.byteLength;
  await expect(sizeOf(hers)).rejects.toThrow("terminated");
  expect(await sizeOf(his)).toBe(large.length);
});

test("a request that waits for the end of a task is refused when its key is removed, and no other", async () => {
  const wait = (owner: string) => get(owner, `/tasks/${tasks[owner]?.queued}`, { prefer: "wait=60" });
  const [hers, his] = [wait("anna"), wait("bert")];
  // Answered after those above have begun, which are on connections of their own.
  expect((await get("anna", "/tasks/")).status).toBe(200);
  await removeAnna();
  const { status, headers, json } = await readProblem(await hers);
  expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  expect(json).toMatchObject({ code: "unauthorized", detail: "the key was removed" });
  for (const { queued } of Object.values(tasks)) await store.update(queued, { state: "canceled" });
  expect(await (await his).json()).toMatchObject({ state: "canceled" });
});

test("a request that has made a task and waits for its end gets the task as it was made when its key is removed", async () => {
  const made: string[] = [];
  const both = Promise.withResolvers<void>();
  store.events.subscribe(({ type, taskId }) => {
    if (type === "task" && !made.includes(taskId) && made.push(taskId) === 2) both.resolve();
  });
  const [hers, his] = [postAndWait("anna"), postAndWait("bert")];
  await both.promise;
  await removeAnna();
  const response = await hers;
  const task = (await response.json()) as { id: string };
  expect([response.status, response.headers.get("location")]).toEqual([201, `../tasks/${task.id}`]);
  expect(task).toMatchObject({ owner: "anna", state: "queued" });
  for (const id of made) await store.update(id, { state: "canceled" });
  expect(await (await his).json()).toMatchObject({ owner: "bert", state: "canceled" });
});

test("a page of an allowed origin can read that its request was refused", async () => {
  const hers = get("anna", `/tasks/${tasks["anna"]?.queued}`, { prefer: "wait=60", origin: page });
  expect((await get("anna", "/tasks/")).status).toBe(200);
  await removeAnna();
  expect((await hers).headers.get("access-control-allow-origin")).toBe(page);
});

test("a stream that has not begun is, by a link, like any link that is none when the key that made it is removed", async () => {
  const [hers, his] = await Promise.all(["anna", "bert"].map((owner) => makeLink(owner, "queued", "stream")));
  const [link, other] = [get("nobody", hers ?? ""), get("nobody", his ?? "")];
  expect((await get("bert", "/tasks/")).status).toBe(200);
  await removeAnna();
  const { status, json } = await readProblem(await link);
  expect([status, json.detail]).toEqual([404, (await readProblem(await get("nobody", "/links/none"))).json.detail]);
  expect(await Promise.race([other, Promise.resolve("waits")])).toBe("waits");
  await store.update(tasks["bert"]?.queued ?? "", { state: "canceled" });
  await other;
});

async function readProblem(response: Response) {
  const { status, headers } = response;
  expect(headers.get("content-type")).toMatch("application/problem+json");
  return { status, headers, json: (await response.json()) as { code: string; detail: string } };
}
