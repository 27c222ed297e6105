import { randomUUID } from "node:crypto";
import type { AccessKey } from "../access-key.ts";
import { changeEvent, createTaskEvents, deletedEvent, type TaskEvent } from "../task-events.ts";
import { hostOf, type State, type Task } from "../task.ts";
import { createClock } from "./clock.ts";
import { claimDocument, type StoredTask, toPage, updateDocument } from "./documents.ts";
import { duplicateKeyError, keyNotFoundError, type KeyStore, parseKeys } from "./key-store.ts";
import { createMemoryOutbox } from "./memory/outbox.ts";
import { type NewMessage, serviceEndpoint } from "./outbox.ts";
import {
  assertQueueNotFull,
  defaultMaxQueued,
  delayOf,
  duplicateTaskError,
  emptyCounts,
  idempotencyMismatchError,
  ofOwner,
  storeClosedError,
  taskNotFoundError,
} from "./rules.ts";
import { type Idempotency, idempotencyTtlMs, type StoreOptions, type TaskStore } from "./store.ts";

interface Entry extends StoredTask {
  seq: number;
  host: string;
  /** When a claim may take the task, by the steady clock; Infinity: never. */
  claimableAtMs: number;
}

/** Creates a store in memory for some thousands of tasks: each list and claim looks at all of them. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, events = createTaskEvents(), webhook = false } = options;
  const { now, steadyMs } = createClock(options);
  /** By id, oldest first. */
  const entries = new Map<string, Entry>();
  /** By idempotency key. */
  const keys = new Map<string, { fingerprint: string; document: string; endsMs: number }>();
  /** Names of access keys, and the keys as JSON. */
  const accessKeys = new Map<string, string>();
  const outbox = createMemoryOutbox(() => {
    opened();
    return steadyMs();
  });
  let lastSeq = 0;
  const counts = emptyCounts();
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

  function put(entry: Entry, event: TaskEvent): Task {
    const before = entries.get(entry.id);
    if (before !== undefined) counts[before.state] -= 1;
    counts[entry.state] += 1;
    entries.set(entry.id, entry);
    events.publish(event);
    return parse(entry);
  }

  function announce(message: NewMessage): void {
    const key = parseKeys([accessKeys.get(message.owner ?? "") ?? []].flat())[0];
    const own = key?.webhook === undefined ? [] : [key.name];
    outbox.add(message, webhook ? [serviceEndpoint, ...own] : own);
  }

  function claimableAt(state: State, runAfter?: Date): number {
    if (state !== "queued") return Infinity;
    return runAfter ? steadyMs() + delayOf(runAfter, now()) : 0;
  }

  return {
    events,

    keys: createKeys(accessKeys, opened),

    outbox,

    async create(task, given) {
      opened();
      const { id, state, url, owner = null } = task;
      const idempotency = ofOwner(task, given);
      const nowMs = steadyMs();
      const earlier = idempotency && recall(idempotency, nowMs);
      if (earlier !== undefined) return parse({ document: earlier });
      assertQueueNotFull(counts.queued, maxQueued);
      if (entries.has(id)) throw duplicateTaskError(id);
      const document = JSON.stringify(task);
      if (idempotency !== undefined) {
        const { key, fingerprint } = idempotency;
        keys.set(key, { fingerprint, document, endsMs: nowMs + idempotencyTtlMs });
      }
      const position = { seq: ++lastSeq, host: hostOf(url), claimableAtMs: claimableAt(state) };
      const entry = { id, state, owner, document, lease: null, stalledCount: 0, ...position };
      return put(entry, changeEvent(task, document));
    },

    async get(id) {
      const entry = opened().get(id);
      return entry && parse(entry);
    },

    async list({ limit, state, owner, before = Infinity }) {
      const found: Entry[] = [];
      for (const entry of [...opened().values()].toReversed()) {
        if (found.length > limit) break;
        const isWanted =
          (state ?? entry.state) === entry.state && (owner ?? entry.owner) === entry.owner;
        if (isWanted && entry.seq < before) found.push(entry);
      }
      return toPage(found, limit, parse);
    },

    async update(id, change, given = {}) {
      const entry = require(id);
      const { stored, event, message } = updateDocument(entry, change, given, now());
      if (message !== undefined) announce(message);
      if (change.state === undefined) return put({ ...entry, ...stored }, event);
      const claimableAtMs = claimableAt(change.state, given.runAfter);
      return put({ ...entry, ...stored, lease: null, claimableAtMs }, event);
    },

    async delete(id) {
      const entry = require(id);
      entries.delete(id);
      counts[entry.state] -= 1;
      events.publish(deletedEvent(id, entry.owner));
      return parse(entry);
    },

    async claim({ leaseMs, exceptHosts = [] }) {
      const nowMs = steadyMs();
      const isClaimable = ({ claimableAtMs, host }: Entry) =>
        claimableAtMs <= nowMs && !exceptHosts.includes(host);
      const entry = opened().values().find(isClaimable);
      if (entry === undefined) return undefined;
      const { task, stored, event } = claimDocument(entry, now());
      const lease = randomUUID();
      put({ ...entry, ...stored, lease, claimableAtMs: nowMs + leaseMs }, event);
      return { task, lease, stalledCount: stored.stalledCount };
    },

    async heartbeat(id, lease, leaseMs) {
      const entry = opened().get(id);
      if (entry?.lease !== lease) return false;
      entry.claimableAtMs = steadyMs() + leaseMs;
      return true;
    },

    async count() {
      const oldest = opened()
        .values()
        .find(({ state }) => state === "queued");
      return { byState: { ...counts }, oldestQueuedAt: oldest ? parse(oldest).created_at : null };
    },

    ping: async () => void opened(),

    async close() {
      isClosed = true;
      entries.clear();
      keys.clear();
      outbox.clear();
    },
  };
}

/** @param assertOpen Throws if the store is closed. */
function createKeys(documents: Map<string, string>, assertOpen: () => unknown): KeyStore {
  return {
    async add(key: AccessKey) {
      assertOpen();
      if (documents.has(key.name)) throw duplicateKeyError(key.name);
      documents.set(key.name, JSON.stringify(key));
    },
    async list() {
      assertOpen();
      return parseKeys([...documents.values()]);
    },
    async remove(name) {
      assertOpen();
      if (!documents.delete(name)) throw keyNotFoundError(name);
    },
  };
}

/** Needs no check: only this process has written the document. */
const parse = ({ document }: Pick<StoredTask, "document">): Task => JSON.parse(document);
