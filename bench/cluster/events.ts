import type { Task } from "../../src/model/task.ts";
import { readEvents } from "../../src/feed/feed-client.ts";
import { readMedium } from "../../test/media/rendition.ts";
import { resource } from "../../test/media/resources.ts";
import { type Site, startSite } from "../../test/media/site.ts";
import { openCluster } from "../../test/process/cluster.ts";
import { openTaskClient, type TaskClient } from "../../test/process/download-client.ts";
import { quantiles } from "../download/service-meanwhile.ts";
import { format, printTable, type Target } from "../table.ts";
import type { Bench } from "./part.ts";

/** Downloads that run, and report progress, during the whole measurement. */
const running = 8;

const film = resource("video/mp4", readMedium("index-first.mp4"));

/** Measures changes made through one API process until the event stream of another one has them. */
export async function measureEvents({ postgres, isQuick }: Bench): Promise<Target[]> {
  await using site = await startSite(new Map(), { bytesPerSecond: film.body.length / 300 });
  await using cluster = openCluster(await postgres.open(), {
    CONCURRENCY: `${running}`,
    CONCURRENCY_PER_HOST: `${running}`,
  });
  const [here, there] = [await cluster.start("api"), await cluster.start("api")];
  await cluster.start("worker");
  const client = await openTaskClient(here.url);
  await runSlowly(client, site);
  await using receiver = await openReceiver(there.url);
  const delays = await changeTasks(client, receiver, isQuick ? 100 : 1_000);
  client.close();
  const rows = Object.entries(delays).map(([name, { sinceRequest, sinceResponse }]) => {
    const shown = [sinceRequest, sinceResponse].flatMap((values) => Object.values(quantiles(values)));
    return [name, `${sinceRequest.length}`, ...shown.map(format)];
  });
  const head = ["", "changes", "p50 ms", "p99 ms", "since the response, p50", "p99"];
  printTable(`request to one process until the event from another, ${running} downloads running`, head, rows);
  const all = Object.values(delays).flatMap(({ sinceRequest }) => sinceRequest);
  const value = quantiles(all).p99Ms;
  return [{ name: "event latency across processes, p99", value, unit: "ms", atMost: 250 }];
}

async function runSlowly(client: TaskClient, site: Site): Promise<void> {
  for (let i = 0; i < running; i++) {
    site.resources.set(`film-${i}.mp4`, film);
    const { id } = await client.post(site.url(`film-${i}.mp4`));
    await client.until(id, ({ state }) => state === "running");
  }
}

/** Milliseconds for each change. */
interface Delays {
  sinceRequest: number[];
  /** Negative if the event came first. */
  sinceResponse: number[];
}

async function changeTasks(client: TaskClient, receiver: EventReceiver, count: number) {
  const delays: Record<"POST" | "cancel" | "DELETE", Delays> = {
    POST: { sinceRequest: [], sinceResponse: [] },
    cancel: { sinceRequest: [], sinceResponse: [] },
    DELETE: { sinceRequest: [], sinceResponse: [] },
  };
  const time = async (name: keyof typeof delays, state: string, change: () => Promise<string>) => {
    const sentMs = performance.now();
    const id = await change();
    const respondedMs = performance.now();
    const receivedMs = await receiver.received(id, state);
    delays[name].sinceRequest.push(receivedMs - sentMs);
    delays[name].sinceResponse.push(receivedMs - respondedMs);
    return id;
  };
  for (let i = 0; i < count; i++) {
    const page = `https://video.example.test/watch/${i}`;
    const id = await time("POST", "queued", async () => (await client.post(page)).id);
    await time("cancel", "canceled", async () => {
      await client.request("POST", id, "/cancel");
      return id;
    });
    await time("DELETE", "deleted", async () => {
      await client.request("DELETE", id);
      return id;
    });
  }
  return delays;
}

/** Receives the events of GET /tasks/events. */
interface EventReceiver extends AsyncDisposable {
  /** Resolves with `performance.now()` of the first event with this task in this state. */
  received(id: string, state: string): Promise<number>;
}

async function openReceiver(base: string): Promise<EventReceiver> {
  const times = new Map<string, PromiseWithResolvers<number>>();
  const timeOf = (id: string, state: string) => {
    const key = `${id} ${state}`;
    const time = times.get(key) ?? Promise.withResolvers<number>();
    times.set(key, time);
    return time;
  };
  const closing = new AbortController();
  const { body } = await fetch(`${base}/tasks/events`, { signal: closing.signal });
  if (body === null) throw new Error("GET /tasks/events had no body");
  const listening = (async () => {
    for await (const events of readEvents(body)) {
      for (const { event, data } of events) {
        const { id, state } = JSON.parse(data) as Task;
        timeOf(id, event === "deleted" ? event : state).resolve(performance.now());
      }
    }
  })().catch((error: unknown) => {
    if (!closing.signal.aborted) throw error;
  });
  const ended = listening.then(() => Promise.reject(new Error("the event stream ended")));
  ended.catch(() => {});
  return {
    received: (id, state) => Promise.race([timeOf(id, state).promise, ended]),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await listening;
    },
  };
}
