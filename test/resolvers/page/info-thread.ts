import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { LightMyRequestResponse } from "fastify";
import { pino } from "pino";
import { readConfig } from "../../../src/config/config.ts";
import { openServices } from "../../../src/services.ts";
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
  /** The most CPU time between two iterations of its event loop, and the second most. */
  stallMs: number;
  secondStallMs: number;
}

/** Starts the service with its own settings, except for networks, times and limits that the pages need. */
async function main({ urls, pageMaxBytes }: InfoThreadData): Promise<InfoThreadResult> {
  const folder = mkdtempSync(join(tmpdir(), "unreel-info-"));
  await using opened = new AsyncDisposableStack();
  opened.defer(() => rmSync(folder, { recursive: true }));
  const config = readConfig({
    DATA_DIR: folder,
    STORE_URL: "memory:",
    RESOLVER: "page",
    ALLOW_NETWORKS: "127.0.0.0/8",
    FETCHES_PER_HOST: `${urls.length}`,
    PAGE_MAX_BYTES: `${pageMaxBytes}`,
    INFO_TIMEOUT_MS: "90000",
  });
  const logger = pino({ level: "silent" });
  const { app } = await openServices(config, logger, new AbortController().signal, opened);
  const { outcome, ...stalls } = await measureStall(async () => {
    const responses: Promise<LightMyRequestResponse>[] = [];
    for (const url of urls) {
      responses.push(app.inject({ url: "/info", query: { url } }).then((response) => response));
      // As from a socket: what a hundred requests begin with is not one slice.
      await turn();
    }
    return Promise.all(responses);
  });
  if ("error" in outcome) throw outcome.error;
  return { statusCodes: outcome.value.map(({ statusCode }) => statusCode), ...stalls };
}

parentPort?.postMessage(await main(workerData as InfoThreadData));
