import { describe, expect, test } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import { begin, collect, endMember as end, entryUrl, fill, membersFor, membersOf } from "./collections.ts";
import {
  collectEvents,
  idsOf,
  minuteMs,
  type OpenStore,
  openStoreHarness,
  type StoreHarness,
  times,
} from "./harness.ts";
import { addKey } from "./turns.ts";
import { noTasks } from "../../../src/feed/collection-changes.ts";

export function describeCollectionEnds(open: OpenStore): void {
  describe("cancels collections:", () => {
    test("nothing that it made waits or runs afterwards, and what has ended stays", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(4, entryUrl));
      const [done, running] = await membersOf(harness, id);
      await end(harness, done!, "succeeded");
      const claimed = await harness.claim();
      expect(claimed.task.id).toBe(running?.id);
      const canceled = await store.update(id, { state: "canceled" });
      expect(canceled).toMatchObject({ state: "canceled", counts: { ...noTasks, succeeded: 1, canceled: 3 } });
      expect(await store.get(id)).toEqual(canceled);
      expect(statesOf(await membersOf(harness, id))).toEqual(["succeeded", "canceled", "canceled", "canceled"]);
      expect(await harness.store.heartbeat(running!.id, claimed.lease, minuteMs)).toBe(false);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      expect((await store.count()).byState).toEqual({ ...noTasks, succeeded: 1, canceled: 4 });
    });

    test("one that grows loses its lease with what it has made", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { task, lease } = await begin(harness);
      const growing = { lease, isReusing: true, growth: { slice: { next: "two", offset: 2, made: 2 } } };
      await store.grow(task.id, { ...growing, members: membersFor(times(2, entryUrl), {}) });
      await store.update(task.id, { state: "canceled" });
      const late = store.grow(task.id, { ...growing, members: membersFor(times(3, entryUrl), {}).slice(2) });
      await expect(late).rejects.toMatchObject({ code: "conflict" });
      expect(statesOf(await membersOf(harness, task.id))).toEqual(["canceled", "canceled"]);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("what others made, and what another collection wants, goes on until that is canceled too", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const single = await harness.add(entryUrl(0));
      const first = await collect(harness, times(3, entryUrl));
      const second = await collect(harness, [entryUrl(2), entryUrl(3)]);
      await store.update(first.id, { state: "canceled" });
      expect(statesOf(await membersOf(harness, first.id))).toEqual(["queued", "canceled", "queued"]);
      expect(await store.get(second.id)).toMatchObject({ state: "running", counts: { ...noTasks, queued: 2 } });
      await store.update(second.id, { state: "canceled" });
      expect(await store.get(first.id)).toMatchObject({ counts: { ...noTasks, queued: 1, canceled: 2 } });
      expect((await harness.claim()).task.id).toBe(single.id);
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });

    test("each has its event, the collection's first and, with its counts, last", async () => {
      const harness = await openStoreHarness(open);
      const events = collectEvents(harness.store);
      const { id } = await collect(harness, times(2, entryUrl));
      const members = idsOf(await membersOf(harness, id));
      await harness.store.update(id, { state: "canceled" });
      const seen = await events.take(10);
      expect(seen.slice(0, 6).map(({ state }) => state)).not.toContain("canceled");
      expect(seen.slice(6).map(({ taskId, state }) => [taskId, state])).toEqual(
        [id, ...members, id].map((each) => [each, "canceled"]),
      );
      expect(JSON.parse(seen.at(-1)!.json)).toMatchObject({ counts: { ...noTasks, canceled: 2 } });
    });

    test("all of 2,500 are canceled, and keep whatever characters their records have", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const title = `${String.fromCharCode(...times(128, (code) => Math.max(code, 1)))}\u2028\u{1F3AC}`;
      const events = collectEvents(store);
      const { task, lease } = await begin(harness);
      const members = membersFor(times(2_500, entryUrl), {});
      for (const member of members) Object.assign(member.task.collection!, { title });
      await store.grow(task.id, { lease, members, isReusing: false, growth: null });
      const canceled = await store.update(task.id, { state: "canceled" });
      expect(canceled).toMatchObject({ state: "canceled", counts: { ...noTasks, canceled: 2_500 } });
      const all = await events.takeUntil(({ json }) => (JSON.parse(json) as Task).counts?.canceled === 2_500);
      const seen = all.filter(({ state }) => state === "canceled");
      expect([seen[0]?.taskId, seen.at(-1)?.taskId]).toEqual([task.id, task.id]);
      const ofMembers = seen.filter(({ taskId }) => taskId !== task.id);
      expect(ofMembers.map(({ taskId }) => taskId)).toEqual(members.map((each) => each.task.id));
      for (const { json } of ofMembers) {
        expect(JSON.parse(json)).toMatchObject({ state: "canceled", collection: { title } });
      }
      const last = await store.get(members.at(-1)!.task.id);
      expect(last).toMatchObject({ url: entryUrl(2_499), state: "canceled", collection: { index: 2_500, title } });
      expect((await store.count()).byState).toEqual({ ...noTasks, canceled: 2_501 });
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
    });
  });

  describe("retries collections:", () => {
    test("failed and canceled members are queued again, the others stay as they are", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(3, entryUrl));
      const [done, failed, canceled] = await membersOf(harness, id);
      await end(harness, done!, "succeeded");
      await end(harness, failed!, "failed");
      await end(harness, canceled!, "canceled");
      const queued = await retry(harness, id);
      expect(queued).toMatchObject({ state: "queued", growth: { retried: 0 } });
      const { task, lease } = await harness.claim();
      expect(task.id).toBe(id);
      expect(await store.retryMembers(id, lease)).toMatchObject({ isWhole: true, task: { growth: { retried: 3 } } });
      const last = await store.retryMembers(id, lease);
      expect(last.task).toMatchObject({ state: "running", counts: { ...noTasks, succeeded: 1, queued: 2 } });
      expect(last.task.growth).toBeUndefined();
      expect(statesOf(await membersOf(harness, id))).toEqual(["succeeded", "queued", "queued"]);
      expect((await membersOf(harness, id))[1]).toMatchObject({ attempts: 0, error: null });
      for (const member of (await membersOf(harness, id)).slice(1)) await end(harness, member, "succeeded");
      expect(await store.get(id)).toMatchObject({ state: "succeeded" });
    });

    test("a member with several places is queued once, and is passed over at the others", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, [0, 1, 0].map(entryUrl));
      await store.update(id, { state: "canceled" });
      await retry(harness, id);
      const { lease } = await harness.claim();
      const { task, isWhole } = await store.retryMembers(id, lease);
      expect(isWhole).toBe(true);
      expect(task).toMatchObject({ growth: { retried: 3 }, counts: { ...noTasks, queued: 3 } });
    });

    test("as many as its owner's quota leaves room for, the next ones later", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(3, entryUrl), { owner: "anna" });
      await store.update(id, { state: "canceled" });
      await addKey(harness, "anna", { max_queued: 2 });
      await retry(harness, id);
      const { lease } = await harness.claim();
      const first = await store.retryMembers(id, lease);
      expect(first).toMatchObject({ isWhole: false, task: { growth: { retried: 2 } } });
      expect(await store.retryMembers(id, lease)).toMatchObject({ isWhole: false, task: first.task.growth && {} });
      await end(harness, (await membersOf(harness, id))[0]!, "succeeded");
      expect(await store.retryMembers(id, lease)).toMatchObject({ isWhole: true, task: { growth: { retried: 3 } } });
      const { task } = await store.retryMembers(id, lease);
      expect(task).toMatchObject({ counts: { ...noTasks, succeeded: 1, queued: 2 } });
    });

    test("one that had not grown goes on where it was", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { task, lease } = await begin(harness);
      const growth = { slice: { next: "two", offset: 1, made: 1 } };
      await store.grow(task.id, { lease, members: membersFor([entryUrl(0)], {}), isReusing: true, growth });
      await store.update(task.id, { state: "canceled" });
      await retry(harness, task.id);
      const again = await harness.claim();
      expect(again.task.growth).toEqual({ ...growth, retried: 0 });
      await store.retryMembers(task.id, again.lease);
      const retried = await store.retryMembers(task.id, again.lease);
      expect(retried.task).toMatchObject({ growth, counts: { ...noTasks, queued: 1 } });
      const members = membersFor(times(2, entryUrl), {}).slice(1);
      const grown = await store.grow(task.id, { lease: again.lease, members, isReusing: true, growth: null });
      expect(grown.task).toMatchObject({ state: "running", counts: { ...noTasks, queued: 2 } });
    });

    test("a member of two collections counts in both", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const first = await collect(harness, times(2, entryUrl));
      const second = await collect(harness, times(1, entryUrl));
      for (const member of await membersOf(harness, first.id)) await end(harness, member, "failed");
      await retry(harness, first.id);
      const { lease } = await harness.claim();
      await store.retryMembers(first.id, lease);
      expect(await store.get(second.id)).toMatchObject({ state: "running", counts: { ...noTasks, queued: 1 } });
    });
  });

  describe("deletes collections and members:", () => {
    test("with what it alone has made; a member of another one, and what it did not make, stay", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const single = await harness.add(entryUrl(0));
      const first = await collect(harness, times(3, entryUrl));
      const second = await collect(harness, [entryUrl(2), entryUrl(3)]);
      const [, own, shared] = await membersOf(harness, first.id);
      await end(harness, own!, "succeeded");
      await end(harness, shared!, "succeeded");
      expect(await store.ownMembers(first.id)).toEqual([own?.id]);
      expect(await store.delete(first.id)).toMatchObject({ id: first.id });
      expect(await store.get(first.id)).toBeUndefined();
      expect(await store.ownMembers(first.id)).toEqual([]);
      expect(await store.get(own!.id)).toBeUndefined();
      expect(await store.get(single.id)).toMatchObject({ state: "queued" });
      expect(idsOf(await membersOf(harness, second.id))).toContain(shared?.id);
      expect((await store.storedFiles({ limit: 9 })).bytes).toBe(1);
      expect(await store.ownMembers(second.id)).toEqual([shared?.id]);
      await store.delete(second.id);
      expect(await store.get(shared!.id)).toBeUndefined();
      expect((await store.count()).byState).toEqual({ ...noTasks, queued: 1 });
      expect((await store.storedFiles({ limit: 9 })).bytes).toBe(0);
    });

    test("with 450 members, which are removed in steps; what others made or want too stays", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const single = await harness.add(entryUrl(1));
      // Nothing is claimed any more once there are members: one after the other they would come first.
      const begun = [await begin(harness), await begin(harness)] as const;
      const first = await fill(harness, begun[0], [...times(450, entryUrl), entryUrl(0)]);
      const second = await fill(harness, begun[1], [entryUrl(449), entryUrl(450)]);
      await store.delete(first.id);
      expect((await store.count()).byState).toEqual({ ...noTasks, queued: 3, running: 1 });
      expect((await membersOf(harness, second.id)).map(({ url }) => url)).toEqual([entryUrl(449), entryUrl(450)]);
      await store.delete(second.id);
      expect((await store.count()).byState).toEqual({ ...noTasks, queued: 1 });
      expect((await harness.claim()).task.id).toBe(single.id);
    });

    test("one that grows and runs leaves nothing to run, nor in its owner's quota", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      await addKey(harness, "anna", { max_queued: 3 });
      const { task, lease } = await begin(harness, { owner: "anna" });
      const growing = { lease, isReusing: true, growth: { slice: { offset: 2, made: 2 } } };
      const members = membersFor(times(3, entryUrl), { owner: "anna" });
      await store.grow(task.id, { ...growing, members: members.slice(0, 2) });
      await harness.claim();
      await store.delete(task.id);
      await expect(store.grow(task.id, { ...growing, members: members.slice(2) })).rejects.toMatchObject({
        code: "not_found",
      });
      expect(await store.claim({ leaseMs: minuteMs })).toBeUndefined();
      expect((await store.count()).byState).toEqual(noTasks);
      await Promise.all(times(3, () => harness.add(entryUrl(9), {}, "anna")));
    });

    test("a member that is deleted is missing in its collections, which may end with it", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const first = await collect(harness, times(2, entryUrl));
      const second = await collect(harness, times(1, entryUrl));
      const [shared, other] = await membersOf(harness, first.id);
      await end(harness, other!, "succeeded");
      await store.delete(shared!.id);
      expect(await store.get(first.id)).toMatchObject({ state: "succeeded", counts: { ...noTasks, succeeded: 1 } });
      expect(await store.get(second.id)).toMatchObject({ state: "succeeded", counts: noTasks });
      expect(idsOf(await membersOf(harness, first.id))).toEqual([other?.id]);
    });

    test("an ended collection keeps its state when a member is deleted", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(2, entryUrl));
      const [first, second] = await membersOf(harness, id);
      await end(harness, first!, "failed");
      await end(harness, second!, "succeeded");
      await store.delete(first!.id);
      expect(await store.get(id)).toMatchObject({ state: "failed", counts: { ...noTasks, succeeded: 1 } });
    });
  });
}

function retry({ store }: StoreHarness, id: string): Promise<Task> {
  const change = { state: "queued", attempts: 0, error: null, file: null } as const;
  return store.update(id, change, { from: ["failed", "canceled"] });
}

function statesOf(tasks: readonly Task[]): Task["state"][] {
  return tasks.map(({ state }) => state);
}
