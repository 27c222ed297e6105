import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type Fault, first } from "../media/faults.ts";
import { hashOfFile, mediumOf, sha256, startTrial, type PartsHarness } from "./parts-harness.ts";

const size = 200_000;
const medium = mediumOf(size);
const other = mediumOf(size, 2);
const anHourAgo = new Date(Date.now() - 3_600_000).toUTCString();

/** The first answer is cut after 120,000 bytes; `before` holds for it and `after` for the others. */
async function cutBetween(before: Fault, after: Fault, later = medium): Promise<PartsHarness> {
  const trial = await startTrial();
  trial.server.serve("/medium", medium, ({ nth }) => {
    if (nth > 0) return after;
    trial.server.serve("/medium", later, () => after);
    return { ...before, cutAfter: 120_000 };
  });
  return trial;
}

const headers = (fields: Record<string, string | null>): Fault => ({ headers: fields });
const rangesOf = ({ server }: PartsHarness) =>
  server.requests.map((request) => request.headers.range);
const ifRangesOf = ({ server }: PartsHarness) =>
  server.requests.map((request) => request.headers["if-range"]);

describe("a part that was cut", () => {
  it.each<[string, Fault, string | undefined]>([
    ["a strong ETag", headers({ etag: '"v1"', "last-modified": anHourAgo }), '"v1"'],
    ["a date of an hour ago", headers({ etag: null, "last-modified": anHourAgo }), anHourAgo],
    ["a weak ETag", headers({ etag: 'W/"v1"', "last-modified": anHourAgo }), undefined],
    [
      "a date of now",
      headers({ etag: null, "last-modified": new Date().toUTCString() }),
      undefined,
    ],
  ])("goes on by %s", async (_what, fault, ifRange) => {
    const trial = await cutBetween(fault, fault);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(trial)).toEqual([undefined, "bytes=120000-"]);
    expect(ifRangesOf(trial)[1]).toBe(ifRange);
    expect(trial.server.bytesSent()).toBe(size);
  });

  it("begins anew without any validator", async () => {
    const fault = headers({ etag: null });
    const trial = await cutBetween(fault, fault);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(trial)).toEqual([undefined, undefined]);
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
  ])("begins anew and never splices where the resource %s", async (_what, before, after) => {
    const trial = await cutBetween(before, after, other);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
  });

  it("begins anew where a server that knows no If-Range sends the rest of something else", async () => {
    const trial = await cutBetween({}, { ignoresIfRange: true }, other);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
    expect(trial.server.requests.map(({ status }) => status)).toEqual([200, 206, 200]);
  });

  it.each([
    ["longer", mediumOf(size + 1, 2)],
    ["shorter", mediumOf(150_000, 2)],
    ["too short for the rest", mediumOf(100_000, 2)],
  ])("begins anew where the resource is %s under the same validator", async (_what, later) => {
    const fault = headers({ etag: '"same"' });
    const trial = await cutBetween(fault, fault, later);
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(later));
  });

  it("begins anew where the rest comes from another place", async () => {
    const trial = await cutBetween(headers({ etag: '"same"' }), {
      status: 302,
      headers: { location: "/elsewhere?token=1" },
    });
    trial.server.serve("/elsewhere", other, headers({ etag: '"same"' }));
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(other));
  });

  it.each<[string, Fault]>([
    ["416", { status: 416 }],
    ["a range that begins elsewhere", { headers: { "content-range": "bytes 0-199999/200000" } }],
    ["several ranges", { headers: { "content-range": null } }],
  ])("begins anew where the rest is answered with %s", async (_what, fault) => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, ({ nth, headers: { range } }) => {
      if (nth === 0) return { cutAfter: 120_000 };
      return range === undefined ? {} : fault;
    });
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(rangesOf(trial)).toEqual([undefined, "bytes=120000-", undefined]);
  });

  it("gives up a resource that changes with every answer", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, ({ nth, headers: { range } }) => ({
      headers: { etag: `W/"${nth}"` },
      ...(range === undefined && { cutAfter: 120_000 }),
    }));
    await expect(trial.fetch(await trial.open())).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining("has changed during the download"),
    });
    expect(trial.server.requests.length).toBeLessThan(12);
  });
});

describe("a stated length", () => {
  it("that is too long is a cut", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, first(1, { lengthLie: 1000 }));
    const { path } = await trial.fetch(await trial.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
  });

  it("that is always too long fails the part, after a few tries", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, { lengthLie: 1000, ignoresRange: true });
    await expect(trial.fetch(await trial.open())).rejects.toMatchObject({
      code: "upstream_unreachable",
      retryable: true,
    });
    expect(trial.server.requests).toHaveLength(4);
  });

  it.each([1000, -1000])("of a range that is wrong by %i is made good", async (lengthLie) => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, first(1, { lengthLie }));
    const range = { offset: 1000, length: 100_000 };
    const { path } = await trial.fetch(await trial.open(), { range });
    expect(await hashOfFile(path)).toBe(sha256(medium.subarray(1000, 101_000)));
  });

  it("of a range that is always 0 fails the part, after a few tries", async () => {
    const trial = await startTrial();
    trial.server.serve("/medium", medium, { lengthLie: -1000 });
    const range = { offset: 0, length: 1000 };
    await expect(trial.fetch(await trial.open(), { range })).rejects.toMatchObject({
      code: "upstream_unreachable",
      message: expect.stringContaining("the response is 1000 bytes too short"),
    });
    expect(trial.server.requests).toHaveLength(4);
  });

  it("that is too short is the length, and what follows belongs to nothing", async () => {
    const trial = await startTrial({ perHost: 1 });
    trial.server.serve("/medium", medium, first(1, { lengthLie: -1000 }));
    const parts = await trial.open();
    expect((await trial.fetch(parts)).size).toBe(size - 1000);
    const { path } = await trial.fetch(parts, { name: "next" });
    expect(await hashOfFile(path)).toBe(sha256(medium));
  });
});

it("goes on after a stall from where it came", async () => {
  const trial = await startTrial({ idleTimeoutMs: 200 });
  trial.server.serve("/medium", medium, first(1, { stallAfter: 150_000 }));
  const { path } = await trial.fetch(await trial.open());
  expect((await readFile(path)).equals(medium)).toBe(true);
  expect(rangesOf(trial)).toEqual([undefined, "bytes=150000-"]);
});

it("refuses a content coding, whose bytes could not be gone on with", async () => {
  const trial = await startTrial();
  trial.server.serve("/medium", medium, { gzip: true });
  await expect(trial.fetch(await trial.open())).rejects.toMatchObject({
    code: "upstream_invalid",
    retryable: false,
  });
});

it("refuses a resource that is shorter than the range", async () => {
  const trial = await startTrial();
  const parts = await trial.open();
  const range = { offset: size - 10, length: 11 };
  for (const fault of [{}, { ignoresRange: true }, { ignoresRange: true, length: "chunked" }]) {
    trial.server.serve("/medium", medium, fault as Fault);
    await expect(trial.fetch(parts, { range })).rejects.toMatchObject({ code: "upstream_invalid" });
  }
});

it("blocks a redirect to an address that is not public", async () => {
  const trial = await startTrial();
  const location = trial.server.url("/medium", "127.0.0.2").href;
  trial.server.serve("/medium", medium, { status: 302, headers: { location } });
  await expect(trial.fetch(await trial.open())).rejects.toMatchObject({ code: "address_blocked" });
  expect(trial.server.requests).toHaveLength(1);
});
