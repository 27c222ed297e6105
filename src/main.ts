import { setTimeout as wait } from "node:timers/promises";
import closeWithGrace from "close-with-grace";
import { type Logger, pino } from "pino";
import { certificateVariables, readConfig, searchPath, webhookOf } from "./config.ts";
import { openEngine } from "./engines/registry.ts";
import { openDiskFiles } from "./files/disk.ts";
import { type App, buildApp, buildWorkerApp } from "./http/app.ts";
import { maxConnectionsOfProcess } from "./http/connections.ts";
import { createHttpClient } from "./net/http-client.ts";
import { createPostClient, everyNetwork } from "./net/post-client.ts";
import { openResolver } from "./resolvers/registry.ts";
import { createRunner, type Runner, type RunnerOptions } from "./runner.ts";
import type { Config } from "./settings.ts";
import { openStore } from "./stores/registry.ts";
import type { TaskStore } from "./stores/store.ts";
import { createWebhooks, maxInFlight, type Webhooks } from "./webhooks.ts";

await start().catch((error: unknown) => {
  process.stderr.write(`unreel: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

/** Settings → services → listen → run tasks → wait for a signal → close the services. */
async function start(): Promise<void> {
  // URLs of pages and media carry tokens: what the service creates is for its user alone.
  process.umask(0o077);
  const config = readConfig();
  const logger = pino({ level: config.LOG_LEVEL });
  const drain = new AbortController();
  await using opened = new AsyncDisposableStack();
  const { app, runner, webhooks } = await openServices(config, logger, drain.signal, opened);
  await listen(app, config);
  runner?.start();
  webhooks?.start();
  const services = opened.move();
  closeWithGrace({ logger, delay: config.DRAIN_MS + 9_500 }, async ({ signal, err }) => {
    if (err) logger.fatal({ err }, "stopping after an unhandled error");
    else logger.info({ signal }, "stopping; requests in flight may finish");
    drain.abort();
    // Requeues its tasks while requests finish; closing `services` waits for it and reports its error.
    runner?.stop().catch(() => {});
    webhooks?.stop().catch(() => {});
    if (!err) await wait(config.DRAIN_MS);
    await services.disposeAsync();
  });
}

/**
 * Opens what the role needs and puts it on `opened`, which closes it in reverse order: first the app,
 * which lets requests in flight finish, then the runner, then what both use.
 *
 * @throws Error that names the setting, the rule and the value.
 */
async function openServices(
  config: Config,
  logger: Logger,
  drainSignal: AbortSignal,
  opened: AsyncDisposableStack,
): Promise<{ app: App; runner: Runner | undefined; webhooks: Webhooks | undefined }> {
  const client = createHttpClient({
    allowNetworks: config.ALLOW_NETWORKS,
    perHost: config.FETCHES_PER_HOST,
    totalTimeoutMs: config.INFO_TIMEOUT_MS,
    readBytes: 16 * 1024,
  });
  opened.defer(() => client.close());
  const resolver = await openResolver(config.RESOLVER, {
    client,
    pageMaxBytes: config.PAGE_MAX_BYTES,
    allowNetworks: config.ALLOW_NETWORKS,
    ytDlp: {
      path: config.YTDLP,
      searchPath: searchPath(),
      cookiesFile: config.YTDLP_COOKIES,
      concurrency: config.YTDLP_CONCURRENCY,
      timeoutMs: config.INFO_TIMEOUT_MS,
      logger,
    },
  });
  opened.defer(() => resolver.close());
  const files = openDiskFiles({ folder: config.DATA_DIR });
  const store = await openStore(config.STORE_URL, {
    dataDir: config.DATA_DIR,
    maxQueued: config.MAX_QUEUED,
    heartbeatS: config.HEARTBEAT_S,
    webhook: webhookOf(config) !== undefined,
    logger,
  });
  opened.defer(() => store.close());
  const shared = { store, files, resolver, logger };
  const server = {
    drainSignal,
    allowedHosts: config.ALLOWED_HOSTS,
    sendTimeoutMs: config.SEND_TIMEOUT_S * 1_000,
    maxConnectionsPerAddress: config.CONNECTIONS_PER_IP,
    maxConnections: maxConnectionsOfProcess(),
  };
  const webhooks = config.ROLE === "api" ? undefined : openWebhooks(config, shared, opened);
  const runner = config.ROLE === "api" ? undefined : openRunner(config, shared, opened);
  const app = await (config.ROLE === "worker"
    ? buildWorkerApp({ store, logger, ...server })
    : buildApp({
        ...shared,
        ...server,
        client,
        allowNetworks: config.ALLOW_NETWORKS,
        infoTimeoutMs: config.INFO_TIMEOUT_MS,
        infoCacheTtlS: config.INFO_CACHE_TTL_S,
        infoConcurrency: config.INFO_CONCURRENCY,
      }));
  opened.defer(() => app.close());
  return { app, runner, webhooks };
}

/** Opens what calls the URLs that the operator wrote; the guard lets these lead to any network. */
function openWebhooks(
  config: Config,
  { store, logger }: { store: TaskStore; logger: Logger },
  opened: AsyncDisposableStack,
): Webhooks {
  const client = createPostClient({ allowNetworks: everyNetwork, perHost: maxInFlight });
  opened.defer(() => client.close());
  const webhooks = createWebhooks({ store, client, logger, endpoint: webhookOf(config) });
  opened.defer(() => webhooks.stop());
  return webhooks;
}

type RunnerDeps = Pick<RunnerOptions, "store" | "files" | "resolver" | "logger">;

/** Opens an engine, and the runner that downloads with it. */
function openRunner(config: Config, deps: RunnerDeps, opened: AsyncDisposableStack): Runner {
  const engine = openEngine(config.ENGINE, {
    allowNetworks: config.ALLOW_NETWORKS,
    concurrentFragments: config.CONCURRENT_FRAGMENTS,
    idleTimeoutMs: config.IDLE_TIMEOUT_MS,
    minSpeedBps: config.MIN_SPEED_BPS,
    minFreeBytes: config.MIN_FREE_BYTES,
    environment: certificateVariables(),
  });
  opened.defer(() => engine.close());
  const runner = createRunner({
    ...deps,
    engine,
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
  opened.defer(() => runner.stop());
  return runner;
}

/** @throws Error that names HOST and PORT if the app cannot listen there. */
async function listen(app: App, { HOST, PORT }: Config): Promise<void> {
  try {
    await app.listen({ host: HOST, port: PORT });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen on HOST and PORT: ${reason}`, { cause });
  }
}
