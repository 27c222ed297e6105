import { expect, it } from "vitest";
import { createMemoryStore } from "../../../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { addCollection } from "../../http/finished-collection.ts";
import { createLibraryHarness } from "./harness.ts";

it("however many collections are waited for, few pages of their members are read in one turn of the event loop", async () => {
  const memory = createMemoryStore();
  let turn = 0;
  const pagesByTurn = new Map<number, number>();
  const store: TaskStore = {
    ...memory,
    async list(query) {
      pagesByTurn.set(turn, (pagesByTurn.get(turn) ?? 0) + 1);
      return memory.list(query);
    },
  };
  const { open, files } = createLibraryHarness(store);
  const library = await open();
  const { id, finish } = await addCollection({ store, files, count: 120 });
  for (let n = 0; n < 120; n += 1) await finish({ title: `${n}` }, "film");
  // A file that is still to be put there.
  await library.expect(id);
  const collection = (await store.get(id))!;
  let isCounting = true;
  const count = () => {
    turn += 1;
    if (isCounting) setImmediate(count);
  };
  setImmediate(count);
  const looks = Array.from({ length: 20 }, async () => Array.fromAsync(library.pendingMembers(collection)));
  expect((await Promise.all(looks)).flat()).toEqual([]);
  isCounting = false;
  const pages = [...pagesByTurn.values()];
  expect(pages.reduce((sum, number) => sum + number)).toBe(60);
  expect(Math.max(...pages)).toBeLessThanOrEqual(2);
});
