import type { State, Task } from "../../model/task.ts";
import { isNotFound, request, requestJson } from "../api.ts";

export type TaskAction = "cancel" | "finish" | "retry" | "delete-file" | "delete";

export interface TaskPage {
  tasks: Task[];
  /** Query of the page after it; undefined: it is the last one. */
  next: string | undefined;
}

export type TaskRequests = ReturnType<typeof createTaskRequests>;

/**
 * Returns the requests about tasks, which all reject with an `ApiError`.
 *
 * @param url base URL of the service.
 */
export function createTaskRequests(url: URL) {
  const locate = (path: string) => new URL(`tasks/${path}`, url).href;

  /** Reads pages from `query` on, until there are `count` tasks or no more. */
  async function readPages(query: string, count: number): Promise<TaskPage> {
    const tasks: Task[] = [];
    let next: string | undefined = query;
    do {
      const page: { tasks: Task[]; next: string | null } = await requestJson(locate(next));
      tasks.push(...page.tasks);
      next = page.next === null ? undefined : new URL(page.next, url).search;
    } while (next !== undefined && tasks.length < count);
    return { tasks, next };
  }

  return {
    readPages,
    /** Reads all tasks in these states. */
    async readAll(states: readonly State[]): Promise<Task[]> {
      const lists = states.map((state) => readPages(`?state=${state}&limit=200`, Infinity));
      return (await Promise.all(lists)).flatMap(({ tasks }) => tasks);
    },
    /** Returns undefined if there is no such task. */
    readTask: (id: string) => unlessGone(requestJson<Task>(locate(id))),
    /** Returns the task as it is afterwards; undefined: it is deleted. */
    async act(id: string, action: TaskAction): Promise<Task | undefined> {
      if (action === "delete-file") return requestJson(locate(`${id}/file`), { method: "DELETE" });
      if (action !== "delete") return requestJson(locate(`${id}/${action}`), { method: "POST" });
      await unlessGone(request(locate(id), { method: "DELETE" }));
      return undefined;
    },
  };
}

/** Resolves with undefined instead of failing because there is no such thing. */
async function unlessGone<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
