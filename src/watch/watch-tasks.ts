import { LRUCache } from "lru-cache";
import { type FollowOptions, followTasks, type WatchedChange } from "./follow-tasks.ts";
import type { Task } from "../model/task.ts";
import { percentOf, printable, taskLine } from "./task-line.ts";

interface WatchOptions extends Pick<FollowOptions, "url" | "key" | "signal"> {
  output: Output;
}

/**
 * Shows running tasks until `signal` is aborted: as progress bars if `output` is a terminal, else as a line
 * for each step. Retries while the service is unavailable.
 *
 * @throws Error as `followTasks`.
 */
export async function watchTasks({ output, ...options }: WatchOptions): Promise<void> {
  const view = output.isTTY === true ? createBarView(output) : createLineView(output);
  const { href } = options.url;
  const onConnect = (running: number) =>
    view.notify(`connected to ${href}${running === 0 ? ": no task is running" : ""}`);
  const onDisconnect = (reason: string) => view.notify(`${href}: ${reason}; retrying`);
  try {
    for await (const changes of followTasks({ ...options, onConnect, onDisconnect })) view.show(changes);
  } finally {
    view.close();
  }
}

/** Where a view writes: a terminal, a file or a pipe. */
export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  /** Height of the terminal, lines; 0: it does not say. */
  rows?: number;
}

/** One way to show tasks. */
interface View {
  show(changes: readonly WatchedChange[]): void;
  /** Shows a line that is not about a task. */
  notify(line: string): void;
  close(): void;
}

/** How many tasks a view knows the last line of: a task changes after its end too, as when it gets into the library. */
const mostKnown = 10_000;

/** Writes a line for each step of a task: a transition, a stage, ten percent. */
export function createLineView(output: Output): View {
  /** The last step that was shown, by id of the task. */
  const steps = new LRUCache<string, string>({ max: mostKnown });
  return {
    show(changes) {
      for (const { type, task } of changes) {
        if (type === "deleted") continue;
        const step = stepOf(task);
        if (step !== steps.get(task.id)) output.write(`${taskLine(task)}\n`);
        steps.set(task.id, step);
      }
    },
    notify: (line) => output.write(`${printable(line)}\n`),
    close() {},
  };
}

function stepOf(task: Task): string {
  const { state, progress, finish_requested = false, counts } = task;
  if (state !== "running") return taskLine(task);
  if (counts !== undefined) return `${state} ${counts.succeeded} ${counts.failed} ${counts.canceled}`;
  const percent = percentOf(progress);
  return `${state} ${finish_requested} ${progress?.stage ?? "resolving"} ${percent === null ? "" : Math.floor(percent / 10)}`;
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
/** Makes the terminal cut long lines, so that each takes one row. */
const cutLines = "\u001B[?7l";
const wrapLines = "\u001B[?7h";
const clearBelow = "\u001B[J";

/** Shows running tasks as bars that stay in place, and a line for each ended task above them. */
export function createBarView(output: Output): View {
  const running = new Map<string, Task>();
  /** The last line of tasks that have ended, by id. */
  const endings = new LRUCache<string, string>({ max: mostKnown });
  let barCount = 0;

  /** Replaces the bars with `lines`, and draws the bars below them. */
  function draw(lines: readonly string[]): void {
    const back = barCount === 0 ? "" : `\u001B[${barCount}A`;
    const bars = barsOf([...running.values()], (output.rows || 24) - 1);
    barCount = bars.length;
    const text = [...lines, ...bars].map((line) => `${line}\n`).join("");
    output.write(`${hideCursor}${cutLines}${back}\r${clearBelow}${text}${wrapLines}`);
  }

  return {
    show(changes) {
      const ended: string[] = [];
      for (const { type, task } of changes) {
        if (type === "task" && task.state === "running") {
          running.set(task.id, task);
        } else {
          const wasRunning = running.delete(task.id);
          if (type === "deleted" || (!wasRunning && task.state === "queued")) continue;
          const line = taskLine(task);
          if (wasRunning || line !== endings.get(task.id)) ended.push(line);
          endings.set(task.id, line);
        }
      }
      draw(ended);
    },
    notify: (line) => draw([printable(line)]),
    close: () => output.write(showCursor),
  };
}

/** Returns at most `maxRows` lines: the cursor cannot move above the top of the terminal. */
function barsOf(tasks: readonly Task[], maxRows: number): string[] {
  if (tasks.length <= maxRows) return tasks.map(taskLine);
  const shown = Math.max(0, maxRows - 1);
  return [...tasks.slice(0, shown).map(taskLine), `… and ${tasks.length - shown} more`];
}
