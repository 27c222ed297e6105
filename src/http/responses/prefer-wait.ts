import { type Static, Type } from "@sinclair/typebox";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { State, Task } from "../../model/task.ts";
import type { TaskStore } from "../../stores/store.ts";

/** Longest wait, seconds. */
const maxWaitS = 60;

/** The header field of routes that can wait. Any text passes: a preference that cannot be read is ignored (RFC 7240 §2). */
export const PreferHeaders = Type.Object({
  prefer: Type.Optional(
    Type.String({
      description: `\`wait=N\`: the response comes once the task has ended, or after N seconds, at most ${maxWaitS}, with its state then`,
      examples: ["wait=30"],
    }),
  ),
});

export interface TaskWaits {
  /**
   * Returns the task, once it has ended if `prefer` says so; see `PreferHeaders`. Undefined if there is none any more. Sets
   * `Preference-Applied` if it has waited.
   *
   * @param read Returns the task as it is now, if the caller may see it.
   * @throws ServiceError of `read` and the store
   */
  wait(
    id: string,
    headers: Static<typeof PreferHeaders>,
    reply: FastifyReply,
    read: () => Promise<Task | undefined>,
  ): Promise<Task | undefined>;
}

/** Creates what lets requests of `app` wait for the ends of tasks: by the events of the store, which is not asked meanwhile. */
export function createTaskWaits(app: FastifyInstance, store: Pick<TaskStore, "events" | "get">): TaskWaits {
  const waiting = new Map<string, Set<() => void>>();
  /** Those who wait for one task share its record. */
  const reads = new Map<string, Promise<Task | undefined>>();
  const wakeAll = (id: string) => {
    for (const wake of waiting.get(id) ?? []) wake();
  };
  const unsubscribe = store.events.subscribe(({ type, taskId, state }) => {
    if (type === "deleted" || (state !== undefined && ends.has(state))) wakeAll(taskId);
  });
  let isClosing = false;
  app.addHook("preClose", async () => {
    isClosing = true;
    unsubscribe();
    for (const id of waiting.keys()) wakeAll(id);
  });

  function readEnded(id: string): Promise<Task | undefined> {
    const reading = reads.get(id) ?? store.get(id).finally(() => reads.delete(id));
    reads.set(id, reading);
    return reading;
  }

  /** Starts to wait; `end` resolves when the task ends, the time is over, or nobody waits any more. */
  function start(id: string, seconds: number, reply: FastifyReply) {
    const { promise: end, resolve } = Promise.withResolvers<void>();
    const own = waiting.get(id) ?? new Set();
    waiting.set(id, own);
    const stop = () => {
      own.delete(stop);
      if (own.size === 0 && waiting.get(id) === own) waiting.delete(id);
      clearTimeout(timer);
      reply.raw.off("close", stop);
      resolve();
    };
    const timer = setTimeout(stop, seconds * 1_000);
    own.add(stop);
    reply.raw.once("close", stop);
    if (isClosing || reply.raw.destroyed) stop();
    return { end, stop };
  }

  return {
    async wait(id, { prefer }, reply, read) {
      const seconds = parseWait(prefer);
      if (seconds === null) return read();
      reply.header("preference-applied", `wait=${seconds}`);
      // Before it is read, so that no end is missed.
      const { end, stop } = start(id, seconds, reply);
      try {
        const task = await read();
        if (task === undefined || ends.has(task.state)) return task;
        await end;
        return await readEnded(id);
      } finally {
        stop();
      }
    },
  };
}

const ends: ReadonlySet<State> = new Set<State>(["succeeded", "failed", "canceled"]);

/** Returns the seconds of the first preference `wait` (RFC 7240 §4.3), at most 60; `null`: there is none that can be read. */
export function parseWait(prefer: string | undefined): number | null {
  // A quote without an end reaches to the end of the text: to look for it at each quote would take quadratic time.
  const preferences = prefer?.match(/(?:[^,"]|"(?:[^"\\]|\\.)*(?:"|\\?$))+/g) ?? [];
  const first = preferences.find((preference) => /^\s*wait\s*(?:[=;]|$)/i.test(preference)) ?? "";
  const [, seconds] = /=\s*"?(\d{1,9})"?\s*(?:;|$)/.exec(first) ?? [];
  return seconds === undefined ? null : Math.min(Number(seconds), maxWaitS);
}
