import { expect, test } from "vitest";
import { createBatches } from "../../src/async/batches.ts";

test("what is given while work is done is worked off together after it, whether that succeeds or not", async () => {
  const batches: (readonly string[])[] = [];
  const gate = Promise.withResolvers<void>();
  const add = createBatches<string>(async (items) => {
    batches.push(items);
    await gate.promise;
    if (items.includes("bad")) throw new Error(items.join());
  });
  const ended = Promise.allSettled([add("bad"), add("worse")]);
  await expect.poll(() => batches).toHaveLength(1);
  const later = Promise.all([add("one"), add("two")]);
  gate.resolve();
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await later;
  await add("three");
  expect(batches).toEqual([["bad", "worse"], ["one", "two"], ["three"]]);
});
