import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientConfig } from "pg";
import type { BaseLogger } from "pino";

export interface Listener {
  /** Resolves once nothing is read any more; what hangs is broken off. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  connection: ClientConfig;
  channel: string;
  /** Called with each new connection once it listens, before `read`. */
  onConnect(client: Client): Promise<void>;
  /** Called behind `begin`, then for all notifications since the last call, and after four seconds without one. */
  onNotify(client: Client): Promise<void>;
  /** Told when an outage begins, and when it is over. */
  logger?: Pick<BaseLogger, "info" | "error"> | undefined;
}

/** The longest time without reading, and the longest that an answer is waited for. */
const maxSilenceMs = 4_000;

const firstWaitMs = 100;
const longestWaitMs = 2_000;

/**
 * Listens on a connection of its own, and on a new one whenever that is lost or gives no answer;
 * failures of the callbacks count as such. Calls follow one another.
 */
export function startListener(options: ListenerOptions): Listener {
  const { logger } = options;
  const life = new AbortController();
  let failures = 0;

  function noteSuccess(): void {
    if (failures > 0) logger?.info("task event listener reconnected");
    failures = 0;
  }

  async function run(): Promise<void> {
    while (!life.signal.aborted) {
      try {
        await listen(options, life.signal, noteSuccess);
      } catch (err) {
        if (life.signal.aborted) return;
        if (failures === 0)
          logger?.error({ err }, "task event listener disconnected; reconnecting");
        await pause(Math.min(firstWaitMs * 2 ** failures, longestWaitMs), life.signal);
        failures += 1;
      }
    }
  }

  const over = run();
  return {
    close() {
      life.abort();
      return over;
    },
  };
}

/** @throws what ends the connection; `signal` does. */
async function listen(
  { connection, channel, onConnect, onNotify }: ListenerOptions,
  signal: AbortSignal,
  noteSuccess: () => void,
): Promise<never> {
  // Ours, for a client takes leave of its server, which may never answer.
  const socket = new Socket();
  const hangUp = () => void socket.destroy();
  signal.addEventListener("abort", hangUp);
  try {
    const client = createClient(connection, socket);
    await client.connect();
    await client.query(`LISTEN ${channel}`);
    await onConnect(client);
    for (;;) {
      // Together, for a notification may come while there is reading.
      await Promise.all([nextNotification(client), onNotify(client).then(noteSuccess)]);
    }
  } finally {
    signal.removeEventListener("abort", hangUp);
    hangUp();
  }
}

function createClient(connection: ClientConfig, socket: Socket): Client {
  const client = new Client({
    ...connection,
    stream: () => socket,
    connectionTimeoutMillis: maxSilenceMs,
    query_timeout: maxSilenceMs,
  });
  // Whoever uses it next is refused.
  client.on("error", () => {});
  return client;
}

/** Resolves also when there is none for a while. @throws when the connection is lost meanwhile. */
async function nextNotification(client: Client): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, maxSilenceMs);
  client.on("notification", resolve).on("error", reject);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    client.off("notification", resolve).off("error", reject);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (err) {
    if (!signal.aborted) throw err;
  }
}
