import { describe, expect, test } from "vitest";
import type { AccessKey } from "../../../src/model/access-key.ts";
import { accessKeyOf, newSecret } from "../../../src/keys/secrets.ts";
import { type OpenStore, openStoreHarness, minuteMs, times } from "./harness.ts";

export function describeKeys(open: OpenStore): void {
  describe("keeps access keys:", () => {
    test("an empty store has none", async () => {
      const { store } = await openStoreHarness(open);
      expect(await store.keys.list()).toEqual([]);
    });

    test("they are listed by name, every field as it was added", async () => {
      const { store } = await openStoreHarness(open);
      const [bert, anna] = [makeKey("bert", { max_bytes: 999_999_999_999_999, rate: 1 }), makeKey("anna")];
      await store.keys.add(bert);
      await store.keys.add(anna);
      expect(await store.keys.list()).toEqual([anna, bert]);
    });

    test("they go by value", async () => {
      const { store } = await openStoreHarness(open);
      const key = makeKey("anna");
      const added = store.keys.add(key);
      key.admin = true;
      await added;
      const [listed] = await store.keys.list();
      expect(listed?.admin).toBe(false);
      listed!.admin = true;
      expect((await store.keys.list())[0]?.admin).toBe(false);
    });

    test("of 20 added at once with one name one is kept, the others conflict", async () => {
      const { store } = await openStoreHarness(open);
      const keys = times(20, () => makeKey("anna"));
      const outcomes = await Promise.allSettled(keys.map((key) => store.keys.add(key)));
      const kept = keys.filter((_, n) => outcomes[n]?.status === "fulfilled");
      expect(await store.keys.list()).toEqual(kept);
      expect(kept).toHaveLength(1);
      await expect(store.keys.add(makeKey("anna"))).rejects.toMatchObject({
        code: "conflict",
        message: "there is a key anna already",
      });
    });

    test("one that is removed is gone, and its name is free again", async () => {
      const { store } = await openStoreHarness(open);
      await store.keys.add(makeKey("anna"));
      await store.keys.remove("anna");
      expect(await store.keys.list()).toEqual([]);
      const refusal = { code: "not_found", message: "there is no key anna" };
      await expect(store.keys.remove("anna")).rejects.toMatchObject(refusal);
      await expect(store.keys.remove("\0")).rejects.toMatchObject({ code: "not_found" });
      await store.keys.add(makeKey("anna"));
      expect(await store.keys.list()).toHaveLength(1);
    });

    test("requests of a key are counted together for a minute from the first", async () => {
      const { store, clock } = await openStoreHarness(open);
      const count = (name = "anna") => store.keys.countRequest(name);
      expect(await count()).toEqual({ count: 1, endsInMs: minuteMs });
      clock.advance(minuteMs - 1);
      const counts = await Promise.all([count(), count(), count()]);
      expect(counts.map((each) => each.count).toSorted((a, b) => a - b)).toEqual([2, 3, 4]);
      expect(await count("bert")).toEqual({ count: 1, endsInMs: minuteMs });
      expect((await count()).endsInMs).toBe(1);
      clock.advance(1);
      expect(await count()).toEqual({ count: 1, endsInMs: minuteMs });
    });

    test("a closed store refuses all with unavailable", async () => {
      const { store } = await openStoreHarness(open);
      await store.close();
      const calls = [store.keys.list(), store.keys.add(makeKey("anna")), store.keys.remove("anna")];
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
      }
    });
  });
}

function makeKey(name: string, limits: AccessKey["limits"] = {}): AccessKey {
  return accessKeyOf(newSecret(), { name, admin: false, limits }, new Date());
}
