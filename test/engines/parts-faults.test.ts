import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type Fault, first } from "../media/faults.ts";
import { hashOfFile, mediumOf, sha256, startPartsHarness, type PartsHarness } from "./parts-harness.ts";

const size = 200_000;
const medium = mediumOf(size);
const other = mediumOf(size, 2);
const anHourAgo = new Date(Date.now() - 3_600_000).toUTCString();

/** The first response is cut off after 120,000 bytes; `before` applies to it, `after` to the others. */
async function cutBetween(before: Fault, after: Fault, later = medium): Promise<PartsHarness> {
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, ({ nth }) => {
    if (nth > 0) return after;
    harness.server.serve("/medium", later, () => after);
    return { ...before, cutAfter: 120_000 };
  });
  return harness;
}

const headers = (fields: Record<string, string | null>): Fault => ({ headers: fields });
const rangesOf = ({ server }: PartsHarness) => server.requests.map((request) => request.headers.range);
const ifRangesOf = ({ server }: PartsHarness) => server.requests.map((request) => request.headers["if-range"]);

describe("a part that was cut off", () => {
  it.each<[string, Fault, string | undefined]>([
    ["a strong ETag", headers({ etag: '"v1"', "last-modified": anHourAgo }), '"v1"'],
    ["a date of an hour ago", headers({ etag: null, "last-modified": anHourAgo }), anHourAgo],
    ["a date with a weak ETag", headers({ etag: 'W/"v1"', "last-modified": anHourAgo }), undefined],
    ["a date of now", headers({ etag: null, "last-modified": new Date().toUTCString() }), undefined],
  ])("resumes by %s", async (_what, fault, ifRange) => {
    const harness = await cutBetween(fault, fault);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-"]);
    expect(ifRangesOf(harness)[1]).toBe(ifRange);
    expect(harness.server.bytesSent()).toBe(size);
  });

  it.each([
    ["a validator", null],
    ["more than a weak ETag, which other bytes may have", 'W/"v1"'],
  ])("restarts without %s", async (_what, etag) => {
    const fault = headers({ etag });
    const harness = await cutBetween(fault, fault, other);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
    expect(rangesOf(harness)).toEqual([undefined, undefined]);
  });

  it.each<[string, Fault, Fault]>([
    ["has another strong ETag", {}, {}],
    ["has another weak ETag", headers({ etag: 'W/"v1"' }), headers({ etag: 'W/"v2"' })],
    [
      "has another date",
      headers({ etag: null, "last-modified": anHourAgo }),
      headers({ etag: null, "last-modified": new Date(0).toUTCString() }),
    ],
    [
      "has another date, which was too new to be sure of",
      headers({ etag: null, "last-modified": new Date().toUTCString() }),
      headers({ etag: null, "last-modified": new Date(0).toUTCString() }),
    ],
    ["has lost its ETag", {}, headers({ etag: null })],
    ["has lost its ETag's strength", headers({ etag: '"v"' }), headers({ etag: 'W/"v"' })],
  ])("restarts and never splices if the resource %s", async (_what, before, after) => {
    const harness = await cutBetween(before, after, other);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
  });

  it("restarts if a server without If-Range sends the rest of another representation", async () => {
    const harness = await cutBetween({}, { ignoresIfRange: true }, other);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
    expect(harness.server.requests.map(({ status }) => status)).toEqual([200, 206, 200]);
  });

  it.each([
    ["longer", mediumOf(size + 1, 2)],
    ["shorter", mediumOf(150_000, 2)],
    ["too short for the rest", mediumOf(100_000, 2)],
  ])("restarts if the resource is %s with the same validator", async (_what, later) => {
    const fault = headers({ etag: '"same"' });
    const harness = await cutBetween(fault, fault, later);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(later));
  });

  it("restarts if the rest comes from another URL", async () => {
    const harness = await cutBetween(headers({ etag: '"same"' }), {
      status: 302,
      headers: { location: "/elsewhere?token=1" },
    });
    harness.server.serve("/elsewhere", other, headers({ etag: '"same"' }));
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
  });

  it("resumes if a redirect leads to another copy each time, and restarts if that is none", async () => {
    const harness = await startPartsHarness();
    const parts = await harness.open();
    const same = { etag: '"same"' };
    harness.server.serve("/medium", medium, ({ nth }) => ({ status: 302, headers: { location: `/edge-${nth}` } }));
    for (const edge of [0, 1, 3]) harness.server.serve(`/edge-${edge}`, medium, { headers: same, cutAfter: 60_000 });
    harness.server.serve("/edge-2", medium, headers(same));
    harness.server.serve("/edge-4", other, headers(same));
    harness.server.serve("/edge-5", other, headers(same));
    expect(await hashOfFile((await harness.fetch(parts)).path)).toBe(sha256(medium));
    expect(await hashOfFile((await harness.fetch(parts, { name: "next" })).path)).toBe(sha256(other));
    const ranges = harness.server.requests
      .filter(({ path }) => path !== "/medium")
      .map(({ headers: { range } }) => range);
    const [rest, last] = [`bytes=${60_000 - 4_096}-`, `bytes=${120_000 - 2 * 4_096}-`];
    expect(ranges).toEqual([undefined, rest, last, undefined, rest, undefined]);
  });

  it.each<[string, Fault]>([
    ["416", { status: 416 }],
    ["400", { status: 400 }],
    ["501", { status: 501 }],
    ["a range that begins elsewhere", { headers: { "content-range": "bytes 0-199999/200000" } }],
    ["several ranges", { headers: { "content-range": null } }],
  ])("restarts if the response to the rest is %s", async (_what, fault) => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, ({ nth, headers: { range } }) => {
      if (nth === 0) return { cutAfter: 120_000 };
      return range === undefined ? {} : fault;
    });
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-", undefined]);
  });

  it("is complete if the connection ends after its last byte, and the server says that there is no more", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, first(1, { length: "chunked", cutAfter: medium.length }));
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(harness)).toEqual([undefined, `bytes=${medium.length}-`]);
  });

  it("restarts if the server says that the resource has another length than what there is of it", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, ({ nth, headers: { range } }) => {
      if (nth === 0) return { length: "chunked", cutAfter: 120_000 };
      return range === undefined ? {} : { status: 416, headers: { "content-range": "bytes */119999" } };
    });
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-", undefined]);
  });

  it("keeps its bytes for a mirror if the server refuses the rest (403), as of a URL that has expired", async () => {
    const harness = await cutBetween({}, { status: 403 });
    harness.server.serve("/mirror", medium);
    const parts = await harness.open();
    await expect(harness.fetch(parts)).rejects.toMatchObject({ upstreamStatus: 403 });
    const { path } = await harness.fetch(parts, { url: harness.server.url("/mirror") });
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-", `bytes=${120_000 - 4_096}-`]);
  });

  it("keeps its bytes if the server demands chunks and refuses one", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, ({ headers: { range } }) => {
      return range === "bytes=0-99999" ? {} : { status: 403 };
    });
    const parts = await harness.open();
    const part = { chunkBytes: 100_000 };
    await expect(harness.fetch(parts, part)).rejects.toMatchObject({ upstreamStatus: 403 });
    expect([rangesOf(harness), parts.bytes]).toEqual([["bytes=0-99999", "bytes=100000-199999"], 100_000]);
    harness.server.serve("/medium", medium);
    expect(await hashOfFile((await harness.fetch(parts, part)).path)).toBe(sha256(medium));
    expect(rangesOf(harness).slice(2)).toEqual(["bytes=100000-199999"]);
  });

  it.each<[string, Fault]>([
    ["states its length", {}],
    ["states no length", { length: "chunked" }],
    ["states its length, and has a date instead of an ETag", headers({ etag: null, "last-modified": anHourAgo })],
    ["states which bytes they are", headers({ etag: null, "content-range": "bytes 120000-199999/200000" })],
  ])(
    "restarts if a response with status 200 has only some bytes with the same validator, and %s",
    async (_what, fault) => {
      const harness = await startPartsHarness();
      const same = { etag: '"same"', ...fault.headers, "content-range": null };
      harness.server.serve("/medium", medium, () => {
        harness.server.serve("/medium", medium.subarray(120_000), () => {
          harness.server.serve("/medium", medium, headers(same));
          return { ...fault, headers: { etag: '"same"', ...fault.headers }, ignoresRange: true };
        });
        return { ...headers({ "last-modified": anHourAgo, ...same }), cutAfter: 120_000 };
      });
      const { path } = await harness.fetch(await harness.open());
      expect(await hashOfFile(path)).toBe(sha256(medium));
      expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-", undefined]);
    },
  );

  it("takes a response with status 200 that is shorter and has another validator", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, () => {
      harness.server.serve("/medium", other.subarray(120_000), { ignoresRange: true });
      return { cutAfter: 120_000 };
    });
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(other.subarray(120_000)));
    expect(rangesOf(harness)).toEqual([undefined, "bytes=120000-"]);
  });

  it("fails if the resource changes with every response", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, ({ nth, headers: { range } }) => ({
      headers: { etag: `"${nth}"` },
      ignoresIfRange: true,
      ...(range === undefined && { cutAfter: 120_000 }),
    }));
    await expect(harness.fetch(await harness.open())).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("has changed during the download"),
    });
    expect(harness.server.requests.length).toBeLessThan(12);
  });
});

describe("a stated length", () => {
  it("that is too long counts as a cut-off", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, first(1, { lengthLie: 1000 }));
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
  });

  it("that is always too long fails the part after 3 retries", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, { lengthLie: 1000, ignoresRange: true });
    await expect(harness.fetch(await harness.open())).rejects.toMatchObject({
      code: "upstream_unreachable",
      retryable: true,
    });
    expect(harness.server.requests).toHaveLength(4);
  });

  it.each([1000, -1000])("of a range that is wrong by %i is corrected by a retry", async (lengthLie) => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, first(1, { lengthLie }));
    const range = { offset: 1000, length: 100_000 };
    const { path } = await harness.fetch(await harness.open(), { range });
    expect(await hashOfFile(path)).toBe(sha256(medium.subarray(1000, 101_000)));
  });

  it("of a range that is always 0 fails the part after 3 retries", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, { lengthLie: -1000 });
    const range = { offset: 0, length: 1000 };
    await expect(harness.fetch(await harness.open(), { range })).rejects.toMatchObject({
      code: "upstream_unreachable",
      message: expect.stringContaining("the response is 1000 bytes too short"),
    });
    expect(harness.server.requests).toHaveLength(4);
  });

  it("that is too short counts, and later bytes are ignored", async () => {
    const harness = await startPartsHarness({ perHost: 1 });
    harness.server.serve("/medium", medium, first(1, { lengthLie: -1000 }));
    const parts = await harness.open();
    expect((await harness.fetch(parts)).size).toBe(size - 1000);
    const { path } = await harness.fetch(parts, { name: "next" });
    expect(await hashOfFile(path)).toBe(sha256(medium));
  });
});

it("resumes after a stall", async () => {
  const harness = await startPartsHarness({ idleTimeoutMs: 1_100 });
  harness.server.serve("/medium", medium, first(1, { stallAfter: 150_000 }));
  const { path } = await harness.fetch(await harness.open());
  expect((await readFile(path)).equals(medium)).toBe(true);
  expect(rangesOf(harness)).toEqual([undefined, "bytes=150000-"]);
});

it("leaves a server that is too slow to a later run, and keeps its bytes", async () => {
  const harness = await startPartsHarness({ minSpeedBps: 1_000_000, speedWindowMs: 200 });
  harness.server.serve("/medium", medium, first(1, { stallAfter: 50_000 }));
  const parts = await harness.open();
  await expect(harness.fetch(parts)).rejects.toMatchObject({
    code: "upstream_timeout",
    retryable: true,
  });
  expect(harness.server.requests).toHaveLength(1);
  await harness.fetch(parts);
  expect(rangesOf(harness)).toEqual([undefined, "bytes=50000-"]);
});

it("counts bytes below the least speed as no progress", async () => {
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, { delayMs: 50, cutAfter: 10 });
  const parts = await harness.open({ minSpeedBps: 100_000 });
  await expect(harness.fetch(parts)).rejects.toMatchObject({ code: "upstream_unreachable" });
  expect(harness.server.requests).toHaveLength(4);
});

it("looks a name that cannot be resolved up once", async () => {
  let lookups = 0;
  const lookup = async () => {
    lookups += 1;
    throw Object.assign(new Error("no name server"), { code: "EAI_AGAIN" });
  };
  const harness = await startPartsHarness({ lookup });
  const url = harness.server.url("/medium", "some.test");
  await expect(harness.fetch(await harness.open(), { url })).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: "could not resolve some.test: no name server has an answer at present (EAI_AGAIN)",
  });
  expect(lookups).toBe(1);
});

it("decodes a content coding that was not asked for, and never resumes it", async () => {
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, ({ nth }) => ({ gzip: true, ...(nth === 0 && { cutAfter: 60_000 }) }));
  const { path } = await harness.fetch(await harness.open());
  expect(await hashOfFile(path)).toBe(sha256(medium));
  expect(rangesOf(harness)).toEqual([undefined, undefined]);
});

it("takes a range out of a whole resource that has a content coding", async () => {
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, { gzip: true });
  const { path } = await harness.fetch(await harness.open(), { range: { offset: 1_000, length: 5_000 } });
  expect(await hashOfFile(path)).toBe(sha256(medium.subarray(1_000, 6_000)));
});

it("cuts a range that ends a few bytes past the end of the resource", async () => {
  const harness = await startPartsHarness();
  const parts = await harness.open();
  const range = { offset: size - 1000, length: 1001 };
  const wanted = sha256(medium.subarray(size - 1000));
  for (const [nth, fault] of [{}, { ignoresRange: true }].entries()) {
    harness.server.serve("/medium", medium, fault);
    const { path } = await harness.fetch(parts, { name: `part-${nth}`, range });
    expect(await hashOfFile(path)).toBe(wanted);
  }
});

it("refuses a resource that is shorter than the range", async () => {
  const harness = await startPartsHarness();
  const parts = await harness.open();
  const range = { offset: size - 10, length: 27 };
  for (const fault of [{}, { ignoresRange: true }, { ignoresRange: true, length: "chunked" }]) {
    harness.server.serve("/medium", medium, fault as Fault);
    await expect(harness.fetch(parts, { range })).rejects.toMatchObject({
      code: "upstream_invalid",
    });
  }
});

it("blocks a redirect to an address that is not public", async () => {
  const harness = await startPartsHarness();
  const location = harness.server.url("/medium", "127.0.0.2").href;
  harness.server.serve("/medium", medium, { status: 302, headers: { location } });
  await expect(harness.fetch(await harness.open())).rejects.toMatchObject({
    code: "address_blocked",
  });
  expect(harness.server.requests).toHaveLength(1);
});
