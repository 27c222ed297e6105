import type { Task } from "../task.ts";
import type { TaskPage } from "./store.ts";

/** A task as a store keeps it, as JSON. */
export function parseTask(document: string): Task {
  return JSON.parse(document);
}

/** The page of at most `limit` tasks that `found` holds, which was looked for with one more. */
export function toPage(
  found: readonly { seq: number; document: string }[],
  limit: number,
): TaskPage {
  const page = found.slice(0, limit);
  const tasks = page.map(({ document }) => parseTask(document));
  const last = page.at(-1);
  return found.length > limit && last !== undefined ? { tasks, next: last.seq } : { tasks };
}
