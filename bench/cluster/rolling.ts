import { setTimeout as wait } from "node:timers/promises";
import { readMedium } from "../../test/media/rendition.ts";
import { resource } from "../../test/media/resources.ts";
import { type Site, startSite } from "../../test/media/site.ts";
import { openCluster } from "../../test/process/cluster.ts";
import { openTaskClient } from "../../test/process/download-client.ts";
import { format, printTable, type Target } from "../table.ts";
import { type Balancer, checkMs, openBalancer } from "./balancer.ts";
import type { Bench } from "./part.ts";
import { startTraffic, type Traffic } from "./traffic.ts";

/** Replaces every process of a service under load, one after the other. */
export async function measureRolling({ postgres, isQuick }: Bench): Promise<Target[]> {
  await using site = await openSlowSite();
  await using cluster = openCluster(await postgres.open(), {
    CONCURRENCY: "8",
    CONCURRENCY_PER_HOST: "8",
  });
  const balancer = openBalancer();
  const startApi = async () => {
    const api = await cluster.start("api", { DRAIN_MS: `${15 * checkMs}` });
    await balancer.add(api.url);
    return api;
  };
  const startWorker = () => cluster.start("worker");
  const members = [
    { start: startApi, process: await startApi() },
    { start: startApi, process: await startApi() },
    { start: startWorker, process: await startWorker() },
    { start: startWorker, process: await startWorker() },
  ];
  const aware = startTraffic({ site, nextUrl: balancer.ready, clients: 8 });
  const blind = startTraffic({ site, nextUrl: balancer.any, clients: 2 });
  const startMs = performance.now();
  for (let round = 0; round < (isQuick ? 1 : 3); round++) {
    for (const member of members) {
      await member.process.end("SIGTERM");
      balancer.remove(member.process.url);
      member.process = await member.start();
      await wait(500);
    }
  }
  const seconds = (performance.now() - startMs) / 1000;
  await Promise.all([aware.stop(), blind.stop()]);
  const lost = await countLost(balancer, [...aware.ids, ...blind.ids]);
  await balancer.close();
  printTraffic(seconds, { aware, blind });
  return [
    { name: "failed requests, with health checks", value: aware.failed, unit: "", atMost: 0 },
    { name: "tasks lost in a rolling restart", value: lost, unit: "", atMost: 0 },
  ];
}

async function openSlowSite(): Promise<Site> {
  const site = await startSite(new Map([["film.mp4", resource("video/mp4", readMedium("index-first.mp4"))]]));
  site.answer("film.mp4", async (_response, serve) => {
    await wait(200);
    await serve();
  });
  return site;
}

/** Counts accepted tasks that are missing or did not succeed. */
async function countLost(balancer: Balancer, ids: readonly string[]): Promise<number> {
  const client = await openTaskClient(balancer.ready());
  const listed = new Set((await client.list()).map(({ id }) => id));
  const ends = await Promise.all(ids.filter((id) => listed.has(id)).map((id) => client.ended(id)));
  client.close();
  return ids.length - ends.filter(({ state }) => state === "succeeded").length;
}

function printTraffic(seconds: number, kinds: { aware: Traffic; blind: Traffic }): void {
  const rows = Object.entries(kinds).map(([kind, traffic]) => [
    kind === "aware" ? `checks /health/ready every ${checkMs} ms` : "no health checks",
    ...[traffic.requests, traffic.ids.length, traffic.failed].map(String),
    format(traffic.longestMs),
  ]);
  const head = ["client", "requests", "tasks", "failed", "longest ms"];
  printTable(`all processes replaced in ${format(seconds)} s`, head, rows);
  for (const [reason, count] of [...kinds.aware.reasons, ...kinds.blind.reasons]) {
    console.log(`${count} × ${reason}`);
  }
}
