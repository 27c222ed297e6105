import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { noMembers } from "../../src/feed/collection-changes.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Task } from "../../src/model/task.ts";
import { createArchive } from "../../src/http/archives/archive.ts";
import { buildApp } from "./app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { pageUrl } from "./requests.ts";

const folder = mkdtempSync(join(tmpdir(), "unreel-archive-"));
const files = openDiskFiles({ folder });
afterAll(() => rmSync(folder, { recursive: true }));

const film = Buffer.from("0123456789".repeat(50));
const words = Buffer.from("WEBVTT\n\n00:01.000 --> 00:02.000\nGrüße\n");
const subtitles = { kind: "subtitles", name: "Ein Film – 🎬.de.vtt", mime_type: "text/vtt", content: words } as const;

/** Returns what reads the archive of a task; each call to `fresh` is to a process that has read nothing of it. */
async function addArchive() {
  const store = createMemoryStore();
  const task = await addFinishedTask({ store, files }, film, { name: "Ein Film – 🎬.mp4" }, undefined, [subtitles]);
  const url = `/tasks/${task.id}/files.zip`;
  const fresh = async (headers: Record<string, string> = {}) => {
    await using app = await buildApp({ store, files });
    return app.inject({ url, headers });
  };
  return { store, task, url, fresh };
}

/** Returns the files of an archive by the entries of its central directory. */
function read(zip: Buffer): [name: string, content: string, crc: number][] {
  const end = zip.length - 22;
  let at = zip.readUInt32LE(end + 16);
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    const [size, nameLength, extraLength] = [
      zip.readUInt32LE(at + 24),
      zip.readUInt16LE(at + 28),
      zip.readUInt16LE(at + 30),
    ];
    const name = zip.toString("utf8", at + 46, at + 46 + nameLength);
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const crc = zip.readUInt32LE(at + 16);
    at += 46 + nameLength + extraLength;
    return [name, zip.toString("utf8", start, start + size), crc];
  });
}

describe("GET /tasks/{id}/files.zip", () => {
  it("has all files of the task, under their names", async () => {
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
    expect(read(rawPayload).map(([name, content]) => [name, content])).toEqual([
      ["Ein Film – 🎬.mp4", film.toString()],
      ["Ein Film – 🎬.de.vtt", words.toString()],
    ]);
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

  it("breaks the connection if a file is gone, and ends no archive", async () => {
    const { store, task, url } = await addArchive();
    const app = await buildApp({ store, files });
    onTestFinished(() => app.close());
    await app.listen({ host: "127.0.0.1", port: 0 });
    await files.remove(task.id);
    const response = await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}${url}`)
      .then(
        (received) => received.arrayBuffer(),
        (error: unknown) => error,
      )
      .catch((error: unknown) => error);
    expect(response).toBeInstanceOf(TypeError);
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
    const { id, finishMembers } = await addCollection(store);
    expect((await app.inject(`/tasks/${id}/files.zip`)).statusCode).toBe(404);
    await finishMembers(["../Same.mp4", "SAME.mp4", "Other.mp4"]);
    const { rawPayload } = await app.inject(`/tasks/${id}/files.zip`);
    expect(read(rawPayload).map(([name, content]) => [name, content])).toEqual([
      ["__Same.mp4", "../Same.mp4"],
      ["SAME.mp4", "SAME.mp4"],
      ["Other.mp4", "Other.mp4"],
    ]);
  });

  it("numbers files of one name, past the numbers that other names have, in time that grows as they do", () => {
    const namesOf = (names: readonly string[]) => {
      const file = (name: string) => ({ name, mime_type: "video/mp4", size: 1, sha256: "" });
      const task = newTask(pageUrl, {}, new Date());
      const medium = { ...file("a"), url: "/", duration: 1, width: 1, height: 1 };
      const resultFiles = names.map((name) => ({ ...file(name), kind: "cover" as const, url: "/" }));
      return createArchive([{ ...task, state: "succeeded", file: medium, files: resultFiles }]).files.map(
        ({ name }) => name,
      );
    };
    expect(namesOf(["a.mp4", "a (2).mp4", "A.mp4", "a (2).mp4", "a.mp4"])).toEqual([
      "a.mp4",
      "a (2).mp4",
      "A (3).mp4",
      "a (2) (2).mp4",
      "a (4).mp4",
    ]);
    expect(namesOf(Array.from({ length: 50_000 }, () => "a.mp4")).at(-1)).toBe("a (50000).mp4");
  });

  it("is the same after DELETE with ?library=true that is refused, as one of them has a file in the library", async () => {
    const store = createMemoryStore();
    await using app = await buildApp({ store, files });
    const { id, ids, finishMembers } = await addCollection(store);
    await finishMembers(["A.mp4", "B.mp4", "C.mp4"]);
    const library = [{ path: "C.mp4", size: 5, modified_at: "2026-01-02T03:04:05.000Z" }];
    await store.update(ids[2]!, { library }, { from: ["succeeded"] });
    const before = await app.inject(`/tasks/${id}/files.zip`);
    const { statusCode } = await app.inject({ method: "DELETE", url: `/tasks/${id}?library=true` });
    const after = await app.inject(`/tasks/${id}/files.zip`);
    expect([statusCode, after.statusCode]).toEqual([409, 200]);
    expect(after.rawPayload.equals(before.rawPayload)).toBe(true);
  });
});

/** Stores a collection of four tasks; `finishMembers` runs the first of them to success, with files of these names. */
async function addCollection(store: TaskStore) {
  const { id } = await store.create(newTask(pageUrl, { entries: "all" }, new Date()));
  const { lease } = (await store.claim({ leaseMs: 60_000 }))!;
  const growth = { slice: { offset: 0, made: 0 } };
  await store.update(id, { kind: "collection", counts: noMembers, growth }, { lease });
  const members = Array.from({ length: 4 }, (_, n) => {
    const collection = { id, index: n + 1, title: "A list" };
    return { index: n + 1, task: { ...newTask(`${pageUrl}?n=${n}`, {}, new Date()), collection } };
  });
  await store.grow(id, { lease, members, isReusing: true, growth: null });
  async function finish(task: Task, name: string): Promise<void> {
    await store.claim({ leaseMs: 60_000 });
    const path = join(await files.openWorkFolder(task.id), "result");
    await writeFile(path, name);
    await files.saveResult(task.id, path);
    const file = { name, mime_type: "video/mp4", size: name.length, sha256: name, duration: 1, width: 1, height: 1 };
    await store.update(task.id, { state: "succeeded", file: { ...file, url: "/" } });
  }

  return {
    id,
    ids: members.map(({ task }) => task.id),
    async finishMembers(names: readonly string[]): Promise<void> {
      for (const [n, name] of names.entries()) await finish(members[n]!.task, name);
    },
  };
}
