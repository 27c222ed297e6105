import type { State, Task } from "../../task.ts";
import { duplicateTask, hostOf, unknownTask } from "../rules.ts";
import { ClaimQueue, type Queueable } from "./claim-queue.ts";
import { SortedList } from "./sorted-list.ts";

/** `task` is never changed in place, only replaced: whoever holds the old one may keep it. */
export interface Entry extends Queueable {
  task: Task;
  lease: string | undefined;
}

/** The tasks, findable by id, by age and by state, and the queue of those that may run. */
export class Shelf {
  readonly queue = new ClaimQueue<Entry>();
  readonly #byId = new Map<string, Entry>();
  readonly #all = bySeq();
  readonly #byState: Readonly<Record<State, SortedList<Entry>>> = {
    queued: bySeq(),
    running: bySeq(),
    succeeded: bySeq(),
    failed: bySeq(),
    canceled: bySeq(),
  };
  #lastSeq = 0;

  /** @throws ServiceError `conflict` where the id is taken. */
  add(task: Task): void {
    if (this.#byId.has(task.id)) throw duplicateTask(task.id);
    this.#lastSeq += 1;
    const entry: Entry = {
      seq: this.#lastSeq,
      host: hostOf(task.url),
      task,
      lease: undefined,
      dueAtMs: 0,
      place: "none",
    };
    this.#byId.set(task.id, entry);
    this.#all.add(entry);
    this.#byState[task.state].add(entry);
    if (task.state === "queued") this.queue.ready(entry);
  }

  find(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  /** @throws ServiceError `not_found` */
  require(id: string): Entry {
    const entry = this.#byId.get(id);
    if (entry === undefined) throw unknownTask(id);
    return entry;
  }

  /** Newest first; with `before` only those of a lower `seq`. */
  newest(limit: number, state: State | undefined, before: number | undefined): Entry[] {
    const order = state === undefined ? this.#all : this.#byState[state];
    return before === undefined ? order.last(limit) : order.last(limit, ({ seq }) => seq >= before);
  }

  replace(entry: Entry, task: Task): void {
    if (task.state !== entry.task.state) {
      this.#byState[entry.task.state].remove(entry);
      this.#byState[task.state].add(entry);
    }
    entry.task = task;
  }

  remove(entry: Entry): void {
    this.#byId.delete(entry.task.id);
    this.#all.remove(entry);
    this.#byState[entry.task.state].remove(entry);
    this.queue.remove(entry);
  }
}

function bySeq(): SortedList<Entry> {
  return new SortedList((a, b) => a.seq - b.seq);
}
