import type { Task } from "../model/task.ts";
import { percentOf, printable, taskLine } from "./task-line.ts";
import type { Output, View } from "./view.ts";

/** Writes a line for each step of a task: a transition, a stage, ten percent. */
export function createLineView(output: Output): View {
  /** The last step that was shown, by id of the running task. */
  const steps = new Map<string, string>();
  return {
    show(changes) {
      for (const { type, task } of changes) {
        if (type === "task" && stepOf(task) !== steps.get(task.id))
          output.write(`${taskLine(task)}\n`);
        if (type === "task" && task.state === "running") steps.set(task.id, stepOf(task));
        else steps.delete(task.id);
      }
    },
    notify: (line) => output.write(`${printable(line)}\n`),
    close() {},
  };
}

function stepOf({ state, progress, finish_requested = false }: Task): string {
  const percent = percentOf(progress);
  return `${state} ${finish_requested} ${progress?.stage ?? "resolving"} ${percent === null ? "" : Math.floor(percent / 10)}`;
}
