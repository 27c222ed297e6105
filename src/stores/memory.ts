import { randomUUID } from "node:crypto";
import { changeTask } from "../task-changes.ts";
import { copyJson } from "./copy.ts";
import { parseTask, toPage } from "./documents.ts";
import { KeyMemory } from "./memory/key-memory.ts";
import { TaskTable } from "./memory/shelf.ts";
import {
  assertQueueNotFull,
  storeClosedError,
  stalledCountAfter,
  defaultMaxQueued,
  leaseLostError,
  toRunning,
} from "./rules.ts";
import type { TaskStore } from "./store.ts";

export interface MemoryStoreOptions {
  /** Tasks that are queued at most; default 100,000. */
  maxQueued?: number;
  /** Default: the system's clock. */
  now?: () => Date;
}

/** A store that lives as long as the process: for tests, trials and services that may forget. */
export function createMemoryStore(options: MemoryStoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, now = () => new Date() } = options;
  let contents: Contents | undefined = { shelf: new TaskTable(), keys: new KeyMemory() };

  function opened(): Contents {
    if (contents === undefined) throw storeClosedError("memory");
    return contents;
  }

  return {
    name: "memory",

    async create(task, idempotency) {
      const { shelf, keys } = opened();
      const nowMs = now().getTime();
      const earlier = idempotency && keys.recall(idempotency, nowMs);
      if (earlier !== undefined) return parseTask(earlier);
      assertQueueNotFull(shelf.queued, maxQueued);
      const { document } = shelf.add(task);
      if (idempotency !== undefined) keys.keep(idempotency, document, nowMs);
      return copyJson(task);
    },

    async get(id) {
      const entry = opened().shelf.find(id);
      return entry && parseTask(entry.document);
    },

    async list({ limit, state, before }) {
      return toPage(opened().shelf.newest(limit + 1, state, before), limit);
    },

    async update(id, change, given = {}) {
      const { shelf } = opened();
      const entry = shelf.require(id);
      if (given.lease !== undefined && given.lease !== entry.lease) throw leaseLostError(id);
      const task = changeTask(parseTask(entry.document), copyJson(change), now());
      shelf.replace(entry, task);
      entry.deaths = stalledCountAfter(entry.deaths, change, given.madeProgress);
      if (change.state !== undefined) {
        entry.lease = undefined;
        if (change.state !== "queued") shelf.queue.remove(entry);
        else if (given.runAfter === undefined) shelf.queue.ready(entry);
        else shelf.queue.wait(entry, given.runAfter.getTime());
      }
      return task;
    },

    async delete(id) {
      const { shelf } = opened();
      const entry = shelf.require(id);
      shelf.remove(entry);
      return parseTask(entry.document);
    },

    async claim({ leaseMs, exceptHosts = [] }) {
      const { shelf } = opened();
      const at = now();
      const entry = shelf.queue.oldest(at.getTime(), exceptHosts);
      if (entry === undefined) return undefined;
      const task = toRunning(parseTask(entry.document), at);
      if (entry.state === "running") entry.deaths += 1;
      shelf.replace(entry, task);
      const lease = randomUUID();
      entry.lease = lease;
      shelf.queue.wait(entry, at.getTime() + leaseMs);
      return { task, lease, stalledCount: entry.deaths };
    },

    async heartbeat(id, lease, leaseMs) {
      const { shelf } = opened();
      const entry = shelf.find(id);
      if (entry?.lease !== lease) return false;
      shelf.queue.wait(entry, now().getTime() + leaseMs);
      return true;
    },

    async ping() {
      opened();
    },

    async close() {
      contents = undefined;
    },
  };
}

interface Contents {
  shelf: TaskTable;
  keys: KeyMemory<string>;
}
