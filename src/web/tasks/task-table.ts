import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { State, Task } from "../../model/task.ts";

/** Events leave out the information about the page unless it has changed. */
export type ChangedTask = Omit<Task, "info"> & Partial<Pick<Task, "info">>;

export type TaskTable = ReturnType<typeof createTaskTable>;

interface Entry {
  task: Signal<Task>;
  /** Whether its newest state came as an event. */
  isEvent: boolean;
}

/** Creates a table of the tasks that this page knows, which is empty at first. */
export function createTaskTable() {
  const entries = new Map<string, Entry>();
  const listeners = new Set<(task: Task) => void>();
  /** Counts the changes of which tasks there are and of their states. */
  const structure = signal(0);

  function drop(id: string): void {
    if (entries.delete(id)) structure.value += 1;
  }

  return {
    has: (id: string) => entries.has(id),
    get: (id: string): ReadonlySignal<Task> | undefined => entries.get(id)?.task,
    /**
     * Returns the tasks in that state, or all, without those that a collection has made. It looks at no signal of a task, so
     * progress does not run it.
     */
    inState(state: State | undefined): ReadonlySignal<Task>[] {
      void structure.value;
      const tasks = [...entries.values()].map(({ task }) => task).filter((task) => !isMember(task.peek()));
      return state === undefined ? tasks : tasks.filter((task) => task.peek().state === state);
    },
    /** Adds or updates a task, unless what is known of it is newer. */
    put(task: ChangedTask, isEvent = false): void {
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
      if (before !== undefined && !isMember(after)) for (const listener of listeners) listener(after);
    },
    drop,
    /** Drops all other tasks but members of collections. */
    retain(tasks: readonly Task[]): void {
      const ids = new Set(tasks.map(({ id }) => id));
      for (const [id, { task }] of entries) if (!ids.has(id) && !isMember(task.peek())) drop(id);
    },
    /** Calls back with each known task that gets another state. Returns the function that ends this. */
    onTransition(listener: (task: Task) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Whether a collection has made it: it is shown with that collection only. */
export function isMember({ collection }: Pick<Task, "collection">): boolean {
  return collection !== undefined;
}
