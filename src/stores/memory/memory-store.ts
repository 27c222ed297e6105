import { randomUUID } from "node:crypto";
import type { AccessKey } from "../../model/access-key.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import { changeEvent, createTaskEvents, deletedEvent, type TaskEventPublisher } from "../../feed/task-events.ts";
import { hostOf, type State, type Task } from "../../model/task.ts";
import { type Clock, createClock } from "../clock.ts";
import { claimDocument, fileColumns, parseWritten, toPage, updateDocument } from "../documents.ts";
import { createKeyParser, createKeyStore, createRequestCounter, type KeyStore } from "../key-store.ts";
import { type NewMessage, serviceEndpoint } from "../outbox.ts";
import { assertQueueNotFull, defaultMaxQueued, delayOf, ofOwner, storeClosedError } from "../rules.ts";
import type { StoreOptions, TaskReads, TaskStore, TaskWrites, UpdateOptions } from "../store.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { MemoryOutbox } from "./outbox.ts";
import { TaskTable } from "./task-table.ts";

/** Creates a store in memory for some thousands of tasks: each list and claim looks at all of them. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, events = createTaskEvents(), webhook = false } = options;
  const clock = createClock(options);
  /** Names of access keys, and the keys as JSON. */
  const accessKeys = new Map<string, string>();
  const parseKey = createKeyParser();
  const table = new TaskTable((owner) => keyOf(owner)?.limits ?? {});
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
  const deps = { tasks, uses, events, announce, maxQueued, now: clock.now, steadyMs };
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
  uses: ReturnType<typeof createIdempotencyKeys>;
  events: TaskEventPublisher;
  /** Adds the message for every endpoint that gets it. */
  announce(message: NewMessage): void;
  maxQueued: number;
}

function createTaskReads({ tasks }: MemoryStoreDeps): TaskReads {
  return {
    async get(id) {
      const entry = tasks().find(id);
      return entry && parseWritten(entry);
    },

    list: async ({ limit, ...query }) => toPage(tasks().page({ ...query, limit: limit + 1 }), limit, parseWritten),

    storedFiles: async (query) => tasks().storedFiles(query),

    async count() {
      const oldest = tasks().oldestQueued();
      const oldestQueuedAt = oldest ? parseWritten(oldest).created_at : null;
      return { byState: { ...tasks().counts }, oldestQueuedAt };
    },
  };
}

function createTaskWrites(deps: MemoryStoreDeps): TaskWrites {
  const { tasks, uses, events, maxQueued, now, steadyMs } = deps;
  return {
    async create(task, given) {
      const table = tasks();
      const { id, state, url, owner = null } = task;
      const idempotency = ofOwner(task, given);
      const nowMs = steadyMs();
      const earlier = idempotency && uses.recall(idempotency, nowMs);
      if (earlier !== undefined) return parseWritten({ document: earlier });
      assertQueueNotFull(table.counts.queued, maxQueued);
      const document = JSON.stringify(task);
      const claim = {
        lease: null,
        claimableAtMs: claimableAt(state, undefined, deps),
        stalledCount: 0,
      };
      const file = fileColumns(task);
      table.insert({ id, state, owner, host: hostOf(url), document, ...claim, ...file });
      events.publish(changeEvent(task, document));
      if (idempotency !== undefined) uses.keep(idempotency, document, nowMs);
      return parseWritten({ document });
    },

    update: async (id, change, given = {}) => updateTask(deps, id, change, given),

    async delete(id) {
      const entry = tasks().require(id);
      tasks().remove(entry);
      events.publish(deletedEvent(id, entry.owner));
      return parseWritten(entry);
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

function updateTask(
  { tasks, events, announce, ...clock }: MemoryStoreDeps,
  id: string,
  change: TaskChange,
  given: UpdateOptions,
): Task {
  const entry = tasks().require(id);
  const { stored, event, message } = updateDocument(entry, change, given, clock.now());
  const { state } = change;
  const claim = state && { lease: null, claimableAtMs: claimableAt(state, given.runAfter, clock) };
  tasks().put({ ...entry, ...stored, ...claim }, given.maxStoredBytes);
  events.publish(event);
  if (message !== undefined) announce(message);
  return parseWritten(stored);
}

function claimableAt(state: State, runAfter: Date | undefined, { now, steadyMs }: Clock): number {
  if (state !== "queued") return Infinity;
  return runAfter ? steadyMs() + delayOf(runAfter, now()) : 0;
}
