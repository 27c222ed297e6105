import type { AccessKey } from "../../model/access-key.ts";
import { createTaskEvents } from "../../feed/task-events.ts";
import { createClock } from "../clock.ts";
import { createDamageReport, parseWritten, toPage } from "../documents.ts";
import { createKeyParser, createKeyStore, createRequestCounter, type KeyStore } from "../key-store.ts";
import { type NewMessage, serviceEndpoint } from "../outbox.ts";
import { defaultMaxQueued, storeClosedError } from "../rules.ts";
import { type Changed, createLocalWrites } from "../local-writes.ts";
import type { StoreOptions, TaskReads, TaskStore } from "../store.ts";
import { createMemoryTables, type MemoryTables } from "./tables.ts";
import { MemoryOutbox } from "./outbox.ts";
import { TaskTable } from "./task-table.ts";

/** Creates a store in memory for some thousands of tasks: each list and claim looks at all of them. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  const { maxQueued = defaultMaxQueued, events = createTaskEvents(), webhook = false } = options;
  const clock = createClock(options);
  /** Names of access keys, and the keys as JSON. */
  const accessKeys = new Map<string, string>();
  const parseKey = createKeyParser();
  const table = new TaskTable((owner) => keyOf(owner)?.limits, maxQueued);
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
  const tables = createMemoryTables({ tasks, announce });

  async function change<T>(job: () => Changed<T>): Promise<T> {
    const { result, events: changes = [] } = job();
    for (const event of changes) events.publish(event);
    return result;
  }

  const damage = createDamageReport(undefined);
  const deps = { damage, maxQueued, now: clock.now, steadyMs, write: async <T>(job: () => T) => job(), change };
  return {
    events,
    keys: createMemoryKeys(() => opened(accessKeys), steadyMs),
    outbox,
    ...createTaskReads(tasks, tables),
    ...createLocalWrites(tables, deps),
    ping: async () => opened(undefined),
    async close() {
      isClosed = true;
      table.clear();
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

/** @param tasks Throws if the store is closed. */
function createTaskReads(tasks: () => TaskTable, tables: MemoryTables): TaskReads {
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
