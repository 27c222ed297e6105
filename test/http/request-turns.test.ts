import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { RequestTurns } from "../../src/http/access/request-turns.ts";

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

/** Returns turns of requests, and the names of those that have begun. */
function openTurns() {
  const turns = new RequestTurns();
  const begun: string[] = [];
  const add = (owner: string, name: string, response = newResponse()) =>
    turns.add(owner, response, () => void begun.push(name));
  return { add, begun };
}

afterEach(() => {
  vi.useRealTimers();
});

test("few requests begin in one turn of the event loop, those of an owner in their order", async () => {
  const { add, begun } = openTurns();
  const names = Array.from({ length: 100 }, (_, n) => `${n}`);
  for (const name of names) add("eve", name);
  for (let before = 0; before < names.length; await setImmediate()) {
    expect(begun.length - before).toBeGreaterThan(0);
    expect(begun.length - before).toBeLessThan(20);
    before = begun.length;
  }
  expect(begun).toEqual(names);
});

test("fewer begin in one turn for a second after a request of another owner, as that would wait for its end", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const { add, begun } = openTurns();
  /** Returns how many of 100 requests have begun after three turns. */
  const begunOf100 = async () => {
    for (let n = 0; n < 100; n += 1) add("eve", "eve");
    for (let turn = 0; turn < 3; turn += 1) await setImmediate();
    const count = begun.length;
    await expect.poll(() => begun.length).toBe(100);
    begun.length = 0;
    return count;
  };
  vi.advanceTimersByTime(1_000);
  const first = await begunOf100();
  vi.advanceTimersByTime(1_000);
  const alone = await begunOf100();
  add("bob", "bob");
  await expect.poll(() => begun).toEqual(["bob"]);
  begun.length = 0;
  const shared = await begunOf100();
  expect([alone > 3 * first, alone > 3 * shared]).toEqual([true, true]);
});

test("owners who wait take turns", async () => {
  const { add, begun } = openTurns();
  for (let n = 0; n < 50; n += 1) add("eve", "eve");
  for (const owner of ["bob", "carol", "bob"]) add(owner, owner);
  await expect.poll(() => begun.length).toBe(53);
  const first = begun.indexOf("bob");
  expect(begun.slice(first, first + 5)).toEqual(["bob", "carol", "eve", "bob", "eve"]);
});

test("a request that has its response by its turn is not begun, and takes no turn", async () => {
  const { add, begun } = openTurns();
  for (let n = 0; n < 20; n += 1) add("eve", "eve");
  const answered = Array.from({ length: 1_000 }, () => newResponse());
  for (const response of answered) add("bob", "answered", response);
  for (const response of answered) response.end();
  add("bob", "next");
  for (let turn = 0; turn < 22; turn += 1) await setImmediate();
  expect(begun.toSorted()).toEqual([...Array<string>(20).fill("eve"), "next"]);
});
