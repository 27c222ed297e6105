import { parentPort, workerData } from "node:worker_threads";
import { buildApp } from "../../../src/http/app.ts";
import { createHttpClient } from "../../../src/net/http-client.ts";
import { createPageResolver } from "../../../src/resolvers/page.ts";
import { measureStall } from "../../fuzz/stall.ts";

/** What a thread of this file is started with. */
export interface InfoThreadData {
  /** Pages on loopback; `/info` is asked for all of them at once. */
  urls: string[];
  pageMaxBytes: number;
}

/** What it posts when it ends. */
export interface InfoThreadResult {
  statusCodes: number[];
  /** The most CPU time between two iterations of its event loop. */
  stallMs: number;
}

async function main({ urls, pageMaxBytes }: InfoThreadData): Promise<InfoThreadResult> {
  const client = createHttpClient({
    allowNetworks: ["127.0.0.0/8"],
    perHost: urls.length,
    idleTimeoutMs: 90_000,
    totalTimeoutMs: 90_000,
  });
  const resolver = createPageResolver({ client, pageMaxBytes });
  const app = await buildApp({
    resolver,
    infoTimeoutMs: 90_000,
    infoConcurrency: urls.length,
  });
  const { outcome, stallMs } = await measureStall(() =>
    Promise.all(urls.map((url) => app.inject({ url: "/info", query: { url } }))),
  );
  await app.close();
  await client.close();
  if ("error" in outcome) throw outcome.error;
  return { statusCodes: outcome.value.map(({ statusCode }) => statusCode), stallMs };
}

parentPort?.postMessage(await main(workerData as InfoThreadData));
