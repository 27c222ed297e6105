import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import type { EventSourceMessage } from "eventsource-parser";
import { createFeedClient, statusOf } from "../../feed/feed-client.ts";
import type { State, Task } from "../../model/task.ts";
import { refusals, createTaskRequests, type TaskAction, type TaskPage, type TaskRequests } from "../api.ts";
import { type ChangedTask, createTaskTable, isMember, type TaskTable } from "./task-table.ts";

/** The tasks of the service, as far as this page has heard of them. */
export interface Tasks {
  /** Those in the state of `filter`, newest first. Each signal changes with its task alone. */
  readonly shown: ReadonlySignal<readonly ReadonlySignal<Task>[]>;
  /** Default: any state. */
  readonly filter: ReadonlySignal<State | undefined>;
  /** The running ones: how many there are and how fast they are together, bytes per second. */
  readonly running: ReadonlySignal<{ count: number; speed: number }>;
  /** Whether one waits or runs, in whatever state the shown ones are. */
  readonly hasCancelable: ReadonlySignal<boolean>;
  /** Whether the list was read, in the state of `filter`. */
  readonly isRead: ReadonlySignal<boolean>;
  /** `locked`: the service needs a key. */
  readonly connection: ReadonlySignal<"open" | "lost" | "locked">;
  /** Whether the service has older tasks, in the state of `filter`. */
  readonly hasOlder: ReadonlySignal<boolean>;
  /** Keeps all this up to date until `signal` is aborted; called again, it catches up. Never rejects. */
  follow(signal: AbortSignal): Promise<void>;
  /** If the tasks in that state cannot be read, those of the last one are shown again. */
  setFilter(state: State | undefined): Promise<void>;
  readOlder(): Promise<void>;
  /** Returns a task that is known. */
  get(id: string): ReadonlySignal<Task> | undefined;
  /** Counts how often the list was read again, because changes may have been missed. */
  readonly readings: ReadonlySignal<number>;
  /** Reads the first `count` members of a collection, by index. */
  readMembers(id: string, count: number): Promise<{ ids: string[]; hasMore: boolean }>;
  /** Adds a task that the service has responded with. */
  add(task: Task): void;
  /** Asks the service for all tasks in these states, those that are not listed here too. */
  readAll(states: readonly State[]): Promise<Task[]>;
  act(id: string, action: TaskAction): Promise<void>;
  /** Calls back with each task that gets another state, until the function that it returns is called. */
  onTransition(listener: (task: Task) => void): () => void;
}

type Change = { type: "list"; page: TaskPage } | { type: "event"; task: ChangedTask } | { type: "deleted"; id: string };

/**
 * Creates a view of the tasks, which is empty until `follow` is called.
 *
 * @param url base URL of the service; what is after its last slash does not matter.
 */
export function createTaskView(url: URL): Tasks {
  const table = createTaskTable();
  const requests = createTaskRequests(url);
  const { readAgain, replace, ...list } = createTaskPages(table, requests);
  const readings = signal(0);
  const connection = signal<"open" | "lost" | "locked">("open");
  const runningTasks = computed(() => table.inState("running"));
  const running = computed(() => summarizeRunning(runningTasks.value.map((task) => task.value)));

  function apply(change: Change): void {
    if (change.type === "deleted") table.drop(change.id);
    else if (change.type === "list") {
      replace(change.page);
      readings.value += 1;
    } else table.put(change.task, true);
  }

  const feed = createFeedClient<Change>({
    url,
    readAll: async (ended) => [{ type: "list", page: await readAgain(ended) }],
    async parse(events, ended) {
      const changes: Change[] = [];
      for (const event of events)
        changes.push(...(await parseEvent(event, table, (id) => requests.readTask(id, ended))));
      return changes;
    },
    onConnect: () => void (connection.value = "open"),
    onDisconnect: (error) => void (connection.value = statusOf(error) === 401 ? "locked" : "lost"),
  });

  return {
    ...list,
    running,
    hasCancelable: computed(() => table.inState("queued").length + runningTasks.value.length > 0),
    connection,
    async follow(ending) {
      const lock = () => void (connection.value = "locked");
      refusals.addEventListener("unauthorized", lock, { signal: ending });
      for await (const changes of feed.follow(ending)) batch(() => changes.forEach(apply));
    },
    readings,
    get: table.get,
    async readMembers(id, count) {
      const { tasks, next } = await requests.readPages(`?parent=${id}&limit=${Math.min(count, 200)}`, count);
      batch(() => tasks.forEach((task) => table.put(task)));
      const ids = tasks.map((task) => task.id);
      return { ids: ids.slice(0, count), hasMore: next !== undefined || ids.length > count };
    },
    add: (task) => table.put(task),
    readAll: requests.readAll,
    async act(id, action) {
      const task = await requests.act(id, action);
      if (task === undefined) table.drop(id);
      else table.put(task);
    },
    onTransition: table.onTransition,
  };
}

/** @param tasks A collection counts as its members that run. */
function summarizeRunning(tasks: readonly Task[]): { count: number; speed: number } {
  return {
    count: tasks.reduce((sum, { counts }) => sum + (counts?.running ?? 1), 0),
    speed: tasks.reduce((sum, { progress }) => sum + (progress?.speed ?? 0), 0),
  };
}

/** Returns what an event means. The `info` of a task that is not known yet is read if its event leaves it out. */
async function parseEvent(
  { event, data }: EventSourceMessage,
  table: TaskTable,
  readTask: (id: string) => Promise<Task | undefined>,
): Promise<Change[]> {
  if (event === "deleted") return [{ type: "deleted", id: (JSON.parse(data) as Task).id }];
  if (event !== "task") return [];
  const task = JSON.parse(data) as ChangedTask;
  if (table.has(task.id)) return [{ type: "event", task }];
  // One of a collection that is not open.
  if (isMember(task)) return [];
  if (task.info === undefined) task.info = (await readTask(task.id))?.info ?? null;
  return [{ type: "event", task }];
}

/** The pages of the list that were read so far, in the state of the filter. */
function createTaskPages(table: TaskTable, { readPages }: TaskRequests) {
  const filter = signal<State>();
  /** What was read last: in which state, and the query of the next page, undefined after the last one. */
  const read = signal<{ state: State | undefined; next: string | undefined }>();
  const isRead = computed(() => read.value !== undefined && read.value.state === filter.value);
  const shown = computed(() => table.inState(filter.value).toSorted(newestFirst));

  function add({ tasks, next }: TaskPage): void {
    batch(() => {
      for (const task of tasks) table.put(task);
      read.value = { state: filter.peek(), next };
    });
  }

  /** Reads as many tasks as are shown; again if the filter has changed meanwhile. */
  async function readAgain(ended: AbortSignal): Promise<TaskPage> {
    const state = filter.peek();
    const page = await readPages(firstQuery(state), shown.peek().length, ended);
    return filter.peek() === state ? page : readAgain(ended);
  }

  return {
    filter,
    shown,
    isRead,
    hasOlder: computed(() => isRead.value && read.value?.next !== undefined),
    readAgain,
    replace(page: TaskPage): void {
      table.retain(page.tasks);
      add(page);
    },
    async setFilter(state: State | undefined): Promise<void> {
      filter.value = state;
      try {
        const page = await readPages(firstQuery(state), 1);
        if (filter.peek() === state) add(page);
      } catch (error) {
        if (filter.peek() === state) filter.value = read.peek()?.state;
        throw error;
      }
    },
    async readOlder(): Promise<void> {
      const before = read.peek();
      if (before?.next === undefined) return;
      const page = await readPages(before.next, 1);
      if (read.peek() === before && isRead.peek()) add(page);
    },
  };
}

const pageSize = 50;

function firstQuery(state: State | undefined): string {
  return `?limit=${pageSize}${state === undefined ? "" : `&state=${state}`}`;
}

function newestFirst(one: ReadonlySignal<Task>, other: ReadonlySignal<Task>): number {
  const [a, b] = [one.peek(), other.peek()];
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}
