import type { TaskStore } from "../../src/stores/store.ts";
import type { Task } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";

/** Name of the key that servers may have, and owner of its tasks. */
export const keyOwner = "anna";

/** Creates `count` tasks of `owner` in the store. */
export async function fillStore(store: TaskStore, count: number, owner?: string): Promise<void> {
  const batch = 5_000;
  for (let done = 0; done < count; done += batch) {
    const length = Math.min(batch, count - done);
    await Promise.all(Array.from({ length }, (_, i) => store.create(canceledTask(done + i, owner))));
  }
}

/** Returns a canceled task, which no runner claims. */
function canceledTask(number: number, owner: string | undefined): Task {
  const url = `https://video-${number % 100}.example.test/watch/${1e9 + number}`;
  const task = newTask(url, {}, new Date(), owner);
  return { ...task, state: "canceled", finished_at: task.updated_at };
}
