import { describe, expect, test } from "vitest";
import type { KeyLimits } from "../../../src/model/access-key.ts";
import { accessKeyOf, newSecret } from "../../../src/keys/secrets.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { minuteMs, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";

const page = "https://video.example.com/watch";

export function describeTurns(open: OpenStore): void {
  describe("lets owners take turns:", () => {
    test("an owner with one task gets the next claim, however many tasks another has waiting", async () => {
      const { store, add } = await openStoreHarness(open, { maxQueued: 5_000 });
      await Promise.all(times(2_000, () => add(page, {}, "anna")));
      expect(await claimOwners(store, 3)).toEqual(["anna", "anna", "anna"]);
      await add(page, {}, "bert");
      expect(await claimOwners(store, 3)).toEqual(["bert", "anna", "anna"]);
    });

    test("each owner runs as many as the others; tasks of nobody are one more owner's", async () => {
      const { store, add } = await openStoreHarness(open);
      await Promise.all(times(9, () => add(page, {}, "anna")));
      await Promise.all(times(3, () => add(page)));
      await Promise.all(times(2, () => add(page, {}, "bert")));
      const claimed = await claimOwners(store, 14);
      const round = ["", "anna", "bert"];
      expect(claimed.slice(0, 8)).toEqual([...round, ...round, "", "anna"]);
      expect(new Set(claimed.slice(8))).toEqual(new Set(["anna"]));
    });

    test("of owners that run equally many, it is the turn of the one that has waited longest", async () => {
      const { store, add } = await openStoreHarness(open);
      for (const owner of ["bert", "anna", "cora"]) {
        await Promise.all(times(3, () => add(page, {}, owner)));
      }
      const owners: string[] = [];
      for (let n = 0; n < 9; n += 1) {
        const claim = await store.claim({ leaseMs: minuteMs });
        owners.push(claim?.task.owner ?? "");
        await store.update(claim?.task.id ?? "", { state: "succeeded" });
      }
      const round = ["anna", "bert", "cora"];
      expect(owners).toEqual([...round, ...round, ...round]);
    });

    test("within an owner the oldest goes first, on whatever host", async () => {
      const { store, add } = await openStoreHarness(open);
      const hers = [];
      for (let n = 0; n < 6; n += 1) {
        hers.push(await add(`https://${n % 2}.test/`, {}, "anna"));
        await add(`https://${n % 3}.test/`, {}, "bert");
      }
      const claims = [];
      for (let n = 0; n < 12; n += 1) claims.push(await store.claim({ leaseMs: minuteMs }));
      const claimed = claims.flatMap((claim) => claim?.task ?? []);
      const ofAnna = claimed.filter(({ owner }) => owner === "anna");
      expect(ofAnna.map(({ id }) => id)).toEqual(hers.map(({ id }) => id));
    });

    test("an owner whose hosts are excepted or whose tasks wait for their time is passed over", async () => {
      const { store, clock, add } = await openStoreHarness(open);
      await add("https://busy.test/", {}, "anna");
      const delayed = await add("https://a.test/", {}, "bert");
      await store.update(delayed.id, { state: "running" });
      const runAfter = new Date(clock.now().getTime() + minuteMs);
      await store.update(delayed.id, { state: "queued" }, { runAfter });
      await add("https://a.test/", {}, "cora");
      const query = { leaseMs: 10 * minuteMs, exceptHosts: ["busy.test"] };
      expect((await store.claim(query))?.task.owner).toBe("cora");
      expect(await store.claim(query)).toBeUndefined();
      clock.advance(minuteMs);
      expect((await store.claim(query))?.task.id).toBe(delayed.id);
      expect(await claimOwners(store, 1)).toEqual(["anna"]);
    });

    test("an owner that is excepted is passed over, and so are tasks of nobody under an empty name", async () => {
      const { store, add } = await openStoreHarness(open);
      for (const owner of [undefined, "anna", "bert"]) await add(page, {}, owner);
      const claimBut = async (...exceptOwners: string[]) => {
        const claim = await store.claim({ leaseMs: minuteMs, exceptOwners });
        return claim && (claim.task.owner ?? "");
      };
      expect(await claimBut("", "anna", "bert")).toBeUndefined();
      expect(await claimBut("", "anna")).toBe("bert");
      expect(await claimBut("")).toBe("anna");
      expect(await claimBut("")).toBeUndefined();
      expect(await claimBut("anna", "cora")).toBe("");
    });

    test("a task that ends, is requeued or is deleted counts as running no longer", async () => {
      const { store, add } = await openStoreHarness(open);
      const hers = await Promise.all(times(6, () => add(page, {}, "anna")));
      expect(await claimOwners(store, 3)).toEqual(["anna", "anna", "anna"]);
      await Promise.all(times(3, () => add(page, {}, "bert")));
      await store.update(hers[0]?.id ?? "", { state: "failed" });
      await store.update(hers[1]?.id ?? "", { state: "queued" });
      await store.delete(hers[2]?.id ?? "");
      expect(await claimOwners(store, 4)).toEqual(["bert", "anna", "bert", "anna"]);
    });

    test("a dead worker's task goes to another worker in the turn of its owner", async () => {
      const { store, add, expireLeases } = await openStoreHarness(open);
      const hers = await add(page, {}, "anna");
      expect(await claimOwners(store, 1)).toEqual(["anna"]);
      expireLeases();
      await add(page, {}, "bert");
      expect(await claimOwners(store, 1)).toEqual(["bert"]);
      const again = await store.claim({ leaseMs: minuteMs });
      expect(again).toMatchObject({ task: { id: hers.id, attempts: 1 } });
    });
  });

  describe("runs no more tasks of an owner than its key allows:", () => {
    test("the limit is reached and not exceeded, also by concurrent claims", async () => {
      const harness = await openStoreHarness(open);
      const { store, add } = harness;
      await addKey(harness, "anna", { max_running: 2 });
      await Promise.all(times(20, () => add(page, {}, "anna")));
      await add(page, {}, "bert");
      expect((await claimAtOnce(store, 9)).toSorted()).toEqual(["anna", "anna", "bert"]);
      const [running] = (await store.list({ limit: 1, owner: "anna", state: "running" })).tasks;
      await store.update(running?.id ?? "", { state: "succeeded" });
      expect(await claimAtOnce(store, 9)).toEqual(["anna"]);
    });

    test("a dead worker's task of an owner at its limit is claimed all the same, no other is", async () => {
      const harness = await openStoreHarness(open);
      const { store, add, claim, expireLeases } = harness;
      await addKey(harness, "anna", { max_running: 1 });
      const [first] = [await add(page, {}, "anna"), await add(page, {}, "anna")];
      await claim();
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      expireLeases();
      expect(await claim()).toMatchObject({ task: { id: first.id, attempts: 1 } });
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("the limit is that of the key as it is now", async () => {
      const harness = await openStoreHarness(open);
      const { store, add } = harness;
      await Promise.all(times(5, () => add(page, {}, "anna")));
      await addKey(harness, "anna", { max_running: 1 });
      expect(await claimAtOnce(store, 3)).toEqual(["anna"]);
      await store.keys.remove("anna");
      expect(await claimAtOnce(store, 3)).toEqual(["anna", "anna", "anna"]);
      await addKey(harness, "anna", {});
      expect(await claimAtOnce(store, 3)).toEqual(["anna"]);
    });
  });
}

export async function addKey({ store, clock }: StoreHarness, name: string, limits: KeyLimits): Promise<void> {
  await store.keys.add(accessKeyOf(newSecret(), { name, admin: false, limits }, clock.now()));
}

/** Claims `count` times, one after the other. Returns the owners. */
async function claimOwners(store: TaskStore, count: number): Promise<string[]> {
  const owners: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const claim = await store.claim({ leaseMs: minuteMs });
    owners.push(claim?.task.owner ?? "");
  }
  return owners;
}

/** Claims `count` times at once. Returns the owners of the tasks. */
async function claimAtOnce(store: TaskStore, count: number): Promise<string[]> {
  const claims = await Promise.all(times(count, () => store.claim({ leaseMs: minuteMs })));
  return claims.flatMap((claim) => (claim ? [claim.task.owner ?? ""] : []));
}
