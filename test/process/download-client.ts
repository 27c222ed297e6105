import type { Task, TaskOptions } from "../../src/model/task.ts";
import { readEvents } from "../../src/feed/feed-client.ts";

/** A client of a running service that follows `GET /tasks/events`. */
export interface TaskClient {
  post(page: string, options?: TaskOptions): Promise<Task>;
  /** Sends `method` to `/tasks/{id}{path}`; returns the status. */
  request(method: "POST" | "DELETE", id: string, path?: string): Promise<number>;
  file(id: string, headers?: Record<string, string>): Promise<Response>;
  get(id: string): Promise<Task>;
  list(): Promise<Task[]>;
  /** Deletes all tasks, one after the other. */
  deleteAll(): Promise<void>;
  /** Resolves with the task once `holds` is true of it; rejects if the task or the stream ends first. */
  until(id: string, holds: (task: Task) => boolean): Promise<Task>;
  /** Resolves with the task once it has succeeded, failed or been canceled. */
  ended(id: string): Promise<Task>;
  close(): void;
}

export async function openTaskClient(base: string): Promise<TaskClient> {
  const known = new Map<string, Task>();
  const waiting = new Map<string, Set<() => void>>();
  const closing = new AbortController();
  const disconnected = Promise.withResolvers<never>();
  disconnected.promise.catch(() => {});
  const note = (task: Task) => {
    // Events leave `info` out while it is the same.
    known.set(task.id, { ...task, info: task.info ?? known.get(task.id)?.info ?? null });
    for (const check of waiting.get(task.id) ?? []) check();
  };
  const noteIfNew = (task: Task) => {
    if (task.updated_at > (known.get(task.id)?.updated_at ?? "")) note(task);
  };
  const stream = await fetch(`${base}/tasks/events`, { signal: closing.signal });
  if (stream.status !== 200 || stream.body === null) {
    throw new Error(`GET /tasks/events returned ${stream.status}`);
  }
  void follow(stream.body, note).then(
    () => disconnected.reject(new Error("the event stream ended")),
    (error: unknown) => disconnected.reject(error),
  );
  const client: TaskClient = {
    async post(page, options = {}) {
      const response = await fetch(`${base}/tasks/`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: page, options }),
      });
      if (response.status === 201) return (await response.json()) as Task;
      throw new Error(`POST /tasks/ returned ${response.status}: ${await response.text()}`);
    },
    async request(method, id, path = "") {
      const response = await fetch(`${base}/tasks/${id}${path}`, { method });
      const text = await response.text();
      if (response.status === 200) noteIfNew(JSON.parse(text) as Task);
      return response.status;
    },
    file: (id, headers = {}) => fetch(`${base}/tasks/${id}/file`, { headers }),
    async get(id) {
      return (await (await fetch(`${base}/tasks/${id}`)).json()) as Task;
    },
    async list() {
      const tasks: Task[] = [];
      for (let path: string | null = "?limit=200"; path !== null;) {
        const page = (await (await fetch(new URL(path, `${base}/tasks/`))).json()) as {
          tasks: Task[];
          next: string | null;
        };
        tasks.push(...page.tasks);
        path = page.next;
      }
      return tasks;
    },
    async deleteAll() {
      for (const { id } of await client.list()) await client.request("DELETE", id);
    },
    until(id, holds) {
      const { promise, resolve, reject } = Promise.withResolvers<Task>();
      const checks = waiting.get(id) ?? new Set();
      waiting.set(id, checks);
      const check = () => {
        const task = known.get(id);
        if (task === undefined || (!holds(task) && !hasEnded(task))) return;
        checks.delete(check);
        if (holds(task)) resolve(task);
        else reject(new Error(`task ${id} ended: ${task.state}, ${task.error?.message}`));
      };
      checks.add(check);
      check();
      return Promise.race([promise, disconnected.promise]);
    },
    ended: (id) => client.until(id, hasEnded),
    close: () => closing.abort(),
  };
  // Read after the stream has begun, so that no change is missed between the two.
  for (const task of await client.list()) noteIfNew(task);
  return client;
}

function hasEnded({ state }: Task): boolean {
  return state !== "queued" && state !== "running";
}

async function follow(body: AsyncIterable<Uint8Array>, onTask: (task: Task) => void): Promise<void> {
  for await (const events of readEvents(body)) {
    for (const { event, data } of events) if (event === "task") onTask(JSON.parse(data) as Task);
  }
}
