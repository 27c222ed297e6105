import { stat } from "node:fs/promises";
import type { BaseLogger } from "pino";
import { messageOf, ServiceError } from "../../model/errors.ts";
import type { ForkServer } from "./fork-server.ts";

const firstDelayMs = 100;
const maxDelayMs = 60_000;
/** One that has run for this long is restarted without a longer delay. */
const stableMs = 60_000;
/** How often a new version is tried whose start fails, as while it is being installed. */
const replaceIntervalMs = 5_000;

type Logger = Pick<BaseLogger, "info" | "warn">;

/**
 * Starts a fork server and restarts it when it ends, 0.1 s later, then with delays that grow to a minute.
 *
 * @throws Error of the first start
 */
export async function openSupervisor(start: () => Promise<ForkServer>, logger: Logger): Promise<Supervisor> {
  const first = await start();
  return new Supervisor(start, logger, first, await fileMark(first.versionFile));
}

/** Keeps a fork server running, and old ones until their last calls are over. */
export class Supervisor {
  /** The fork server of the latest successful start. */
  current: ForkServer;
  readonly #start: () => Promise<ForkServer>;
  readonly #logger: Logger;
  readonly #servers = new Set<ForkServer>();
  /** Mark of the version that runs. */
  #installed: string | undefined;
  #isRunning = true;
  #isClosed = false;
  #delayMs = firstDelayMs;
  #timer: NodeJS.Timeout | undefined;
  #restarting: Promise<void> | undefined;
  #replacing: Promise<void> | undefined;
  #lastReplacedAt = -Infinity;

  constructor(start: () => Promise<ForkServer>, logger: Logger, first: ForkServer, installed: string | undefined) {
    this.#start = start;
    this.#logger = logger;
    this.current = first;
    this.#installed = installed;
    void this.#watch(first);
  }

  /**
   * Returns the running fork server; starts another if yt-dlp has been replaced.
   *
   * @throws ServiceError `unavailable` after it has ended, until it is restarted, and once closed
   */
  async acquire(): Promise<ForkServer> {
    if (this.#isClosed) throw new ServiceError("unavailable", "yt-dlp is closed");
    if (this.#isRunning) {
      this.#replacing ??= this.#replace().finally(() => (this.#replacing = undefined));
      await this.#replacing;
    }
    if (this.#isRunning) return this.current;
    throw new ServiceError("unavailable", "yt-dlp's process is being restarted");
  }

  /** Ends the fork server; safe to call twice. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const ending = [...this.#servers].map((server) => server.end("it is closed"));
    await Promise.all([...ending, this.#restarting, this.#replacing]);
  }

  /** Waits for the end of `server` and restarts it, unless another has taken its place. */
  async #watch(server: ForkServer): Promise<void> {
    const startedAt = performance.now();
    this.#servers.add(server);
    const reason = await server.ended;
    this.#servers.delete(server);
    if (server !== this.current || this.#isClosed) return;
    this.#isRunning = false;
    if (performance.now() - startedAt >= stableMs) this.#delayMs = firstDelayMs;
    this.#restartLater(reason);
  }

  #restartLater(reason: string): void {
    const delayMs = this.#delayMs;
    this.#logger.warn({ reason, delayMs }, "yt-dlp's process has ended; restarting");
    this.#timer = setTimeout(() => {
      this.#restarting = this.#restart();
    }, delayMs);
    this.#delayMs = Math.min(maxDelayMs, Math.max(1_000, delayMs * 2));
  }

  async #restart(): Promise<void> {
    // A new version may have been started instead.
    if (this.#isRunning) return;
    try {
      await this.#startAnother();
    } catch (error) {
      if (!this.#isClosed) this.#restartLater(messageOf(error));
    }
  }

  /** Starts another fork server; calls of the one before go on, and it ends with the last. */
  async #startAnother(): Promise<void> {
    const next = await this.#start();
    const mark = await fileMark(next.versionFile);
    if (this.#isClosed) return await next.end("it is closed");
    const before = this.current;
    this.#installed = mark;
    this.current = next;
    this.#isRunning = true;
    void this.#watch(next);
    void before.endWhenIdle("another process has taken its place");
  }

  /** Starts the new version if yt-dlp has been replaced. */
  async #replace(): Promise<void> {
    const mark = await fileMark(this.current.versionFile);
    if (mark === this.#installed || mark === undefined || this.#isClosed) return;
    if (performance.now() - this.#lastReplacedAt < replaceIntervalMs) return;
    this.#lastReplacedAt = performance.now();
    const from = this.current.version;
    try {
      await this.#startAnother();
      this.#logger.info({ from, to: this.current.version }, "yt-dlp has been replaced");
    } catch (err) {
      const message = "yt-dlp has been replaced, but does not start; using the old one";
      this.#logger.warn({ err }, message);
    }
  }
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
