import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { first } from "../media/faults.ts";
import { hashOfFile, mediumOf, sha256, startPartsHarness } from "./parts-harness.ts";

const medium = mediumOf(100_000);

describe("a status", () => {
  it.each([404, 403, 410])("%i fails the part at once", async (status) => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, { status });
    await expect(harness.fetch(await harness.open())).rejects.toMatchObject({
      code: "upstream_status",
      upstreamStatus: status,
      retryable: false,
    });
    expect(harness.server.requests).toHaveLength(1);
  });

  it.each([400, 416])("%i is retried once, and fails the part if it comes again", async (status) => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, first(1, { status }));
    const parts = await harness.open();
    expect(await hashOfFile((await harness.fetch(parts)).path)).toBe(sha256(medium));
    expect(harness.server.requests).toHaveLength(2);
    harness.server.serve("/medium", medium, { status });
    await expect(harness.fetch(parts, { name: "other" })).rejects.toMatchObject({
      upstreamStatus: status,
      retryable: false,
    });
    expect(harness.server.requests).toHaveLength(4);
  });

  it.each([408, 425, 429, 500, 503])("%i is retried three times", async (status) => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", medium, first(3, { status }));
    const parts = await harness.open();
    expect(await hashOfFile((await harness.fetch(parts)).path)).toBe(sha256(medium));
    expect(harness.server.requests).toHaveLength(4);
    harness.server.serve("/medium", medium, { status });
    await expect(harness.fetch(parts, { name: "other" })).rejects.toMatchObject({
      upstreamStatus: status,
      retryable: true,
    });
    expect(harness.server.requests).toHaveLength(8);
  });

  it("with Retry-After delays the retry, and fails the part if it is too long", async () => {
    const harness = await startPartsHarness();
    const waiting = (seconds: string) => ({ status: 429, headers: { "retry-after": seconds } });
    harness.server.serve("/medium", medium, first(1, waiting("1")));
    const parts = await harness.open();
    await harness.fetch(parts);
    const [before, after] = harness.server.requests.map(({ atMs }) => atMs);
    expect(after! - before!).toBeGreaterThan(950);
    harness.server.serve("/medium", medium, waiting("31"));
    await expect(harness.fetch(parts, { name: "other" })).rejects.toMatchObject({
      upstreamStatus: 429,
      retryAfterS: 31,
    });
    expect(harness.server.requests).toHaveLength(3);
  });

  it.each([
    ["a web page", "\ufeff<!DOCTYPE html><title>Bad gateway</title>"],
    ["a message in JSON", '{"error":"busy"}'],
    ["a message", "Service temporarily overloaded\n"],
    ["nothing", ""],
  ])("200 with %s is retried three times, then taken", async (_, body) => {
    const harness = await startPartsHarness();
    const strange = Buffer.from(body);
    harness.server.serve("/medium", strange);
    const parts = await harness.open();
    let responses = 0;
    const onTotal = () => {
      if ((responses += 1) === 3) harness.server.serve("/medium", medium);
    };
    expect(await hashOfFile((await harness.fetch(parts, { onTotal })).path)).toBe(sha256(medium));
    expect([responses, parts.bytes]).toEqual([4, medium.length]);
    harness.server.serve("/medium", strange);
    const { path, size } = await harness.fetch(parts, { name: "other" });
    expect([await hashOfFile(path), size]).toEqual([sha256(strange), strange.length]);
    expect(harness.server.requests).toHaveLength(8);
    expect(parts.bytes).toBe(medium.length + strange.length);
  });

  it("200 with a message that was taken is asked for again by a later run", async () => {
    const harness = await startPartsHarness();
    harness.server.serve("/medium", Buffer.from('{"error":"busy"}'));
    await harness.fetch(await harness.open());
    harness.server.serve("/medium", medium);
    expect(await hashOfFile((await harness.fetch(await harness.open())).path)).toBe(sha256(medium));
  });

  it("200 with less than a range has is retried three times, then refused", async () => {
    const harness = await startPartsHarness();
    const range = { offset: medium.length - 1_000, length: 500 };
    const page = Buffer.from("<!DOCTYPE html><title>Bad gateway</title>");
    harness.server.serve("/medium", medium, ({ nth }) => (nth < 2 ? { status: 200 } : nth < 3 ? { status: 204 } : {}));
    const parts = await harness.open();
    const { path } = await harness.fetch(parts, { range });
    expect(await hashOfFile(path)).toBe(sha256(medium.subarray(range.offset, range.offset + range.length)));
    harness.server.serve("/medium", page, { ignoresRange: true });
    const refused = { code: "upstream_invalid", message: expect.stringMatching(/has only 41 bytes$/) };
    await expect(harness.fetch(parts, { name: "other", range })).rejects.toMatchObject(refused);
    expect(harness.server.requests).toHaveLength(8);
  });

  it("200 without a length is retried three times while it is not whole, then taken", async () => {
    const harness = await startPartsHarness();
    const isWhole = (path: string) => statSync(path).size === medium.length;
    const parts = await harness.open();
    harness.server.serve("/medium", medium.subarray(9), { length: "chunked" });
    const onTotal = () => {
      if (harness.server.requests.length === 2) harness.server.serve("/medium", medium, { length: "chunked" });
    };
    expect(await hashOfFile((await harness.fetch(parts, { isWhole, onTotal })).path)).toBe(sha256(medium));
    expect(harness.server.requests).toHaveLength(3);
    harness.server.serve("/medium", medium.subarray(9), { length: "chunked" });
    expect((await harness.fetch(parts, { name: "cut", isWhole })).size).toBe(medium.length - 9);
    harness.server.serve("/medium", medium.subarray(9));
    expect((await harness.fetch(parts, { name: "stated", isWhole })).size).toBe(medium.length - 9);
    expect(harness.server.requests).toHaveLength(8);
  });

  it("200 with nothing is retried twelve times in all, until a retry gives media", async () => {
    const harness = await startPartsHarness();
    const parts = await harness.open();
    const requests = async (name: string) => {
      const before = harness.server.requests.length;
      await harness.fetch(parts, { name });
      return harness.server.requests.length - before;
    };
    harness.server.serve("/medium", Buffer.alloc(0));
    const counts: number[] = [];
    for (const name of ["a", "b", "c"]) counts.push(await requests(name));
    const onTotal = () => harness.server.serve("/medium", medium);
    await harness.fetch(parts, { name: "d", onTotal });
    harness.server.serve("/medium", Buffer.alloc(0));
    for (const name of ["e", "f", "g", "h", "i", "j"]) counts.push(await requests(name));
    expect(counts).toEqual([4, 4, 4, 4, 4, 4, 4, 1, 1]);
  });

  it("200 with nothing that was taken is asked for again by a later run, twelve times in all as well", async () => {
    const harness = await startPartsHarness();
    const names = ["a", "b", "c", "d", "e", "f"];
    const countRequests = async () => {
      const before = harness.server.requests.length;
      const parts = await harness.open();
      for (const name of names) await harness.fetch(parts, { name });
      await parts.close();
      return harness.server.requests.length - before;
    };
    harness.server.serve("/medium", Buffer.alloc(0));
    // The first request of each part is no repeat.
    expect(await countRequests()).toBe(12 + names.length);
    expect(await countRequests()).toBe(12);
    harness.server.serve("/medium", medium);
    expect(await countRequests()).toBe(names.length);
    expect(await countRequests()).toBe(0);
  });
});
