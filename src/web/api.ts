import { retryAfterMs, type RetryLater } from "../feed/feed-client.ts";
import type { PageInfo } from "../model/page-info.ts";
import type { TaskFailure } from "../model/progress.ts";
import type { State, Task, TaskOptions } from "../model/task.ts";

/**
 * Why a request failed, in the members that a task's `error` has too: what a problem document said, or the code
 * `connection_lost` (with status 0) if no response arrived.
 */
export class ApiError extends Error implements TaskFailure, RetryLater {
  override readonly name = "ApiError";
  readonly code: string;
  readonly retryable: boolean;
  readonly status: number;
  readonly retryAfterMs: number;

  constructor(status: number, { code, message, retryable }: TaskFailure, waitMs = 0) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.status = status;
    this.retryAfterMs = waitMs;
  }
}

interface RequestOptions {
  method?: "GET" | "POST" | "DELETE";
  /** Sent as JSON. */
  body?: object;
  signal?: AbortSignal | undefined;
}

/** Gets the event `unauthorized` when the service refuses a request because it has no valid key. */
export const refusals = new EventTarget();

/**
 * Sends a request to the service and returns the response once its status is 2xx. `path` is relative to the page,
 * without a leading slash, so that the service may be below any path of a host.
 *
 * @throws ApiError for any other status and without a response; what `signal` was aborted with.
 */
export async function request(path: string, options: RequestOptions): Promise<Response> {
  const { method = "GET", body, signal } = options;
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: { accept: "application/json", ...(body && json) },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw lostError(`${method} ${path}`, error);
  }
  if (response.ok) return response;
  if (response.status === 401) refusals.dispatchEvent(new Event("unauthorized"));
  throw new ApiError(response.status, await parseProblem(response), retryAfterMs(response));
}

/** As `request`, and returns the body, which is JSON of the type that the path is documented with. */
async function requestJson<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await request(path, options);
  try {
    return (await response.json()) as T;
  } catch (error) {
    options.signal?.throwIfAborted();
    throw lostError(`reading the response of ${path}`, error);
  }
}

/** Returns what is on the page `url`; with a cursor, its further entries. */
export function readInfo(url: string, signal: AbortSignal, cursor?: string): Promise<PageInfo> {
  const entries = cursor === undefined ? "" : `&entries_cursor=${encodeURIComponent(cursor)}`;
  return requestJson(`info?url=${encodeURIComponent(url)}${entries}`, { signal });
}

/** Creates the task that downloads the page `url`. */
export function createTask(url: string, options: TaskOptions): Promise<Task> {
  return requestJson("tasks/", { method: "POST", body: { url, options } });
}

/** As many as the service takes in one request. */
const maxBatch = 500;

/** Creates tasks that download these pages; returns for each the task, or why there is none. */
export async function createTasks(urls: readonly string[], options: TaskOptions): Promise<(Task | TaskFailure)[]> {
  const made: (Task | TaskFailure)[] = [];
  for (let at = 0; at < urls.length; at += maxBatch) {
    const batch = urls.slice(at, at + maxBatch);
    const error = await failureOf(async () => {
      const body = { urls: batch, options };
      const { results } = await requestJson<{ results: BatchItem[] }>("tasks/batch", { method: "POST", body });
      for (const each of results) {
        made.push("task" in each ? each.task : { ...each.problem, message: each.problem.detail });
      }
    });
    if (error !== undefined) made.push(...batch.map(() => error));
  }
  return made;
}

type BatchItem = { task: Task } | { problem: Omit<TaskFailure, "message"> & { detail: string } };

/** Exchanges a key for the cookie of a session. */
export async function startSession(key: string): Promise<void> {
  await requestJson("session", { method: "POST", body: { key } });
}

/** Returns the name of the session's key; "" if the service has no keys any more. */
export async function readSessionName(): Promise<string> {
  return (await unlessGone(requestJson<{ name: string }>("session")))?.name ?? "";
}

/** Makes this browser drop the cookie of the session. */
export async function endSession(): Promise<void> {
  await request("session", { method: "DELETE" });
}

/** Returns the error with which `job` fails at a request; undefined if it succeeds. Rejects with any other error. */
export async function failureOf(job: () => Promise<void>): Promise<ApiError | undefined> {
  try {
    await job();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

const json = { "content-type": "application/json" };

function lostError(tried: string, error: unknown): ApiError {
  const message = `${tried}: ${String(error)}`;
  return new ApiError(0, { code: "connection_lost", message, retryable: true });
}

/** Reads a problem document (RFC 9457); a proxy in between may respond with something else. */
async function parseProblem(response: Response): Promise<TaskFailure> {
  type Problem = Partial<Record<"code" | "detail", string>> & { retryable?: boolean };
  const problem = (await response.json().catch(() => ({}))) as Problem;
  const { code = "internal", detail, retryable = response.status >= 500 } = problem;
  return { code, message: detail ?? `the response has status ${response.status}`, retryable };
}

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
  async function readPages(query: string, count: number, signal?: AbortSignal): Promise<TaskPage> {
    const tasks: Task[] = [];
    let next: string | undefined = query;
    do {
      const page: { tasks: Task[]; next: string | null } = await requestJson(locate(next), { signal });
      tasks.push(...page.tasks);
      next = page.next === null ? undefined : new URL(page.next, url).search;
    } while (next !== undefined && tasks.length < count);
    return { tasks, next };
  }

  return {
    readPages,
    async readAll(states: readonly State[]): Promise<Task[]> {
      const lists = states.map((state) => readPages(`?state=${state}&limit=200`, Infinity));
      return (await Promise.all(lists)).flatMap(({ tasks }) => tasks);
    },
    /** Returns undefined if there is no such task. */
    readTask: (id: string, signal: AbortSignal) => unlessGone(requestJson<Task>(locate(id), { signal })),
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
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
