import type { WebhookEndpoint } from "../../src/model/webhook-endpoint.ts";
import { openReceiver, type ReceivedMessage } from "../webhooks/receiver.ts";
import { type ServiceProcess, startService } from "./service.ts";

interface WebhookCrashReport {
  kills: number;
  /** Tasks whose end was acknowledged, each of them twice. */
  ended: number;
  /** Messages that arrived, and how many of them again. */
  messages: number;
  repeated: number;
  /** Ends of which no message arrived. */
  lost: number;
  /** Tasks of which a message arrived for the first time after one about a later change. */
  disordered: number;
  /** Messages that the library did not verify. */
  forged: number;
}

const clients = 16;

/**
 * Starts the real service on `dataDir` with a webhook, has clients end `tasks` tasks twice each (cancel, retry,
 * cancel), and kills it with SIGKILL each time a share of them has ended. Then waits until the outbox is empty.
 */
export async function webhookCrash(options: {
  dataDir: string;
  kills: number;
  tasks: number;
}): Promise<WebhookCrashReport> {
  const { dataDir, kills, tasks } = options;
  await using receiver = await openReceiver();
  const env = environmentOf(receiver.endpoint, dataDir);
  const ended: string[] = [];
  for (let round = 0; round <= kills; round++) {
    const service = await startService(env);
    const target = round === kills ? tasks : Math.ceil(((round + 1) * tasks) / (kills + 1));
    await endTasks(service, ended, target);
    if (round === kills) await waitFor(() => countLost(ended, receiver.messages) === 0);
    await service.end("SIGKILL");
  }
  const { messages, forged } = receiver;
  const repeated = messages.length - new Set(messages.map(({ id }) => id)).size;
  const lost = countLost(ended, messages);
  const disordered = ended.filter((id) => !isOrdered(id, messages)).length;
  return {
    kills,
    ended: ended.length,
    messages: messages.length,
    repeated,
    lost,
    disordered,
    forged,
  };
}

/** Ends tasks with several clients until `ended` has `target` ids. */
async function endTasks(service: ServiceProcess, ended: string[], target: number): Promise<void> {
  let begun = ended.length;
  const client = async () => {
    while (begun < target) {
      begun += 1;
      ended.push(await endTwice(service));
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

/** Settings with which tasks stay queued, so that only their clients end them. */
export function environmentOf({ url, secret }: WebhookEndpoint, dataDir: string) {
  return {
    DATA_DIR: dataDir,
    RESOLVER: "stub",
    CONCURRENCY: "0",
    WEBHOOK_URL: url,
    WEBHOOK_SECRET: secret,
  };
}

/** Creates a task and ends it twice; returns its id. */
export async function endTwice({ url }: ServiceProcess): Promise<string> {
  const { id } = await post(`${url}/tasks/`, JSON.stringify({ url: "https://example.com/" }));
  for (const action of ["cancel", "retry", "cancel"]) await post(`${url}/tasks/${id}/${action}`);
  return id;
}

async function post(url: string, body?: string): Promise<{ id: string }> {
  const init = body === undefined ? {} : { headers: { "content-type": "application/json" }, body };
  const response = await fetch(url, { method: "POST", ...init });
  if (!response.ok) throw new Error(`POST ${url} returned ${response.status}`);
  return (await response.json()) as { id: string };
}

/** Returns how many ends have no message, of tasks that ended twice. */
export function countLost(ended: readonly string[], messages: readonly ReceivedMessage[]): number {
  const arrived = Map.groupBy(messages, ({ data }) => data.id);
  const ends = ended.map((id) => new Set(arrived.get(id)?.map((message) => message.id)).size);
  return ends.reduce((lost, count) => lost + Math.max(2 - count, 0), 0);
}

/** Whether the messages of the task arrived in the order of its ends. */
export function isOrdered(id: string, messages: readonly ReceivedMessage[]): boolean {
  const own = messages.filter(({ data }) => data.id === id);
  const times = own.map(({ timestamp }) => timestamp);
  return times.every((time, n) => n === 0 || time >= (times[n - 1] ?? ""));
}

/** Waits at most five minutes. */
export async function waitFor(isDone: () => boolean): Promise<void> {
  for (let n = 0; n < 3_000 && !isDone(); n++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
