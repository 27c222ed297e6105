import { setTimeout as wait } from "node:timers/promises";
import closeWithGrace from "close-with-grace";
import { type Logger, pino } from "pino";
import { type Config, readConfig } from "./config.ts";
import { openEngine } from "./engines/registry.ts";
import { openDiskFiles } from "./files/disk.ts";
import { buildApp, buildWorkerApp } from "./http/app.ts";
import { createHttpClient } from "./net/http-client.ts";
import { openResolver } from "./resolvers/registry.ts";
import { createRunner } from "./runner.ts";
import { openStore } from "./stores/registry.ts";

await start().catch((error: unknown) => {
  process.stderr.write(`unreel: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

/** Config → parts → app → listen → run → signals. */
async function start(): Promise<void> {
  const config = readConfig();
  const logger = pino({ level: config.LOG_LEVEL });
  const parts = await createServices(config, logger);
  const { runner, engine } = parts;
  const drainSignal = new AbortController();
  const options = { ...parts, drainSignal: drainSignal.signal };
  const app = await (config.ROLE === "worker" ? buildWorkerApp(options) : buildApp(options));
  try {
    await app.listen({ host: config.HOST, port: config.PORT });
  } catch (cause) {
    await app.close();
    await engine.close();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen on HOST and PORT: ${reason}`, { cause });
  }
  if (config.ROLE !== "api") runner.start();
  closeWithGrace({ logger, delay: config.DRAIN_MS + 9_500 }, async ({ signal, err }) => {
    if (err) logger.fatal({ err }, "stopping after an unhandled error");
    else {
      logger.info({ signal }, "stopping; requests in flight may finish");
      drainSignal.abort();
      await wait(config.DRAIN_MS);
    }
    await app.close();
    await engine.close();
  });
}

async function createServices(config: Config, logger: Logger) {
  const client = createHttpClient({
    allowNetworks: config.ALLOW_NETWORKS,
    perHost: config.FETCHES_PER_HOST,
    totalTimeoutMs: config.INFO_TIMEOUT_MS,
  });
  const resolver = openResolver(config.RESOLVER, { client, pageMaxBytes: config.PAGE_MAX_BYTES });
  const engine = openEngine(config.ENGINE, {
    allowNetworks: config.ALLOW_NETWORKS,
    concurrentFragments: config.CONCURRENT_FRAGMENTS,
    idleTimeoutMs: config.IDLE_TIMEOUT_MS,
    minFreeBytes: config.MIN_FREE_BYTES,
  });
  const store = await openStore(config.STORE_URL, {
    dataDir: config.DATA_DIR,
    maxQueued: config.MAX_QUEUED,
    heartbeatS: config.HEARTBEAT_S,
    logger,
  });
  const files = openDiskFiles({ folder: config.DATA_DIR });
  const runner = createRunner({
    store,
    resolver,
    engine,
    files,
    logger,
    concurrency: config.CONCURRENCY,
    perHost: config.CONCURRENCY_PER_HOST,
    maxAttempts: config.MAX_ATTEMPTS,
    backoffMs: config.RETRY_BACKOFF_MS,
    runTimeoutMs: config.RUN_TIMEOUT_S * 1_000,
    maxFileBytes: config.MAX_FILE_BYTES,
    minFreeBytes: config.MIN_FREE_BYTES,
    maxLiveS: config.MAX_LIVE_S,
    retentionS: config.RETENTION_S,
  });
  return {
    store,
    files,
    runner,
    engine,
    resolver,
    logger,
    infoTimeoutMs: config.INFO_TIMEOUT_MS,
    infoCacheTtlS: config.INFO_CACHE_TTL_S,
    infoConcurrency: config.INFO_CONCURRENCY,
  };
}
