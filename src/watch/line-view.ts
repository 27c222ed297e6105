import type { Task } from "../task.ts";
import { percentOf, printable, taskLine } from "./task-line.ts";
import type { Output, View } from "./view.ts";

/** A line for each step of a task: a move, a stage, ten percent. */
export function createLineView(output: Output): View {
  /** By task: the step that was shown last; of tasks that still run. */
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
    say: (line) => output.write(`${printable(line)}\n`),
    close() {},
  };
}

function stepOf({ state, progress }: Task): string {
  const percent = percentOf(progress);
  return `${state} ${progress?.stage ?? "resolving"} ${percent === null ? "" : Math.floor(percent / 10)}`;
}
