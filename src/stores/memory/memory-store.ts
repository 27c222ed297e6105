import { randomUUID } from "node:crypto";
import type { AccessKey, KeyLimits } from "../../model/access-key.ts";
import {
  changeEvent,
  createTaskEvents,
  deletedEvent,
  type TaskEvent,
} from "../../feed/task-events.ts";
import { hostOf, type State, type Task } from "../../model/task.ts";
import { createClock } from "../clock.ts";
import {
  claimDocument,
  fileColumns,
  parseWritten,
  type StoredTask,
  toPage,
  updateDocument,
} from "../documents.ts";
import { createKeyParser } from "../key-store.ts";
import { storedFilesOf } from "./files.ts";
import { createIdempotencyKeys } from "./idempotency-keys.ts";
import { createMemoryKeys } from "./keys.ts";
import { createMemoryOutbox } from "./outbox.ts";
import { bytesOfAll, byTurn, type OwnerTurn } from "./turns.ts";
import { type NewMessage, serviceEndpoint } from "../outbox.ts";
import { addUse, assertQuota, bytesLeft, type Counted, noUse, useChange } from "../quotas.ts";
import { createRequestCounter } from "../request-counter.ts";
import {
  assertQueueNotFull,
  assertStoredBytes,
  defaultMaxQueued,
  delayOf,
  duplicateTaskError,
  emptyCounts,
  ofOwner,
  storeClosedError,
  taskNotFoundError,
} from "../rules.ts";
import type { StoreOptions, TaskStore } from "../store.ts";

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
  const uses = createIdempotencyKeys();
  /** By owner; `""`: nobody. */
  const turns = new Map<string, OwnerTurn>();
  /** Names of access keys, and the keys as JSON. */
  const accessKeys = new Map<string, string>();
  const parseKey = createKeyParser();
  const outbox = createMemoryOutbox(() => {
    opened();
    return steadyMs();
  });
  let lastSeq = 0;
  let lastClaim = 0;
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

  /** @throws ServiceError `quota_exceeded`, `StorageFullError`, with nothing stored. */
  function put(entry: Entry, event: TaskEvent, maxStoredBytes?: number): Task {
    const before = entries.get(entry.id);
    count(entry.owner, before, entry, maxStoredBytes);
    entries.set(entry.id, entry);
    events.publish(event);
    return parseWritten(entry);
  }

  /** @throws ServiceError `quota_exceeded`, `StorageFullError`, with nothing counted. */
  function count(owner: string | null, before: Counted, after: Counted, most = Infinity): void {
    const change = useChange(before, after);
    const turn = turnOf(owner);
    const use = addUse(turn, change);
    assertQuota(limitsOf(owner), use, before, after);
    assertStoredBytes(bytesOfAll(turns) + change.bytes, most);
    Object.assign(turn, use);
    if (before !== undefined) counts[before.state] -= 1;
    if (after !== undefined) counts[after.state] += 1;
  }

  function turnOf(owner: string | null): OwnerTurn {
    const turn = turns.get(owner ?? "") ?? { ...noUse, claimed: 0 };
    turns.set(owner ?? "", turn);
    return turn;
  }

  function keyOf(owner: string | null): AccessKey | undefined {
    const document = accessKeys.get(owner ?? "");
    return document === undefined ? undefined : parseKey(owner ?? "", document);
  }

  function limitsOf(owner: string | null): KeyLimits {
    return keyOf(owner)?.limits ?? {};
  }

  /** Returns the task that the owner whose turn it is gets. */
  function nextInTurn(nowMs: number, exceptHosts: readonly string[]): Entry | undefined {
    const active = [...turns].filter(([, turn]) => turn.queued + turn.running > 0);
    const full = active.filter(([owner, { running }]) => {
      const { max_running: most = Infinity } = limitsOf(owner);
      return running >= most;
    });
    const isFull = new Set(full.map(([owner]) => owner));
    const oldest = new Map<string, Entry>();
    for (const entry of entries.values()) {
      if (oldest.size === active.length) break;
      const owner = entry.owner ?? "";
      if (oldest.has(owner) || entry.claimableAtMs > nowMs) continue;
      if (exceptHosts.includes(entry.host)) continue;
      if (entry.state === "running" || !isFull.has(owner)) oldest.set(owner, entry);
    }
    const [next] = active.filter(([owner]) => oldest.has(owner)).toSorted(byTurn);
    return next && oldest.get(next[0]);
  }

  function announce(message: NewMessage): void {
    const key = keyOf(message.owner);
    const own = key?.webhook === undefined ? [] : [key.name];
    outbox.add(message, webhook ? [serviceEndpoint, ...own] : own);
  }

  function claimableAt(state: State, runAfter?: Date): number {
    if (state !== "queued") return Infinity;
    return runAfter ? steadyMs() + delayOf(runAfter, now()) : 0;
  }

  return {
    events,

    keys: createMemoryKeys(accessKeys, opened, createRequestCounter(steadyMs)),

    outbox,

    async create(task, given) {
      opened();
      const { id, state, url, owner = null } = task;
      const idempotency = ofOwner(task, given);
      const nowMs = steadyMs();
      const earlier = idempotency && uses.recall(idempotency, nowMs);
      if (earlier !== undefined) return parseWritten({ document: earlier });
      assertQueueNotFull(counts.queued, maxQueued);
      if (entries.has(id)) throw duplicateTaskError(id);
      const document = JSON.stringify(task);
      const position = { seq: ++lastSeq, host: hostOf(url), claimableAtMs: claimableAt(state) };
      const stored = { id, state, owner, document, lease: null, stalledCount: 0 };
      const entry = { ...stored, ...position, ...fileColumns(task) };
      const created = put(entry, changeEvent(task, document));
      if (idempotency !== undefined) uses.keep(idempotency, document, nowMs);
      return created;
    },

    async get(id) {
      const entry = opened().get(id);
      return entry && parseWritten(entry);
    },

    async list({ limit, state, owner, before = Infinity }) {
      const found: Entry[] = [];
      for (const entry of [...opened().values()].toReversed()) {
        if (found.length > limit) break;
        const isWanted =
          (state ?? entry.state) === entry.state && (owner ?? entry.owner) === entry.owner;
        if (isWanted && entry.seq < before) found.push(entry);
      }
      return toPage(found, limit, parseWritten);
    },

    async update(id, change, given = {}) {
      const entry = require(id);
      const { stored, event, message } = updateDocument(entry, change, given, now());
      const { state } = change;
      const moved = state && { lease: null, claimableAtMs: claimableAt(state, given.runAfter) };
      const updated = put({ ...entry, ...stored, ...moved }, event, given.maxStoredBytes);
      if (message !== undefined) announce(message);
      return updated;
    },

    async delete(id) {
      const entry = require(id);
      entries.delete(id);
      count(entry.owner, entry, undefined);
      events.publish(deletedEvent(id, entry.owner));
      return parseWritten(entry);
    },

    async claim({ leaseMs, exceptHosts = [] }) {
      opened();
      const nowMs = steadyMs();
      const entry = nextInTurn(nowMs, exceptHosts);
      if (entry === undefined) return undefined;
      const turn = turnOf(entry.owner);
      turn.claimed = ++lastClaim;
      const { task, stored, event } = claimDocument(entry, now());
      const lease = randomUUID();
      put({ ...entry, ...stored, lease, claimableAtMs: nowMs + leaseMs }, event);
      const left = bytesLeft(limitsOf(entry.owner), turn);
      return { task, lease, stalledCount: stored.stalledCount, bytesLeft: left };
    },

    async heartbeat(id, lease, leaseMs) {
      const entry = opened().get(id);
      if (entry?.lease !== lease) return false;
      entry.claimableAtMs = steadyMs() + leaseMs;
      return true;
    },

    storedFiles: async (query) => storedFilesOf(opened().values(), query),

    async count() {
      const oldest = opened()
        .values()
        .find(({ state }) => state === "queued");
      return {
        byState: { ...counts },
        oldestQueuedAt: oldest ? parseWritten(oldest).created_at : null,
      };
    },

    ping: async () => void opened(),

    async close() {
      isClosed = true;
      entries.clear();
      uses.clear();
      outbox.clear();
    },
  };
}
