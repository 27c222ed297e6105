import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { platform } from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskFile } from "../../src/model/task.ts";
import { addFinishedTask } from "./finished-task.ts";
import { pageUrl, postTask } from "./requests.ts";

const content = Buffer.from("0123456789");

const folder = makeSharedFolder();
const store = createMemoryStore();
const files = openDiskFiles({ folder });
let app: App;

beforeAll(async () => {
  app = await buildApp({ store, files });
});
afterAll(async () => {
  await app.close();
});

/** Stores a task with a file. */
async function addFile(fields: Partial<TaskFile> = {}, bytes = content) {
  const task = await addFinishedTask({ store, files }, bytes, fields);
  const url = `/tasks/${task.id}/file`;
  const etag = `"${task.file?.sha256}"`;
  const get = (headers: Record<string, string> = {}) => app.inject({ url, headers });
  return { id: task.id, url, etag, get };
}

async function listen(): Promise<string> {
  if (!app.server.listening) await app.listen({ host: "127.0.0.1", port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

describe("GET /tasks/{id}/files/{name}", () => {
  const words = Buffer.from("WEBVTT\n\n00:01.000 --> 00:02.000\nGrüße\n");
  const subtitles = {
    kind: "subtitles",
    name: "Ein Film & mehr.de.vtt",
    language: "de",
    mime_type: "text/vtt",
    content: words,
  } as const;

  it("sends each file of a task under the URL that the task lists, the medium too", async () => {
    const { files: listed = [] } = await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    expect(listed.map(({ kind }) => kind)).toEqual(["media", "subtitles"]);
    const responses = await Promise.all(listed.map(({ url }) => app.inject(url)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    expect(responses.map(({ rawPayload }) => rawPayload)).toEqual([content, words]);
    expect(responses[1]?.headers).toMatchObject({
      "content-type": "text/vtt",
      "content-length": String(words.length),
      "accept-ranges": "bytes",
      etag: `"${listed[1]?.sha256}"`,
      "x-content-type-options": "nosniff",
      "content-disposition": `attachment; filename="Ein Film & mehr.de.vtt"; filename*=UTF-8''Ein%20Film%20%26%20mehr.de.vtt`,
    });
  });

  it("serves ranges, conditions and HEAD of them as of the medium", async () => {
    const { files: listed = [] } = await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    const { url, sha256 } = listed[1]!;
    const part = await app.inject({ url, headers: { range: "bytes=0-5" } });
    expect([part.statusCode, part.body]).toEqual([206, "WEBVTT"]);
    const same = await app.inject({ url, headers: { "if-none-match": `"${sha256}"` } });
    expect(same.statusCode).toBe(304);
    const head = await app.inject({ method: "HEAD", url });
    expect([head.statusCode, head.headers["content-length"], head.body]).toEqual([200, String(words.length), ""]);
  });

  it.each(["nothing.vtt", "..%2f", "%2e%2e%2f%2e%2e", "1", "%00"])("answers 404 to the name %s", async (name) => {
    const { id } = await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    expect((await app.inject(`/tasks/${id}/files/${name}`)).statusCode).toBe(404);
  });

  it("answers 410 once the files of the task were removed", async () => {
    const { id, files: listed = [] } = await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    const removed = await app.inject({ method: "DELETE", url: `/tasks/${id}/file` });
    expect(removed.json()).toMatchObject({ file: null });
    expect(removed.json().files).toBeUndefined();
    for (const { url } of listed) expect((await app.inject(url)).json()).toMatchObject({ code: "file_removed" });
  });

  it("counts all files of a task in what is stored", async () => {
    const { bytes } = await store.storedFiles({ limit: 1 });
    await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    const after = await store.storedFiles({ limit: 1 });
    expect(after.bytes - bytes).toBe(content.length + words.length);
  });
});

describe("GET /tasks/{id}/file", () => {
  it("sends the whole file with the headers to save it and to resume", async () => {
    const { get, etag } = await addFile();
    const response = await get();
    expect([response.statusCode, response.body]).toEqual([200, "0123456789"]);
    expect(response.headers).toMatchObject({
      "content-type": "video/mp4",
      "content-length": "10",
      "accept-ranges": "bytes",
      "repr-digest": "sha-256=:hNiYd/DUBB77a/kaFvAkjy/Vc+avBcGflr7bn4gveII=:",
      etag,
      "content-disposition": `attachment; filename="A film.mp4"; filename*=UTF-8''A%20film.mp4`,
    });
  });

  it("keeps browsers from running the file as a page of this service", async () => {
    const { headers } = await (await addFile({ mime_type: "text/html" })).get();
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "content-disposition": expect.stringMatching(/^attachment;/),
      "cache-control": "private, no-cache",
    });
  });

  it.each([
    ["Ein Fluß.mp4", "Ein Flu_.mp4", "Ein%20Flu%C3%9F.mp4"],
    ["Über Čeština.mp4", "Uber Cestina.mp4", "%C3%9Cber%20%C4%8Ce%C5%A1tina.mp4"],
    ["한.mp4", "a816a4cc8523.mp4", "%ED%95%9C.mp4"],
    ["夜 🎬.webm", "de56f372a1cd.webm", "%E5%A4%9C%20%F0%9F%8E%AC.webm"],
    ["夜 2.webm", "_ 2.webm", "%E5%A4%9C%202.webm"],
    ["夜.ja.vtt", "67ec3fbc6e30.ja.vtt", "%E5%A4%9C.ja.vtt"],
    [`a"b%41\\c/d.mp4`, "a_b_41_c_d.mp4", "a%22b%2541_c_d.mp4"],
    ["a\r\nset-cookie: x=1\u0000\u0085\u2028.mp4", "aset-cookie: x=1.mp4", "aset-cookie%3A%20x%3D1.mp4"],
    ["it's (1)*.mp4", "it's (1)*.mp4", "it%27s%20%281%29%2A.mp4"],
    ["\ud800.mp4", "3404f6f901c4.mp4", "%EF%BF%BD.mp4"],
    ["-rf.mp4", "_rf.mp4", "_rf.mp4"],
    [".-htaccess", "_htaccess", "_htaccess"],
    ["\u0000-o.mp4", "_o.mp4", "_o.mp4"],
    ["\u0301-o.mp4", "_o.mp4", "%CC%81-o.mp4"],
  ])("sends the name %j in a form that every client can read", async (name, plain, extended) => {
    const { headers } = await (await addFile({ name })).get();
    expect(headers["content-disposition"]).toBe(`attachment; filename="${plain}"; filename*=UTF-8''${extended}`);
  });

  it.each([
    ["bytes=0-3", "0123", "bytes 0-3/10"],
    ["bytes=4-4", "4", "bytes 4-4/10"],
    ["bytes=7-", "789", "bytes 7-9/10"],
    ["bytes=0-", "0123456789", "bytes 0-9/10"],
    ["bytes=-3", "789", "bytes 7-9/10"],
    ["bytes=-99", "0123456789", "bytes 0-9/10"],
    ["bytes=8-99999999999999999999999", "89", "bytes 8-9/10"],
    ["BYTES= 1-2 ", "12", "bytes 1-2/10"],
  ])("sends the range %s", async (range, body, contentRange) => {
    const { get, etag } = await addFile();
    const response = await get({ range });
    expect([response.statusCode, response.body]).toEqual([206, body]);
    expect(response.headers).toMatchObject({
      "content-range": contentRange,
      "content-length": `${body.length}`,
      "content-type": "video/mp4",
      etag,
    });
  });

  it.each([
    ["several ranges", "bytes=0-1,4-5"],
    ["another unit", "items=0-1"],
    ["an end before the start", "bytes=5-2"],
    ["no number", "bytes=-"],
    ["a sign", "bytes=+1-2"],
    ["nonsense", "0-1"],
  ])("sends the whole file for a Range with %s", async (_, range) => {
    const response = await (await addFile()).get({ range });
    expect([response.statusCode, response.body]).toEqual([200, "0123456789"]);
    expect(response.headers["content-range"]).toBeUndefined();
  });

  it.each(["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999-"])(
    "refuses %s, which has no byte of the file, and tells the size and the ETag, which VLC asks for ranges with from then on",
    async (range) => {
      const { get } = await addFile();
      const response = await get({ range });
      expect(response.statusCode).toBe(416);
      expect(response.headers["content-range"]).toBe("bytes */10");
      expect(response.headers["content-type"]).toMatch("application/problem+json");
      expect(response.json()).toMatchObject({ code: "range_not_satisfiable", retryable: false });
      const next = await get({ range: "bytes=1-2", "if-match": response.headers.etag! });
      expect([next.statusCode, next.body]).toEqual([206, "12"]);
    },
  );

  it("sends an empty file", async () => {
    const { get } = await addFile({}, Buffer.alloc(0));
    expect(await get()).toMatchObject({ statusCode: 200, body: "" });
    expect(await get({ range: "bytes=-5" })).toMatchObject({ statusCode: 200, body: "" });
    expect((await get({ range: "bytes=0-" })).headers["content-range"]).toBe("bytes */0");
  });

  it("sends the range if If-Range matches the file, else the whole file", async () => {
    const { get, etag } = await addFile();
    const range = "bytes=2-3";
    expect((await get({ range, "if-range": etag })).statusCode).toBe(206);
    for (const other of ['"other"', `W/${etag}`, "Wed, 21 Oct 2026 07:28:00 GMT", ""]) {
      const response = await get({ range, "if-range": other });
      expect([other, response.statusCode, response.body]).toEqual([other, 200, "0123456789"]);
    }
  });

  it("responds with 304 if If-None-Match matches, with or without a range", async () => {
    const { url, get, etag } = await addFile();
    for (const tag of [etag, `W/${etag}`, `"a", ${etag}`, "*"]) {
      const headers = { "if-none-match": tag, range: "bytes=0-1" };
      for (const response of [await get(headers), await app.inject({ method: "HEAD", url, headers })])
        expect([response.statusCode, response.body, response.headers.etag]).toEqual([304, "", etag]);
    }
    expect((await get({ "if-none-match": '"other"' })).statusCode).toBe(200);
  });

  it("responds with 412 unless If-Match matches, whatever else is asked", async () => {
    const { url, get, etag } = await addFile();
    for (const tag of [etag, `"a", ${etag}`, "*"]) {
      expect([tag, (await get({ "if-match": tag })).statusCode]).toEqual([tag, 200]);
    }
    for (const tag of ['"other"', `W/${etag}`, ""]) {
      const headers = { "if-match": tag, "if-none-match": etag, range: "bytes=0-1" };
      const response = await get(headers);
      expect(response.json()).toMatchObject({ status: 412, code: "precondition_failed" });
      expect(response.json().detail).toContain(etag);
      expect((await app.inject({ method: "HEAD", url, headers })).statusCode).toBe(412);
    }
  });

  it("has the same headers and no body for HEAD, which ignores Range", async () => {
    const { url, get } = await addFile();
    const { date: _, "x-request-id": __, ...headers } = (await get()).headers;
    const response = await app.inject({ method: "HEAD", url, headers: { range: "bytes=0-1" } });
    expect([response.statusCode, response.body]).toEqual([200, ""]);
    expect(response.headers).toMatchObject(headers);
  });

  it("responds with 404 if the task is unknown or unfinished, or its file is gone", async () => {
    const { id, get } = await addFile();
    const queued = (await postTask(app, { url: pageUrl })).json();
    const unknown = await app.inject("/tasks/x/file");
    expect(unknown.json()).toMatchObject({ code: "not_found", detail: "there is no task x" });
    const early = await app.inject(`/tasks/${queued.id}/file`);
    expect(early.json()).toMatchObject({
      code: "not_found",
      detail: `task ${queued.id} has no file; its state is queued`,
    });
    await files.remove(id);
    expect((await get()).json()).toMatchObject({
      code: "not_found",
      detail: `the file of task ${id} is gone`,
    });
    const head = await app.inject({ method: "HEAD", url: `/tasks/${id}/file` });
    expect([head.statusCode, head.body]).toEqual([404, ""]);
  });

  it("fails if the size of the file has changed", async () => {
    const response = await (await addFile({ size: 11 })).get();
    expect(response.json()).toMatchObject({ status: 500, code: "internal" });
    expect(response.json().detail).toContain("it has 10 bytes instead of 11");
  });

  it("sends the file to its end if the task is deleted meanwhile", async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024, "film ");
    const { id, url } = await addFile({}, bytes);
    const response = await fetch((await listen()) + url);
    expect((await app.inject({ method: "DELETE", url: `/tasks/${id}` })).statusCode).toBe(204);
    expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), bytes)).toBe(0);
    expect((await app.inject(url)).statusCode).toBe(404);
    expect(await files.ids()).not.toContain(id);
  });

  it.skipIf(platform !== "linux")("leaves no file open, however the request ends", async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    const { get, url, id } = await addFile({}, bytes);
    const base = await listen();
    for (let i = 0; i < 20; i += 1) {
      const call = request(base + url);
      call.on("error", () => {});
      call.end();
      const [response] = await once(call, "response");
      response.on("error", () => {});
      call.destroy();
    }
    expect(openFilesNamed(id)).not.toEqual([]);
    await get();
    await get({ range: "bytes=99999999-" });
    await get({ "if-none-match": "*" });
    await app.inject({ method: "HEAD", url });
    await expect.poll(() => openFilesNamed(id)).toEqual([]);
  });
});

/** File descriptors of this process whose path contains `name`. */
function openFilesNamed(name: string): string[] {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes(name);
    } catch {
      return false;
    }
  });
}
