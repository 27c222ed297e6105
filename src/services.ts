import { isIPv4 } from "node:net";
import type { Logger } from "pino";
import { certificateVariables, isSharedStore, searchPath, webhookOf } from "./config/config.ts";
import { openEngine } from "./engines/registry.ts";
import { openDiskFiles } from "./files/disk.ts";
import { type App, buildApp, buildMetricsApp, buildWorkerApp } from "./http/app.ts";
import { maxConnectionsOfProcess } from "./http/server/connections.ts";
import { type KeyRing, openKeyRing } from "./keys/key-ring.ts";
import { openKeySocket } from "./keys/key-socket.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";
import { createHttpClient } from "./net/http/http-client.ts";
import { createPostClient, everyNetwork } from "./net/http/post-client.ts";
import { openResolver } from "./resolvers/registry.ts";
import { createRunner, type Runner, type RunnerOptions } from "./runner/runner.ts";
import type { Config } from "./config/settings.ts";
import { measureStore } from "./stores/measured.ts";
import { openStore } from "./stores/registry.ts";
import {
  createWebhooks,
  maxInFlight,
  type Webhooks,
  type WebhooksOptions,
} from "./webhooks/webhooks.ts";

/** Connections of `METRICS_PORT`, besides those of the service. */
const maxMetricsConnections = 64;

/** What runs in a process. */
export interface Services {
  app: App;
  metricsApp: App | undefined;
  runner: Runner | undefined;
  webhooks: Webhooks | undefined;
}

/**
 * Opens what the role needs and puts it on `opened`, which closes it in reverse order: first the app,
 * which lets requests in flight finish, then the runner, then what both use.
 *
 * @throws Error that names the setting, the rule and the value.
 */
export async function openServices(
  config: Config,
  logger: Logger,
  drainSignal: AbortSignal,
  opened: AsyncDisposableStack,
): Promise<Services> {
  const files = openDiskFiles({ folder: config.DATA_DIR });
  const ownStore = await openStore(config.STORE_URL, {
    dataDir: config.DATA_DIR,
    maxQueued: config.MAX_QUEUED,
    heartbeatS: config.HEARTBEAT_S,
    webhook: webhookOf(config) !== undefined,
    logger,
  });
  opened.defer(() => ownStore.close());
  const metrics = createMetrics({ store: ownStore, files });
  const store = measureStore(ownStore, metrics.onStoreCall);
  const client = createHttpClient({
    allowNetworks: config.ALLOW_NETWORKS,
    perHost: config.FETCHES_PER_HOST,
    idleTimeoutMs: config.INFO_TIMEOUT_MS,
    totalTimeoutMs: config.INFO_TIMEOUT_MS,
    readBytes: 16 * 1024,
    onBlocked: metrics.onBlocked,
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
    onBlocked: metrics.onBlocked,
    onResolved: metrics.onResolved,
  });
  opened.defer(() => resolver.close());
  const shared = { store, files, resolver, logger };
  const server = {
    logger,
    drainSignal,
    allowedHosts: config.ALLOWED_HOSTS,
    sendTimeoutMs: config.SEND_TIMEOUT_S * 1_000,
    maxConnectionsPerAddress: config.CONNECTIONS_PER_IP,
    maxConnections: maxConnectionsOfProcess(),
  };
  const webhooks =
    config.ROLE === "api" ? undefined : openWebhooks(config, { store, logger, metrics }, opened);
  const runner =
    config.ROLE === "api" ? undefined : openRunner(config, { ...shared, metrics }, opened);
  const app = await (config.ROLE === "worker"
    ? buildWorkerApp({ store, ...server, observer: metrics.app })
    : buildApp({
        ...shared,
        keys: await openKeys(config, { store, logger }, opened),
        ...server,
        observer: metrics.app,
        metrics,
        web: config.WEB === "on",
        client,
        allowNetworks: config.ALLOW_NETWORKS,
        infoTimeoutMs: config.INFO_TIMEOUT_MS,
        infoCacheTtlS: config.INFO_CACHE_TTL_S,
        infoConcurrency: config.INFO_CONCURRENCY,
      }));
  opened.defer(() => app.close());
  const metricsApp =
    config.METRICS_PORT === 0
      ? undefined
      : await buildMetricsApp({ metrics, ...server, maxConnections: maxMetricsConnections });
  if (metricsApp !== undefined) opened.defer(() => metricsApp.close());
  return { app, metricsApp, runner, webhooks };
}

/** Opens what calls the URLs that the operator wrote; the guard lets these lead to any network. */
function openWebhooks(
  config: Config,
  { metrics, ...deps }: StoreDeps & { metrics: Metrics },
  opened: AsyncDisposableStack,
): Webhooks {
  const client = createPostClient({ allowNetworks: everyNetwork, perHost: maxInFlight });
  opened.defer(() => client.close());
  const webhooks = createWebhooks({
    ...deps,
    client,
    endpoint: webhookOf(config),
    observer: metrics.webhooks,
  });
  opened.defer(() => webhooks.stop());
  return webhooks;
}

type StoreDeps = Pick<WebhooksOptions, "store" | "logger">;

/** Opens the keys and, if no other process can open the store, a socket over which they are changed. */
async function openKeys(
  config: Config,
  { store, logger }: StoreDeps,
  opened: AsyncDisposableStack,
): Promise<KeyRing> {
  const keys = await openKeyRing({ keys: store.keys, logger });
  opened.defer(() => keys.close());
  if (keys.isEmpty && !isLoopback(config.HOST)) {
    logger.warn(
      { HOST: config.HOST },
      "there are no keys: whoever reaches HOST may use the service",
    );
  }
  if (isSharedStore(config)) return keys;
  try {
    const onCommand = () => keys.refresh();
    const socket = await openKeySocket({ folder: config.DATA_DIR, keys: store.keys, onCommand });
    opened.defer(() => socket.close());
  } catch (err) {
    logger.warn(
      { err },
      "keys can be changed only while the service is stopped: no socket in DATA_DIR",
    );
  }
  return keys;
}

/** Names, too, are compared as text: what they resolve to may change. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

interface RunnerDeps extends Pick<RunnerOptions, "store" | "files" | "resolver" | "logger"> {
  metrics: Metrics;
}

/** Opens an engine, and the runner that downloads with it. */
function openRunner(
  config: Config,
  { metrics, ...deps }: RunnerDeps,
  opened: AsyncDisposableStack,
): Runner {
  const engine = openEngine(config.ENGINE, {
    allowNetworks: config.ALLOW_NETWORKS,
    concurrentFragments: config.CONCURRENT_FRAGMENTS,
    idleTimeoutMs: config.IDLE_TIMEOUT_MS,
    minSpeedBps: config.MIN_SPEED_BPS,
    minFreeBytes: config.MIN_FREE_BYTES,
    environment: certificateVariables(),
    observer: metrics.engine,
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
    maxStoredBytes: config.MAX_STORED_BYTES,
    observer: metrics.run,
  });
  opened.defer(() => runner.stop());
  return runner;
}
