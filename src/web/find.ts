import { h, type ComponentChild } from "preact";
import type { Task } from "../task.ts";

export interface FindProps {
  /** Called with each task that is created here. */
  onTask: (task: Task) => void;
}

/** The way from the address of a page to a task. */
export function Find(_props: FindProps): ComponentChild {
  return h("section", {}, h("h2", {}, "Find a video"));
}
