import { expect, onTestFinished, test, vi } from "vitest";
import { HostPauses } from "../../src/net/host-pauses.ts";
import { delayHosts, pauseHosts } from "../../src/resolvers/wrappers.ts";
import { createTestResolver, pageOf } from "../runner/resolver.ts";

function start(delayMs: number) {
  const reads: { host: string; atMs: number }[] = [];
  const resolver = createTestResolver(async (url) => {
    reads.push({ host: url.host, atMs: performance.now() });
    return pageOf(url);
  });
  const delayed = delayHosts(resolver, delayMs);
  const read = (
    host: string,
    context: { signal?: AbortSignal; owner?: string; onWaiting?: (isWaiting: boolean) => Promise<void> } = {},
  ) => delayed.resolve(new URL(`http://${host}/watch`), { signal: new AbortController().signal, ...context });
  return { reads, read };
}

test("pages of one host are read one delay after another, those of others meanwhile", async () => {
  const { reads, read } = start(100);
  await Promise.all(["a.test", "a.test", "b.test", "a.test"].map((host) => read(host)));
  expect(reads.map(({ host }) => host)).toEqual(["a.test", "b.test", "a.test", "a.test"]);
  const [first, , second, third] = reads.map(({ atMs }) => atMs);
  // A timer may be early by a millisecond, and what a read notes is the time after it has begun.
  expect(second! - first!).toBeGreaterThan(80);
  expect(third! - first!).toBeGreaterThan(180);
});

test("the caller learns when it waits, and may abort the wait", async () => {
  const { reads, read } = start(500);
  const waits: boolean[] = [];
  const onWaiting = async (isWaiting: boolean) => void waits.push(isWaiting);
  const first = read("a.test");
  const abort = new AbortController();
  const aborted = read("a.test", { signal: abort.signal, onWaiting });
  const later = read("a.test", { onWaiting });
  abort.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  await Promise.all([first, later]);
  expect(reads).toHaveLength(2);
  expect(waits).toEqual([true, true, false]);
});

test("an owner with many calls holds up another for one delay at most, and for none that were aborted", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { reads, read } = start(1_000);
  const abort = new AbortController();
  const annas = Array.from({ length: 3 }, () => read("a.test", { owner: "anna" }));
  const aborted = Array.from({ length: 50 }, () => read("a.test", { owner: "anna", signal: abort.signal }));
  const berts = read("a.test", { owner: "bert" });
  abort.abort(new Error("enough"));
  expect((await Promise.allSettled(aborted)).every(({ status }) => status === "rejected")).toBe(true);
  expect(reads).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(2_000);
  await berts;
  expect(reads).toHaveLength(3);
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all(annas);
  expect(reads).toHaveLength(4);
});

test("without a delay the resolver stays as it is", () => {
  const resolver = createTestResolver();
  expect(delayHosts(resolver, 0)).toBe(resolver);
});

test("no page is read of a host that has asked for a pause, whatever reads pages; those of others are", async () => {
  const read: string[] = [];
  const resolver = createTestResolver(async (url) => {
    read.push(url.host);
    return pageOf(url);
  });
  const pauses = new HostPauses();
  pauses.add({ host: "a.test", seconds: 60 });
  const { resolve } = pauseHosts(resolver, pauses);
  const { signal } = new AbortController();
  const refused = resolve(new URL("http://a.test/watch"), { signal });
  await expect(refused).rejects.toMatchObject({ code: "upstream_status", retryable: true, retryAfterS: 60 });
  await resolve(new URL("http://b.test/watch"), { signal });
  expect(read).toEqual(["b.test"]);
});
