import { Socket } from "node:net";
import { Client, type ClientConfig } from "pg";
import type { BaseLogger } from "pino";
import { sleep } from "../../../async/deadline.ts";
import { logFieldsOf } from "../../../model/errors.ts";
import { numbers } from "../database.ts";
import { toStoreError } from "../database-errors.ts";

interface ListenerOptions {
  connection: ClientConfig;
  /** What `onNotify` is called for. */
  channel: string;
  /** What only `onMessage` is called for. */
  otherChannels: readonly string[];
  /** Called with each new connection once it listens, before `onNotify`. */
  onConnect(client: Client): Promise<void>;
  /** Called with each notification of the other channels as it comes; must not throw. */
  onMessage(channel: string, payload: string): void;
  /** Called after `onConnect`, then after notifications, one call for several; and after four seconds without one. */
  onNotify(client: Client): Promise<void>;
  /** Gets a line when an outage begins and one when it ends. */
  logger?: Pick<BaseLogger, "info" | "error"> | undefined;
}

/** Limit of the time between two calls of `onNotify`, and of the wait for a response. */
const maxSilenceMs = 4_000;

const firstWaitMs = 100;
const longestWaitMs = 2_000;

/**
 * Listens on a connection of its own. Reconnects if the connection is lost or stalls, or a callback rejects.
 * Callbacks never run at the same time.
 */
export function startListener(options: ListenerOptions) {
  const { logger } = options;
  const life = new AbortController();
  let failures = 0;

  function onSuccess(): void {
    if (failures > 0) logger?.info("task event listener reconnected");
    failures = 0;
  }

  async function run(): Promise<void> {
    while (!life.signal.aborted) {
      try {
        await listen(options, life.signal, onSuccess);
      } catch (err) {
        if (life.signal.aborted) return;
        if (failures === 0)
          logger?.error(logFieldsOf(toStoreError(err)), "task event listener disconnected; reconnecting");
        const waitMs = Math.min(firstWaitMs * 2 ** failures, longestWaitMs);
        await sleep(waitMs, life.signal);
        failures += 1;
      }
    }
  }

  const ended = run();
  return {
    close() {
      life.abort();
      return ended;
    },
  };
}

/** @throws the error that ended the connection; any error after `signal` is aborted. */
async function listen(
  { connection, channel: own, otherChannels, onMessage, onConnect, onNotify }: ListenerOptions,
  signal: AbortSignal,
  onSuccess: () => void,
): Promise<never> {
  // Its own socket, to destroy: `client.end` waits for the server, which may never respond.
  const socket = new Socket();
  const destroy = () => void socket.destroy();
  signal.addEventListener("abort", destroy);
  try {
    const client = createClient(connection, socket);
    await client.connect();
    client.on("notification", ({ channel, payload = "" }) => {
      if (channel !== own) onMessage(channel, payload);
    });
    for (const channel of [own, ...otherChannels]) await client.query(`LISTEN ${channel}`);
    await onConnect(client);
    for (;;) {
      // Waits from before the call: a notification may come during it.
      await Promise.all([nextNotification(client, own), onNotify(client).then(onSuccess)]);
    }
  } finally {
    signal.removeEventListener("abort", destroy);
    destroy();
  }
}

function createClient(connection: ClientConfig, socket: Socket): Client {
  const client = new Client({
    ...connection,
    types: numbers,
    stream: () => socket,
    connectionTimeoutMillis: maxSilenceMs,
    query_timeout: maxSilenceMs,
  });
  // The next statement fails.
  client.on("error", () => {});
  return client;
}

/** Resolves after a notification of the channel or `maxSilenceMs`. @throws if the connection is lost meanwhile. */
async function nextNotification(client: Client, own: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, maxSilenceMs);
  const onNotification = ({ channel }: { channel: string }) => {
    if (channel === own) resolve();
  };
  client.on("notification", onNotification).on("error", reject);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    client.off("notification", onNotification).off("error", reject);
  }
}
