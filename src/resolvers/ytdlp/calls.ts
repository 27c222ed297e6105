import { ServiceError } from "../../model/errors.ts";
import { untilAborted } from "../../async/deadline.ts";
import type { Frame, PythonProcess } from "./python-process.ts";

/** The requests to a fork server that wait for their responses. */
interface Calls {
  /**
   * Sends a request and returns the first result of `onFrame` that is not undefined. When `signal` is
   * aborted, the server kills what runs for the request; this then rejects with `signal.reason`.
   *
   * @throws ServiceError `unavailable` if the server ends, or exceeds a time limit, which ends it
   */
  run<T extends object>(request: object, options: CallOptions<T>): Promise<T>;
  /** Gives a frame to its call. */
  receive(frame: Frame): void;
  /** Rejects all calls, and later ones. */
  reject(reason: string): void;
  /** Resolves once there are no calls. */
  untilIdle(): Promise<void>;
}

interface CallOptions<T extends object> {
  signal: AbortSignal;
  onFrame(frame: Frame): T | undefined;
  /** Longest wait for the response, milliseconds; default: until `signal` is aborted. */
  limitMs?: number;
}

/** A killed extraction is gone within milliseconds. */
const killLimitMs = 800;

/** Creates the calls to `server`, which are sent once `loaded` resolves. */
export function createCalls(server: PythonProcess, loaded: Promise<void>): Calls {
  const calls = new Map<number, { onFrame(frame: Frame): void; reject(error: unknown): void }>();
  /** Also those that wait until the server has loaded. */
  const running = createRunning();
  let lastId = 0;
  let endReason: string | undefined;

  function send(message: object): void {
    server.socket.write(`${JSON.stringify(message)}\n`);
  }

  function limit(ms: number): NodeJS.Timeout {
    return setTimeout(() => server.kill(`it did not respond within ${ms} ms`), ms);
  }

  async function call<T extends object>(request: object, { signal, onFrame, limitMs }: CallOptions<T>): Promise<T> {
    await untilAborted(loaded, signal);
    if (endReason !== undefined) throw endedError(endReason);
    const id = (lastId += 1);
    const result = Promise.withResolvers<T>();
    let timer = limitMs === undefined ? undefined : limit(limitMs);
    const onAbort = () => {
      send({ id, do: "kill" });
      timer ??= limit(killLimitMs);
    };
    calls.set(id, {
      onFrame(frame) {
        const value = onFrame(frame);
        if (value !== undefined) result.resolve(value);
      },
      reject: result.reject,
    });
    signal.addEventListener("abort", onAbort);
    send({ ...request, id });
    try {
      return await result.promise.finally(() => signal.throwIfAborted());
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      calls.delete(id);
    }
  }

  return {
    run: (request, options) => running.run(() => call(request, options)),

    receive: (frame) => calls.get(frame.id)?.onFrame(frame),

    reject(reason) {
      endReason = reason;
      for (const { reject } of calls.values()) reject(endedError(reason));
    },

    untilIdle: running.untilIdle,
  };
}

/** Counts what runs. */
function createRunning() {
  let count = 0;
  const waiting = new Set<() => void>();

  return {
    async run<T>(work: () => Promise<T>): Promise<T> {
      count += 1;
      try {
        return await work();
      } finally {
        count -= 1;
        if (count === 0) for (const onIdle of waiting) onIdle();
      }
    },
    async untilIdle(): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      if (count > 0) await promise;
    },
  };
}

/** The error of a call to a fork server that has ended. */
export function endedError(reason: string): ServiceError {
  return new ServiceError("unavailable", `yt-dlp's process has ended: ${reason}`);
}
