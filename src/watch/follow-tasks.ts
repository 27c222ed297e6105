import type { EventSourceMessage } from "eventsource-parser";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { createFeedClient, expectOk, statusOf } from "../feed/feed-client.ts";
import { isActive, Task } from "../model/task.ts";
import { nullable, parseJson } from "../model/schema.ts";
import { printable } from "./task-line.ts";

export interface FollowOptions {
  /** Base URL of the service, with a slash at the end. */
  url: URL;
  /** Its access key, if it needs one; empty: none. */
  key: string | undefined;
  /** Stops following. */
  signal: AbortSignal;
  /** Called with the number of tasks that run whenever the stream is open, and what came before was yielded. */
  onConnect(running: number): void;
  /** Called when the connection fails, unless the reason is the same as the last time. */
  onDisconnect(reason: string): void;
}

/**
 * Yields the running tasks, then every change, in groups as they arrive; ends when `signal` is aborted.
 * After a lost connection it resumes after the last event that it received. If the service no longer has
 * the missed changes, the running tasks, and those that were running before, are read again.
 *
 * @throws Error if the service needs a key, or another one: wrong keys count until the service locks this address; if `fetch` connects to
 * no service at this port; if something else responds at this URL, unless the service was there before.
 */
export async function* followTasks(options: FollowOptions): AsyncGenerator<WatchedChange[]> {
  const { url, key, signal, onDisconnect } = options;
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  const tasks = createActiveTasks(openService({ url, headers, signal }));
  let wasConnected = false;
  let lastReason: string | undefined;
  const feed = createFeedClient({
    url,
    headers,
    readAll: tasks.readAgain,
    parse: tasks.parse,
    onConnect() {
      wasConnected = true;
      lastReason = undefined;
      options.onConnect(tasks.runningIds().size);
    },
    onDisconnect(error) {
      const status = statusOf(error);
      if (status === 401) throw keyError(url, key);
      const reason = reasonOf(error);
      // A proxy may say the same while the service restarts.
      if (!wasConnected && statusesElsewhere.has(status)) throw urlError(url, reason);
      if (reason === blockedPort) throw portError(url);
      if (reason !== lastReason) onDisconnect(reason);
      lastReason = reason;
    },
  });
  yield* feed.follow(signal);
}

/** Creates a view of the tasks that wait or run, whose events leave out `info` while it stays the same. */
function createActiveTasks(service: ServiceClient) {
  let active = new Map<string, Task>();

  function keep(task: Task, tasks = active): WatchedChange {
    if (isActive(task.state)) tasks.set(task.id, task);
    else tasks.delete(task.id);
    return { type: "task", task };
  }

  /** Returns the task with its `info`, which is read if it is not known. */
  async function complete(task: ChangedTask, tasks: ReadonlyMap<string, Task>): Promise<Task> {
    if (task.info !== undefined) return { ...task, info: task.info };
    const known = tasks.get(task.id) ?? (await service.getTask(task.id));
    return { ...task, info: known?.info ?? null };
  }

  const runningIds = (): Set<string> =>
    new Set([...active.values()].filter(({ state }) => state === "running").map(({ id }) => id));

  return {
    runningIds,

    /** Returns the tasks that run now, and the new state of those that ran before and no longer do. */
    async readAgain(): Promise<WatchedChange[]> {
      const running = await service.listRunning();
      const others: WatchedChange[] = [];
      for (const id of runningIds().difference(new Set(running.map((task) => task.id)))) {
        const task = await service.getTask(id);
        others.push(task === undefined ? { type: "deleted", task: { id } } : { type: "task", task });
      }
      active.clear();
      return [...running.map((task) => keep(task)), ...others];
    },

    /** Returns what events mean, without those of tasks that a collection has made: it stands for them. */
    async parse(events: readonly EventSourceMessage[]): Promise<WatchedChange[]> {
      const changes: WatchedChange[] = [];
      // Kept only with all that came together: what fails comes again, or is read again if it was running before.
      const tasks = new Map(active);
      for (const { event: type, data } of events) {
        if (type === "deleted") {
          const task = parse(deletedCheck, data);
          tasks.delete(task.id);
          changes.push({ type, task });
        } else if (type === "task") {
          const task = parse(changedCheck, data);
          if (task.collection === undefined) changes.push(keep(await complete(task, tasks), tasks));
        }
      }
      active = tasks;
      return changes;
    },
  };
}

/** Statuses of a response that is not the service's, or not under this host name: 200 is of another type. */
const statusesElsewhere: ReadonlySet<unknown> = new Set([200, 404, 421]);

function urlError({ href }: URL, reason: string): Error {
  return new Error(`${href} is not the URL of this service: ${printable(reason)}`);
}

function keyError({ href }: URL, key: string | undefined): Error {
  if (key) return new Error(`the service at ${href} does not accept the key in UNREEL_KEY`);
  return new Error(`the service at ${href} needs a key in UNREEL_KEY, none was given`);
}

function portError({ href, port }: URL): Error {
  return new Error(`fetch connects to no service at port ${port}, which is another protocol's, got ${href}`);
}

/** The reason of `fetch` for a port of another protocol (WHATWG Fetch, "port blocking"), to which it never connects. */
const blockedPort = "bad port";

/** The message of `fetch` is only "fetch failed"; the reason is in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return cause.message || ((cause as NodeJS.ErrnoException).code ?? error.message);
}

const responseTimeoutMs = 10_000;

interface ServiceOptions {
  /** Base URL, with a slash at the end. */
  url: URL;
  /** Sent with each request. */
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

type ServiceClient = ReturnType<typeof openService>;

/** Opens the endpoints that the view reads. Every promise rejects with an `Error` that says why. */
function openService({ url: base, headers, signal }: ServiceOptions) {
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
        const page: Page = parse(pageCheck, (await getJson(`tasks/${query}`)) ?? "");
        tasks.push(...page.tasks);
        query = page.next === null ? undefined : new URL(page.next, base).search;
      }
      return tasks;
    },

    /** Returns `undefined` if the task does not exist. */
    async getTask(id: string): Promise<Task | undefined> {
      const text = await getJson(`tasks/${encodeURIComponent(id)}`);
      return text === undefined ? undefined : parse(taskCheck, text);
    },
  };
}

const Page = Type.Object({ tasks: Type.Array(Task), next: nullable(Type.String()) });
type Page = Static<typeof Page>;

/** A task as an event has it: without `info` if that is as in the task's previous event. */
const ChangedTask = Type.Object({ ...Task.properties, info: Type.Optional(Task.properties.info) });
type ChangedTask = Static<typeof ChangedTask>;

const taskCheck = TypeCompiler.Compile(Task);
const changedCheck = TypeCompiler.Compile(ChangedTask);
const pageCheck = TypeCompiler.Compile(Page);
const deletedCheck = TypeCompiler.Compile(Type.Pick(Task, ["id"]));

/** A change of a task, read from `/tasks/events`, with all that is known of the task. */
export type WatchedChange = { type: "task"; task: Task } | { type: "deleted"; task: Pick<Task, "id"> };

/** @throws Error if `json` is not such a response of this service. */
function parse<T extends TSchema>(check: TypeCheck<T>, json: string): Static<T> {
  const value = parseJson(json);
  if (check.Check(value)) return value;
  throw new Error("unexpected response from the service");
}
