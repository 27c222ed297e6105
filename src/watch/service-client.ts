import { expectOk } from "../feed/feed-client.ts";
import { parsePage, parseTask, type Page } from "./responses.ts";
import type { Task } from "../model/task.ts";

const responseTimeoutMs = 10_000;

interface ServiceOptions {
  /** Base URL, with a slash at the end. */
  url: URL;
  /** Sent with each request. */
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

export type ServiceClient = ReturnType<typeof openService>;

/** Opens the endpoints that the view reads. Every promise rejects with an `Error` that says why. */
export function openService({ url: base, headers, signal }: ServiceOptions) {
  async function getJson(path: string): Promise<string | undefined> {
    const response = await fetch(new URL(path, base), {
      headers: { ...headers, accept: "application/json" },
      signal: AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]),
    });
    const text = await response.text();
    if (response.status === 404) return undefined;
    expectOk(response, "application/json");
    return text;
  }

  return {
    async listRunning(): Promise<Task[]> {
      const tasks: Task[] = [];
      let query: string | undefined = "?state=running&limit=200";
      while (query !== undefined) {
        const page: Page = parsePage(await getJson(`tasks/${query}`));
        tasks.push(...page.tasks);
        query = page.next === null ? undefined : new URL(page.next, base).search;
      }
      return tasks;
    },

    /** Returns `undefined` if the task does not exist. */
    async getTask(id: string): Promise<Task | undefined> {
      const text = await getJson(`tasks/${encodeURIComponent(id)}`);
      return text === undefined ? undefined : parseTask(text);
    },
  };
}
