import { stat } from "node:fs/promises";
import type { BaseLogger } from "pino";
import { ServiceError } from "../../model/errors.ts";
import type { ForkServer } from "./fork-server.ts";

/** Has a fork server running, and old ones until their last calls are over. */
export interface Supervisor {
  /** The fork server of the latest successful start. */
  readonly current: ForkServer;
  /**
   * Returns the running fork server; starts another if yt-dlp has been replaced.
   *
   * @throws ServiceError `unavailable` after it has ended, until it is restarted, and once closed
   */
  acquire(): Promise<ForkServer>;
  /** Ends the fork server; safe to call twice. */
  close(): Promise<void>;
}

const firstDelayMs = 100;
const maxDelayMs = 60_000;
/** One that has run for this long is restarted without a longer delay. */
const stableMs = 60_000;
/** How often a new version is tried whose start fails, as while it is being installed. */
const replaceIntervalMs = 5_000;

/**
 * Starts a fork server and restarts it when it ends, 0.1 s later, then with delays that grow to a minute.
 *
 * @throws Error of the first start
 */
export async function openSupervisor(
  start: () => Promise<ForkServer>,
  logger: Pick<BaseLogger, "info" | "warn">,
): Promise<Supervisor> {
  const servers = new Set<ForkServer>();
  let current = await start();
  let installed = await fileMark(current.versionFile);
  let isRunning = true;
  let isClosed = false;
  let delayMs = firstDelayMs;
  let timer: NodeJS.Timeout | undefined;
  let restarting: Promise<void> | undefined;
  let replacing: Promise<void> | undefined;
  let lastReplacedAt = -Infinity;
  void watch(current);

  /** Waits for the end of `server` and restarts it, unless another has taken its place. */
  async function watch(server: ForkServer): Promise<void> {
    const startedAt = performance.now();
    servers.add(server);
    const reason = await server.ended;
    servers.delete(server);
    if (server !== current || isClosed) return;
    isRunning = false;
    if (performance.now() - startedAt >= stableMs) delayMs = firstDelayMs;
    restartLater(reason);
  }

  function restartLater(reason: string): void {
    logger.warn({ reason, delayMs }, "yt-dlp's process has ended; restarting");
    timer = setTimeout(() => {
      restarting = restart();
    }, delayMs);
    delayMs = Math.min(maxDelayMs, Math.max(1_000, delayMs * 2));
  }

  async function restart(): Promise<void> {
    // A new version may have been started instead.
    if (isRunning) return;
    try {
      await useAnother();
    } catch (error) {
      if (!isClosed) restartLater(error instanceof Error ? error.message : String(error));
    }
  }

  /** Starts another fork server; calls of the one before go on, and it ends with the last. */
  async function useAnother(): Promise<void> {
    const next = await start();
    const mark = await fileMark(next.versionFile);
    if (isClosed) return await next.end("it is closed");
    const before = current;
    installed = mark;
    current = next;
    isRunning = true;
    void watch(next);
    void before.endWhenIdle("another process has taken its place");
  }

  /** Starts the new version if yt-dlp has been replaced. */
  async function replace(): Promise<void> {
    const mark = await fileMark(current.versionFile);
    if (mark === installed || mark === undefined || isClosed) return;
    if (performance.now() - lastReplacedAt < replaceIntervalMs) return;
    lastReplacedAt = performance.now();
    const from = current.version;
    try {
      await useAnother();
      logger.info({ from, to: current.version }, "yt-dlp has been replaced");
    } catch (err) {
      logger.warn({ err }, "yt-dlp has been replaced, but does not start; using the old one");
    }
  }

  return {
    get current() {
      return current;
    },

    async acquire() {
      if (isClosed) throw new ServiceError("unavailable", "yt-dlp is closed");
      if (isRunning) await (replacing ??= replace().finally(() => (replacing = undefined)));
      if (isRunning) return current;
      throw new ServiceError("unavailable", "yt-dlp's process is being restarted");
    },

    async close() {
      isClosed = true;
      clearTimeout(timer);
      const ending = [...servers].map((server) => server.end("it is closed"));
      await Promise.all([...ending, restarting, replacing]);
    },
  };
}

/** Differs if a file has been replaced or changed; undefined if there is none. */
async function fileMark(file: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeMs } = await stat(file);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return undefined;
  }
}
