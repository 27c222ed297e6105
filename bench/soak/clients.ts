import { createHash } from "node:crypto";
import type { TaskClient } from "../../test/process/download-client.ts";
import type { FaultySite } from "./site.ts";

export interface Counters {
  posted: number;
  succeeded: number;
  failed: number;
  canceled: number;
  retried: number;
  deleted: number;
  /** Files that differ from that of an earlier task for the same page. */
  wrong: number;
}

export interface SoakClients {
  counters: Counters;
  /** Rejects when a client fails unexpectedly. */
  failed: Promise<unknown>;
  /** Resolves once each client has finished its current task. */
  stop(): Promise<void>;
}

/** Starts `count` clients that post pages, cancel and retry some tasks, fetch the files and delete all. */
export function startSoakClients(options: {
  client: TaskClient;
  site: FaultySite;
  random: () => number;
  count: number;
}): SoakClients {
  const { client, site, random, count } = options;
  const counters = {
    posted: 0,
    succeeded: 0,
    failed: 0,
    canceled: 0,
    retried: 0,
    deleted: 0,
    wrong: 0,
  };
  const hashes = new Map<string, string>();
  const stopping = new AbortController();

  async function runTask(): Promise<void> {
    const page = site.pages[Math.floor(random() * site.pages.length)];
    if (page === undefined) throw new Error("the site has no pages");
    const { id } = await client.post(page.url);
    counters.posted += 1;
    if (random() < 0.2) {
      await client.until(id, ({ state }) => state !== "queued");
      await client.request("POST", id, "/cancel");
    }
    let task = await client.ended(id);
    if (task.state !== "succeeded" && random() < 0.5) {
      counters.retried += 1;
      await client.request("POST", id, "/retry");
      task = await client.ended(id);
    }
    if (task.state === "succeeded") await compare(page.name, id);
    counters[task.state === "succeeded" || task.state === "canceled" ? task.state : "failed"] += 1;
    await client.request("DELETE", id);
    counters.deleted += 1;
  }

  async function compare(name: string, id: string): Promise<void> {
    const bytes = Buffer.from(await (await client.file(id)).arrayBuffer());
    const hash = createHash("sha256").update(bytes).digest("hex");
    if ((hashes.get(name) ?? hash) !== hash) counters.wrong += 1;
    hashes.set(name, hash);
  }

  async function runClient(): Promise<void> {
    while (!stopping.signal.aborted) await runTask();
  }

  const all = Promise.all(Array.from({ length: count }, runClient));
  return {
    counters,
    failed: all,
    async stop() {
      stopping.abort();
      await all;
    },
  };
}
