import fs, { mkdir, open as openFile, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { leaveAfter, mediumOf, MiB, startPartsHarness } from "./parts-harness.ts";

const size = 100_000;
const medium = mediumOf(size);

describe("the limit of all parts together", () => {
  it("is checked at once if a length is stated", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const parts = await open({ maxBytes: 2.5 * size });
    await fetch(parts, { name: "one" });
    await fetch(parts, { name: "two" });
    await expect(fetch(parts, { name: "three" })).rejects.toMatchObject({
      code: "too_large",
      message: "the download has at least 300000 bytes, the limit is 250000",
    });
    expect(parts.bytes).toBe(2 * size);
  });

  it("is checked during the transfer if no length is stated", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", mediumOf(5 * MiB), { length: "chunked" });
    const parts = await open({ maxBytes: MiB });
    await expect(fetch(parts)).rejects.toMatchObject({ code: "too_large" });
    expect(parts.bytes).toBeLessThanOrEqual(MiB);
    expect(server.requests).toHaveLength(1);
  });

  it("may be reached, and includes the bytes of earlier runs", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium, { length: "chunked" });
    await fetch(await open({ maxBytes: size }));
    await expect(fetch(await open({ maxBytes: size - 1 }))).rejects.toMatchObject({
      code: "too_large",
    });
  });
});

describe("the limit of one part", () => {
  it("is checked at once if a length is stated", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const parts = await open();
    await expect(fetch(parts, { maxBytes: size - 1 })).rejects.toMatchObject({
      code: "upstream_invalid",
      message: `GET ${server.url("/medium").href}: it has 100000 bytes or more, the limit is 99999`,
    });
    expect(parts.bytes).toBe(0);
  });

  it("counts decoded bytes, however few are sent", async () => {
    const { server, open, fetch } = await startPartsHarness();
    const bomb = brotliCompressSync(Buffer.alloc(64 * MiB), { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });
    server.serve("/medium", bomb, { headers: { "content-encoding": "br" } });
    const parts = await open();
    await expect(fetch(parts, { maxBytes: MiB })).rejects.toMatchObject({ code: "upstream_invalid" });
    expect(parts.bytes).toBeLessThanOrEqual(MiB);
    expect(server.requests).toHaveLength(1);
  });

  it("may be reached, and is that of the range if the server sends all of the resource", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium, { ignoresRange: true });
    const parts = await open();
    await fetch(parts, { name: "all", maxBytes: size });
    await fetch(parts, { name: "range", range: { offset: 1000, length: 500 }, maxBytes: 500 });
    expect(parts.bytes).toBe(size + 500);
  });
});

describe("what a server sends before a part, as it sends no ranges", () => {
  const rangeAt = (name: string, offset: number) => ({ name, range: { offset, length: 10 } });

  it("may have as many bytes as all parts, also if it is sent with a content coding", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium, { gzip: true });
    const parts = await open({ maxBytes: 2 * size });
    await fetch(parts, rangeAt("one", 90_000));
    await fetch(parts, rangeAt("two", 90_000));
    await expect(fetch(parts, rangeAt("three", 90_000))).rejects.toMatchObject({
      code: "too_large",
      message: expect.stringMatching(
        /^the server sends no ranges: 2\d+ bytes before the parts were received, the limit is 200000$/,
      ),
    });
    expect(parts.bytes).toBe(20);
  });

  it("has no limit if the server sends ranges", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const parts = await open({ maxBytes: 100 });
    for (const name of ["one", "two", "three"]) await fetch(parts, rangeAt(name, 90_000));
    expect(parts.bytes).toBe(30);
  });
});

describe("the free disk space", () => {
  const full = new ServiceError("disk_full", "disk full");

  it("is checked before a part of known length", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const asked: number[] = [];
    const parts = await open({
      checkFreeSpace: async (bytes) => {
        asked.push(bytes);
        throw full;
      },
    });
    await expect(fetch(parts)).rejects.toBe(full);
    expect([asked, parts.bytes]).toEqual([[size], 0]);
  });

  it("is checked every 16 MiB if no length is known", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", mediumOf(40 * MiB), { length: "chunked" });
    let looks = 0;
    const checkFreeSpace = async () => {
      looks += 1;
      if (looks === 2) throw full;
    };
    const parts = await open({ checkFreeSpace });
    await expect(fetch(parts)).rejects.toBe(full);
    expect(parts.bytes).toBeGreaterThan(30 * MiB);
    expect(parts.bytes).toBeLessThanOrEqual(33 * MiB);
  });

  it("may be less than 16 MiB if what is left of a part is less", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", mediumOf(18 * MiB));
    const asked: number[] = [];
    const checkFreeSpace = async (bytes: number) => {
      asked.push(bytes);
      if (asked.length > 1 && bytes > 3 * MiB) throw full;
    };
    const parts = await open({ checkFreeSpace });
    await fetch(parts);
    expect(asked.slice(0, 2)).toEqual([18 * MiB, 16 * MiB]);
    expect(asked).toHaveLength(3);
    expect(asked[2]).toBeGreaterThanOrEqual(2 * MiB);
  });
});

describe("a file system that fails", () => {
  it.runIf(process.platform === "linux")("fails the part with disk_full if it is full", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const parts = await open();
    redirectNextOpen("/dev/full");
    await expect(fetch(parts)).rejects.toMatchObject({
      code: "disk_full",
      message: "cannot write file in DATA_DIR: no space is left on the disk (ENOSPC)",
    });
    await fetch(parts, { name: "other" });
  });

  it("fails the part with unavailable otherwise", async () => {
    const { server, folder, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    await writeFile(join(folder, "plain"), "");
    await expect(open({ folder: join(folder, "plain") })).rejects.toMatchObject({
      code: "unavailable",
      message: "plain must be a folder, and is none",
    });
    const parts = await open();
    await mkdir(join(folder, "file"));
    await expect(fetch(parts)).rejects.toMatchObject({
      code: "unavailable",
      cause: { code: "EISDIR" },
    });
    await expect.poll(() => server.requests[0]?.isOver).toBe(true);
  });
});

describe("an abort", () => {
  const reason = new Error("enough");

  it("rejects with its reason, ends the transfer and keeps the received bytes", async () => {
    const harness = await startPartsHarness();
    const { server, open, fetch } = harness;
    server.serve("/medium", medium, { stallAfter: 60_000 });
    await leaveAfter(harness, 60_000);
    await server.waitFor(() => server.requests.every(({ isOver }) => isOver));
    server.serve("/medium", medium);
    await fetch(await open());
    expect(server.requests[1]?.headers.range).toBe("bytes=60000-");
  });

  it("ends the wait for a retry", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium, { status: 503, headers: { "retry-after": "30" } });
    const abort = new AbortController();
    const fetching = fetch(await open(), { signal: abort.signal });
    await server.waitFor(() => server.requests[0]?.isOver === true);
    abort.abort(reason);
    await expect(fetching).rejects.toBe(reason);
  });

  it("before the call prevents any request", async () => {
    const { server, open, fetch } = await startPartsHarness();
    await expect(fetch(await open(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(server.requests).toEqual([]);
  });
});

it("waits for fetches when closing, and touches nothing afterwards", async () => {
  const { server, folder, open, fetch } = await startPartsHarness();
  server.serve("/medium", medium, { stallAfter: 60_000 });
  const parts = await open();
  const abort = new AbortController();
  const outcome = fetch(parts, { signal: abort.signal }).catch(() => "left");
  await server.waitFor(() => server.bytesSent() === 60_000);
  abort.abort();
  await parts.close();
  await parts.close();
  for (const name of await readdir(folder)) await rm(join(folder, name));
  expect(await outcome).toBe("left");
  await expect(fetch(parts)).rejects.toMatchObject({ code: "unavailable" });
  expect(await readdir(folder)).toEqual([]);
});

it("fails with the error of `onTotal`, before the file is written", async () => {
  const { server, open, fetch } = await startPartsHarness();
  server.serve("/medium", medium);
  const unwanted = new ServiceError("upstream_invalid", "no medium");
  const totals: unknown[] = [];
  const onTotal = (bytes: number | null) => {
    totals.push(bytes);
    throw unwanted;
  };
  const parts = await open();
  await expect(fetch(parts, { onTotal })).rejects.toBe(unwanted);
  expect([totals, parts.bytes]).toEqual([[size], 0]);
});

it.each(["", "../up", "A", "a.b", "a".repeat(65)])("refuses the part name %j", async (name) => {
  const { open, fetch } = await startPartsHarness();
  await expect(fetch(await open(), { name })).rejects.toThrow(TypeError);
});

it("flushes every 16 MiB, at most every 5 s, and records it in the journal", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const { server, folder, open, fetch } = await startPartsHarness();
  const journal = () => readFile(join(folder, "journal.ndjson"), "utf8");
  server.serve("/medium", mediumOf(17 * MiB));
  const parts = await open();
  await fetch(parts, { name: "one" });
  expect(await journal()).not.toContain("synced");
  vi.setSystemTime(Date.now());
  vi.advanceTimersByTime(5_000);
  await fetch(parts, { name: "two" });
  await expect.poll(journal).toContain(`{"type":"synced","part":"one","bytes":${17 * MiB}}`);
  expect((await stat(join(folder, "two"))).size).toBe(17 * MiB);
});

/** Makes the next call of `open` open the file at `path` for writing instead. */
function redirectNextOpen(path: string): void {
  const spy = vi.spyOn(fs, "open").mockImplementationOnce(() => openFile(path, "w"));
  const restore = () => {
    spy.mockRestore();
    syncBuiltinESMExports();
  };
  onTestFinished(restore);
  syncBuiltinESMExports();
}

describe("a part that may be received only later", () => {
  it("is not idle meanwhile, and needs one request", async () => {
    const { server, open, fetch } = await startPartsHarness({ idleTimeoutMs: 1_100 });
    server.serve("/medium", mediumOf(4 * MiB));
    server.serve("/stalls", medium, { stallAfter: 10 });
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const waits = [gate];
    const takeBytes = async (_host: string, bytes: number) => {
      onAsked();
      await waits.shift();
      return Math.min(bytes, 100_000);
    };
    const parts = await open({ takeBytes });
    const limited = fetch(parts);
    await asked;
    // The idle time of another part begins later, and ends.
    const abort = new AbortController();
    const stalled = fetch(parts, { name: "stalled", url: server.url("/stalls"), signal: abort.signal });
    await server.waitFor(() => server.requests.some(({ path, isOver }) => path === "/stalls" && isOver));
    abort.abort(new Error("enough"));
    await expect(stalled).rejects.toThrow("enough");
    release();
    expect(await limited).toMatchObject({ size: 4 * MiB });
    expect(server.requests.filter(({ path }) => path === "/medium")).toHaveLength(1);
  });

  it("stops waiting when it is aborted", async () => {
    const { server, open, fetch } = await startPartsHarness();
    server.serve("/medium", medium);
    const abort = new AbortController();
    const takeBytes = (_host: string, _bytes: number, signal: AbortSignal) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason));
      abort.abort(new Error("enough"));
      return promise;
    };
    await expect(fetch(await open({ takeBytes }), { signal: abort.signal })).rejects.toThrow("enough");
  });
});
