import { expect, it } from "vitest";
import { first, type Fault } from "../media/faults.ts";
import { hashOfFile, mediumOf, MiB, sha256, startPartsHarness } from "./parts-harness.ts";

const size = 700_000;
const seeds = [11, 12, 13];

const cells = [true, false].flatMap((hasRange) =>
  [true, false].flatMap((hasLength) => [null, ...seeds].map((seed) => ({ hasRange, hasLength, seed }))),
);

it.each(cells)(
  "fetches every byte with Range: $hasRange, length: $hasLength, cut by seed $seed",
  async ({ hasRange, hasLength, seed }) => {
    const { server, open, fetch } = await startPartsHarness();
    const medium = mediumOf(size);
    const cutAfter = seed === null ? null : mediumOf(4, seed).readUInt32BE() % size;
    const fault: Fault = {
      ...(!hasRange && { ignoresRange: true }),
      ...(!hasLength && { length: "chunked" }),
    };
    server.serve("/medium", medium, ({ nth }) => (nth === 0 && cutAfter !== null ? { ...fault, cutAfter } : fault));
    const parts = await open();
    const { path } = await fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(parts.bytes).toBe(size);
    const again = server.bytesSent() - size;
    expect(again).toBe(hasRange || cutAfter === null ? 0 : cutAfter);
  },
);

it("accepts a body that ends with the connection", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(size);
  server.serve("/medium", medium, { length: "closing" });
  const { path } = await fetch(await open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
});

it("resumes without limit while every response has new bytes", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(size);
  server.serve("/medium", medium, { cutAfter: 60_000 });
  const { path } = await fetch(await open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
  expect([server.requests.length, server.bytesSent()]).toEqual([12, size]);
});

it("accepts ranges shorter than requested", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(100_000);
  server.serve("/medium", medium, ({ nth }) => ({
    ...(nth === 0 && { cutAfter: 30_000 }),
    ...(nth === 1 && {
      headers: { "content-range": "bytes 30000-49999/100000", "content-length": "20000" },
      cutAfter: 20_000,
    }),
  }));
  const { path } = await fetch(await open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
  expect(server.requests.map(({ headers }) => headers.range)).toEqual([undefined, "bytes=30000-", "bytes=50000-"]);
});

it("fetches a range of a resource even if the server ignores the range", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(size);
  const range = { offset: 100_001, length: 300_000 };
  const wanted = sha256(medium.subarray(100_001, 400_001));
  server.serve("/medium", medium, first(1, { cutAfter: 77_777 }));
  const parts = await open();
  expect(await hashOfFile((await fetch(parts, { range })).path)).toBe(wanted);
  expect(server.bytesSent()).toBe(300_000);
  server.serve("/medium", medium, { ignoresRange: true });
  expect(await hashOfFile((await fetch(parts, { name: "other", range })).path)).toBe(wanted);
});

it("fetches a range of a resource even if the server ignores where the range ends", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(size);
  const range = { offset: 100_001, length: 300_000 };
  server.serve("/medium", medium, ({ nth }) => ({ ignoresRangeEnd: true, ...(nth === 0 && { cutAfter: 77_777 }) }));
  const { path } = await fetch(await open(), { range });
  expect(await hashOfFile(path)).toBe(sha256(medium.subarray(100_001, 400_001)));
  expect(server.requests.map(({ status }) => status)).toEqual([206, 206]);
});

it("sends no more requests if the connection is lost right after the last byte", async () => {
  const { server, open, fetch } = await startPartsHarness();
  server.serve("/medium", mediumOf(size), { length: "chunked", cutAfter: 1000 });
  const { path } = await fetch(await open(), { range: { offset: 10, length: 1000 } });
  expect(await hashOfFile(path)).toBe(sha256(mediumOf(size).subarray(10, 1010)));
  expect(server.requests).toHaveLength(1);
});

it("stops reading a resource after the wanted range", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const whole = 64 * MiB;
  server.serve("/medium", Buffer.alloc(whole), { ignoresRange: true });
  expect((await fetch(await open(), { range: { offset: 10, length: 20 } })).size).toBe(20);
  await server.waitFor(() => server.requests[0]?.isOver === true);
  expect(server.bytesSent()).toBeLessThan(whole);
});

it("fetches parts concurrently", async () => {
  const { server, open, fetch } = await startPartsHarness({ perHost: 8 });
  const media = Array.from({ length: 8 }, (_, seed) => mediumOf(20_000, seed));
  const serve = (faults: Fault) => media.forEach((medium, index) => server.serve(`/${index}`, medium, faults));
  const parts = await open();
  const fetchAll = (options = {}) =>
    Promise.all(
      media.map((_, index) => fetch(parts, { name: `video-${index}`, url: server.url(`/${index}`), ...options })),
    );
  serve({ stallAfter: 10_000 });
  const abort = new AbortController();
  const stalled = fetchAll({ signal: abort.signal });
  await server.waitFor(() => server.bytesSent() === 8 * 10_000);
  abort.abort("all of them were requested");
  await expect(stalled).rejects.toBe("all of them were requested");
  serve({});
  const hashes = await Promise.all((await fetchAll()).map(({ path }) => hashOfFile(path)));
  expect(hashes).toEqual(media.map(sha256));
  expect(parts.bytes).toBe(8 * 20_000);
});

it("fetches a part once for concurrent calls", async () => {
  const { server, open, fetch } = await startPartsHarness();
  const medium = mediumOf(size);
  server.serve("/medium", medium);
  const parts = await open();
  const [one, two] = await Promise.all([fetch(parts), fetch(parts)]);
  expect(two).toEqual(one);
  expect([await hashOfFile(one.path), parts.bytes]).toEqual([sha256(medium), size]);
  expect(server.requests).toHaveLength(1);
});
