import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
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
  for (let turn = 0; turn < 4; turn += 1) await setImmediate();
  expect(begun.toSorted()).toEqual([...Array<string>(20).fill("eve"), "next"]);
});
