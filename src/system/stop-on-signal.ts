import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "pino";

interface StopOptions {
  logger: Logger;
  /** Aborted once nobody can read the log any more. */
  logClosed: AbortSignal;
  /** How long `stop` may take, milliseconds. */
  delayMs: number;
}

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
  const end = async (err?: Error): Promise<void> => {
    sinceMs = performance.now();
    setTimeout(() => {
      logger.fatal({ delayMs }, "ending at once: the service did not stop in time");
      kill();
    }, delayMs);
    let code = err === undefined ? 0 : 1;
    await stop(err).catch((error: unknown) => {
      logger.error({ err: error }, "the service did not stop as it should");
      code = 1;
    });
    while (isInSystemCall()) await wait(50);
    endAtOnce(code);
  };
  const onSignal = (signal: string): void => {
    if (sinceMs === undefined) {
      logger.info({ signal }, "stopping; requests in flight may finish");
      void end();
    } else if (signal !== "SIGHUP" && performance.now() - sinceMs >= sameSignalMs) {
      logger.error({ signal }, "ending at once: a second signal");
      endAtOnce(1);
    }
  };
  const onLogClosed = (): void => {
    if (sinceMs === undefined) void end();
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  // A rejection that nobody handles comes here, too.
  process.on("uncaughtException", (err) => {
    if (sinceMs === undefined) {
      logger.fatal({ err }, "stopping after an unhandled error");
      void end(err);
    } else {
      logger.fatal({ err }, "ending at once: a second unhandled error");
      endAtOnce(1);
    }
  });
  logClosed.addEventListener("abort", onLogClosed);
  if (logClosed.aborted) onLogClosed();
}

function endAtOnce(code: number): void {
  if (isInSystemCall()) kill();
  // From now on signals end the process, as its exit may wait for a thread that Node does not know of.
  for (const signal of stopSignals) process.removeAllListeners(signal);
  process.exit(code);
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
