import type { Task } from "../model/task.ts";
import type { ChangedTask } from "./responses.ts";
import type { ServiceClient } from "./service-client.ts";

/** The `info` of the tasks that have not ended, for their events leave it out while it stays the same. */
export interface TaskInfos {
  /** Returns the task with its `info`; asks the service if no earlier task had it. */
  complete(task: ChangedTask): Promise<Task>;
  /** For a task that was deleted. */
  forget(id: string): void;
  /** For events that were missed. */
  clear(): void;
}

export function createTaskInfos(service: Pick<ServiceClient, "getTask">): TaskInfos {
  const infos = new Map<string, Task["info"]>();

  /** Returns null if the task was deleted in the meantime. */
  async function read(id: string): Promise<Task["info"]> {
    return (await service.getTask(id))?.info ?? null;
  }

  return {
    async complete(task) {
      const { id, state, info = infos.get(id) } = task;
      const whole = { ...task, info: info === undefined ? await read(id) : info };
      if (state === "queued" || state === "running") infos.set(id, whole.info);
      else infos.delete(id);
      return whole;
    },
    forget: (id) => void infos.delete(id),
    clear: () => infos.clear(),
  };
}
