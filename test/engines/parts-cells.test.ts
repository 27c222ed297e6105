import { expect, it } from "vitest";
import { first, type Fault } from "../media/faults.ts";
import { hashOfFile, mediumOf, MiB, sha256, startTrial } from "./parts-harness.ts";

const size = 700_000;
const seeds = [11, 12, 13];

const cells = [true, false].flatMap((hasRange) =>
  [true, false].flatMap((hasLength) =>
    [null, ...seeds].map((seed) => ({ hasRange, hasLength, seed })),
  ),
);

it.each(cells)(
  "gives every byte with Range: $hasRange, length: $hasLength, cut by seed $seed",
  async ({ hasRange, hasLength, seed }) => {
    const { server, open, fetch } = await startTrial();
    const medium = mediumOf(size);
    const cutAfter = seed === null ? null : mediumOf(4, seed).readUInt32BE() % size;
    const fault: Fault = {
      ...(!hasRange && { ignoresRange: true }),
      ...(!hasLength && { length: "chunked" }),
    };
    server.serve("/medium", medium, ({ nth }) =>
      nth === 0 && cutAfter !== null ? { ...fault, cutAfter } : fault,
    );
    const parts = await open();
    const { path } = await fetch(parts);
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(parts.bytes).toBe(size);
    const again = server.bytesSent() - size;
    expect(again).toBe(hasRange || cutAfter === null ? 0 : cutAfter);
  },
);

it("takes a body that ends with the connection", async () => {
  const { server, open, fetch } = await startTrial();
  const medium = mediumOf(size);
  server.serve("/medium", medium, { length: "closing" });
  const { path } = await fetch(await open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
});

it("goes on as often as it takes while every answer brings something", async () => {
  const { server, open, fetch } = await startTrial();
  const medium = mediumOf(size);
  server.serve("/medium", medium, { cutAfter: 60_000 });
  const { path } = await fetch(await open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
  expect([server.requests.length, server.bytesSent()]).toEqual([12, size]);
});

it("takes ranges that are shorter than those asked for", async () => {
  const { server, open, fetch } = await startTrial();
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
  expect(server.requests.map(({ headers }) => headers.range)).toEqual([
    undefined,
    "bytes=30000-",
    "bytes=50000-",
  ]);
});

it("fetches a range of a resource, also where the server sends it whole", async () => {
  const { server, open, fetch } = await startTrial();
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

it("asks for nothing more where a connection is lost right behind the last byte", async () => {
  const { server, open, fetch } = await startTrial();
  server.serve("/medium", mediumOf(size), { length: "chunked", cutAfter: 1000 });
  const { path } = await fetch(await open(), { range: { offset: 10, length: 1000 } });
  expect(await hashOfFile(path)).toBe(sha256(mediumOf(size).subarray(10, 1010)));
  expect(server.requests).toHaveLength(1);
});

it("leaves the rest of a resource of which a range was wanted", async () => {
  const { server, open, fetch } = await startTrial();
  const whole = 64 * MiB;
  server.serve("/medium", Buffer.alloc(whole), { ignoresRange: true });
  expect((await fetch(await open(), { range: { offset: 10, length: 20 } })).size).toBe(20);
  await server.waitFor(() => server.requests[0]?.isOver === true);
  expect(server.bytesSent()).toBeLessThan(whole);
});

it("fetches many parts at a time", async () => {
  const { server, open, fetch } = await startTrial();
  const media = Array.from({ length: 40 }, (_, seed) => mediumOf(20_000, seed));
  for (const [index, medium] of media.entries()) server.serve(`/${index}`, medium);
  const parts = await open();
  const fetched = await Promise.all(
    media.map((_, index) => fetch(parts, { name: `video-${index}`, url: server.url(`/${index}`) })),
  );
  const hashes = await Promise.all(fetched.map(({ path }) => hashOfFile(path)));
  expect(hashes).toEqual(media.map(sha256));
  expect(parts.bytes).toBe(40 * 20_000);
});

it("fetches a part once, however many ask for it at a time", async () => {
  const { server, open, fetch } = await startTrial();
  const medium = mediumOf(size);
  server.serve("/medium", medium);
  const parts = await open();
  const [one, two] = await Promise.all([fetch(parts), fetch(parts)]);
  expect(two).toEqual(one);
  expect([await hashOfFile(one.path), parts.bytes]).toEqual([sha256(medium), size]);
  expect(server.requests).toHaveLength(1);
});
