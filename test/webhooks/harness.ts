import { onTestFinished } from "vitest";
import { createPostClient, everyNetwork } from "../../src/net/http/post-client.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { State } from "../../src/model/task.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createWebhooks, type WebhooksOptions } from "../../src/webhooks/webhooks.ts";
import { createTestClock } from "../contracts/task-store/harness.ts";
import { createTestLog, type LogLine } from "../log.ts";
import { openReceiver, type Receiver } from "./receiver.ts";

/** Opens a receiver, a store that has it as the service's endpoint, and what sends, unless that `startsLater`; closed after the test. */
export async function openWebhooks({
  startsLater = false,
  limits,
  ...options
}: Pick<WebhooksOptions, "limits"> & { totalTimeoutMs?: number; startsLater?: boolean } = {}) {
  const receiver = await startReceiver();
  // Verifiers compare the time of a signature with the system's.
  const clock = createTestClock(Date.now());
  const store = createMemoryStore({ now: clock.now, elapsedMs: clock.elapsedMs, webhook: true });
  const client = createPostClient({ allowNetworks: everyNetwork, perHost: 64, ...options });
  const watchers = new Set<() => void>();
  const { log, logger } = createTestLog(() => {
    for (const watcher of watchers) watcher();
  });
  const metrics = createMetrics({ store, files: { freeBytes: async () => 0 } });
  const webhooks = createWebhooks({
    store,
    observer: metrics.webhooks,
    client,
    endpoint: receiver.endpoint,
    elapsedMs: clock.elapsedMs,
    random: () => 0,
    pollMs: 5,
    limits,
    logger,
  });
  onTestFinished(async () => {
    await webhooks.stop();
    await client.close();
    await store.close();
  });
  if (!startsLater) webhooks.start();

  return {
    receiver,
    store,
    clock,
    webhooks,
    metrics,
    log,
    /** Resolves once `count` lines of the log have this message, and what was being written to the store has been. */
    async logged(msg: string, count = 1): Promise<LogLine[]> {
      for (;;) {
        const lines = log.filter((line) => line["msg"] === msg);
        if (lines.length >= count) {
          await store.ping();
          return lines;
        }
        await new Promise<void>((resolve) => watchers.add(resolve));
      }
    },
    /** Ends a new task; returns its id. */
    async end(state: "succeeded" | "failed" | "canceled" = "canceled", owner?: string) {
      const task = newTask("https://video.example.com/watch", {}, clock.now(), owner);
      await store.create(task);
      const way: State[] = state === "canceled" ? [state] : ["running", state];
      for (const each of way) await store.update(task.id, { state: each });
      return task.id;
    },
  };
}

/** Opens a receiver, closed after the test. */
export async function startReceiver(secret?: string): Promise<Receiver> {
  const receiver = await openReceiver(secret);
  onTestFinished(() => receiver[Symbol.asyncDispose]());
  return receiver;
}

export const delivered = "webhook message delivered";
export const refused = "webhook message refused; will retry";
export const unavailable = "webhook receiver unavailable; will retry";
export const disabled = "webhook disabled: its receiver is gone (410); a restart or another webhook enables it";
