import { accessSync, constants } from "node:fs";
import { isIPv4 } from "node:net";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import type { Config } from "./config/config.ts";
import { openEngine } from "./engines/registry.ts";
import { openDiskFiles } from "./files/disk.ts";
import { buildApp, buildMetricsApp, buildWorkerApp } from "./http/app.ts";
import { maxConnectionsOfProcess } from "./http/server/connections.ts";
import { type KeyRing, openKeyRing } from "./keys/key-ring.ts";
import { openKeySocket } from "./keys/key-socket.ts";
import { type Library, openLibrary } from "./runner/library/library.ts";
import { previewPath } from "./runner/library/names.ts";
import { createMetrics, type Metrics } from "./metrics/metrics.ts";
import { createSharedLookup } from "./net/addresses/address-guard.ts";
import { HostPauses, type PauseListener } from "./net/host-pauses.ts";
import { SpeedLimit } from "./net/speed-limit.ts";
import { shareSpeed } from "./net/speed-sharing.ts";
import { createHttpClient } from "./net/http/http-client.ts";
import { createPostClient, everyNetwork } from "./net/http/post-client.ts";
import { openReader } from "./resolvers/page/reader/reader-pool.ts";
import { delayHosts, pauseHosts } from "./resolvers/wrappers.ts";
import { openResolver } from "./resolvers/registry.ts";
import { createSponsorBlock } from "./resolvers/sponsor-block.ts";
import { createRunner } from "./runner/runner.ts";
import { measureStore } from "./stores/measured.ts";
import { openStore } from "./stores/registry.ts";
import type { TaskStore } from "./stores/store.ts";
import { openSecretFile } from "./system/secret-file.ts";
import { createFolder } from "./system/create-folder.ts";
import { createWebhooks } from "./webhooks/webhooks.ts";

/** Connections of `METRICS_PORT`, in addition to those of the service. */
const maxMetricsConnections = 64;

/**
 * Opens what the role needs and puts it on `opened`, which closes it in reverse order: first the app,
 * which lets requests in flight finish, then the background work, then what both use.
 *
 * @throws Error that names the setting, the rule and the value.
 */
export async function openServices(
  config: Config,
  logger: Logger,
  drainSignal: AbortSignal,
  opened: AsyncDisposableStack,
) {
  const parts = await openParts(config, logger, opened);
  const { metrics } = parts;
  const library = await openLibraryOf(config, parts, opened);
  /** What the process does besides serving requests. */
  const background: Pick<Library, "start" | "stop">[] = library === undefined ? [] : [library];
  if (config.role !== "api") {
    background.push(openWebhooks(config.webhook, parts, opened), openRunner(config, { ...parts, library }, opened));
  }
  const server = { ...config.server, maxConnections: maxConnectionsOfProcess() };
  const served = { ...parts, drainSignal, observer: metrics.app };
  const openApp = async () => {
    const keys = await openKeys(config.keys, parts, opened);
    const linkSecret = openSecretFile(join(resolve(config.files.folder), "link.secret"));
    return buildApp({ ...served, library, keys, linkSecret }, { ...config.app, server });
  };
  const app = await (config.role === "worker" ? buildWorkerApp(served, server) : openApp());
  opened.defer(() => app.close());
  const metricsServer = { ...server, maxConnections: maxMetricsConnections };
  const metricsApp = config.listenMetrics && (await buildMetricsApp({ logger, drainSignal, metrics }, metricsServer));
  if (metricsApp !== undefined) opened.defer(() => metricsApp.close());
  return { app, metricsApp, background };
}

type Parts = Awaited<ReturnType<typeof openParts>>;

/** Opens what the app, the runner and the webhooks use. */
async function openParts(
  { files: { folder }, store: { url, ...storeSettings }, client, resolver }: Config,
  logger: Logger,
  opened: AsyncDisposableStack,
) {
  openDataFolder(folder);
  const files = openDiskFiles({ folder });
  const ownStore = await openStore(url, { ...storeSettings, logger });
  opened.defer(() => ownStore.close());
  const metrics = createMetrics({ store: ownStore, files });
  const store = measureStore(ownStore, metrics.onStoreCall);
  const pauses = new HostPauses();
  await sharePauses(store, pauses, logger, opened);
  opened.defer(pauses.subscribe(logLongPauses(logger)));
  const resolving = await openResolving({ client, resolver }, { ...metrics, logger, pauses }, opened);
  return { files, store, metrics, logger, pauses, ...resolving };
}

/** Running tasks wait through a shorter pause, seconds. */
const longPauseS = 30;

/** Returns a listener that says why tasks of a host wait: once for each long pause, also if a short one has become long. */
function logLongPauses(logger: Logger): PauseListener {
  return ({ host, seconds }, knownS) => {
    if (seconds <= longPauseS || knownS > longPauseS) return;
    logger.info({ host, seconds: Math.round(seconds) }, "a host has asked for a pause (Retry-After): its tasks wait");
  };
}

/** Lets each process that shares the store leave a host alone that has asked one of them for it. */
async function sharePauses(
  { pauses: shared }: TaskStore,
  pauses: HostPauses,
  logger: Logger,
  opened: AsyncDisposableStack,
): Promise<void> {
  if (shared === undefined) return;
  const share: PauseListener = (pause) => {
    shared.share(pause).catch((err: unknown) => {
      logger.warn({ ...pause, err }, "other processes do not know that a host has asked for a pause");
    });
  };
  opened.defer(pauses.subscribe(share));
  opened.defer(await shared.follow((pause) => pauses.add(pause, share)));
}

interface ResolvingDeps extends Partial<Pick<Metrics, "onBlocked" | "onResolved">> {
  logger: Logger;
  pauses: HostPauses;
}

async function openResolving(
  settings: Pick<Config, "client" | "resolver">,
  { logger, pauses, onBlocked, onResolved }: ResolvingDeps,
  opened: AsyncDisposableStack,
) {
  const lookup = createSharedLookup();
  const client = createHttpClient({ ...settings.client, lookup, readBytes: 16 * 1024, pauses, onBlocked });
  opened.defer(() => client.close());
  const reader = openReader();
  opened.defer(() => reader.close());
  const { name, ytDlp, hostDelayMs, ...resolverSettings } = settings.resolver;
  const ownResolver = await openResolver(name, {
    ...resolverSettings,
    client,
    reader,
    ytDlp: { ...ytDlp, logger },
    lookup,
    onBlocked,
    onResolved,
  });
  const resolver = pauseHosts(delayHosts(ownResolver, hostDelayMs), pauses);
  opened.defer(() => resolver.close());
  return { client, resolver };
}

/**
 * Returns the path below LIBRARY_DIR that the file of a page would have in an empty library; downloads nothing.
 *
 * @throws ServiceError of the resolver.
 */
export async function previewLibrary(config: Config, page: URL, logger: Logger): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const { resolver } = await openResolving(config, { logger, pauses: new HostPauses() }, opened);
  const found: unknown = await resolver.resolve(page, { signal: AbortSignal.timeout(config.client.totalTimeoutMs) });
  return previewPath(page, found, config.libraryTemplate);
}

/** @throws Error that names the setting if the folder cannot be created, or no files in it. */
function openDataFolder(folder: string): void {
  try {
    createFolder(resolve(folder));
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`DATA_DIR must be a folder in which files can be created, got ${folder}: ${reason}`, { cause });
  }
}

/** Opens the client that calls the URLs that the operator wrote; the guard lets these lead to any network. */
function openWebhooks(endpoint: Config["webhook"], { store, logger, metrics }: Parts, opened: AsyncDisposableStack) {
  const client = createPostClient({ allowNetworks: everyNetwork, perHost: Infinity });
  opened.defer(() => client.close());
  const webhooks = createWebhooks({ store, logger, client, endpoint, observer: metrics.webhooks });
  opened.defer(() => webhooks.stop());
  return webhooks;
}

/** Opens the keys and, if no other process can open the store, a socket over which they are changed. */
async function openKeys(
  { host, folder, isShared }: Config["keys"],
  { store, logger }: Parts,
  opened: AsyncDisposableStack,
): Promise<KeyRing> {
  const keys = await openKeyRing({ keys: store.keys, logger });
  opened.defer(() => keys.close());
  if (keys.isEmpty && !isLoopback(host)) {
    logger.warn({ HOST: host }, "there are no keys: whoever reaches HOST may use the service");
  }
  if (isShared) return keys;
  try {
    const onCommand = () => keys.refresh();
    const socket = await openKeySocket({ folder, keys: store.keys, onCommand });
    opened.defer(() => socket.close());
  } catch (err) {
    logger.warn({ err }, "keys can be changed only while the service is stopped: it has no socket in DATA_DIR");
  }
  return keys;
}

/** Names, too, are compared as text: what they resolve to may change. */
function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/** Opens the library, if there is one; a process that runs tasks also fills it. */
async function openLibraryOf(
  { library: settings, role }: Config,
  { store, files, logger }: Parts,
  opened: AsyncDisposableStack,
): Promise<Library | undefined> {
  if (settings === undefined) return undefined;
  const library = await openLibrary({ ...settings, store, files, logger, isFiller: role !== "api" });
  opened.defer(() => library.stop());
  return library;
}

function openRunner(
  { engine: { name, ...engineSettings }, runner: settings, sponsorBlockUrl }: Config,
  { store, files, resolver, client, pauses, logger, metrics, library }: Parts & { library: Library | undefined },
  opened: AsyncDisposableStack,
) {
  const speed = new SpeedLimit(engineSettings);
  if (store.broadcast !== undefined && speed.isLimited) opened.defer(shareSpeed(speed, store.broadcast));
  const engine = openEngine(name, { ...engineSettings, pauses, speed, observer: metrics.engine });
  opened.defer(() => engine.close());
  const findSkips = createSponsorBlock(client, sponsorBlockUrl);
  const runner = createRunner({
    ...settings,
    store,
    files,
    resolver,
    logger,
    engine,
    pausedHosts: () => pauses.list().map(({ host }) => host),
    findSkips,
    library,
    observer: metrics.run,
  });
  opened.defer(() => runner.stop());
  return runner;
}
