import { expect, it, vi } from "vitest";
import { createRemovals } from "../../../src/runner/library/library.ts";

/** Returns removals from a disk that hangs until `respond` is called. */
function createHangingDisk() {
  const disk = Promise.withResolvers<void>();
  const begun: string[] = [];
  const removeFiles = async (id: string) => {
    begun.push(id);
    await disk.promise;
  };
  return { begun, respond: disk.resolve, remove: createRemovals({ removeFiles, timeoutMs: 20 }) };
}

it("a disk that hangs holds four threads and no request", async () => {
  const { begun, respond, remove } = createHangingDisk();
  await Promise.all(Array.from({ length: 60 }, (_, n) => remove({ id: `${n}` }, [])));
  expect(begun).toEqual(["0", "1", "2", "3"]);
  respond();
  const again = () => remove({ id: "later" }, []).then(() => begun.includes("later"));
  await vi.waitUntil(again, { timeout: 60_000, interval: 5 });
});

it("a request does not wait for a disk that others have found to hang", async () => {
  const { begun, remove } = createHangingDisk();
  await remove({ id: "first" }, []);
  const removed = vi.fn<() => void>();
  void remove({ id: "second" }, []).then(removed);
  await Promise.resolve();
  expect(removed).toHaveBeenCalledOnce();
  expect(begun).toEqual(["first"]);
});

it("owners take turns while files are removed", async () => {
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const remove = createRemovals({
    removeFiles: (id) => {
      begun.push(id);
      return new Promise<void>((resolve) => ends.push(resolve));
    },
  });
  const all = Array.from({ length: 6 }, (_, n) => remove({ id: `${n}`, owner: "anna" }, []));
  const bob = remove({ id: "bob", owner: "bob" }, []);
  await vi.waitUntil(() => begun.length === 4, { timeout: 60_000, interval: 5 });
  ends.shift()?.();
  await vi.waitUntil(() => begun.length === 5, { timeout: 60_000, interval: 5 });
  expect(begun.at(-1)).toBe("bob");
  const endAll = () => ends.splice(0).map((end) => end()).length === 0 && begun.length === 7;
  await vi.waitUntil(endAll, { timeout: 60_000, interval: 5 });
  await Promise.all([...all, bob]);
});
