import { ServiceError } from "../../model/errors.ts";
import { untilAborted } from "../../async/deadline.ts";
import type { Frame, PythonProcess } from "./python-process.ts";

interface CallOptions<T extends object> {
  signal: AbortSignal;
  onFrame(frame: Frame): T | undefined;
  /** Longest wait for the response, milliseconds; default: until `signal` is aborted. */
  limitMs?: number;
}

/** A killed extraction is gone within milliseconds. */
const killLimitMs = 800;

/** Creates the calls to `server`, a fork server, which are sent once `loaded` resolves, and wait for their responses. */
export function createCalls(server: PythonProcess, loaded: Promise<void>) {
  const calls = new Map<number, { onFrame(frame: Frame): void; reject(error: unknown): void }>();
  /** Also those that wait until the server has loaded. */
  const running = new Set<Promise<unknown>>();
  let lastId = 0;
  let endReason: string | undefined;

  async function call<T extends object>(request: object, { signal, onFrame, limitMs }: CallOptions<T>): Promise<T> {
    await untilAborted(loaded, signal);
    if (endReason !== undefined) throw endedError(endReason);
    const id = (lastId += 1);
    const result = Promise.withResolvers<T>();
    let timer = limitMs === undefined ? undefined : killAfter(limitMs, server);
    const onAbort = () => {
      send({ id, do: "kill" }, server);
      timer ??= killAfter(killLimitMs, server);
    };
    calls.set(id, {
      onFrame(frame) {
        const value = onFrame(frame);
        if (value !== undefined) result.resolve(value);
      },
      reject: result.reject,
    });
    signal.addEventListener("abort", onAbort);
    send({ ...request, id }, server);
    try {
      return await result.promise.finally(() => signal.throwIfAborted());
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      calls.delete(id);
    }
  }

  return {
    /**
     * Sends a request and returns the first result of `onFrame` that is not undefined. When `signal` is
     * aborted, the server kills what runs for the request; this then rejects with `signal.reason`.
     *
     * @throws ServiceError `unavailable` if the server ends, or exceeds a time limit, which ends it
     */
    run<T extends object>(request: object, options: CallOptions<T>): Promise<T> {
      const result = call(request, options);
      running.add(result);
      return result.finally(() => running.delete(result));
    },
    receive: (frame: Frame): void => calls.get(frame.id)?.onFrame(frame),
    /** Rejects all calls, and later ones. */
    reject(reason: string): void {
      endReason = reason;
      for (const { reject } of calls.values()) reject(endedError(reason));
    },
    /** Resolves once there are no calls. */
    async untilIdle(): Promise<void> {
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

function send(message: object, { socket }: PythonProcess): void {
  socket.write(`${JSON.stringify(message)}\n`);
}

function killAfter(ms: number, server: PythonProcess): NodeJS.Timeout {
  return setTimeout(() => server.kill(`it did not respond within ${ms} ms`), ms);
}

/** The error of a call to a fork server that has ended. */
export function endedError(reason: string): ServiceError {
  return new ServiceError("unavailable", `yt-dlp's process has ended: ${reason}`);
}
