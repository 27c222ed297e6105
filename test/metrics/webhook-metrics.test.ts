import { expect, it } from "vitest";
import { accessKeyOf, newSecret } from "../../src/keys/secrets.ts";
import { delivered, disabled, openWebhooks, refused, startReceiver, unavailable } from "../webhooks/harness.ts";
import { accept, answer } from "../webhooks/receiver.ts";
import { parseExposition, valueOf } from "./exposition.ts";

const dayMs = 24 * 3_600_000;

it("tells what has become of messages, how long requests took, and what waits", async () => {
  const { receiver, store, metrics, clock, end, logged } = await openWebhooks();
  await end();
  await logged(delivered);
  receiver.respond = answer(500);
  await end();
  await logged(refused);
  receiver.respond = answer(503);
  await end();
  await logged(unavailable);
  clock.advance(2_000);
  const waiting = parseExposition(await metrics.read());
  expect(valueOf(waiting, "unreel_webhook_messages")).toBe(2);
  expect(valueOf(waiting, "unreel_oldest_webhook_message_age_seconds")).toBe(2);

  receiver.respond = accept;
  clock.advance(dayMs);
  await logged("webhook message given up after 24 hours", 2);
  const own = await startReceiver();
  own.respond = answer(410);
  const given = { name: "anna", admin: false, limits: {}, webhook: own.endpoint };
  await store.keys.add(accessKeyOf(newSecret(), given, clock.now()));
  clock.advance(1_000);
  await end("canceled", "anna");
  await logged(disabled);
  await end("canceled", "anna");
  await logged("webhook message dropped: its endpoint is gone");
  await logged(delivered, 3);
  const families = parseExposition(await metrics.read());
  const { samples } = families.get("unreel_webhook_deliveries_total")!;
  const counted = Object.fromEntries(samples.map(({ labels, value }) => [labels["outcome"], value]));
  expect(counted).toEqual({
    delivered: 3,
    refused: 1,
    unavailable: 1,
    gone: 1,
    expired: 2,
    dropped: 1,
  });
  expect(valueOf(families, "unreel_webhook_delivery_duration_seconds_count")).toBe(6);
  expect(JSON.stringify([...families])).not.toMatch(/anna|127\.0\.0\.1|hidden/);
});
