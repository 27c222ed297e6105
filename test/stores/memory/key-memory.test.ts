import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { KeyMemory } from "../../../src/stores/memory/key-memory.ts";
import { idempotencyTtlMs } from "../../../src/stores/store.ts";

test("answers older than 24 hours are let go, whichever key is asked for next", async () => {
  const keys = new KeyMemory<object>();
  const answer = keepAnswer(keys);
  const other = { key: "other", fingerprint: "f" };
  keys.recall(other, idempotencyTtlMs - 1);
  expect(await isHeld(answer)).toBe(true);
  keys.recall(other, idempotencyTtlMs);
  expect(await isHeld(answer)).toBe(false);
  expect(keys.recall({ key: "key", fingerprint: "f" }, idempotencyTtlMs)).toBeUndefined();
});

function keepAnswer(keys: KeyMemory<object>): WeakRef<object> {
  const answer = {};
  keys.keep({ key: "key", fingerprint: "f" }, answer, 0);
  return new WeakRef(answer);
}

/** Whether the object outlives a garbage collection, which waits for the end of the turn. */
async function isHeld(object: WeakRef<object>): Promise<boolean> {
  setFlagsFromString("--expose-gc");
  await nextTurn();
  runInNewContext("gc")();
  return object.deref() !== undefined;
}
