import { type Static, Type } from "@sinclair/typebox";
import type { FastifyInstance, FastifyReply } from "fastify";
import { hasEnded, type Task } from "../../model/task.ts";
import type { Library } from "../../runner/library/library.ts";
import type { TaskStore } from "../../stores/store.ts";

/** Longest wait, seconds. */
const maxWaitS = 60;

/** The header field of routes that can wait. Any text passes: a preference that cannot be read is ignored (RFC 7240 §2). */
export const PreferHeaders = Type.Object({
  prefer: Type.Optional(
    Type.String({
      description: `\`wait=N\`: the response comes once the task has ended and its files are in the library, if there is one, or after N seconds, at most ${maxWaitS}, with its state then`,
      examples: ["wait=30"],
    }),
  ),
});

export type TaskWaits = ReturnType<typeof createTaskWaits>;

interface TaskWaitsDeps {
  store: Pick<TaskStore, "events" | "get">;
  /** A task whose files, or those of its members, are still to be put there is waited for, too. */
  library?: Pick<Library, "isPending" | "pendingMembers"> | undefined;
}

/** Lets requests of `app` wait for the ends of tasks: by the events of the store, which is not asked meanwhile. */
export function createTaskWaits(app: FastifyInstance, { store, library }: TaskWaitsDeps) {
  const waiters = createWaiters();
  /** Those who wait for one task share its record. */
  const reads = new Map<string, Promise<Task | undefined>>();
  const isPending = createPendingCheck(waiters, { store, library });
  /** Not by a shared read, which may have begun before the event. */
  async function wakeUnlessPending(id: string): Promise<void> {
    const task = await store.get(id).catch(() => undefined);
    if (task === undefined || !(await isPending(task))) waiters.wake(id);
  }
  const unsubscribe = store.events.subscribe(({ type, taskId, state }) => {
    if (type !== "deleted" && !hasEnded(state)) return;
    if (library === undefined || !waiters.has(taskId)) waiters.wake(taskId);
    else void wakeUnlessPending(taskId);
  });
  app.addHook("preClose", async () => {
    unsubscribe();
    waiters.close();
  });

  function readEnded(id: string): Promise<Task | undefined> {
    const reading = reads.get(id) ?? store.get(id).finally(() => reads.delete(id));
    reads.set(id, reading);
    return reading;
  }

  return {
    /**
     * Returns the task, once it has ended and is in the library if `prefer` says so; see `PreferHeaders`. Undefined if there is none
     * any more. Sets `Preference-Applied` if it has waited.
     *
     * @param read Returns the task as it is now, if the caller may see it.
     * @param onWait Default: none. Called when it begins to wait; those who have waited for one task share its record.
     * @throws ServiceError of `read` and the store
     */
    async wait(
      id: string,
      { prefer }: Static<typeof PreferHeaders>,
      reply: FastifyReply,
      read: () => Promise<Task | undefined>,
      onWait?: () => void,
    ): Promise<Task | undefined> {
      const seconds = parseWait(prefer);
      if (seconds === null) return read();
      reply.header("preference-applied", `wait=${seconds}`);
      // Before it is read, so that no end is missed.
      const { end, stop } = waiters.start(id, seconds, reply);
      try {
        const found = await readUnlessActive(read, isPending);
        if (found !== "active") return found;
        onWait?.();
        await end;
        return await readEnded(id);
      } finally {
        stop();
      }
    },
  };
}

/** Apart from `wait`, in which the record would stay in memory meanwhile. */
async function readUnlessActive(
  read: () => Promise<Task | undefined>,
  isPending: (task: Task) => Promise<boolean>,
): Promise<Task | "active" | undefined> {
  const task = await read();
  if (task === undefined) return undefined;
  return hasEnded(task.state) && !(await isPending(task)) ? task : "active";
}

/** Creates a function that says whether files are still to be put into the library; if it is of members, those who wait are woken afterwards. */
function createPendingCheck(waiters: Waiters, { store, library }: TaskWaitsDeps): (task: Task) => Promise<boolean> {
  /** Collections whose members are waited for. */
  const following = new Set<string>();

  async function followMembers(id: string, members: AsyncIterable<Task>): Promise<void> {
    try {
      for await (const { id: member } of members) {
        const { end, stop } = waiters.start(member);
        const task = await store.get(member);
        if (task === undefined || !(await library?.isPending(task))) stop();
        await end;
      }
    } catch {
      // The store or the disk is unavailable: the request does not wait for it.
    }
    following.delete(id);
    waiters.wake(id);
  }

  return async (task) => {
    if (library === undefined) return false;
    if (task.kind !== "collection") return library.isPending(task);
    if (following.has(task.id)) return true;
    following.add(task.id);
    void followMembers(task.id, library.pendingMembers(task));
    return true;
  };
}

type Waiters = ReturnType<typeof createWaiters>;

/** Creates a table of the requests that wait, by task. */
function createWaiters() {
  const waiting = new Map<string, Set<() => void>>();
  let isClosed = false;
  const wake = (id: string) => {
    for (const stop of waiting.get(id) ?? []) stop();
  };
  return {
    has: (id: string) => waiting.has(id),
    wake,
    close() {
      isClosed = true;
      for (const id of waiting.keys()) wake(id);
    },
    /** Starts to wait; `end` resolves when the task ends, the time is over, or the client has left. */
    start(id: string, seconds?: number, reply?: FastifyReply) {
      const { promise: end, resolve } = Promise.withResolvers<void>();
      const own = waiting.getOrInsertComputed(id, () => new Set());
      const stop = () => {
        own.delete(stop);
        if (own.size === 0 && waiting.get(id) === own) waiting.delete(id);
        clearTimeout(timer);
        reply?.raw.off("close", stop);
        resolve();
      };
      const timer = seconds === undefined ? undefined : setTimeout(stop, seconds * 1_000);
      own.add(stop);
      reply?.raw.once("close", stop);
      if (isClosed || reply?.raw.destroyed === true) stop();
      return { end, stop };
    },
  };
}

/** Returns the seconds of the first preference `wait` (RFC 7240 §4.3), at most 60; `null`: there is none that can be read. */
export function parseWait(prefer: string | undefined): number | null {
  // A quote without an end reaches to the end of the text: to look for it at each quote would take quadratic time.
  const preferences = prefer?.match(/(?:[^,"]|"(?:[^"\\]|\\.)*(?:"|\\?$))+/g) ?? [];
  const first = preferences.find((preference) => /^\s*wait\s*(?:[=;]|$)/i.test(preference)) ?? "";
  const [, seconds, quoted = seconds] = /^[^=;]*=\s*(?:(\d+)|"(\d+)")\s*(?:;|$)/.exec(first) ?? [];
  return quoted === undefined ? null : Math.min(Number(quoted), maxWaitS);
}
