import { setTimeout as sleep } from "node:timers/promises";
import { openReceiver, type ReceivedMessage } from "../webhooks/receiver.ts";
import { startService } from "./service.ts";
import { countLost, endTwice, environmentOf, isOrdered, waitFor } from "./webhook-crash.ts";

interface WebhookOutageReport {
  /** Tasks that ended while the receiver was unavailable, each of them twice. */
  ended: number;
  /** Messages that arrived after that, and how many of them again. */
  messages: number;
  repeated: number;
  /** Ends of which no message arrived. */
  lost: number;
  /** Tasks of which a message arrived for the first time after one about a later change. */
  disordered: number;
  /** How long after the return of the receiver the first and the last message arrived. */
  firstMs: number;
  lastMs: number;
}

/**
 * Starts the real service with a webhook whose receiver does not listen, ends `tasks` tasks twice each, spread over
 * `outageMs`, then has the receiver listen, and waits until all messages have arrived.
 */
export async function webhookOutage(options: {
  dataDir: string;
  outageMs: number;
  tasks: number;
}): Promise<WebhookOutageReport> {
  const { dataDir, outageMs, tasks } = options;
  const { endpoint } = await openThenClose();
  const service = await startService(environmentOf(endpoint, dataDir));
  const all = Array.from({ length: tasks }, async (_, n) => {
    await sleep((n * outageMs) / tasks);
    return endTwice(service);
  });
  const [ended] = await Promise.all([Promise.all(all), sleep(outageMs)]);
  await using receiver = await openReceiver(endpoint.secret, Number(new URL(endpoint.url).port));
  const { messages } = receiver;
  const returnedMs = performance.now();
  const first = receiver.until(1).then(() => performance.now());
  await waitFor(() => messages.length >= 2 * tasks && countLost(ended, messages) === 0);
  const lastMs = performance.now();
  await service.end("SIGTERM");
  return {
    ended: ended.length,
    messages: messages.length,
    repeated: messages.length - new Set(messages.map(({ id }: ReceivedMessage) => id)).size,
    lost: countLost(ended, messages),
    disordered: ended.filter((id) => !isOrdered(id, messages)).length,
    firstMs: Math.round((await first) - returnedMs),
    lastMs: Math.round(lastMs - returnedMs),
  };
}

/** Returns a receiver whose port is free again. */
async function openThenClose() {
  await using receiver = await openReceiver();
  return receiver;
}
