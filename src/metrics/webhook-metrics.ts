import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Outbox } from "../stores/outbox.ts";
import type { DeliveryObserver } from "../webhooks/deliver.ts";
import { createTimelyRead } from "./timely-read.ts";

/** Creates the metrics of webhooks; without one, their outbox is empty. */
export function createWebhookMetrics(
  registry: Registry,
  outbox: Pick<Outbox, "count">,
): DeliveryObserver {
  const registers = [registry];
  const readCounts = createTimelyRead(() => outbox.count());
  const waiting: Gauge = new Gauge({
    name: "unreel_webhook_messages",
    help: "Messages in the outbox; of a shared store, each process tells the same",
    registers,
    async collect() {
      const counts = await readCounts();
      if (counts === undefined) waiting.remove();
      else waiting.set(counts.messages);
    },
  });
  const oldest: Gauge = new Gauge({
    name: "unreel_oldest_webhook_message_age_seconds",
    help: "Time since the task of the oldest message in the outbox has ended, 0 if there is none",
    registers,
    async collect() {
      const counts = await readCounts();
      if (counts === undefined) oldest.remove();
      else oldest.set(counts.oldestAgeMs / 1_000);
    },
  });
  const deliveries = new Counter({
    name: "unreel_webhook_deliveries_total",
    help: "Requests with a message by outcome, and messages that were given up without one",
    labelNames: ["outcome"],
    registers,
  });
  const seconds = new Histogram({
    name: "unreel_webhook_delivery_duration_seconds",
    help: "Time of requests with a message",
    buckets: [0.01, 0.05, 0.25, 1, 5, 15],
    registers,
  });

  return {
    onRequest(outcome, tookS) {
      deliveries.inc({ outcome });
      seconds.observe(tookS);
    },
    onRemoved: (reason) => deliveries.inc({ outcome: reason }),
  };
}
