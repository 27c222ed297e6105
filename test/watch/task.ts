import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";

export function runningTask(url: string, fields: Partial<Task> = {}): Task {
  return { ...newTask(url, {}, new Date()), state: "running", attempts: 1, ...fields };
}

export const halfway: Task["progress"] = {
  stage: "downloading",
  downloaded_bytes: 12_345_678,
  total_bytes: 24_691_356,
  speed: 3_100_000,
  eta: 4,
};
