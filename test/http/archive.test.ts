import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { pageInfo } from "../page-info.ts";
import { buildApp } from "./app.ts";
import { addCollection } from "./finished-collection.ts";
import { addFinishedTask } from "./finished-task.ts";
import { pageUrl } from "./requests.ts";
import { readEntries } from "./zip-entries.ts";
import { openApp } from "./open-app.ts";

const folder = makeSharedFolder();
const files = openDiskFiles({ folder });

const film = Buffer.from("0123456789".repeat(50));
const words = Buffer.from("WEBVTT\n\n00:01.000 --> 00:02.000\nGrüße\n");
const known = { uploader: "Ann", uploaded_at: "2026-01-02", title: "Ein Film – 🎬", video_id: "a1" };
const subtitles = {
  kind: "subtitles",
  name: "Ein Film – 🎬.de.vtt",
  language: "de",
  mime_type: "text/vtt",
  content: words,
} as const;

/** Returns what reads the archive of a task; each call to `fresh` is to a process that has read nothing of it. */
async function addArchive() {
  const store = createMemoryStore();
  const { id } = await addFinishedTask({ store, files }, film, { name: "Ein Film – 🎬.mp4" }, undefined, [subtitles]);
  const task = await store.update(id, { info: pageInfo(known) }, { from: ["succeeded"] });
  const url = `/tasks/${task.id}/files.zip`;
  const fresh = async (headers: Record<string, string> = {}) => {
    await using app = await buildApp({ store, files });
    return app.inject({ url, headers });
  };
  return { store, task, url, fresh };
}

describe("GET /tasks/{id}/files.zip", () => {
  it("has all files of the task, under the names of the library's default", async () => {
    const { fresh } = await addArchive();
    const { statusCode, headers, rawPayload } = await fresh();
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "application/zip",
      "content-length": `${rawPayload.length}`,
      "accept-ranges": "bytes",
      etag: expect.stringMatching(/^"zip-[0-9a-f]{64}"$/),
      "content-disposition": expect.stringContaining("Ein%20Film%20%E2%80%93%20%F0%9F%8E%AC.zip"),
    });
    expect(headers).not.toHaveProperty("repr-digest");
    expect(readEntries(rawPayload).map(({ name, content }) => [name, content])).toEqual([
      ["Ann/2026-01-02 Ein Film – 🎬 [a1].mp4", film.toString()],
      ["Ann/2026-01-02 Ein Film – 🎬 [a1].de.vtt", words.toString()],
    ]);
  });

  it("is sent without an error in the log", async () => {
    const { store, url } = await addArchive();
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    await using app = await buildApp({ store, files, logger });
    const { url: link } = (
      await app.inject({
        method: "POST",
        url: url.replace("files.zip", "links"),
        payload: { file: "files.zip", expires_in: 60 },
      })
    ).json();
    for (const path of [url, link]) {
      for (const headers of [{}, { range: "bytes=0-9" }, { "if-none-match": "*" }]) {
        expect((await app.inject({ url: path, headers })).statusCode).toBeLessThan(400);
      }
      expect((await app.inject({ method: "HEAD", url: path })).statusCode).toBe(200);
    }
    await setImmediate();
    expect(lines).toEqual([]);
  });

  it("has the same bytes in every range, also of a process that has not read the files before", async () => {
    const { store, url, fresh } = await addArchive();
    const { rawPayload: whole, headers } = await fresh();
    const { length } = whole;
    for (const start of [300, 700]) {
      const tail = await fresh({ range: `bytes=${start}-`, "if-range": String(headers.etag) });
      expect([start, tail.statusCode]).toEqual([start, 206]);
      expect(tail.headers["content-range"]).toBe(`bytes ${start}-${length - 1}/${length}`);
      expect(Buffer.compare(tail.rawPayload, whole.subarray(start))).toBe(0);
    }
    await using app = await buildApp({ store, files });
    for (let start = 0; start < length; start += 13) {
      const end = Math.min(start + 50, length - 1);
      const piece = await app.inject({ url, headers: { range: `bytes=${start}-${end}` } });
      expect([start, Buffer.compare(piece.rawPayload, whole.subarray(start, end + 1))]).toEqual([start, 0]);
    }
  });

  it("answers HEAD and conditions as a file does", async () => {
    const { store, url } = await addArchive();
    await using app = await buildApp({ store, files });
    const ask = (given: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") =>
      app.inject({ url, headers: given, method });
    const { headers, rawPayload } = await ask();
    const etag = String(headers.etag);
    const head = await ask({}, "HEAD");
    expect([head.statusCode, head.headers["content-length"], head.headers.etag, head.body]).toEqual([
      200,
      `${rawPayload.length}`,
      etag,
      "",
    ]);
    expect((await ask({ "if-none-match": etag })).statusCode).toBe(304);
    expect((await ask({ "if-match": '"other"' })).statusCode).toBe(412);
    const other = await ask({ range: "bytes=5-", "if-range": '"other"' });
    expect([other.statusCode, other.rawPayload.length]).toEqual([200, rawPayload.length]);
    const outside = await ask({ range: `bytes=${rawPayload.length}-` });
    expect([outside.statusCode, outside.headers["content-range"]]).toEqual([416, `bytes */${rawPayload.length}`]);
  });

  it("breaks the connection if a file after the first one is gone, and ends no archive", async () => {
    const { store, url } = await addArchive();
    const open: typeof files.open = async (id, number) => (number === 1 ? undefined : files.open(id, number));
    const app = await openApp({ store, files: { ...files, open } });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const response = await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}${url}`)
      .then(
        (received) => received.arrayBuffer(),
        (error: unknown) => error,
      )
      .catch((error: unknown) => error);
    expect(response).toBeInstanceOf(TypeError);
  });

  it.each([
    ["gone", 404, "not_found", async () => undefined],
    [
      "one that cannot be read",
      503,
      "unavailable",
      async () => {
        throw new ServiceError("unavailable", "cannot open the file: file system error EACCES");
      },
    ],
  ])("is refused before its first byte if its first file is %s", async (_, status, code, open) => {
    const { store, url } = await addArchive();
    await using app = await buildApp({ store, files: { ...files, open } });
    for (const range of ["bytes=0-", "bytes=200-", "bytes=-60"]) {
      const response = await app.inject({ url, headers: { range } });
      expect([response.statusCode, response.json().code]).toEqual([status, code]);
      expect(response.headers["content-type"]).toContain("application/problem+json");
      for (const name of ["content-disposition", "content-range", "accept-ranges", "etag"])
        expect(response.headers).not.toHaveProperty(name);
      expect(response.headers["content-length"]).toBe(`${response.rawPayload.length}`);
    }
  });

  it("has the bytes of its files for clients that read at their own pace, beside each other", async () => {
    const store = createMemoryStore();
    const content = randomBytes(6_000_000);
    const { id } = await addFinishedTask({ store, files }, content, {}, undefined, [subtitles]);
    const app = await openApp({ store, files });
    await app.listen({ host: "127.0.0.1", port: 0 });
    const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/tasks/${id}/files.zip`;
    const headerSize = 30 + "42.mp4".length;
    const read = async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of (await fetch(url)).body!) {
        chunks.push(chunk);
        await setImmediate();
      }
      return Buffer.concat(chunks);
    };
    const received = await Promise.all([read(), read(), read()]);
    for (const zip of received)
      expect(zip.subarray(headerSize, headerSize + content.length).equals(content)).toBe(true);
    expect(readEntries(received[0])[0]?.crc).toBe(crc32(content));
  });

  it("is 404 for a task without files, and 410 once they are removed", async () => {
    const { store, task, url } = await addArchive();
    await using app = await buildApp({ store, files });
    const queued = await store.create(newTask(pageUrl, {}, new Date()));
    expect((await app.inject(`/tasks/${queued.id}/files.zip`)).statusCode).toBe(404);
    await app.inject({ method: "DELETE", url: `/tasks/${task.id}/file` });
    expect((await app.inject(url)).statusCode).toBe(410);
  });
});

describe("the archive of a collection", () => {
  it("has the files of all members that have some, in their order, under names of their own", async () => {
    const store = createMemoryStore();
    await using app = await buildApp({ store, files });
    const { id, finish } = await addCollection({ store, files, count: 4 });
    expect((await app.inject(`/tasks/${id}/files.zip`)).statusCode).toBe(404);
    for (const title of ["../Same", "SAME", "same", "_SAME"]) await finish({ title }, title);
    const { rawPayload } = await app.inject(`/tasks/${id}/files.zip`);
    expect(readEntries(rawPayload).map(({ name, content }) => [name, content])).toEqual([
      ["_Same.mp4", "../Same"],
      ["SAME.mp4", "SAME"],
      ["same (2).mp4", "same"],
      ["_SAME (2).mp4", "_SAME"],
    ]);
  });

  it("has a name that every file system accepts", async () => {
    const store = createMemoryStore();
    await using app = await buildApp({ store, files });
    const { id, finish } = await addCollection({ store, files, count: 1 });
    await finish({ title: "A" }, "A");
    await store.update(id, { info: pageInfo({ title: 'Part 1: "a/b" ?' }) }, { from: ["succeeded"] });
    const { headers } = await app.inject(`/tasks/${id}/files.zip`);
    expect(headers["content-disposition"]).toBe(
      `attachment; filename="Part 1_ _a_b_ _.zip"; filename*=UTF-8''Part%201_%20_a_b_%20_.zip`,
    );
  });

  it("has many files of one name, each with its task's id", async () => {
    const store = createMemoryStore();
    await using app = await buildApp({ store, files });
    const { id, finish } = await addCollection({ store, files, count: 40 });
    for (let n = 0; n < 40; n += 1) await finish({ title: "a" }, "x");
    const names = readEntries((await app.inject(`/tasks/${id}/files.zip`)).rawPayload).map(({ name }) => name);
    expect([names[0], names[8], new Set(names).size]).toEqual(["a.mp4", "a (9).mp4", 40]);
    expect(names.slice(9).every((name) => /^a \[[0-9a-f-]{36}\]\.mp4$/.test(name))).toBe(true);
  });

  it("is the same after DELETE with ?library=true that is refused, as one of them has a file in the library", async () => {
    const store = createMemoryStore();
    await using app = await buildApp({ store, files });
    const { id, finish } = await addCollection({ store, files, count: 3 });
    const ids = [
      await finish({ title: "A" }, "A"),
      await finish({ title: "B" }, "B"),
      await finish({ title: "C" }, "C"),
    ];
    const library = [{ path: "C.mp4", size: 5, modified_at: "2026-01-02T03:04:05.000Z" }];
    await store.update(ids[2]!, { library }, { from: ["succeeded"] });
    const before = await app.inject(`/tasks/${id}/files.zip`);
    const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=true` });
    const after = await app.inject(`/tasks/${id}/files.zip`);
    expect([statusCode, after.statusCode]).toEqual([409, 200]);
    expect(after.rawPayload.equals(before.rawPayload)).toBe(true);
  });
});
