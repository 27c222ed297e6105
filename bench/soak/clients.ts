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
  /** Files whose bytes are not those that an earlier task got of the same page. */
  wrong: number;
}

export interface SoakClients {
  deeds: Counters;
  /** Settles only when something has gone wrong that must not: rejects. */
  failed: Promise<unknown>;
  /** Lets each finish what it is doing. */
  stop(): Promise<void>;
}

/** `count` clients that have pages downloaded, cancel some, retry some, fetch the files, delete all. */
export function startVisitors(options: {
  client: TaskClient;
  site: FaultySite;
  random: () => number;
  count: number;
}): SoakClients {
  const { client, site, random, count } = options;
  const deeds = {
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

  async function visit(): Promise<void> {
    const page = site.pages[Math.floor(random() * site.pages.length)];
    if (page === undefined) throw new Error("the site has no pages");
    const { id } = await client.post(page.url);
    deeds.posted += 1;
    if (random() < 0.2) {
      await client.until(id, ({ state }) => state !== "queued");
      await client.order("POST", id, "/cancel");
    }
    let task = await client.ended(id);
    if (task.state !== "succeeded" && random() < 0.5) {
      deeds.retried += 1;
      await client.order("POST", id, "/retry");
      task = await client.ended(id);
    }
    if (task.state === "succeeded") await compare(page.name, id);
    deeds[task.state === "succeeded" || task.state === "canceled" ? task.state : "failed"] += 1;
    await client.order("DELETE", id);
    deeds.deleted += 1;
  }

  async function compare(name: string, id: string): Promise<void> {
    const bytes = Buffer.from(await (await client.file(id)).arrayBuffer());
    const hash = createHash("sha256").update(bytes).digest("hex");
    if ((hashes.get(name) ?? hash) !== hash) deeds.wrong += 1;
    hashes.set(name, hash);
  }

  async function stay(): Promise<void> {
    while (!stopping.signal.aborted) await visit();
  }

  const all = Promise.all(Array.from({ length: count }, stay));
  return {
    deeds,
    failed: all,
    async stop() {
      stopping.abort();
      await all;
    },
  };
}
