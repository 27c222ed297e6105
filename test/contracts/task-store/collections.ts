import { describe, expect, test } from "vitest";
import { newTask } from "../../../src/feed/task-changes.ts";
import type { State, Task, TaskOptions } from "../../../src/model/task.ts";
import type { Growth, MemberCounts } from "../../../src/model/collection.ts";
import type { Claim } from "../../../src/stores/store.ts";
import type { NewMember } from "../../../src/stores/store-types.ts";
import { fileOf } from "./files.ts";
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
import { retryChange } from "../../../src/stores/member-rules.ts";
import { pageInfo } from "../../page-info.ts";

const playlist = "https://video.example.com/list";
const start: Growth = { slice: { offset: 0, made: 0 } };

export function describeCollections(open: OpenStore): void {
  describe("keeps collections and their members:", () => {
    test("a collection has its members by index, in pages, and lists of tasks show it alone", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const single = await harness.add();
      const collection = await collect(harness, times(5, entryUrl));
      expect(idsOf((await store.list({ limit: 9 })).tasks)).toEqual([collection.id, single.id]);
      expect(idsOf((await store.list({ limit: 9, state: "queued" })).tasks)).toEqual([single.id]);
      const first = await store.list({ limit: 2, parent: collection.id });
      const second = await store.list({ limit: 9, parent: collection.id, before: first.next });
      expect([first, second].flatMap(({ tasks }) => tasks.map(({ url }) => url))).toEqual(times(5, entryUrl));
      expect(second.next).toBeUndefined();
      expect(collection).toMatchObject({ kind: "collection", state: "running", counts: { ...noTasks, queued: 5 } });
      expect(collection.growth).toBeUndefined();
    });

    test("members can be listed by their state; a task without members has none", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(3, entryUrl));
      const [, second] = await membersOf(harness, id);
      await store.update(second!.id, { state: "canceled" });
      expect(idsOf((await store.list({ limit: 9, parent: id, state: "canceled" })).tasks)).toEqual([second?.id]);
      expect((await store.list({ limit: 9, parent: second!.id })).tasks).toEqual([]);
      expect((await store.list({ limit: 9, parent: "unknown" })).tasks).toEqual([]);
    });

    test("the counts follow every change of a member, and the last end ends the collection", async () => {
      const harness = await openStoreHarness(open);
      const { store, claim } = harness;
      const { id } = await collect(harness, times(3, entryUrl));
      const [first, second, third] = await membersOf(harness, id);
      await claim();
      expect(await store.get(id)).toMatchObject({ state: "running", counts: { ...noTasks, queued: 2, running: 1 } });
      await store.update(first!.id, { state: "succeeded", file: fileOf(1) });
      await endMember(harness, second!, "succeeded");
      expect(await store.get(id)).toMatchObject({ counts: { ...noTasks, queued: 1, succeeded: 2 }, finished_at: null });
      await endMember(harness, third!, "succeeded");
      const ended = await store.get(id);
      expect(ended).toMatchObject({ state: "succeeded", counts: { ...noTasks, succeeded: 3 }, error: null });
      expect(ended?.finished_at).toBe(ended?.updated_at);
    });

    test.each([
      ["failed", "of 3 entries 1 failed"],
      ["canceled", "of 3 entries 0 failed, 1 were canceled"],
    ] as const)("one member that %s makes it fail, with the numbers", async (state, message) => {
      const harness = await openStoreHarness(open);
      const { id } = await collect(harness, times(3, entryUrl));
      const [first, ...others] = await membersOf(harness, id);
      await endMember(harness, first!, state);
      for (const other of others) await endMember(harness, other, "succeeded");
      const error = { code: "entries_failed", message, retryable: true };
      expect(await harness.store.get(id)).toMatchObject({ state: "failed", error });
    });

    test.each([
      ["none of whose failures a retry helps", [false, false], false],
      ["of which a retry helps one", [false, true], true],
      ["of which one says nothing about a retry", [false, undefined], true],
      ["of which one was canceled", [false, "canceled"], true],
    ] as const)("a failed collection %s (%j, %j) is retryable: %j", async (_, [one, other], retryable) => {
      const harness = await openStoreHarness(open);
      const { id } = await collect(harness, times(3, entryUrl));
      const [first, second, third] = await membersOf(harness, id);
      await failMember(harness, first!, one);
      if (other === "canceled") await endMember(harness, second!, other);
      else await failMember(harness, second!, other);
      await endMember(harness, third!, "succeeded");
      expect(await harness.store.get(id)).toMatchObject({ state: "failed", error: { retryable } });
    });

    test("what a retry did not help is not counted twice, nor if it was retried or deleted", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(3, entryUrl));
      const [first, second, third] = await membersOf(harness, id);
      for (const member of [first!, second!]) await failMember(harness, member, false);
      await endMember(harness, third!, "succeeded");
      expect(await store.get(id)).toMatchObject({ lasting_failures: 2, error: { retryable: false } });
      await store.update(first!.id, retryChange);
      await store.delete(second!.id);
      expect(await store.get(id)).not.toHaveProperty("lasting_failures");
      await failMember(harness, { ...first!, state: "queued" }, false);
      expect(await store.get(id)).toMatchObject({ lasting_failures: 1, error: { retryable: false } });
      await store.update(first!.id, retryChange);
      await failMember(harness, { ...first!, state: "queued" }, true);
      const ended = await store.get(id);
      expect(ended).toMatchObject({ state: "failed", error: { retryable: true } });
      expect(ended).not.toHaveProperty("lasting_failures");
    });

    test("a member that is retried by itself lets a failed collection run again", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { id } = await collect(harness, times(2, entryUrl));
      const [first, second] = await membersOf(harness, id);
      await endMember(harness, first!, "failed");
      await endMember(harness, second!, "succeeded");
      await store.update(first!.id, { state: "queued" });
      expect(await store.get(id)).toMatchObject({ state: "running", error: null, finished_at: null });
      await endMember(harness, first!, "succeeded");
      expect(await store.get(id)).toMatchObject({ state: "succeeded" });
    });

    test("an idle collection counts as running for no owner and is never claimed", async () => {
      const harness = await openStoreHarness(open);
      await addKey(harness, "anna", { max_running: 1 });
      const { id } = await collect(harness, times(2, entryUrl), { owner: "anna" });
      const { task } = await harness.claim();
      expect(task.url).toBe(entryUrl(0));
      expect(await harness.store.claim({ leaseMs: minuteMs })).toBeUndefined();
      await endMember(harness, task, "succeeded");
      expect((await harness.claim()).task.url).toBe(entryUrl(1));
      harness.expireLeases();
      expect((await harness.claim()).task.url).toBe(entryUrl(1));
      expect(await harness.store.get(id)).toMatchObject({ state: "running" });
    });

    test("each member's event is followed by one of the collection, with its counts", async () => {
      const harness = await openStoreHarness(open);
      const events = collectEvents(harness.store);
      const { id } = await collect(harness, [entryUrl(0)]);
      const [member] = await membersOf(harness, id);
      await endMember(harness, member!, "succeeded");
      const seen = (await events.take(9)).map(({ taskId, state, json }) => {
        const { counts } = JSON.parse(json) as Task;
        return [taskId === id ? "collection" : "member", state, counts && nonZero(counts)];
      });
      expect(seen).toEqual([
        ["collection", "queued", undefined],
        ["collection", "running", undefined],
        ["collection", "running", {}],
        ["member", "queued", undefined],
        ["collection", "running", { queued: 1 }],
        ["member", "running", undefined],
        ["collection", "running", { running: 1 }],
        ["member", "succeeded", undefined],
        ["collection", "succeeded", { succeeded: 1 }],
      ]);
    });

    test("receivers of webhooks hear of the collection's end, not of those of its members", async () => {
      const harness = await openStoreHarness(open, { webhook: true });
      const { id } = await collect(harness, times(2, entryUrl));
      for (const member of await membersOf(harness, id)) await endMember(harness, member, "succeeded");
      const messages = await harness.store.outbox.claim({ endpoint: "*", limit: 9, leaseMs: minuteMs });
      expect(messages.map(({ taskId }) => taskId)).toEqual([id]);
      expect(JSON.parse(messages[0]!.body)).toMatchObject({
        type: "collection.ended",
        data: { id, state: "succeeded", counts: { ...noTasks, succeeded: 2 } },
      });
    });
  });

  describe("grows collections:", () => {
    test("the lease of another worker adds nothing", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { task, lease } = await begin(harness);
      harness.expireLeases();
      const again = await harness.claim();
      expect(again.task.id).toBe(task.id);
      const growing = { members: membersFor(times(2, entryUrl), {}), isReusing: true, growth: null };
      await expect(store.grow(task.id, { ...growing, lease })).rejects.toMatchObject({ code: "conflict" });
      await expect(store.retryMembers(task.id, lease)).rejects.toMatchObject({ code: "conflict" });
      expect(await membersOf(harness, task.id)).toEqual([]);
      await store.grow(task.id, { ...growing, lease: again.lease });
      expect(await membersOf(harness, task.id)).toHaveLength(2);
    });

    test("where it goes on is stored with the members, for whoever claims it next", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { task, lease } = await begin(harness);
      const growth = { slice: { next: "two", offset: 2, made: 2 } };
      const members = membersFor(times(2, entryUrl), {});
      await store.grow(task.id, { lease, members, isReusing: true, growth });
      harness.expireLeases();
      const again = await harness.claim();
      expect(again.task).toMatchObject({ id: task.id, growth, counts: { ...noTasks, queued: 2 } });
    });

    test.each([
      ["the queue", undefined, 4],
      ["the quota of its owner", { max_queued: 3 }, 10_000],
    ])("%s lets it add only as many as may be queued", async (_, limits, maxQueued) => {
      const harness = await openStoreHarness(open, { maxQueued });
      if (limits !== undefined) await addKey(harness, "anna", limits);
      const { store } = harness;
      const events = collectEvents(store);
      const { task, lease } = await begin(harness, { owner: "anna" });
      const room = limits?.max_queued ?? maxQueued;
      const members = membersFor(times(6, entryUrl), { owner: "anna" });
      const growing = { lease, isReusing: true, growth: { slice: { next: "two", offset: 6, made: 6 } } };
      const first = await store.grow(task.id, { ...growing, members });
      expect(first).toMatchObject({ isWhole: false, task: { growth: { slice: { offset: 0, made: room } } } });
      const nothing = await store.grow(task.id, { ...growing, members: members.slice(room) });
      expect(nothing).toMatchObject({ isWhole: false, task: { growth: { slice: { offset: 0, made: room } } } });
      const { tasks } = await store.list({ limit: 9, parent: task.id });
      for (const { id } of tasks) await store.update(id, { state: "canceled" });
      const published = (await events.take(room + 6)).map(({ taskId }) => taskId);
      expect(published.slice(room + 3)).toEqual([task.id, task.id, tasks[0]?.id]);
      const rest = await store.grow(task.id, { ...growing, members: members.slice(room, 2 * room) });
      expect(rest).toMatchObject({ isWhole: true, task: { growth: growing.growth } });
      expect((await membersOf(harness, task.id)).map(({ url }) => url)).toEqual(times(6, entryUrl));
    });

    test("a video that is queued, running or has its file becomes a member as it is", async () => {
      const harness = await openStoreHarness(open);
      const { store, add } = harness;
      const [queued, done, failed, other] = await Promise.all(times(4, (n) => add(entryUrl(n))));
      await endMember(harness, done!, "succeeded");
      await endMember(harness, failed!, "failed");
      await store.update(other!.id, { state: "canceled" });
      const { id, counts } = await collect(harness, times(4, entryUrl));
      expect(counts).toEqual({ ...noTasks, queued: 3, succeeded: 1 });
      const members = idsOf(await membersOf(harness, id));
      expect(members.slice(0, 2)).toEqual([queued?.id, done?.id]);
      expect(members).not.toContain(failed?.id);
      expect(idsOf((await store.list({ limit: 9 })).tasks)).toContain(queued?.id);
    });

    test("each entry becomes the newest task for it, whatever tasks other entries become", async () => {
      const harness = await openStoreHarness(open);
      const [page, canonical] = [entryUrl(0), entryUrl(1)];
      const older = await harness.add(page);
      await harness.store.update(older.id, { info: pageInfo({ url: page, webpage_url: canonical }) });
      const newer = await harness.add(page);
      const { id } = await collect(harness, [page, canonical]);
      expect(idsOf(await membersOf(harness, id))).toEqual([newer.id, older.id]);
    });

    test("without reuse every entry is made, and an entry that is listed twice is made once with it", async () => {
      const harness = await openStoreHarness(open);
      const twice = [entryUrl(0), entryUrl(1), entryUrl(0)];
      const reusing = await collect(harness, twice);
      expect(reusing.counts).toEqual({ ...noTasks, queued: 3 });
      expect(new Set(idsOf(await membersOf(harness, reusing.id))).size).toBe(2);
      const fresh = await collect(harness, twice, { isReusing: false });
      expect(new Set(idsOf(await membersOf(harness, fresh.id))).size).toBe(3);
      const [member] = await membersOf(harness, reusing.id);
      await endMember(harness, member!, "succeeded");
      expect(await harness.store.get(reusing.id)).toMatchObject({ counts: { ...noTasks, queued: 1, succeeded: 2 } });
    });

    test("a task has 100 places in collections, and the next one gets a task of its own", async () => {
      const harness = await openStoreHarness(open);
      const first = await collect(harness, Array<string>(60).fill(entryUrl(0)));
      const second = await collect(harness, Array<string>(60).fill(entryUrl(0)));
      const [made] = idsOf(await membersOf(harness, first.id));
      const shared = idsOf(await membersOf(harness, second.id));
      expect(shared.filter((id) => id === made)).toHaveLength(40);
      expect(new Set(shared).size).toBe(2);
      const third = await collect(harness, [entryUrl(0)]);
      expect(idsOf(await membersOf(harness, third.id))).toEqual([shared.at(-1)]);
      expect((await harness.store.reuse(newTask(entryUrl(0), {}, new Date()))).isNew).toBe(false);
    });

    test("a collection whose members all have their files has succeeded at once", async () => {
      const harness = await openStoreHarness(open);
      const first = await collect(harness, times(2, entryUrl));
      for (const member of await membersOf(harness, first.id)) await endMember(harness, member, "succeeded");
      expect(await collect(harness, times(2, entryUrl))).toMatchObject({ state: "succeeded" });
    });

    test("one that fails while members run keeps running, and fails with its own error after them", async () => {
      const harness = await openStoreHarness(open);
      const { store } = harness;
      const { task, lease } = await begin(harness);
      const growth = { slice: { next: "two", offset: 1, made: 1 } };
      await store.grow(task.id, { lease, members: membersFor([entryUrl(0)], {}), isReusing: true, growth });
      const error = { code: "upstream_invalid", message: "no list", retryable: false };
      expect(await store.update(task.id, { state: "failed", error }, { lease })).toMatchObject({ state: "running" });
      const [member] = await membersOf(harness, task.id);
      expect((await harness.claim()).task.id).toBe(member?.id);
      await store.update(member!.id, { state: "succeeded", file: fileOf(1) });
      expect(await store.get(task.id)).toMatchObject({ state: "failed", error, growth });
    });
  });
}

/** Ends a member, which then has a file if it has succeeded. */
export async function endMember({ store }: StoreHarness, { id, state }: Task, to: State): Promise<void> {
  if (state === "queued" && to !== "canceled") await store.update(id, { state: "running" });
  await store.update(id, { state: to, ...(to === "succeeded" && { file: fileOf(1) }) });
}

/** @param retryable As its error says; undefined: it has none. */
async function failMember(harness: StoreHarness, { id }: Task, retryable: boolean | undefined): Promise<void> {
  const error = retryable === undefined ? null : { code: "upstream_status", message: "refused", retryable };
  await harness.store.update(id, { state: "running" });
  await harness.store.update(id, { state: "failed", error });
}

export function entryUrl(n: number): string {
  return `https://video.example.com/watch/${n}`;
}

function nonZero(counts: MemberCounts): Partial<MemberCounts> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
}

interface CollectionOptions {
  owner?: string;
  options?: TaskOptions;
  isReusing?: boolean;
}

/** Stores a task and makes it a collection that has no members yet. */
export async function begin(harness: StoreHarness, { owner }: CollectionOptions = {}): Promise<Claim> {
  const { id } = await harness.add(playlist, { entries: "all" }, owner);
  const claimed = await claimUntil(harness, id);
  const { lease } = claimed;
  await harness.store.update(id, { kind: "collection", counts: noTasks, growth: start }, { lease });
  return claimed;
}

/** Claims until it gets this task, and puts the others back. */
async function claimUntil({ store, claim }: StoreHarness, id: string): Promise<Claim> {
  const others: string[] = [];
  for (;;) {
    const claimed = await claim();
    if (claimed.task.id !== id) others.push(claimed.task.id);
    else {
      for (const other of others) await store.update(other, { state: "queued" });
      return claimed;
    }
  }
}

export function membersFor(urls: readonly string[], { owner, options = {} }: CollectionOptions): NewMember[] {
  return urls.map((url, n) => {
    const made = newTask(url, options, new Date(Date.UTC(2030, 0, 1)), owner);
    return { index: n + 1, task: { ...made, collection: { id: "made by it", index: n + 1, title: "List" } } };
  });
}

/** Stores a collection of these pages that has grown. */
export async function collect(
  harness: StoreHarness,
  urls: readonly string[],
  options: CollectionOptions = {},
): Promise<Task> {
  return fill(harness, await begin(harness, options), urls, options);
}

/** Stores the members of a collection that was begun, and returns it. */
export async function fill(
  { store }: StoreHarness,
  { task, lease }: Claim,
  urls: readonly string[],
  options: CollectionOptions = {},
): Promise<Task> {
  const members = membersFor(urls, options);
  const { isReusing = true } = options;
  return (await store.grow(task.id, { lease, members, isReusing, growth: null })).task;
}

export async function membersOf({ store }: Pick<StoreHarness, "store">, parent: string): Promise<Task[]> {
  return (await store.list({ limit: 200, parent })).tasks;
}
