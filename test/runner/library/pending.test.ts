import { expect, it } from "vitest";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { addCollection } from "../../http/finished-collection.ts";
import { countListsByTurn } from "../../stores/lists-by-turn.ts";
import { createLibraryHarness } from "./harness.ts";

it("however many collections are waited for, few pages of their members are read in one turn of the event loop", async () => {
  const { store, during } = countListsByTurn(createMemoryStore());
  const { open, files } = createLibraryHarness(store);
  const library = await open();
  const { id, finish } = await addCollection({ store, files, count: 120 });
  for (let n = 0; n < 120; n += 1) await finish({ title: `${n}` }, "film");
  // A file that is still to be put there.
  await library.expect(id);
  const collection = (await store.get(id))!;
  const look = async () => Array.fromAsync(library.pendingMembers(collection));
  const { result, pages } = await during(() => Promise.all(Array.from({ length: 20 }, look)));
  expect(result.flat()).toEqual([]);
  expect(pages.reduce((sum, number) => sum + number)).toBe(60);
  expect(Math.max(...pages)).toBeLessThanOrEqual(2);
});
