import { expect, test } from "vitest";
import { openDatabase } from "../postgres/database.ts";
import { makeFolder } from "../folder.ts";
import { startReceiver } from "../webhooks/harness.ts";
import { accept, answer, type Receiver } from "../webhooks/receiver.ts";
import { addKey, bearer } from "./keys.ts";
import type { ServiceProcess } from "./service.ts";
import { startTestService } from "./test-service.ts";
import { openTestCluster } from "./test-cluster.ts";
import { webhookCrash } from "./webhook-crash.ts";
import { webhookOutage } from "./webhook-outage.ts";

/** Tasks stay queued, so that only their clients end them. */
function environmentOf({ endpoint }: Receiver): Record<string, string> {
  return {
    RESOLVER: "stub",
    CONCURRENCY: "0",
    WEBHOOK_URL: endpoint.url,
    WEBHOOK_SECRET: endpoint.secret,
  };
}

test("a message that was not delivered when the service was killed is delivered after its restart", async () => {
  const receiver = await startReceiver();
  const env = { ...environmentOf(receiver), DATA_DIR: makeFolder() };
  receiver.respond = () => {};
  const killed = await startTestService(env);
  const id = await endTask(killed);
  await receiver.until(1);
  await killed.end("SIGKILL");
  receiver.respond = accept;
  await startTestService(env);
  const [lost, again] = await receiver.until(2);
  expect([again?.data.id, again?.type, again?.id]).toEqual([id, "task.canceled", lost?.id]);
});

// That of SQLite is below, with a receiver that does not listen.
test("a receiver that refused messages gets all once it accepts them, also from Postgres", async () => {
  const receiver = await startReceiver();
  const env = { ...environmentOf(receiver), DATA_DIR: makeFolder(), STORE_URL: await openDatabase() };
  const service = await startTestService(env);
  receiver.respond = answer(503);
  const ended = await Promise.all(Array.from({ length: 20 }, () => endTask(service)));
  await receiver.until(1);
  receiver.respond = accept;
  const arrived = () => new Set(receiver.messages.map(({ data }) => data.id));
  await expect.poll(arrived).toEqual(new Set(ended));
});

test("a key with a webhook gets the messages of its own tasks, signed with the secret that was printed", async () => {
  const receiver = await startReceiver();
  const env = { DATA_DIR: makeFolder(), RESOLVER: "stub", CONCURRENCY: "0" };
  const service = await startTestService(env);
  const printed = await addKey(env, "anna", "--webhook", receiver.endpoint.url);
  const [secret = "", webhookSecret = ""] = printed.split("\n");
  receiver.useSecret(webhookSecret);
  const others = await addKey(env, "bert");
  const endAs = async (key: string) => {
    await expect.poll(async () => (await fetch(`${service.url}/tasks/`, { headers: bearer(key) })).status).toBe(200);
    return endTask(service, 1, key);
  };
  await endAs(others);
  const id = await endAs(secret);
  const [message] = await receiver.until(1);
  expect(message?.data).toMatchObject({ id, owner: "anna" });
  expect([receiver.forged, receiver.messages.length]).toEqual([0, 1]);
});

test("two processes on one database deliver each message once, those of a task one at a time", async () => {
  const receiver = await startReceiver();
  const cluster = openTestCluster(await openDatabase(), environmentOf(receiver));
  const services = await Promise.all([cluster.start("all"), cluster.start("all")]);
  const ended = await Promise.all(Array.from({ length: 60 }, (_, n) => endTask(services[n % 2]!, n % 3 === 0 ? 2 : 1)));
  await receiver.until(80);
  for (const service of services) await service.end("SIGTERM");
  expect(receiver.messages).toHaveLength(80);
  expect(new Set(receiver.messages.map(({ id }) => id)).size).toBe(80);
  expect(new Set(receiver.messages.map(({ data }) => data.id))).toEqual(new Set(ended));
  expect(receiver.mostOfTask).toBe(1);
});

test("no message is lost or out of order when the service is killed while tasks end", async () => {
  const report = await webhookCrash({ dataDir: makeFolder(), kills: 2, tasks: 60 });
  expect(report).toMatchObject({ ended: 60, lost: 0, disordered: 0, forged: 0 });
});

test("no message is lost or out of order when the receiver does not listen while tasks end", async () => {
  const report = await webhookOutage({ dataDir: makeFolder(), outageMs: 500, tasks: 30 });
  expect(report).toMatchObject({ ended: 30, lost: 0, disordered: 0 });
});

/** Cancels a new task that many times, retrying it in between; returns its id. */
async function endTask({ url }: ServiceProcess, count = 1, key?: string): Promise<string> {
  const headers = key === undefined ? {} : bearer(key);
  const created = await fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ url: "https://video.example.com/watch" }),
  });
  const { id } = (await created.json()) as { id: string };
  for (let n = 1; n <= count; n++) {
    if (n > 1) await fetch(`${url}/tasks/${id}/retry`, { method: "POST", headers });
    await fetch(`${url}/tasks/${id}/cancel`, { method: "POST", headers });
  }
  return id;
}
