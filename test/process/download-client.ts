import type { Task, TaskOptions } from "../../src/task.ts";
import { readEvents } from "../../src/watch/event-stream.ts";

/** A client of a running service that is told of every change. */
export interface TaskClient {
  post(page: string, options?: TaskOptions): Promise<Task>;
  /** POSTs to, or DELETEs, `/tasks/{id}{path}`; gives the status. */
  order(method: "POST" | "DELETE", id: string, path?: string): Promise<number>;
  file(id: string, headers?: Record<string, string>): Promise<Response>;
  list(): Promise<Task[]>;
  /** The task as soon as `holds` is true of it. Rejects where the task or the service ends first. */
  until(id: string, holds: (task: Task) => boolean): Promise<Task>;
  /** The task once it has succeeded, failed or been canceled. */
  ended(id: string): Promise<Task>;
  close(): void;
}

export async function openTaskClient(base: string): Promise<TaskClient> {
  const known = new Map<string, Task>();
  const waiting = new Map<string, Set<() => void>>();
  const closing = new AbortController();
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => {});
  const hear = (task: Task) => {
    known.set(task.id, task);
    for (const check of waiting.get(task.id) ?? []) check();
  };
  const hearIfNew = (task: Task) => {
    if (task.updated_at > (known.get(task.id)?.updated_at ?? "")) hear(task);
  };
  const stream = await fetch(`${base}/tasks/events`, { signal: closing.signal });
  if (stream.status !== 200 || stream.body === null) {
    throw new Error(`GET /tasks/events answered ${stream.status}`);
  }
  void follow(stream.body, hear).then(
    () => lost.reject(new Error("the stream of events has ended")),
    (error: unknown) => lost.reject(error),
  );
  const client: TaskClient = {
    async post(page, options = {}) {
      const answer = await fetch(`${base}/tasks/`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: page, options }),
      });
      if (answer.status === 201) return (await answer.json()) as Task;
      throw new Error(`POST /tasks/ answered ${answer.status}: ${await answer.text()}`);
    },
    async order(method, id, path = "") {
      const answer = await fetch(`${base}/tasks/${id}${path}`, { method });
      const text = await answer.text();
      if (answer.status === 200) hearIfNew(JSON.parse(text) as Task);
      return answer.status;
    },
    file: (id, headers = {}) => fetch(`${base}/tasks/${id}/file`, { headers }),
    async list() {
      const tasks: Task[] = [];
      for (let path: string | null = "/tasks/?limit=200"; path !== null;) {
        const answer = (await (await fetch(base + path)).json()) as {
          tasks: Task[];
          next: string | null;
        };
        tasks.push(...answer.tasks);
        path = answer.next;
      }
      return tasks;
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
      return Promise.race([promise, lost.promise]);
    },
    ended: (id) => client.until(id, hasEnded),
    close: () => closing.abort(),
  };
  // Behind the beginning of the stream, so that nothing falls between.
  for (const task of await client.list()) hearIfNew(task);
  return client;
}

function hasEnded({ state }: Task): boolean {
  return state !== "queued" && state !== "running";
}

async function follow(body: AsyncIterable<Uint8Array>, hear: (task: Task) => void): Promise<void> {
  for await (const events of readEvents(body)) {
    for (const { event, data } of events) if (event === "task") hear(JSON.parse(data) as Task);
  }
}
