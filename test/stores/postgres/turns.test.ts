import { afterEach, expect, test, vi } from "vitest";
import { inTurns } from "../../../src/stores/postgres/members/reuse.ts";

afterEach(() => void vi.restoreAllMocks());

/** Returns which items were done in an event loop turn of their own, and which in that of the one before. */
async function turnsOf(items: readonly string[], work: () => void): Promise<string[]> {
  const seen: string[] = [];
  let turn = 0;
  for await (const item of inTurns(items)) {
    setImmediate(() => (turn += 1));
    seen.push(`${item} ${turn}`);
    work();
  }
  return seen;
}

test("other work has its turn between items that take 5 ms", async () => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  expect(await turnsOf(["a", "b", "c"], () => (nowMs += 5))).toEqual(["a 0", "b 1", "c 2"]);
});

test("items that take less share a turn", async () => {
  vi.spyOn(performance, "now").mockReturnValue(0);
  expect(await turnsOf(["a", "b", "c"], () => {})).toEqual(["a 0", "b 0", "c 0"]);
});
