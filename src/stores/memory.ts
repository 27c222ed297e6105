import { randomUUID } from "node:crypto";
import { changeEvent, createTaskEvents, deletedEvent } from "../task-events.ts";
import { hostOf, type State, type Task } from "../task.ts";
import { claimDocument, parseTask, type StoredTask, toPage, updateDocument } from "./documents.ts";
import {
  assertQueueNotFull,
  defaultMaxQueued,
  duplicateTaskError,
  idempotencyMismatchError,
  storeClosedError,
  taskNotFoundError,
} from "./rules.ts";
import { type Idempotency, idempotencyTtlMs, type StoreOptions, type TaskStore } from "./store.ts";

interface Entry extends StoredTask {
  seq: number;
  host: string;
  /** When a claim may take the task, Unix milliseconds; Infinity: never. */
  claimableAtMs: number;
}

/**
 * Creates a store that lasts as long as the process. Each list and claim looks at all tasks, so it is
 * meant for some thousands of them.
 */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, now = () => new Date() } = options;
  const { events = createTaskEvents() } = options;
  /** By id, oldest first. */
  const entries = new Map<string, Entry>();
  /** By idempotency key. */
  const keys = new Map<string, { fingerprint: string; document: string; endsMs: number }>();
  let lastSeq = 0;
  let queued = 0;
  let isClosed = false;

  function opened(): Map<string, Entry> {
    if (isClosed) throw storeClosedError("memory");
    return entries;
  }

  function require(id: string): Entry {
    const entry = opened().get(id);
    if (entry === undefined) throw taskNotFoundError(id);
    return entry;
  }

  /** Returns the document that was stored under the key. */
  function recall(idempotency: Idempotency, nowMs: number): string | undefined {
    for (const [key, { endsMs }] of keys) if (endsMs <= nowMs) keys.delete(key);
    const use = keys.get(idempotency.key);
    if (use === undefined || use.fingerprint === idempotency.fingerprint) return use?.document;
    throw idempotencyMismatchError(idempotency);
  }

  function put({ id }: Pick<Task, "id">, entry: Entry): Task {
    queued += Number(entry.state === "queued") - Number(entries.get(id)?.state === "queued");
    entries.set(id, entry);
    events.publish(changeEvent({ id, state: entry.state }, entry.document));
    return parseTask(entry.document);
  }

  return {
    events,

    async create(task, idempotency) {
      opened();
      const nowMs = now().getTime();
      const earlier = idempotency && recall(idempotency, nowMs);
      if (earlier !== undefined) return parseTask(earlier);
      assertQueueNotFull(queued, maxQueued);
      if (entries.has(task.id)) throw duplicateTaskError(task.id);
      const { state } = task;
      const document = JSON.stringify(task);
      if (idempotency !== undefined) {
        const { key, fingerprint } = idempotency;
        keys.set(key, { fingerprint, document, endsMs: nowMs + idempotencyTtlMs });
      }
      const stored = { state, document, lease: null, stalledCount: 0 };
      const claimableAtMs = claimableAt(state);
      return put(task, { seq: ++lastSeq, host: hostOf(task.url), claimableAtMs, ...stored });
    },

    async get(id) {
      const entry = opened().get(id);
      return entry && parseTask(entry.document);
    },

    async list({ limit, state, before = Infinity }) {
      const found: Entry[] = [];
      for (const entry of [...opened().values()].reverse()) {
        if (found.length > limit) break;
        if (entry.seq < before && (state === undefined || entry.state === state)) found.push(entry);
      }
      return toPage(found, limit);
    },

    async update(id, change, given = {}) {
      const entry = require(id);
      const { task, stored } = updateDocument(entry, change, given, now());
      if (change.state === undefined) return put(task, { ...entry, ...stored });
      const claimableAtMs = claimableAt(change.state, given.runAfter);
      return put(task, { ...entry, ...stored, lease: null, claimableAtMs });
    },

    async delete(id) {
      const { document, state } = require(id);
      entries.delete(id);
      queued -= Number(state === "queued");
      events.publish(deletedEvent(id));
      return parseTask(document);
    },

    async claim({ leaseMs, exceptHosts = [] }) {
      const at = now();
      const isClaimable = ({ claimableAtMs, host }: Entry) =>
        claimableAtMs <= at.getTime() && !exceptHosts.includes(host);
      const entry = opened().values().find(isClaimable);
      if (entry === undefined) return undefined;
      const { task, stored } = claimDocument(entry, at);
      const lease = randomUUID();
      put(task, { ...entry, ...stored, lease, claimableAtMs: at.getTime() + leaseMs });
      return { task, lease, stalledCount: stored.stalledCount };
    },

    async heartbeat(id, lease, leaseMs) {
      const entry = opened().get(id);
      if (entry?.lease !== lease) return false;
      entry.claimableAtMs = now().getTime() + leaseMs;
      return true;
    },

    ping: async () => void opened(),

    async close() {
      isClosed = true;
      entries.clear();
      keys.clear();
    },
  };
}

function claimableAt(state: State, runAfter?: Date): number {
  return state === "queued" ? (runAfter?.getTime() ?? 0) : Infinity;
}
