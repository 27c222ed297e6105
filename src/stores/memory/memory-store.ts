import { randomUUID } from "node:crypto";
import type { AccessKey } from "../../model/access-key.ts";
import type { TaskChange } from "../../feed/task-changes.ts";
import {
  changeEvent,
  createTaskEvents,
  deletedEvent,
  type TaskEventPublisher,
} from "../../feed/task-events.ts";
import { hostOf, type State, type Task } from "../../model/task.ts";
import { type Clock, createClock } from "../clock.ts";
import { claimDocument, fileColumns, parseWritten, toPage, updateDocument } from "../documents.ts";
import { createKeyParser, createKeyStore, createRequestCounter } from "../key-store.ts";
import { type NewMessage, serviceEndpoint } from "../outbox.ts";
import {
  assertQueueNotFull,
  defaultMaxQueued,
  delayOf,
  ofOwner,
  storeClosedError,
} from "../rules.ts";
import type { StoreOptions, TaskStore, UpdateOptions } from "../store.ts";
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
  const outbox = new MemoryOutbox(() => {
    assertOpen();
    return clock.steadyMs();
  });

  function assertOpen(): void {
    if (isClosed) throw storeClosedError("memory");
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

  const tasks = () => {
    assertOpen();
    return table;
  };
  const parts = { tasks, uses, events, announce, maxQueued, ...clock };
  return {
    events,
    keys: createMemoryKeys(accessKeys, assertOpen, clock.steadyMs),
    outbox,
    ...createTaskReads(parts),
    ...createTaskWrites(parts),
    ping: async () => assertOpen(),
    async close() {
      isClosed = true;
      table.clear();
      uses.clear();
      outbox.clear();
    },
  };
}

/** @param documents Keys as JSON, by name. */
function createMemoryKeys(
  documents: Map<string, string>,
  assertOpen: () => void,
  steadyMs: () => number,
) {
  const count = createRequestCounter(steadyMs);
  return createKeyStore({
    async add(name, document) {
      assertOpen();
      const isFree = !documents.has(name);
      if (isFree) documents.set(name, document);
      return isFree;
    },
    async list() {
      assertOpen();
      return [...documents.values()];
    },
    async remove(name) {
      assertOpen();
      return documents.delete(name);
    },
    async countRequest(name) {
      assertOpen();
      return count(name);
    },
  });
}

/** What the methods of the store work with. */
interface StoreParts extends Clock {
  /** Throws if the store is closed. */
  tasks(): TaskTable;
  uses: ReturnType<typeof createIdempotencyKeys>;
  events: TaskEventPublisher;
  /** Adds the message for every endpoint that gets it. */
  announce(message: NewMessage): void;
  maxQueued: number;
}

type TaskReads = Pick<TaskStore, "get" | "list" | "storedFiles" | "count">;

function createTaskReads({ tasks }: StoreParts): TaskReads {
  return {
    async get(id) {
      const entry = tasks().find(id);
      return entry && parseWritten(entry);
    },

    list: async ({ limit, ...query }) =>
      toPage(tasks().page({ ...query, limit: limit + 1 }), limit, parseWritten),

    storedFiles: async (query) => tasks().storedFiles(query),

    async count() {
      const oldest = tasks().oldestQueued();
      const oldestQueuedAt = oldest ? parseWritten(oldest).created_at : null;
      return { byState: { ...tasks().counts }, oldestQueuedAt };
    },
  };
}

type TaskWrites = Pick<TaskStore, "create" | "update" | "delete" | "claim" | "heartbeat">;

function createTaskWrites(parts: StoreParts): TaskWrites {
  const { tasks, uses, events, maxQueued, now, steadyMs } = parts;
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
        claimableAtMs: claimableAt(state, undefined, parts),
        stalledCount: 0,
      };
      const file = fileColumns(task);
      table.insert({ id, state, owner, host: hostOf(url), document, ...claim, ...file });
      events.publish(changeEvent(task, document));
      if (idempotency !== undefined) uses.keep(idempotency, document, nowMs);
      return parseWritten({ document });
    },

    update: async (id, change, given = {}) => updateTask(parts, id, change, given),

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
  { tasks, events, announce, ...clock }: StoreParts,
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
