import { parsePage, parseTask, type Page } from "./responses.ts";
import type { Task } from "../task.ts";

/** The endpoints that the view reads. Every promise rejects with an `Error` that states the reason. */
export interface ServiceClient {
  /** Opens the event stream, after the event `lastId` if given; reading it fails after 45 s of silence. */
  openEvents(lastId: string | undefined): Promise<EventBytes>;
  listRunning(): Promise<Task[]>;
  /** Returns `undefined` if the task does not exist. */
  getTask(id: string): Promise<Task | undefined>;
}

/** Disposing of it closes the connection. */
export interface EventBytes extends Disposable {
  bytes: AsyncIterable<Uint8Array>;
}

const responseTimeoutMs = 10_000;

/** Three times the service's heartbeat interval. */
const silenceMs = 45_000;

export interface ServiceOptions {
  /** Base URL, with a slash at the end. */
  url: URL;
  /** Its access key, if it needs one. */
  key: string | undefined;
  signal: AbortSignal;
}

export function openService({ url: base, key, signal }: ServiceOptions): ServiceClient {
  const authorization = key !== undefined && { authorization: `Bearer ${key}` };

  async function getJson(path: string): Promise<string | undefined> {
    const response = await fetch(new URL(path, base), {
      headers: { accept: "application/json", ...authorization },
      signal: AbortSignal.any([signal, AbortSignal.timeout(responseTimeoutMs)]),
    });
    const text = await response.text();
    return response.status === 404 ? undefined : expectOk(response, "application/json") && text;
  }

  return {
    async openEvents(lastId) {
      const connection = new AbortController();
      const silence = setTimeout(() => {
        connection.abort(new Error("no data for 45 seconds"));
      }, silenceMs);
      try {
        const response = await fetch(new URL("tasks/events", base), {
          headers: {
            accept: "text/event-stream",
            ...authorization,
            ...(lastId !== undefined && { "last-event-id": lastId }),
          },
          signal: AbortSignal.any([signal, connection.signal]),
        });
        expectOk(response, "text/event-stream");
        return {
          bytes: refreshing(silence, response.body ?? new ReadableStream()),
          [Symbol.dispose]() {
            clearTimeout(silence);
            connection.abort();
          },
        };
      } catch (error) {
        clearTimeout(silence);
        throw error;
      }
    },

    async listRunning() {
      const tasks: Task[] = [];
      let query: string | undefined = "?state=running&limit=200";
      while (query !== undefined) {
        const page: Page = parsePage(await getJson(`tasks/${query}`));
        tasks.push(...page.tasks);
        query = page.next === null ? undefined : new URL(page.next, base).search;
      }
      return tasks;
    },

    async getTask(id) {
      const text = await getJson(`tasks/${encodeURIComponent(id)}`);
      return text === undefined ? undefined : parseTask(text);
    },
  };
}

function expectOk({ status, headers }: Response, mediaType: string): true {
  const [type] = (headers.get("content-type") ?? "").split(";");
  if (status === 401) throw new Error("the service needs a key, in UNREEL_KEY");
  if (status === 200 && type === mediaType) return true;
  throw new Error(`the service responded with ${status} instead of 200 with ${mediaType}`);
}

async function* refreshing(
  timer: NodeJS.Timeout,
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of stream) {
    timer.refresh();
    yield bytes;
  }
}
