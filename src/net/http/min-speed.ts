import { ServiceError } from "../../model/errors.ts";

/** The least speed of a response's body. */
export interface MinSpeed {
  /** Bytes per second, on average over `windowMs`; 0: any speed will do. */
  bytesPerS: number;
  windowMs: number;
}

/** When a slow server is worth another attempt, seconds. */
const retryAfterS = 60;

/**
 * Creates a meter of one body that calls `onSlow` with an `upstream_timeout` error when `windowMs` of waiting have
 * brought fewer bytes than `minSpeed` demands; then the next window starts. `what` names the request. A
 * meter that is stopped has no timer.
 */
export function createSpeedMeter(
  { bytesPerS, windowMs }: MinSpeed,
  what: string,
  onSlow: (error: ServiceError) => void,
) {
  let bytes = 0;
  let waitedMs = 0;
  let startedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  function endWindow(): void {
    const speed = bytes / (windowMs / 1000);
    if (speed < bytesPerS) return onSlow(slowError(what, speed, { bytesPerS, windowMs }));
    bytes = 0;
    waitedMs = 0;
    startedAt = performance.now();
    timer = setTimeout(endWindow, windowMs);
  }

  return {
    /** The reader waits for the server's next bytes; the time until `stop` counts. */
    start(): void {
      if (bytesPerS === 0) return;
      startedAt = performance.now();
      timer = setTimeout(endWindow, windowMs - waitedMs);
    },
    /** The reader no longer waits: the time until the next `start` does not count. */
    stop(): void {
      if (bytesPerS === 0) return;
      clearTimeout(timer);
      waitedMs += performance.now() - startedAt;
    },
    /** Adds bytes that the reader has received. */
    add(more: number): void {
      bytes += more;
    },
  };
}

function slowError(what: string, speed: number, { bytesPerS, windowMs }: MinSpeed): ServiceError {
  const rule = `the response must have at least ${bytesPerS} bytes/s over ${windowMs / 1000} s`;
  const message = `${what}: ${rule} (MIN_SPEED_BPS), it has ${Math.floor(speed * 100) / 100}`;
  return new ServiceError("upstream_timeout", message, { retryAfterS });
}
