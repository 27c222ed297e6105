import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Runs a computation to its end. Between its steps the event loop handles messages and sockets.
 *
 * @throws what `steps` throws; `signal.reason`
 */
export async function runSteps<T>(steps: Generator<undefined, T>, signal?: AbortSignal): Promise<T> {
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done === true) return next.value;
    signal?.throwIfAborted();
    await nextTurn();
  }
}
