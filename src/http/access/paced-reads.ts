import { Rotation } from "../../async/rotation.ts";
import type { TaskStore } from "../../stores/store.ts";

/** After this time of reading records other requests have their turn, milliseconds: a record of 256 kB takes two. */
const maxMs = 5;

/**
 * Returns the store with a `get` that gives other requests their turn of the event loop, however many calls there are: a client may ask
 * on hundreds of connections for a byte of a file whose task has a long record. Calls for different tasks take turns.
 */
export function withPacedReads(store: TaskStore): TaskStore {
  /** Reads that wait, by task. */
  const waiting = new Rotation<() => void>();
  /** Of the present turn of the event loop. */
  let spentMs = 0;
  let isCounting = false;

  const hasTime = () => spentMs < maxMs;

  async function read(id: string) {
    const startMs = performance.now();
    if (!isCounting) {
      isCounting = true;
      setImmediate(startTurn);
    }
    // Stores in this process read it before this returns.
    const reading = store.get(id);
    spentMs += performance.now() - startMs;
    return reading;
  }

  function startTurn(): void {
    spentMs = 0;
    isCounting = false;
    while (!waiting.isEmpty && hasTime()) waiting.take()?.();
  }

  async function get(id: string) {
    if (waiting.isEmpty && hasTime()) return read(id);
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof read>>();
    waiting.add(id, () => resolve(read(id)));
    return promise;
  }

  return Object.assign(Object.create(store) as TaskStore, { get });
}
