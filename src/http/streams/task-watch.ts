import type { ServerResponse } from "node:http";
import type { MediaStream } from "../../files/media-stream.ts";
import { markStreamMs } from "../../files/stream-journal.ts";
import { isServiceError } from "../../model/errors.ts";
import { type EndState, hasEnded, type State, type Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";
import { onClosed } from "../responses/turns.ts";

/** How a task ends. */
export type End = EndState | "deleted";

/** Follows the state of a task by the events of its store. */
export class TaskWatch {
  /** Called once, when the task ends. */
  onEnd: (end: End) => void = () => {};
  /** How long its reader pauses between two looks. */
  pauseOf: PauseOf = (ms) => ms;
  #state: State | "deleted" | undefined;
  #sinceMs = performance.now();
  #end: End | undefined;
  #isClosed = false;
  /** Aborted when the state changes, and for good when the watch is closed. */
  #changing = new AbortController();
  readonly #unsubscribe: () => void;

  constructor(id: string, events: TaskStore["events"]) {
    this.#unsubscribe = events.subscribe(({ type, taskId, state }) => {
      if (taskId === id) this.#set(type === "deleted" ? type : (state ?? this.#state));
    });
  }

  /** How it first ended since the watch began; undefined: it waits or runs. */
  get end(): End | undefined {
    return this.#end;
  }

  get isQueued(): boolean {
    return this.#state === "queued";
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** When the state was first known to be what it is, by `performance.now()`. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Notes the state of a record that was read after the watch began; events are newer. */
  note(state: State): void {
    if (this.#state === undefined) this.#set(state);
  }

  /** Aborted once the state changes, or the watch is closed. To be taken before the state is looked at. */
  get changing(): AbortSignal {
    return this.#changing.signal;
  }

  /** Safe to call twice. */
  close(): void {
    this.#unsubscribe();
    this.#isClosed = true;
    this.#changing.abort();
  }

  #set(state: State | "deleted" | undefined): void {
    if (state === undefined || state === this.#state) return;
    this.#state = state;
    this.#sinceMs = performance.now();
    if (this.#end === undefined && (state === "deleted" || hasEnded(state))) {
      this.#end = state;
      this.onEnd(state);
    }
    this.#changing.abort();
    this.#changing = new AbortController();
  }
}

/** Whether the task is running by its record, but no run writes or marks the stream. */
export function isAbandoned({ aliveMs }: MediaStream, { isRunning, sinceMs }: TaskWatch): boolean {
  return isRunning && performance.now() - Math.max(aliveMs, sinceMs) > 4 * markStreamMs;
}

/** Returns false once the task has succeeded and its file was removed. @param read Returns the task as it is now. */
export async function isKept({ end }: TaskWatch, read: () => Promise<Task>): Promise<boolean> {
  if (end !== "succeeded") return true;
  try {
    return (await read()).file !== null;
  } catch (error) {
    return !isServiceError(error, "not_found");
  }
}

/** Looks of all readers of an owner's streams within a second: each takes a few calls of the file system, for which all requests share four threads. */
const looksPerS = 1_000;

/** Returns how long a pause between two looks for more is that should be so long, milliseconds: longer while many readers look. */
type PauseOf = (ms: number) => number;

/** Returns a function that counts a reader of an owner's streams until its response is closed. Readers of other owners do not slow it. */
export function paceReaders(): (owner: string, response: ServerResponse) => PauseOf {
  const readers = new Map<string, Set<ServerResponse>>();
  return (owner, response) => {
    const own = readers.getOrInsertComputed(owner, () => new Set());
    own.add(response);
    onClosed(response, () => {
      own.delete(response);
      if (own.size === 0 && readers.get(owner) === own) readers.delete(owner);
    });
    return (ms) => Math.max(ms, (own.size * 1_000) / looksPerS);
  };
}
