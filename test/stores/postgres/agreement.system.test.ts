import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import { noTasks } from "../../../src/feed/collection-changes.ts";
import { newTask } from "../../../src/feed/task-changes.ts";
import { accessKeyOf, newSecret } from "../../../src/keys/secrets.ts";
import { endStates, states, type Task, type TaskOptions } from "../../../src/model/task.ts";
import { retryChange } from "../../../src/stores/member-rules.ts";
import type { OutboxMessage } from "../../../src/stores/outbox.ts";
import { openPostgresStore } from "../../../src/stores/postgres/postgres-store.ts";
import { createMemoryStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../../src/stores/store.ts";
import { fileOf } from "../../contracts/task-store/files.ts";
import { pageInfo } from "../../page-info.ts";
import { openDatabase } from "../../postgres/database.ts";
import { seed } from "../../random.ts";

const leaseMs = 600_000;
const limitOfQueue = 14;
const secret = newSecret();
const webhook = { url: "https://hook.test/", secret: `whsec_${Buffer.alloc(24).toString("base64")}` };
const urlOf = (page: number) => `https://host${page % 3}.test/watch/${page}`;

const action = <T extends string>(name: T) => fc.constant(name);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const owner = fc.constantFrom("anna", "bert", undefined);
const keyName = fc.constantFrom("anna", "bert");
const nth = fc.nat({ max: 12 });
const page = fc.nat({ max: 4 });
const video = optional(fc.constantFrom("v1", "v2"));
const options = fc.constantFrom<TaskOptions>({}, { max_height: 720 }, { audio_only: false });
const key = optional(fc.record({ key: fc.constantFrom("k", "l"), fingerprint: fc.constantFrom("f", "f", "g") }));
const few = (max: number) => fc.integer({ min: 1, max });
const limits = fc.record(
  { max_queued: few(4), max_running: few(2), max_bytes: few(30) },
  { requiredKeys: [], noNullPrototype: true },
);

const grow = fc.record({
  do: action("grow"),
  nth,
  pages: fc.array(page, { maxLength: 4 }),
  isReusing: fc.boolean(),
  isLast: fc.boolean(),
});

/** Small numbers of everything, so that calls meet: tasks for one video, members of two collections, limits that are reached. */
const call = fc.oneof(
  fc.record({ do: action("create"), page, owner, options, key }),
  fc.record({ do: action("reuse"), page, owner, options, key, video }),
  fc.record({ do: action("claim"), exceptOwners: fc.subarray(["", "anna", "bert"], { maxLength: 1 }) }),
  fc.record({ do: action("claim"), exceptOwners: fc.constant([]) }),
  fc.record({
    do: action("end"),
    nth,
    state: fc.constantFrom(...endStates, "queued" as const),
    size: fc.nat({ max: 20 }),
  }),
  fc.record({ do: action("learn"), nth, page, video, length: fc.constantFrom(0, 0, 20_000, 300_000) }),
  fc.record({ do: action("remove file"), nth }),
  fc.record({ do: action("retry"), nth }),
  fc.record({ do: action("begin"), nth }),
  // Twice as often.
  grow,
  grow,
  fc.record({ do: action("retry members"), nth }),
  fc.record({ do: action("delete"), nth }),
  fc.record({ do: action("own members"), nth }),
  fc.record({ do: action("heartbeat"), nth }),
  fc.record({
    do: action("list"),
    limit: few(4),
    state: optional(fc.constantFrom(...states)),
    owner,
    before: optional(few(20)),
  }),
  fc.record({ do: action("list members"), nth, limit: few(4) }),
  fc.record({ do: action("count") }),
  fc.record({ do: action("add key"), name: keyName, limits, hasWebhook: fc.boolean() }),
  fc.record({ do: action("remove key"), name: keyName }),
  fc.record({ do: action("claim messages"), endpoint: fc.constantFrom("*", "anna"), limit: few(4) }),
  fc.record({ do: action("end message"), isRemoved: fc.boolean() }),
  fc.record({ do: action("trim"), endpoint: fc.constantFrom("*", "anna"), messages: fc.nat({ max: 3 }) }),
);
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

/** For which tasks a call does something. */
const suits: Partial<Record<Call["do"], (task: Task) => boolean>> = {
  end: ({ state }) => state === "running",
  begin: ({ state, kind, collection }) => state === "running" && kind === undefined && collection === undefined,
  grow: ({ state, growth }) => state === "running" && growth?.slice !== undefined,
  retry: ({ state }) => state === "failed" || state === "canceled",
  "retry members": ({ state, kind }) => kind !== undefined && (state === "failed" || state === "canceled"),
  "remove file": ({ file }) => file !== null,
  "list members": ({ kind }) => kind !== undefined,
};

test("Postgres responds and publishes as SQLite does, whatever the calls are", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 40, maxLength: 90, size: "max" }), async (calls) => {
      let ms = Date.UTC(2030, 0, 1);
      const given = { now: () => new Date(ms), maxQueued: limitOfQueue, webhook: true };
      const sqlite = new Side(createMemoryStore(given));
      const postgres = new Side(
        await openPostgresStore({ ...given, url: await openDatabase(), heartbeatS: leaseMs / 1_000 }),
      );
      const ids: string[] = [];
      try {
        for (const made of calls) {
          ms += 1;
          const id = await chooseTask(made, sqlite.store, ids);
          const tasks = await createTasks(made, id, sqlite.store, given.now());
          ids.push(...tasks.map((task) => task.id));
          const [expected, response] = await Promise.all(
            [sqlite, postgres].map((side) => side.perform(made, id, tasks)),
          );
          expect({ made, response }).toEqual({ made, response: expected });
        }
        await vi.waitUntil(() => postgres.events.length >= sqlite.events.length, 60_000);
        expect(postgres.events).toEqual(sqlite.events);
      } finally {
        await sqlite.store.close();
        await postgres.store.close();
      }
    }),
    { numRuns: 20, endOnFailure: true, seed },
  );
});

/** Returns mostly a task for which the call does something. */
async function chooseTask(made: Call, store: TaskStore, ids: readonly string[]): Promise<string> {
  if (!("nth" in made)) return "unknown";
  const tasks = (await Promise.all(ids.map((id) => store.get(id)))).filter((task) => task !== undefined);
  const suitable = tasks.filter(suits[made.do] ?? (() => true));
  const pick = (some: readonly string[]) => some[made.nth % Math.max(1, some.length)];
  return (made.nth % 6 < 5 ? pick(suitable.map(({ id }) => id)) : undefined) ?? pick(ids) ?? "unknown";
}

/** Returns the tasks that a call adds: the same for both stores. */
async function createTasks(made: Call, id: string, store: TaskStore, now: Date): Promise<Task[]> {
  if (made.do === "grow") {
    const parent = await store.get(id);
    const collection = { id, index: 1, title: null };
    return made.pages.map((each) => ({ ...newTask(urlOf(each), {}, now, parent?.owner), collection }));
  }
  if (made.do !== "create" && made.do !== "reuse") return [];
  const task = newTask(urlOf(made.page), made.options, now, made.owner);
  return [made.do === "reuse" && made.video ? { ...task, video: { extractor: "Films", id: made.video } } : task];
}

/** A store, with what it has handed out and published. */
class Side {
  readonly store: TaskStore;
  readonly events: unknown[] = [];
  readonly #leases = new Map<string, string>();
  readonly #messages: OutboxMessage[] = [];

  constructor(store: TaskStore) {
    this.store = store;
    store.events.subscribe(({ id: _id, ...event }) => this.events.push({ ...event, json: JSON.parse(event.json) }));
  }

  /** Returns what is alike in all stores: no leases; an error as text. */
  async perform(made: Call, id: string, tasks: readonly Task[]): Promise<unknown> {
    try {
      return (await this.#call(made, id, tasks)) ?? null;
    } catch (error) {
      if (error instanceof Error && "code" in error) return `${String(error.code)}: ${error.message}`;
      throw error;
    }
  }

  async #call(made: Call, id: string, tasks: readonly Task[]): Promise<unknown> {
    const { store } = this;
    const lease = this.#leases.get(id) ?? "none";
    const [task] = tasks;
    switch (made.do) {
      case "create":
        return store.create(task!, made.key);
      case "reuse":
        return store.reuse(task!, made.key);
      case "claim":
        return this.#claim(made.exceptOwners);
      case "end": {
        const { state, size } = made;
        const file = state === "succeeded" && size > 0 ? fileOf(size) : null;
        const limit = file !== null && size % 5 === 0 ? { maxStoredBytes: 40 } : {};
        return store.update(id, { state, file }, limit);
      }
      case "learn": {
        const about = made.video === undefined ? {} : { extractor: "Films", video_id: made.video };
        const description = made.length > 0 ? "x".repeat(made.length) : null;
        const info = pageInfo({ url: urlOf(made.page), webpage_url: urlOf(made.page), description, ...about });
        return store.update(id, { info });
      }
      case "remove file":
        return store.update(id, { file: null }, { from: ["succeeded"], hasFile: true });
      case "retry":
        return store.update(id, retryChange, { from: ["failed", "canceled"] });
      case "begin": {
        if ((await store.get(id))?.kind !== undefined) return null;
        const growth = { slice: { offset: 0, made: 0 } };
        return store.update(id, { kind: "collection", counts: noTasks, growth }, { lease });
      }
      case "grow":
        return this.#grow(made, id, lease, tasks);
      case "retry members":
        return this.#retryMembers(id);
      case "delete":
        return store.delete(id);
      case "own members":
        return (await store.ownMembers(id)).toSorted();
      case "heartbeat":
        return store.heartbeat(id, lease, leaseMs);
      case "list":
        return store.list({ limit: made.limit, state: made.state, owner: made.owner, before: made.before });
      case "list members":
        return store.list({ limit: made.limit, parent: id });
      case "count":
        return [await store.count(), await store.storedFiles({ limit: 200 }), await store.outbox.count()];
      case "add key": {
        const { name, limits: given, hasWebhook } = made;
        const about = { name, admin: false, limits: given, ...(hasWebhook && { webhook }) };
        return store.keys.add(accessKeyOf(secret, about, new Date(0)));
      }
      case "remove key":
        return store.keys.remove(made.name);
      case "claim messages":
        return this.#claimMessages(made.endpoint, made.limit);
      case "end message": {
        const message = this.#messages.shift();
        if (message === undefined) return null;
        return made.isRemoved
          ? store.outbox.remove(message)
          : store.outbox.postpone(message, { delayMs: 0, refusals: 1 });
      }
      case "trim":
    }
    return store.outbox.trim(made.endpoint, { messages: made.messages, bytes: 1e9 });
  }

  /** Returns null if the collection is not claimed soon. */
  async #retryMembers(id: string): Promise<unknown> {
    const { store } = this;
    if ((await store.get(id))?.kind === undefined) return null;
    await store.update(id, retryChange);
    for (let n = 0; n < 20; n += 1) {
      const claim = await this.#claim([]);
      if (claim === null) return null;
      if (claim.task.id === id) return store.retryMembers(id, this.#leases.get(id) ?? "none");
    }
    return null;
  }

  async #claim(exceptOwners: readonly string[]) {
    const claim = await this.store.claim({ leaseMs, exceptOwners });
    if (claim === undefined) return null;
    this.#leases.set(claim.task.id, claim.lease);
    const { task, stalledCount, bytesLeft } = claim;
    return { task, stalledCount, bytesLeft };
  }

  async #grow(made: Call & { do: "grow" }, id: string, lease: string, tasks: readonly Task[]): Promise<unknown> {
    const { growth } = (await this.store.get(id)) ?? {};
    if (growth?.slice === undefined) return null;
    const highest = growth.slice.made;
    const members = tasks.map((task, n) => ({ index: highest + n + 1, task }));
    const next = { slice: { offset: 0, made: highest + members.length, next: "more" } };
    return this.store.grow(id, { lease, members, isReusing: made.isReusing, growth: made.isLast ? null : next });
  }

  /** Those of one call come in any order. */
  async #claimMessages(endpoint: string, limit: number): Promise<unknown> {
    const claimed = await this.store.outbox.claim({ endpoint, limit, leaseMs });
    const inOrder = claimed.toSorted((one, other) => (one.taskId < other.taskId ? -1 : 1));
    this.#messages.push(...inOrder);
    return inOrder.map(({ taskId, body, refusals, ageMs }) => ({ taskId, body, refusals, ageMs }));
  }
}
