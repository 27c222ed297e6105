import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../../src/model/task.ts";
import { readMedium } from "../media/rendition.ts";
import { resource, type Resources } from "../media/resources.ts";
import { startSite } from "../media/site.ts";
import { openTaskClient } from "./download-client.ts";
import { startService } from "./service.ts";

interface ManyReport {
  tasks: number;
  succeeded: number;
  /** Not in the list, or not ended. */
  lost: number;
  /** Pages and films that were fetched more than once. */
  runTwice: number;
  /** Files that belong to no succeeded task, and folders of parts. */
  orphans: number;
  /** Deleted tasks that are still in the list. */
  undeleted: number;
  seconds: number;
}

/** Runs `tasks` tasks in one service, each with its own page and film; deletes every tenth when it has ended. */
export async function downloadMany(options: { dataDir: string; tasks: number }): Promise<ManyReport> {
  const { dataDir, tasks } = options;
  await using site = await startSite(pages(tasks));
  const service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    CONCURRENCY: "8",
    CONCURRENCY_PER_HOST: "8",
  });
  try {
    const client = await openTaskClient(service.url);
    const startMs = performance.now();
    const run = async (number: number): Promise<Task | null> => {
      const { id } = await client.post(site.url(`watch/${number}`));
      const task = await client.ended(id);
      if (number % 10 !== 0) return task;
      await client.request("DELETE", id);
      return null;
    };
    const ran = await Promise.all(Array.from({ length: tasks }, (_, number) => run(number)));
    const seconds = (performance.now() - startMs) / 1000;
    const kept = ran.filter((task) => task !== null);
    const listed = new Map((await client.list()).map((task) => [task.id, task]));
    client.close();
    const succeeded = kept.filter(({ id }) => listed.get(id)?.state === "succeeded");
    const ids = new Set(succeeded.map(({ id }) => id));
    const asked = Map.groupBy(site.asked, ({ path }) => path).values();
    return {
      tasks,
      succeeded: succeeded.length,
      lost: kept.filter(({ id }) => !listed.has(id)).length,
      runTwice: [...asked].filter(({ length }) => length > 1).length,
      orphans: namesIn(dataDir, "files").filter((id) => !ids.has(id)).length + namesIn(dataDir, "parts").length,
      undeleted: listed.size - kept.length,
      seconds,
    };
  } finally {
    await service.end("SIGTERM");
  }
}

function pages(count: number): Resources {
  const film = resource("video/mp4", readMedium("index-first.mp4"));
  const resources: Resources = new Map();
  for (let number = 0; number < count; number++) {
    const meta = `<meta property="og:video" content="/film/${number}.mp4">`;
    resources.set(`watch/${number}`, resource("text/html", `<title>Film ${number}</title>${meta}`));
    resources.set(`film/${number}.mp4`, film);
  }
  return resources;
}

function namesIn(dataDir: string, name: string): string[] {
  const folder = join(dataDir, name);
  return existsSync(folder) ? readdirSync(folder) : [];
}
