import { expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { measureResolver } from "../../src/resolvers/wrappers.ts";
import { createTestResolver, pageOf } from "../runner/resolver.ts";

const url = new URL("https://video.example.com/");

function observed(page: Parameters<typeof createTestResolver>[0]) {
  const calls: unknown[] = [];
  const resolver = measureResolver(createTestResolver(page), (name, outcome, seconds) => {
    expect(seconds).toBeGreaterThanOrEqual(0);
    calls.push([name, outcome]);
  });
  return { resolver, calls };
}

it("returns what the resolver returns, and reports its name", async () => {
  const { resolver, calls } = observed(async (asked) => pageOf(asked));
  const { signal } = new AbortController();
  expect(await resolver.resolve(url, { signal })).toEqual(pageOf(url));
  expect(calls).toEqual([["test", "succeeded"]]);
});

it("tells a failure from a caller that has aborted", async () => {
  const failure = new ServiceError("upstream_status", "x");
  const { resolver, calls } = observed(() => Promise.reject(failure));
  const { signal } = new AbortController();
  await expect(resolver.resolve(url, { signal })).rejects.toBe(failure);
  const aborted = AbortSignal.abort(new Error("gone"));
  await expect(resolver.resolve(url, { signal: aborted })).rejects.toThrow("gone");
  expect(calls).toEqual([
    ["test", "failed"],
    ["test", "aborted"],
  ]);
});

it("is the resolver itself if nobody observes", () => {
  const resolver = createTestResolver();
  expect(measureResolver(resolver, undefined)).toBe(resolver);
});
