import type { AddressInfo } from "node:net";
import { newTask } from "../../src/feed/task-changes.ts";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import type { App } from "../../src/http/app.ts";
import { type AppOptions } from "../http/app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { halfway } from "./task.ts";
import { openApp } from "../http/open-app.ts";

/** Starts a service on a port of 127.0.0.1, closed after the test. */
export async function serve(options: AppOptions = {}, port = 0): Promise<{ app: App; url: URL }> {
  const app = await openApp(options);
  await app.listen({ host: "127.0.0.1", port });
  return { app, url: new URL(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`) };
}

export function createStore(maxEvents = 1_000): TaskStore {
  return createMemoryStore({ events: createTaskEvents({ maxEvents }) });
}

/** Adds a task that is half downloaded, and returns its id. */
export async function startTask(store: TaskStore, name: string): Promise<string> {
  const { id } = await store.create(newTask(`https://example.com/${name}`, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  await store.update(id, { progress: halfway });
  return id;
}
