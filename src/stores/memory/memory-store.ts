import { randomUUID } from "node:crypto";
import type { AccessKey } from "../../model/access-key.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import { changeEvent, createTaskEvents, type TaskEvent, type TaskEventPublisher } from "../../feed/task-events.ts";
import type { State, Task } from "../../model/task.ts";
import { type Clock, createClock } from "../clock.ts";
import { createDamageReport, newAnswer, parseWritten, readAnswer, reusedAnswer, toPage } from "../documents.ts";
import { claimDocument, updateDocument } from "../task-writes.ts";
import { createKeyParser, createKeyStore, createRequestCounter, type KeyStore } from "../key-store.ts";
import { type NewMessage, serviceEndpoint } from "../outbox.ts";
import { assertQueueNotFull, defaultMaxQueued, delayOf, ofOwner, storeClosedError } from "../rules.ts";
import { createLocalMembers, type LocalMembers } from "../local-members.ts";
import type { StoreOptions, TaskReads, TaskStore, TaskWrites, UpdateOptions } from "../store.ts";
import type { Idempotency, Reused } from "../store-types.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { createMemberTables, type MemberTables, newEntry } from "./member-tables.ts";
import { MemoryOutbox } from "./outbox.ts";
import { type Entry, TaskTable } from "./task-table.ts";

/** Creates a store in memory for some thousands of tasks: each list and claim looks at all of them. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, events = createTaskEvents(), webhook = false } = options;
  const clock = createClock(options);
  /** Names of access keys, and the keys as JSON. */
  const accessKeys = new Map<string, string>();
  const parseKey = createKeyParser();
  const table = new TaskTable((owner) => keyOf(owner)?.limits, maxQueued);
  const uses = createIdempotencyKeys();
  let isClosed = false;
  const steadyMs = () => opened(clock.steadyMs());
  const outbox = new MemoryOutbox(steadyMs);

  function opened<T>(value: T): T {
    if (isClosed) throw storeClosedError("memory");
    return value;
  }

  function keyOf(name: string): AccessKey | undefined {
    const document = accessKeys.get(name);
    return document === undefined ? undefined : parseKey(name, document);
  }

  function announce(message: NewMessage): void {
    const key = keyOf(message.owner ?? "");
    const own = key?.webhook === undefined ? [] : [key.name];
    outbox.add(message, webhook ? [serviceEndpoint, ...own] : own);
  }

  const tasks = () => opened(table);
  const tables = createMemberTables({ tasks, announce });
  const members = createLocalMembers(tables, { damage: createDamageReport(undefined), now: clock.now });
  const deps = { tasks, tables, members, uses, events, announce, maxQueued, now: clock.now, steadyMs };
  return {
    events,
    keys: createMemoryKeys(() => opened(accessKeys), steadyMs),
    outbox,
    ...createTaskReads(deps),
    ...createTaskWrites(deps),
    ping: async () => opened(undefined),
    async close() {
      isClosed = true;
      table.clear();
      uses.clear();
      outbox.clear();
    },
  };
}

/**
 * @param documents Keys as JSON, by name; throws if the store is closed.
 * @param steadyMs The same.
 */
function createMemoryKeys(documents: () => Map<string, string>, steadyMs: () => number): KeyStore {
  const count = createRequestCounter(steadyMs);
  return createKeyStore({
    async add(name, document) {
      const isFree = !documents().has(name);
      if (isFree) documents().set(name, document);
      return isFree;
    },
    list: async () => [...documents().values()],
    remove: async (name) => documents().delete(name),
    countRequest: async (name) => count(name),
  });
}

/** What the methods of the store work with. */
interface MemoryStoreDeps extends Clock {
  /** Throws if the store is closed. */
  tasks(): TaskTable;
  tables: MemberTables;
  members: LocalMembers<Entry>;
  uses: ReturnType<typeof createIdempotencyKeys>;
  events: TaskEventPublisher;
  /** Adds the message for every endpoint that gets it. */
  announce(message: NewMessage): void;
  maxQueued: number;
}

function createTaskReads({ tasks, tables }: MemoryStoreDeps): TaskReads {
  return {
    async get(id) {
      const entry = tasks().find(id);
      return entry && parseWritten(entry);
    },

    async list({ limit, ...query }) {
      const one = { ...query, limit: limit + 1 };
      return toPage(query.parent === undefined ? tasks().page(one) : tables.page(one), limit, parseWritten);
    },

    async ownMembers(id) {
      const own = tables.own(tasks().require(id).seq).flatMap((seq) => tables.find(seq) ?? []);
      return own.filter(({ bytes }) => bytes > 0).map((member) => member.id);
    },

    storedFiles: async (query) => tasks().storedFiles(query),

    async count() {
      const oldest = tasks().oldestQueued();
      const oldestQueuedAt = oldest ? parseWritten(oldest).created_at : null;
      return { byState: { ...tasks().counts }, oldestQueuedAt };
    },
  };
}

function createTaskWrites(deps: MemoryStoreDeps): TaskWrites {
  const { tasks, members, events, now, steadyMs } = deps;

  function publish<T>({ result, events: changes }: { result: T; events: readonly TaskEvent[] }): T {
    for (const event of changes) events.publish(event);
    return result;
  }

  return {
    create: async (task, idempotency) => createTask(deps, task, idempotency, false).task,

    reuse: async (task, idempotency) => createTask(deps, task, idempotency, true),

    grow: async (id, growing) => publish(members.grow(id, growing)),

    retryMembers: async (id, lease) => publish(members.retry(id, lease)),

    update: async (id, change, given = {}) => updateTask(deps, id, change, given),

    async delete(id) {
      const entry = tasks().require(id);
      return publish({ result: parseWritten(entry), events: members.remove(entry) });
    },

    async claim({ leaseMs, exceptHosts = [] }) {
      const nowMs = steadyMs();
      const table = tasks();
      const entry = table.nextInTurn(nowMs, exceptHosts);
      if (entry === undefined) return undefined;
      table.markClaim(entry);
      const { task, stored, event } = claimDocument(entry, now());
      const lease = randomUUID();
      table.put({ ...entry, ...stored, lease, claimableAtMs: nowMs + leaseMs });
      events.publish(event);
      for (const each of members.follow(entry, { before: entry.state, after: stored.state })) events.publish(each);
      const { stalledCount } = stored;
      return { task, lease, stalledCount, bytesLeft: table.bytesLeft(entry) };
    },

    async heartbeat(id, lease, leaseMs) {
      const entry = tasks().find(id);
      if (entry?.lease !== lease) return false;
      entry.claimableAtMs = steadyMs() + leaseMs;
      return true;
    },
  };
}

/** Stores a task, unless an earlier one is the answer. */
function createTask(
  { tasks, tables, uses, events, maxQueued, steadyMs }: MemoryStoreDeps,
  task: Task,
  given: Idempotency | undefined,
  isReusing: boolean,
): Reused {
  const table = tasks();
  const idempotency = ofOwner(task, given);
  const nowMs = steadyMs();
  const earlier = idempotency && uses.recall(idempotency, nowMs);
  if (earlier !== undefined) return readAnswer(task, earlier);
  const found = isReusing ? tables.findReusable(task) : undefined;
  if (found !== undefined) {
    const answer = reusedAnswer(found.document);
    if (idempotency !== undefined) uses.keep(idempotency, answer, nowMs);
    return readAnswer(task, answer);
  }
  const document = JSON.stringify(task);
  assertQueueNotFull(table.counts.queued, maxQueued);
  table.insert(newEntry(task, document));
  events.publish(changeEvent(task, document));
  if (idempotency !== undefined) uses.keep(idempotency, newAnswer(task), nowMs);
  return { task: parseWritten({ document }), isNew: true };
}

function updateTask(
  { tasks, members, events, announce, ...clock }: MemoryStoreDeps,
  id: string,
  change: TaskChange,
  given: UpdateOptions,
): Task {
  const entry = tasks().require(id);
  const { task, stored, event, message } = updateDocument(entry, change, given, clock.now());
  const { state } = change;
  const claim = state && { lease: null, claimableAtMs: claimableAt(state, given.runAfter, clock) };
  tasks().put({ ...entry, ...stored, ...claim }, given.maxStoredBytes);
  events.publish(event);
  if (message !== undefined) announce(message);
  const followed = members.follow(entry, { before: entry.state, after: stored.state });
  const isCanceled = task.kind === "collection" && state === "canceled";
  for (const each of isCanceled ? members.cancel(entry) : followed) events.publish(each);
  return parseWritten(tasks().require(id));
}

function claimableAt(state: State, runAfter: Date | undefined, { now, steadyMs }: Clock): number {
  if (state !== "queued") return Infinity;
  return runAfter ? steadyMs() + delayOf(runAfter, now()) : 0;
}
