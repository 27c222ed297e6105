import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { addFinishedTask } from "./finished-task.ts";
import { makeFolder } from "../folder.ts";
import { openApp } from "./open-app.ts";

const content = Buffer.alloc(1024 * 1024, "film ");

/** An app with a file, whose marks are counted; `mark` takes the place of setting one. */
async function openServedFile(mark?: () => Promise<boolean>) {
  const folder = makeFolder();
  const disk = openDiskFiles({ folder });
  let marks = 0;
  const files: FileStore = {
    ...disk,
    async open(id, number) {
      const opened = await disk.open(id, number);
      if (opened === undefined) return undefined;
      const markInUse = () => {
        marks += 1;
        return (mark ?? opened.markInUse)();
      };
      return { ...opened, markInUse };
    },
  };
  const store = createMemoryStore();
  const { id } = await addFinishedTask({ store, files }, content);
  const app = await openApp({ store, files });
  const url = `/tasks/${id}/file`;
  const path = join(folder, "files", id);
  return { app, id, url, path, files, marks: () => marks };
}

test("a file is in use from the start of a response to a minute after its end", async () => {
  const { app, id, url, files } = await openServedFile();
  const response = await app.inject({ url, payloadAsStream: true });
  expect(await files.isInUse(id)).toBe(true);
  response.stream().destroy();
  expect(await files.isInUse(id)).toBe(true);
  vi.useFakeTimers({ now: Date.now() + 60_000, toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  expect(await files.isInUse(id)).toBe(false);
});

test("it stays in use for as long as the client takes, then no longer", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { app, url, marks } = await openServedFile();
  const response = await app.inject({ url, payloadAsStream: true });
  expect(marks()).toBe(1);
  vi.advanceTimersByTime(60_000);
  expect(marks()).toBe(4);
  expect((await buffer(response.stream())).equals(content)).toBe(true);
  const before = marks();
  vi.advanceTimersByTime(600_000);
  expect(marks()).toBe(before);
});

describe("a file that was removed", () => {
  /** Begins to read the file, removes it and lets so much time pass. */
  async function readRemoved(passedMs: number) {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { app, url, id, files } = await openServedFile();
    const response = await app.inject({ url, payloadAsStream: true });
    await files.remove(id);
    vi.advanceTimersByTime(passedMs);
    return response.stream();
  }

  test("is sent for up to ten minutes more", async () => {
    expect((await buffer(await readRemoved(599_000))).equals(content)).toBe(true);
  });

  test("takes no space after that, however slowly its client reads", async () => {
    const stream = await readRemoved(600_000);
    await expect(once(stream, "end")).rejects.toThrow("response destroyed before completion");
  });
});

test("what sends no byte of the file does not mark it", async () => {
  const { app, url, marks } = await openServedFile();
  await app.inject({ method: "HEAD", url });
  await app.inject({ url, headers: { range: "bytes=99999999-" } });
  await app.inject({ url, headers: { "if-none-match": "*" } });
  expect(marks()).toBe(0);
});

test("serving it changes neither its ETag nor when it was changed", async () => {
  const { app, url, path } = await openServedFile();
  const before = statSync(path);
  const first = await app.inject(url);
  const second = await app.inject(url);
  expect(second.headers.etag).toBe(first.headers.etag);
  expect(second.headers["last-modified"]).toBeUndefined();
  expect(statSync(path).mtime).toEqual(before.mtime);
});

test("a file that cannot be marked is sent all the same", async () => {
  const { app, url } = await openServedFile(() =>
    Promise.reject(new ServiceError("unavailable", "file system error EROFS")),
  );
  expect((await app.inject(url)).rawPayload.equals(content)).toBe(true);
});
