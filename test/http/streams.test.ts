import { once } from "node:events";
import { pino } from "pino";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { newTask } from "../../src/feed/task-changes.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { makeFolder } from "../folder.ts";
import { createStream } from "./made-stream.ts";
import { pageUrl } from "./requests.ts";
import { openApp } from "./open-app.ts";

/** They are read in several turns of the event loop. */
const readers = 40;

/** Opens the service with a task that runs and has a stream; `onBegun` is called when its record is read after that was opened. */
async function openStreamed(onBegun: (fail: () => Promise<unknown>) => void = () => {}) {
  const store = createMemoryStore();
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  let hasBegun = false;
  const first = async (into: Buffer) => {
    hasBegun = true;
    return into.write("half");
  };
  const stream = createStream(Array.from({ length: readers }, () => first));
  const get: typeof store.get = async (asked) => {
    if (hasBegun) onBegun(() => store.update(id, { state: "failed" }));
    return store.get(asked);
  };
  const lines: { level: number }[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const files = { ...openDiskFiles({ folder: makeFolder() }), openStream: async () => stream };
  const app = await openApp({ store: { ...store, get }, files, logger });
  return { app, store, id, url: `/tasks/${id}/stream`, stream, lines };
}

describe("GET /tasks/{id}/stream", () => {
  it("says nothing of a length that is unknown, to HEAD neither", async () => {
    const { app, url } = await openStreamed();
    const { statusCode, headers } = await app.inject({ method: "HEAD", url });
    expect([statusCode, headers["content-type"], headers["content-length"]]).toEqual([200, "video/mp4", undefined]);
  });

  it("is unavailable, and has nothing of a file, if the task fails before the first byte was sent", async () => {
    const { app, url, lines } = await openStreamed((fail) => setImmediate(() => void fail().catch(() => {})));
    const responses = await Promise.allSettled(Array.from({ length: readers }, async () => app.inject(url)));
    const [whole] = responses.flatMap((response) => (response.status === "fulfilled" ? [response.value] : []));
    const { statusCode, headers, json } = whole!;
    expect([statusCode, json().code, headers["retry-after"]]).toEqual([503, "unavailable", "5"]);
    expect([headers["content-disposition"], headers["accept-ranges"]]).toEqual([undefined, undefined]);
    expect(lines.filter(({ level }) => level > 40)).toEqual([]);
  });

  it("ends ten minutes after a task that has succeeded was deleted, however slowly its client reads", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { app, store, id, url, stream } = await openStreamed();
    const close = vi.spyOn(stream, "close");
    const response = await app.inject({ url, payloadAsStream: true });
    await store.update(id, { state: "succeeded" });
    await store.delete(id);
    const ended = once(response.stream(), "end");
    vi.advanceTimersByTime(600_000);
    await expect(ended).rejects.toThrow("response destroyed before completion");
    expect(close).toHaveBeenCalled();
  });

  it("closes what was opened if the task cannot be read then", async () => {
    const { app, url, stream } = await openStreamed(() => {
      throw new ServiceError("unavailable", "the store is unavailable");
    });
    const close = vi.spyOn(stream, "close");
    expect((await app.inject(url)).statusCode).toBe(503);
    expect(close).toHaveBeenCalled();
  });
});
