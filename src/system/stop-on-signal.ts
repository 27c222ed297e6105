import { setTimeout as wait } from "node:timers/promises";
import closeWithGrace from "close-with-grace";
import type { Logger } from "pino";

interface StopOptions {
  logger: Logger;
  /** Aborted once the log cannot be read. */
  logClosed: AbortSignal;
  /** How long `stop` may take, milliseconds. */
  delayMs: number;
}

/** A process that gets one of these is broken: no code of ours must run in it any more. */
const faults = ["SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV"] as const;

const stopSignals = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR2"] as const;

/**
 * A second signal within this time is the first one once more, milliseconds: Ctrl-C reaches all processes of a terminal, and npm
 * forwards to the service what it gets itself.
 */
const sameSignalMs = 500;

/**
 * Calls `stop` once: after a signal, after an unhandled error, or when the log is closed. The process ends after that,
 * but not later than `delayMs`, and at once after a second signal or error. SIGHUP counts once, as a closed terminal may
 * send several.
 */
export function stopOnSignal(options: StopOptions, stop: (err?: Error) => Promise<void>): void {
  const { logger, logClosed, delayMs } = options;
  let sinceMs: number | undefined;
  let cause: string | undefined;
  const closing = closeWithGrace(
    {
      logger,
      delay: delayMs,
      skip: [...faults, ...stopSignals],
      onTimeout() {
        logger.fatal({ delayMs }, "ending at once: the service did not stop in time");
        kill();
      },
    },
    async ({ err }) => {
      sinceMs = performance.now();
      if (err) logger.fatal({ err }, "stopping after an unhandled error");
      else logger.info({ signal: cause }, "stopping; requests in flight may finish");
      await stop(err);
      while (isInSystemCall()) await wait(50);
      endOnSignals();
    },
  );
  const stopFor = (name: string): void => {
    cause = name;
    closing.close();
  };
  const onSignal = (signal: string): void => {
    if (sinceMs === undefined) stopFor(signal);
    else if (signal !== "SIGHUP" && performance.now() - sinceMs >= sameSignalMs) {
      logger.error({ signal }, "ending at once: a second signal");
      if (isInSystemCall()) kill();
      endOnSignals();
      process.exit(1);
    }
  };
  const onLogClosed = (): void => {
    if (sinceMs === undefined) stopFor("log closed");
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  logClosed.addEventListener("abort", onLogClosed);
  if (logClosed.aborted) onLogClosed();
}

/**
 * Whether a thread looks up a name or is in a call of the file system, as far as Node knows. The exit of the process waits for
 * it, without a limit: for the name servers, which may be dead, or for a disk that hangs.
 */
function isInSystemCall(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^(GetAddrInfoReq|FSReq)/.test(name));
}

/** Ends the process without waiting for its threads. */
function kill(): void {
  process.kill(process.pid, "SIGKILL");
}

/** From now on signals end the process, as its exit may wait for a thread that Node does not know of. */
function endOnSignals(): void {
  for (const signal of stopSignals) process.removeAllListeners(signal);
}
