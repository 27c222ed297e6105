import type { EventSourceMessage } from "eventsource-parser";
import { createFeedClient } from "../feed-client.ts";
import { parseDeleted, parseTask, type TaskEvent } from "./responses.ts";
import { openService, type ServiceClient } from "./service-client.ts";

export interface FollowOptions {
  /** Base URL of the service, with a slash at the end. */
  url: URL;
  /** Stops following. */
  signal: AbortSignal;
  /** Called when the connection fails, unless the reason is the same as the last time. */
  onDisconnect(reason: string): void;
}

/**
 * Yields the running tasks, then every change, in groups as they arrive; ends when `signal` is aborted.
 * After a lost connection it resumes after the last event that it received. If the service no longer has
 * the missed changes, the running tasks, and those that were running before, are read again.
 */
export async function* followTasks(options: FollowOptions): AsyncGenerator<TaskEvent[]> {
  const { url, signal, onDisconnect } = options;
  const service = openService(url, signal);
  const running = new Set<string>();
  let lastReason: string | undefined;
  const feed = createFeedClient({
    url,
    readAll: () => readRunning(service, running),
    parse: (events) => events.flatMap(changeOf),
    onConnect() {
      lastReason = undefined;
    },
    onDisconnect(error) {
      const reason = reasonOf(error);
      if (reason !== lastReason) onDisconnect(reason);
      lastReason = reason;
    },
  });
  for await (const changes of feed.follow(signal)) {
    for (const { type, task } of changes) {
      if (type === "task" && task.state === "running") running.add(task.id);
      else running.delete(task.id);
    }
    yield changes;
  }
}

/** Returns the tasks that run now, and the new state of those in `known` that no longer do. */
async function readRunning(
  service: ServiceClient,
  known: ReadonlySet<string>,
): Promise<TaskEvent[]> {
  const tasks = await service.listRunning();
  const ids = new Set(tasks.map(({ id }) => id));
  const changes: TaskEvent[] = tasks.map((task) => ({ type: "task", task }));
  for (const id of known.difference(ids)) {
    const task = await service.getTask(id);
    changes.push(task === undefined ? { type: "deleted", task: { id } } : { type: "task", task });
  }
  return changes;
}

function changeOf({ event: type, data }: EventSourceMessage): TaskEvent[] {
  if (type === "task") return [{ type, task: parseTask(data) }];
  if (type === "deleted") return [{ type, task: parseDeleted(data) }];
  return [];
}

/** The message of `fetch` is only "fetch failed"; the reason is in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? error.message);
}
