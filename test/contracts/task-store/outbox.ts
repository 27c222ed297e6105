import { describe, expect, test } from "vitest";
import { accessKeyOf, newSecret, newWebhookSecret } from "../../../src/keys/secrets.ts";
import type { OutboxLimits, OutboxMessage } from "../../../src/stores/outbox.ts";
import { minuteMs, type OpenStore, openStoreHarness, type StoreHarness, times } from "./harness.ts";

const page = "https://video.example.com/watch";

export function describeOutbox(open: OpenStore): void {
  const openHarness = async (webhook = true) => {
    const harness = await openStoreHarness(open, { webhook });
    return { ...harness, ...outboxOf(harness) };
  };

  describe("keeps messages about ended tasks in an outbox:", () => {
    test("a task that ends leaves one, with the task as it is then", async () => {
      const { store, claim, add, take } = await openHarness();
      const created = await Promise.all(times(3, () => add()));
      const states = ["succeeded", "failed", "canceled"] as const;
      for (const state of states) await store.update((await claim()).task.id, { state });
      for (const [n, state] of states.entries()) {
        const message = await take();
        const { type, timestamp, data } = JSON.parse(message?.body ?? "");
        const task = await store.get(created[n]?.id ?? "");
        expect([type, data]).toEqual([`task.${state}`, JSON.parse(JSON.stringify(task))]);
        expect(timestamp).toBe(task?.updated_at);
        expect(message).toMatchObject({ endpoint: "*", taskId: task?.id, refusals: 0, ageMs: 0 });
        expect(message?.id).toMatch(/^msg_[0-9a-f-]{36}$/);
      }
      expect(await take()).toBeUndefined();
    });

    test("nothing else leaves one: creation, a run, progress, a retry, a refused change, deletion", async () => {
      const { store, add, claim, take } = await openHarness();
      const { id } = await add();
      await claim();
      await store.update(id, { progress: null });
      await store.update(id, { state: "queued" });
      await expect(store.update(id, { state: "succeeded" })).rejects.toMatchObject({
        code: "conflict",
      });
      await store.delete(id);
      expect(await take()).toBeUndefined();
    });

    test("a store without a webhook keeps none, a key with one gets those of its own tasks", async () => {
      const { store, add, take } = await openHarness(false);
      await addKey(store, "anna", true);
      await addKey(store, "bert", false);
      const [hers, ...others] = await Promise.all(["anna", "bert", undefined].map((owner) => add(page, {}, owner)));
      for (const { id } of [...others, hers!]) await store.update(id, { state: "canceled" });
      expect(await take()).toMatchObject({ endpoint: "anna", taskId: hers?.id });
      expect(await take()).toBeUndefined();
    });

    test("the service's endpoint and that of the owner's key get the same message each", async () => {
      const { store, add, take } = await openHarness();
      await addKey(store, "anna", true);
      await store.update((await add(page, {}, "anna")).id, { state: "canceled" });
      const both = [await take(), await take()];
      expect(new Set(both.map((message) => message?.endpoint))).toEqual(new Set(["*", "anna"]));
      expect(new Set(both.map((message) => message?.id)).size).toBe(1);
      await store.keys.remove("anna");
      await store.update((await add(page, {}, "anna")).id, { state: "canceled" });
      expect([(await take())?.endpoint, await take()]).toEqual(["*", undefined]);
    });

    test("of one task only the oldest can be claimed, until it is removed", async () => {
      const { store, end, take } = await openHarness();
      const id = await end();
      await store.update(id, { state: "queued" });
      await store.update(id, { state: "canceled" });
      const first = await take();
      expect(await take()).toBeUndefined();
      await store.outbox.postpone(first!, { delayMs: 0, refusals: 3 });
      const again = await take();
      expect(again).toMatchObject({ id: first?.id, body: first?.body, refusals: 3 });
      await store.outbox.remove(again!);
      const second = await take();
      expect(second).toMatchObject({ taskId: id, refusals: 0 });
      expect(second?.id).not.toBe(first?.id);
      await store.outbox.remove(second!);
      expect(await take()).toBeUndefined();
    });

    test("a claim keeps others off until its lease expires, and can do nothing after that", async () => {
      const { store, clock, end, take } = await openHarness();
      await end();
      const lost = await take();
      clock.advance(minuteMs - 1);
      expect(await take()).toBeUndefined();
      clock.advance(1);
      const held = await take();
      expect(held).toMatchObject({ id: lost?.id, ageMs: minuteMs });
      await store.outbox.remove(lost!);
      await store.outbox.postpone(lost!, { delayMs: 0, refusals: 9 });
      expect(await take()).toBeUndefined();
      await store.outbox.remove(held!);
      clock.advance(minuteMs);
      expect(await take()).toBeUndefined();
    });

    test("one that is postponed waits for as long, and holds up no other task's", async () => {
      const { store, clock, end, take } = await openHarness();
      await end();
      const waiting = await take();
      await store.outbox.postpone(waiting!, { delayMs: 5_000, refusals: 1 });
      const other = await end();
      expect(await take()).toMatchObject({ taskId: other });
      clock.advance(4_999);
      expect(await take()).toBeUndefined();
      clock.advance(1);
      expect(await take()).toMatchObject({ id: waiting?.id, refusals: 1, ageMs: 5_000 });
    });

    test("all are counted until they are removed, and the oldest is known", async () => {
      const { store, clock, end, take } = await openHarness();
      expect(await store.outbox.count()).toEqual({ messages: 0, oldestAgeMs: 0 });
      const id = await end();
      clock.advance(3_000);
      await store.update(id, { state: "queued" });
      await store.update(id, { state: "canceled" });
      await end();
      clock.advance(2_000);
      expect(await store.outbox.count()).toEqual({ messages: 3, oldestAgeMs: 5_000 });
      const oldest = await take();
      await store.outbox.postpone(oldest!, { delayMs: 60_000, refusals: 1 });
      await take();
      expect(await store.outbox.count()).toEqual({ messages: 3, oldestAgeMs: 5_000 });
      clock.advance(60_000);
      await store.outbox.remove((await take())!);
      expect(await store.outbox.count()).toEqual({ messages: 2, oldestAgeMs: 62_000 });
    });

    test("the oldest for a key beyond a limit are removed, and none of a task one of whose is claimed", async () => {
      const { store, add, take } = await openHarness();
      for (const name of ["anna", "bert"]) await addKey(store, name, true);
      const end = async (owner: string, query = "") => {
        const { id } = await add(`${page}?${query}`, {}, owner);
        await store.update(id, { state: "canceled" });
        return id;
      };
      const hers = [await end("anna"), await end("anna"), await end("anna"), await end("anna"), await end("anna")];
      await end("bert");
      // Another one about the second task.
      await store.update(hers[1]!, { state: "queued" });
      await store.update(hers[1]!, { state: "canceled" });
      const held = await take(["*", "bert"]);
      expect(held?.taskId).toBe(hers[0]);
      const all = { messages: 100, bytes: 1_000_000 };
      const trim = async (limits: OutboxLimits) => [
        await store.outbox.trim("anna", limits),
        await store.outbox.trim("bert", limits),
      ];
      expect(await trim(all)).toEqual([0, 0]);
      expect(await trim({ ...all, messages: 3 })).toEqual([2, 0]);
      await store.outbox.remove(held!);
      const left = await store.outbox.claim({ endpoint: "anna", limit: 9, leaseMs: minuteMs });
      expect(new Set(left.map(({ taskId }) => taskId))).toEqual(new Set([hers[1], hers[3], hers[4]]));
      await Promise.all(left.map((message) => store.outbox.remove(message)));
      expect(await store.outbox.count()).toMatchObject({ messages: 7 + 1 });
      await end("bert", "a".repeat(5_000));
      const long = await end("bert", "b".repeat(5_000));
      expect(await trim({ ...all, bytes: 9_000 })).toEqual([0, 2]);
      expect(await take(["*", "anna"])).toMatchObject({ taskId: long });
      expect(await take(["*", "anna"])).toBeUndefined();
    });

    test("endpoints that are excepted are passed over", async () => {
      const { store, add, take } = await openHarness();
      await addKey(store, "anna", true);
      await store.update((await add(page, {}, "anna")).id, { state: "canceled" });
      expect(await take(["*", "anna"])).toBeUndefined();
      expect(await take(["*"])).toMatchObject({ endpoint: "anna" });
      expect(await take(["anna"])).toMatchObject({ endpoint: "*" });
    });

    test("endpoints are due while one of their messages is, the longest waiting first", async () => {
      const { store, clock, add, take } = await openHarness();
      expect(await store.outbox.due()).toEqual([]);
      await store.update((await add()).id, { state: "canceled" });
      clock.advance(1_000);
      await addKey(store, "anna", true);
      await store.update((await add(page, {}, "anna")).id, { state: "canceled" });
      expect(await store.outbox.due()).toEqual(["*", "anna"]);
      const first = await take();
      clock.advance(1_000);
      await store.outbox.postpone(first!, { delayMs: 0, refusals: 1 });
      await take(["anna"]);
      expect(new Set(await store.outbox.due())).toEqual(new Set(["*", "anna"]));
      await take(["anna"]);
      expect(await store.outbox.due()).toEqual(["anna"]);
    });

    test("an endpoint has waited since the first of its messages was due, postponed ones included", async () => {
      const { store, clock, add, end } = await openHarness();
      await addKey(store, "anna", true);
      await end();
      await end();
      const [first] = await store.outbox.claim({ endpoint: "*", limit: 1, leaseMs: minuteMs });
      await store.outbox.postpone(first!, { delayMs: 1_000, refusals: 1 });
      clock.advance(500);
      // After the second message of the service's endpoint, before the first one is due again.
      await store.update((await add(page, {}, "anna")).id, { state: "canceled" });
      clock.advance(1_000);
      expect(await store.outbox.due()).toEqual(["*", "anna"]);
    });

    test("a claim gets those of several tasks, one of each, as many as are wanted", async () => {
      const { store, end } = await openHarness();
      const ended = [await end(), await end(), await end()];
      await store.update(ended[0]!, { state: "queued" });
      await store.update(ended[0]!, { state: "canceled" });
      const claim = (limit: number) => store.outbox.claim({ endpoint: "*", limit, leaseMs: minuteMs });
      expect(await store.outbox.claim({ endpoint: "anna", limit: 9, leaseMs: 1 })).toEqual([]);
      const claimed = [await claim(2), await claim(9), await claim(9)];
      expect(claimed.map((messages) => messages.length)).toEqual([2, 1, 0]);
      expect(
        claimed
          .flat()
          .map(({ taskId }) => taskId)
          .toSorted(),
      ).toEqual(ended.toSorted());
      await Promise.all(claimed.flat().map((message) => store.outbox.remove(message)));
      expect((await claim(9)).map(({ taskId }) => taskId)).toEqual([ended[0]]);
    });

    test("of many that are removed at once, those stay whose lease is lost", async () => {
      const { store, clock, end } = await openHarness();
      const ended = await Promise.all(times(10, () => end()));
      const claim = (limit: number) => store.outbox.claim({ endpoint: "*", limit, leaseMs: minuteMs });
      const lost = await claim(4);
      clock.advance(minuteMs);
      const held = await claim(10);
      await store.update(ended[0]!, { state: "queued" });
      await store.update(ended[0]!, { state: "canceled" });
      const stay = new Set(lost.map(({ taskId }) => taskId));
      const removed = held.filter(({ taskId }) => !stay.has(taskId));
      await Promise.all([...lost, ...removed].map((message) => store.outbox.remove(message)));
      const again = stay.has(ended[0]!) ? [] : [ended[0]];
      expect((await claim(10)).map(({ taskId }) => taskId)).toEqual(again);
      clock.advance(minuteMs);
      const left = (await claim(10)).map(({ taskId }) => taskId);
      expect(new Set(left)).toEqual(new Set([...stay, ...again]));
    });

    test("50 claims at the same time get 20 messages once each", async () => {
      const { end, take } = await openHarness();
      const ended = await Promise.all(times(20, () => end()));
      const claimed = await Promise.all(times(50, () => take()));
      const found: string[] = claimed.flatMap((message) => message?.taskId ?? []);
      // A claim may pass over a message that another one is just claiming.
      for (let next = await take(); next; next = await take()) found.push(next.taskId);
      expect(found.toSorted()).toEqual(ended.toSorted());
    });

    test("messages that are added while others of their task are removed are not lost", async () => {
      const { store, end, take } = await openHarness();
      const id = await end();
      let removed = 0;
      for (let message = await take(); message; message = await take()) {
        const change = async () => {
          if (removed >= 20) return;
          await store.update(id, { state: "queued" });
          await store.update(id, { state: "canceled" });
        };
        await Promise.all([change(), store.outbox.remove(message)]);
        removed += 1;
      }
      expect(removed).toBe(21);
    });
  });
}

function outboxOf({ store, add }: StoreHarness) {
  return {
    /** Ends a new task and returns its id. */
    async end(): Promise<string> {
      const { id } = await add();
      await store.update(id, { state: "canceled" });
      return id;
    },
    /** Claims a message for the endpoint that has waited longest, of those that are not excepted. */
    async take(except: readonly string[] = []): Promise<OutboxMessage | undefined> {
      const due = (await store.outbox.due()).filter((endpoint) => !except.includes(endpoint));
      for (const endpoint of due) {
        const [message] = await store.outbox.claim({ endpoint, limit: 1, leaseMs: minuteMs });
        if (message !== undefined) return message;
      }
      return undefined;
    },
  };
}

function addKey({ keys }: StoreHarness["store"], name: string, hasWebhook: boolean) {
  const webhook = { url: "http://receiver.test/", secret: newWebhookSecret() };
  const given = { name, admin: false, limits: {}, ...(hasWebhook && { webhook }) };
  return keys.add(accessKeyOf(newSecret(), given, new Date()));
}
