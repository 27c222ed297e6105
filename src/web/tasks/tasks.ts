import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { EventSourceMessage } from "eventsource-parser";
import { createFeedClient, isUnauthorized } from "../../feed/feed-client.ts";
import type { State, Task } from "../../model/task.ts";
import { isNotFound, refusals, request, requestJson } from "../api.ts";

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
  /** Whether the list was read at least once. */
  readonly isRead: ReadonlySignal<boolean>;
  /** `locked`: the service needs a key. */
  readonly connection: ReadonlySignal<"open" | "lost" | "locked">;
  /** Whether the service has older tasks, in the state of `filter`. */
  readonly hasOlder: ReadonlySignal<boolean>;
  /** Keeps all this up to date until `signal` is aborted; called again, it catches up. Never rejects. */
  follow(signal: AbortSignal): Promise<void>;
  setFilter(state: State | undefined): Promise<void>;
  readOlder(): Promise<void>;
  /** Adds a task that the service has responded with. */
  add(task: Task): void;
  /** Asks the service for all tasks in these states, those that are not listed here too. */
  readAll(states: readonly State[]): Promise<Task[]>;
  act(id: string, action: TaskAction): Promise<void>;
  /** Calls back with each task that gets another state, until the function that it returns is called. */
  onTransition(listener: (task: Task) => void): () => void;
}

export type TaskAction = "cancel" | "finish" | "retry" | "delete-file" | "delete";

/** Events leave out the information about the page unless it has changed. */
type ChangedTask = Omit<Task, "info"> & Partial<Pick<Task, "info">>;

interface Page {
  tasks: Task[];
  next: string | null;
}

type Change =
  | { type: "list"; tasks: Task[]; older: string | undefined }
  | { type: "read"; task: Task }
  | { type: "event"; task: ChangedTask }
  | { type: "deleted"; id: string };

const pageSize = 50;

/**
 * Creates a view of the tasks, which is empty until `follow` is called.
 *
 * @param url base URL of the service; what is behind its last slash does not matter.
 */
export function createTasks(url: URL): Tasks {
  const entries = new Map<string, Entry>();
  const listeners = new Set<(task: Task) => void>();
  /** Counts the changes of which tasks there are and of their states. */
  const structure = signal(0);
  const filter = signal<State>();
  /** Query of the next page; undefined after the last one. */
  const older = signal<string>();
  const isRead = signal(false);
  const connection = signal<"open" | "lost" | "locked">("open");

  /** All tasks in that state. Looks at no signal of a task, so that progress does not run it. */
  function entriesIn(state: State | undefined): Entry[] {
    void structure.value;
    const all = [...entries.values()];
    return state === undefined ? all : all.filter(({ task }) => task.peek().state === state);
  }

  const shown = computed(() =>
    entriesIn(filter.value)
      .map(({ task }) => task)
      .toSorted(newestFirst),
  );
  const runningTasks = computed(() => entriesIn("running"));
  const running = computed(() => {
    const speeds = runningTasks.value.map(({ task }) => task.value.progress?.speed ?? 0);
    return { count: speeds.length, speed: speeds.reduce((sum, speed) => sum + speed, 0) };
  });

  function put(task: ChangedTask, isEvent = false): void {
    const known = entries.get(task.id);
    const before = known?.task.peek();
    // Events follow one another, but a response may be newer than the event that arrives next.
    const isOld = before !== undefined && task.updated_at < before.updated_at;
    if (isOld && !(isEvent && known?.isEvent === true)) return;
    const { info = before?.info ?? null } = task;
    const after: Task = { ...task, info };
    if (known === undefined) entries.set(task.id, { task: signal(after), isEvent });
    else {
      known.isEvent = isEvent;
      known.task.value = after;
    }
    if (before?.state === after.state) return;
    structure.value += 1;
    if (before !== undefined) for (const listener of listeners) listener(after);
  }

  function drop(id: string): void {
    if (entries.delete(id)) structure.value += 1;
  }

  function apply(change: Change): void {
    if (change.type === "deleted") drop(change.id);
    else if (change.type !== "list") put(change.task, change.type === "event");
    else {
      const ids = new Set(change.tasks.map(({ id }) => id));
      for (const id of entries.keys()) if (!ids.has(id)) drop(id);
      addPage(change.tasks, change.older);
    }
  }

  function addPage(tasks: readonly Task[], next: string | undefined): void {
    batch(() => {
      for (const task of tasks) put(task);
      older.value = next;
      isRead.value = true;
    });
  }

  const locate = (path: string) => new URL(path, url).href;

  async function readPage(query: string): Promise<{ tasks: Task[]; next: string | undefined }> {
    const { tasks, next } = await requestJson<Page>(locate(`tasks/${query}`));
    return { tasks, next: next === null ? undefined : new URL(next, url).search };
  }

  /** Reads pages until there are `count` tasks or no more. */
  async function readPages(query: string, count: number) {
    const tasks: Task[] = [];
    let next: string | undefined = query;
    do {
      const page: Awaited<ReturnType<typeof readPage>> = await readPage(next);
      tasks.push(...page.tasks);
      next = page.next;
    } while (next !== undefined && tasks.length < count);
    return { tasks, next };
  }

  async function readList(): Promise<Change[]> {
    const state = filter.peek();
    const { tasks, next } = await readPages(firstQuery(state), shown.peek().length);
    return filter.peek() === state ? [{ type: "list", tasks, older: next }] : readList();
  }

  async function readTask(id: string): Promise<Change> {
    try {
      return { type: "read", task: await requestJson<Task>(locate(`tasks/${id}`)) };
    } catch (error) {
      if (isNotFound(error)) return { type: "deleted", id };
      throw error;
    }
  }

  async function changeOf({ event, data }: EventSourceMessage): Promise<Change[]> {
    if (event === "deleted") return [{ type: "deleted", id: (JSON.parse(data) as Task).id }];
    if (event !== "task") return [];
    const task = JSON.parse(data) as ChangedTask;
    if (task.info !== undefined || entries.has(task.id)) return [{ type: "event", task }];
    return [await readTask(task.id), { type: "event", task }];
  }

  const feed = createFeedClient<Change>({
    url,
    readAll: readList,
    async parse(events) {
      const changes: Change[] = [];
      for (const event of events) changes.push(...(await changeOf(event)));
      return changes;
    },
    onConnect: () => void (connection.value = "open"),
    onDisconnect: (error) => void (connection.value = isUnauthorized(error) ? "locked" : "lost"),
  });

  return {
    shown,
    filter,
    running,
    hasCancelable: computed(() => entriesIn("queued").length + runningTasks.value.length > 0),
    isRead,
    connection,
    hasOlder: computed(() => older.value !== undefined),
    async follow(ending) {
      const lock = () => void (connection.value = "locked");
      refusals.addEventListener("unauthorized", lock, { signal: ending });
      for await (const changes of feed.follow(ending)) batch(() => changes.forEach(apply));
    },
    async setFilter(state) {
      batch(() => {
        filter.value = state;
        older.value = undefined;
      });
      const page = await readPage(firstQuery(state));
      if (filter.peek() === state) addPage(page.tasks, page.next);
    },
    async readOlder() {
      const query = older.peek();
      if (query === undefined) return;
      const page = await readPage(query);
      if (older.peek() === query) addPage(page.tasks, page.next);
    },
    add: (task) => put(task),
    async readAll(states) {
      const lists = await Promise.all(
        states.map((state) => readPages(`?state=${state}&limit=200`, Infinity)),
      );
      return lists.flatMap(({ tasks }) => tasks);
    },
    async act(id, action) {
      const path = locate(`tasks/${id}`);
      if (action === "delete-file")
        return put(await requestJson<Task>(`${path}/file`, { method: "DELETE" }));
      if (action !== "delete")
        return put(await requestJson<Task>(`${path}/${action}`, { method: "POST" }));
      try {
        await request(path, { method: "DELETE" });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      drop(id);
    },
    onTransition(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

interface Entry {
  task: Signal<Task>;
  /** Whether its newest state came as an event. */
  isEvent: boolean;
}

function firstQuery(state: State | undefined): string {
  return `?limit=${pageSize}${state === undefined ? "" : `&state=${state}`}`;
}

function newestFirst(one: ReadonlySignal<Task>, other: ReadonlySignal<Task>): number {
  const [a, b] = [one.peek(), other.peek()];
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1;
  return a.id < b.id ? 1 : -1;
}
