import { createDatabase } from "../sqlite/database.ts";
import { createSqlStore } from "../sqlite/sqlite-store.ts";
import type { StoreOptions, TaskStore } from "../store.ts";

/** Creates a store in memory: the SQLite store with a database that has no file and ends with the store. */
export function createMemoryStore(options: StoreOptions = {}): TaskStore {
  return createSqlStore({ db: createDatabase() }, options);
}
