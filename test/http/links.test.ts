import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { StreamJournal } from "../../src/files/stream-journal.ts";
import type { App } from "../../src/http/app.ts";
import { createLinkTokens } from "../../src/http/links/link-tokens.ts";
import { type KeyRing, openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { makeFolder } from "../folder.ts";
import { buildApp } from "./app.ts";
import { addCollection } from "./finished-collection.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postJson } from "./requests.ts";
import { readEntries } from "./zip-entries.ts";

const content = Buffer.from("0123456789");
const linkSecret = Buffer.alloc(32, 7);
const dead = { statusCode: 404, detail: "there is no such link, or it has ended" };

let folder: string;
let store: TaskStore;
let keys: KeyRing;
let app: App;
let lines: string;
let anna: Record<string, string>;
let bert: Record<string, string>;

beforeEach(async () => {
  folder = makeFolder();
  store = createMemoryStore();
  ({ headers: anna } = await addKey(store, "anna"));
  ({ headers: bert } = await addKey(store, "bert"));
  keys = await openKeyRing({ keys: store.keys, pollMs: 10 });
  lines = "";
  const logger = pino({ level: "debug" }, { write: (line: string) => void (lines += line) });
  app = await buildApp({ store, keys, files: openDiskFiles({ folder }), linkSecret, logger });
});
afterEach(async () => {
  await app.close();
  keys.close();
  await rm(folder, { recursive: true });
});

const finish = () => addFinishedTask({ store, files: openDiskFiles({ folder }) }, content, {}, "anna");
const addQueued = async () => (await store.create(newTask(pageUrl, {}, new Date(), "anna"))).id;
const create = (id: string, body: object = {}, headers = anna) =>
  postJson(app, `/tasks/${id}/links`, { file: "A film.mp4", expires_in: 60, ...body }, headers);
const get = async (url: string, headers = {}) => {
  const { statusCode, body, json } = await app.inject({ url, headers });
  return statusCode === 200 ? { statusCode, body } : { statusCode, detail: json().detail };
};

describe("a link", () => {
  it("leads to the file without a key, with ranges, HEAD and conditions", async () => {
    const { id } = await finish();
    const before = Date.now();
    const response = await create(id);
    const { url, expires_at } = response.json();
    expect(response.statusCode).toBe(201);
    expect(Date.parse(expires_at) - before).toBeGreaterThanOrEqual(60_000);
    const whole = await app.inject(url);
    expect([whole.statusCode, whole.body]).toEqual([200, "0123456789"]);
    expect(whole.headers).toMatchObject({
      "content-disposition": expect.stringContaining("A film.mp4"),
      "referrer-policy": "no-referrer",
      "x-robots-tag": "noindex",
    });
    const part = await app.inject({ url, headers: { range: "bytes=2-4" } });
    expect([part.statusCode, part.body]).toEqual([206, "234"]);
    const head = await app.inject({ method: "HEAD", url });
    expect([head.statusCode, head.headers["content-length"]]).toEqual([200, "10"]);
    const { etag } = whole.headers;
    expect((await app.inject({ url, headers: { "if-none-match": etag } })).statusCode).toBe(304);
  });

  it("is in no log, nor is one that is wrong", async () => {
    const { id } = await finish();
    const { url } = (await create(id)).json();
    const token = url.split("/").at(-1);
    await app.inject(url);
    await app.inject(`${url}x`);
    await app.inject(`${url}/more`);
    expect(lines).toContain("/links/unreel_");
    expect(lines).not.toContain(token.slice(12));
  });

  it("is made of own tasks and files that are there only", async () => {
    const { id } = await finish();
    expect((await create(id, {}, bert)).statusCode).toBe(404);
    const other = await create(id, { file: "another" });
    expect([other.statusCode, other.json().detail]).toEqual([
      404,
      `task ${id} has no file named "another"; it has "${(await store.get(id))?.files?.[0]?.name}"`,
    ]);
    expect((await create(await addQueued(), { file: "a" })).json().detail).toMatch(
      /; its state is queued, and it has "stream"$/,
    );
    for (const expires_in of [59, 2_592_001, 60.5, "60"])
      expect((await create(id, { expires_in })).json().code).toBe("invalid_request");
    await app.inject({ method: "DELETE", url: `/tasks/${id}/file`, headers: anna });
    for (const file of ["A film.mp4", "files.zip", "stream"])
      expect((await create(id, { file })).json().detail).toContain(`"${file}"; its files were removed at 2`);
  });

  it("to a stream waits for a task that is queued, sends it while it runs, then its file, and ends when the task fails", async () => {
    const sent = await addQueued();
    const { url } = (await create(sent, { file: "stream" })).json();
    const waiting = app.inject({ url, payloadAsStream: true });
    await store.claim({ leaseMs: 60_000 });
    const workFolder = await openDiskFiles({ folder }).openWorkFolder(sent);
    await writeFile(join(workFolder, "part"), content);
    const journal = new StreamJournal(workFolder);
    journal.open({ mime_type: "video/mp4", ext: "mp4", file: "part" }, true);
    journal.end();
    const response = await waiting;
    expect([response.statusCode, response.headers["referrer-policy"]]).toEqual([200, "no-referrer"]);
    await store.update(sent, { state: "succeeded", file: (await finish()).file });
    expect(await text(response.stream())).toBe("0123456789");

    const failed = await addQueued();
    const other = (await create(failed, { file: "stream" })).json().url;
    const broken = get(other);
    await store.claim({ leaseMs: 60_000 });
    const error = { code: "no_media", message: "no media", retryable: false } as const;
    await store.update(failed, { state: "failed", error });
    expect(await broken).toEqual(dead);
    expect(await get(other)).toEqual(dead);
    expect((await create(failed, { file: "stream" })).statusCode).toBe(404);

    const { id } = await finish();
    const done = (await create(id, { file: "stream" })).json().url;
    expect(await get(done)).toMatchObject({ body: "0123456789" });
    // What has come of a stream is no part of the file.
    expect(await get(done, { range: "bytes=3-" })).toMatchObject({ statusCode: 412 });
  });

  it("to files.zip leads to all files of a task, with ranges and HEAD, and ends with them", async () => {
    const { id } = await finish();
    const { url } = (await create(id, { file: "files.zip" })).json();
    const own = await app.inject({ url: `/tasks/${id}/files.zip`, headers: anna });
    const { statusCode, rawPayload, headers } = await app.inject(url);
    expect([statusCode, rawPayload.equals(own.rawPayload)]).toEqual([200, true]);
    expect(headers).toMatchObject({
      "content-type": "application/zip",
      "referrer-policy": "no-referrer",
      etag: own.headers.etag,
    });
    const tail = await app.inject({ url, headers: { range: "bytes=9-", "if-range": String(headers.etag) } });
    expect([tail.statusCode, tail.rawPayload.equals(rawPayload.subarray(9))]).toEqual([206, true]);
    const head = await app.inject({ method: "HEAD", url });
    expect([head.statusCode, head.headers["content-length"], head.body]).toEqual([200, `${rawPayload.length}`, ""]);
    await app.inject({ method: "DELETE", url: `/tasks/${id}/file`, headers: anna });
    expect(await get(url)).toEqual(dead);
    expect((await create(id, { file: "files.zip" })).statusCode).toBe(404);
  });

  it("to files.zip of a collection leads to the files that its members have, and ends with it", async () => {
    const collection = await addCollection({ store, files: openDiskFiles({ folder }), count: 3, owner: "anna" });
    const { id } = collection;
    const ask = (headers = anna) => create(id, { file: "files.zip" }, headers);
    expect((await ask()).statusCode).toBe(404);
    await collection.finish({ title: "One" }, "1");
    const { url } = (await ask()).json();
    expect((await ask(bert)).statusCode).toBe(404);
    const namesNow = async () => readEntries((await app.inject(url)).rawPayload).map(({ name }) => name);
    expect(await namesNow()).toEqual(["One.mp4"]);
    await collection.finish({ title: "Two" }, "2");
    expect(await namesNow()).toEqual(["One.mp4", "Two.mp4"]);
    expect((await create(id, { file: "stream" })).statusCode).toBe(404);
    await app.inject({ method: "DELETE", url: `/tasks/${id}`, headers: anna });
    expect(await get(url)).toEqual(dead);
  });

  it("that was changed, or made with another secret, is as none at all", async () => {
    const { id } = await finish();
    const { url } = (await create(id)).json();
    const target = { taskId: id, name: "A film.mp4", endsMs: Date.now() + 60_000, keyHash: null };
    const forged = `/links/${createLinkTokens(Buffer.alloc(32, 8)).seal(target)}`;
    const changed = [...Array(url.length - 19).keys()].map((i) => {
      const at = i + 19;
      return `${url.slice(0, at)}${url[at] === "A" ? "B" : "A"}${url.slice(at + 1)}`;
    });
    const cut = ["/links/", "/links/x", "/links/unreel_link_", `${url}/`, `${url}/A%20film.mp4`, url.slice(0, -1)];
    for (const other of [`${url}A`, `${url}=`, `${url}%`, "/links/%zz", "/links/%ff", forged, ...cut, ...changed])
      expect(await get(other)).toEqual(dead);
  });

  it("ends with its time, the task, its files and the key that made it", async () => {
    const { seal } = createLinkTokens(linkSecret);
    const { id } = await finish();
    const [key] = await store.keys.list();
    const target = { taskId: id, name: "A film.mp4", keyHash: key!.hash };
    expect(await get(`/links/${seal({ ...target, endsMs: Date.now() + 60_000 })}`)).toMatchObject({ statusCode: 200 });
    expect(await get(`/links/${seal({ ...target, endsMs: Date.now() - 1 })}`)).toEqual(dead);
    expect(await get(`/links/${seal({ ...target, keyHash: null, endsMs: Date.now() + 60_000 })}`)).toEqual(dead);

    const removed = (await create(id)).json().url;
    await app.inject({ method: "DELETE", url: `/tasks/${id}/file`, headers: anna });
    expect(await get(removed)).toEqual(dead);

    const other = (await finish()).id;
    const deleted = (await create(other)).json().url;
    await app.inject({ method: "DELETE", url: `/tasks/${other}`, headers: anna });
    expect(await get(deleted)).toEqual(dead);

    const last = (await finish()).id;
    const orphan = (await create(last)).json().url;
    expect(await get(orphan)).toMatchObject({ statusCode: 200 });
    await store.keys.remove("anna");
    await keys.refresh();
    expect(await get(orphan)).toEqual(dead);
  });
});

it("a link of a service without keys ends when there are some", async () => {
  const open = createMemoryStore();
  const ring = await openKeyRing({ keys: open.keys, pollMs: 60_000 });
  const parts = { store: open, files: openDiskFiles({ folder }) };
  const service = await buildApp({ ...parts, keys: ring, linkSecret });
  try {
    const { id } = await addFinishedTask(parts, content);
    const { url } = (await postJson(service, `/tasks/${id}/links`, { file: "A film.mp4", expires_in: 60 })).json();
    expect((await service.inject(url)).statusCode).toBe(200);
    await addKey(open, "anna");
    await ring.refresh();
    expect((await service.inject(url)).statusCode).toBe(404);
  } finally {
    await service.close();
    ring.close();
  }
});
