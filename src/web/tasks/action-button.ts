import type { ReadonlySignal } from "@preact/signals";
import { h, type ComponentChild } from "preact";
import type { Task } from "../../model/task.ts";
import type { TaskAction } from "./tasks.ts";

/** What somebody wants to be done with a task; `again`: with its page. */
export type RowAction = TaskAction | "again";

export interface ActionProps {
  task: ReadonlySignal<Task>;
  onAction: (task: Task, action: RowAction) => void;
}

interface ActionButtonProps extends ActionProps {
  action: RowAction;
  label: string;
}

export function ActionButton({ task, onAction, action, label }: ActionButtonProps): ComponentChild {
  const { id } = task.peek();
  const onClick = () => onAction(task.peek(), action);
  return h("button", { type: "button", "aria-describedby": titleId(id), onClick }, label);
}

/** Returns the id of the element that names the task. */
export function titleId(id: string): string {
  return `title-${id}`;
}
