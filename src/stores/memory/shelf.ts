import { hostOf, type State, type Task } from "../../task.ts";
import { duplicateTaskError, taskNotFoundError } from "../rules.ts";
import { ClaimQueue, type Queueable } from "./claim-queue.ts";
import { SortedList } from "./sorted-list.ts";

/**
 * A task as JSON: one string costs the garbage collector far less than the objects of a task, and is a
 * copy by nature.
 */
export interface TaskEntry extends Queueable {
  readonly id: string;
  state: State;
  document: string;
  lease: string | undefined;
  deaths: number;
}

/** The tasks, findable by id, by age and by state, and the queue of those that may run. */
export class TaskTable {
  readonly queue = new ClaimQueue<TaskEntry>();
  readonly #byId = new Map<string, TaskEntry>();
  readonly #all = bySeq();
  readonly #byState: Readonly<Record<State, SortedList<TaskEntry>>> = {
    queued: bySeq(),
    running: bySeq(),
    succeeded: bySeq(),
    failed: bySeq(),
    canceled: bySeq(),
  };
  #lastSeq = 0;

  /** @throws ServiceError `conflict` where the id is taken. */
  add(task: Task): TaskEntry {
    if (this.#byId.get(task.id) !== undefined) throw duplicateTaskError(task.id);
    this.#lastSeq += 1;
    const entry: TaskEntry = {
      seq: this.#lastSeq,
      id: task.id,
      host: hostOf(task.url),
      state: task.state,
      document: JSON.stringify(task),
      lease: undefined,
      deaths: 0,
      dueAtMs: 0,
      place: "none",
    };
    this.#byId.set(task.id, entry);
    this.#all.add(entry);
    this.#byState[task.state].add(entry);
    if (task.state === "queued") this.queue.ready(entry);
    return entry;
  }

  /** How many tasks are queued. */
  get queued(): number {
    return this.#byState.queued.length;
  }

  find(id: string): TaskEntry | undefined {
    return this.#byId.get(id);
  }

  /** @throws ServiceError `not_found` */
  require(id: string): TaskEntry {
    const entry = this.#byId.get(id);
    if (entry === undefined) throw taskNotFoundError(id);
    return entry;
  }

  /** Newest first; with `before` only those of a lower `seq`. */
  newest(limit: number, state: State | undefined, before: number | undefined): TaskEntry[] {
    const order = state === undefined ? this.#all : this.#byState[state];
    return before === undefined ? order.last(limit) : order.last(limit, ({ seq }) => seq >= before);
  }

  replace(entry: TaskEntry, task: Task): void {
    entry.document = JSON.stringify(task);
    if (task.state === entry.state) return;
    this.#byState[entry.state].remove(entry);
    this.#byState[task.state].add(entry);
    entry.state = task.state;
  }

  remove(entry: TaskEntry): void {
    this.#byId.delete(entry.id);
    this.#all.remove(entry);
    this.#byState[entry.state].remove(entry);
    this.queue.remove(entry);
  }
}

function bySeq(): SortedList<TaskEntry> {
  return new SortedList((a, b) => a.seq - b.seq);
}
