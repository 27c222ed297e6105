import type { TaskStore } from "../../src/stores/store.ts";
import type { Task } from "../../src/task.ts";
import { newTask } from "../../src/task-changes.ts";

/** Creates `count` tasks in the store. */
export async function fillStore(store: TaskStore, count: number): Promise<void> {
  const batch = 5_000;
  for (let done = 0; done < count; done += batch) {
    const length = Math.min(batch, count - done);
    await Promise.all(Array.from({ length }, (_, i) => store.create(canceledTask(done + i))));
  }
}

/** Returns a canceled task, which no runner claims. */
function canceledTask(number: number): Task {
  const url = `https://video-${number % 100}.example.test/watch/${1e9 + number}`;
  const task = newTask(url, {}, new Date());
  return { ...task, state: "canceled", finished_at: task.updated_at };
}
