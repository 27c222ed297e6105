import { randomBytes } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { FileStore } from "../files/files.ts";
import { createInfoCache } from "../resolvers/info-cache.ts";
import { createAddressGuard } from "../net/addresses/address-guard.ts";
import type { HttpClient } from "../net/client.ts";
import { splitList } from "../net/http-url.ts";
import type { Library } from "../runner/library/library.ts";
import type { Template } from "../runner/library/template.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { TaskStore } from "../stores/store.ts";
import { Task } from "../model/task.ts";
import { createThumbnails } from "../resolvers/thumbnails.ts";
import { archiveRoutes } from "./archives/archive-routes.ts";
import { createArchiveSender } from "./archives/archive-sender.ts";
import { requireAccess } from "./access/access.ts";
import { type BaseAppOptions, createBaseApp } from "./base-app.ts";
import { batchRoutes } from "./routes/batch.ts";
import { registerDocs } from "./routes/docs.ts";
import { createTaskWaits } from "./responses/prefer-wait.ts";
import { createLinkTokens } from "./links/link-tokens.ts";
import { linkRoutes, newLinkRoutes } from "./links/links.ts";
import { refuseUnknownPaths } from "./server/error-handler.ts";
import { refuseMistakenParameters } from "./server/mistaken-names.ts";
import { registerMethods } from "./access/methods.ts";
import { withPacedReads } from "./access/paced-reads.ts";
import { limitRates } from "./access/rate-limit.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileRoutes } from "./routes/file.ts";
import { downloadRoutes } from "./streams/download.ts";
import { streamRoutes } from "./streams/streams.ts";
import { healthRoutes } from "./routes/health.ts";
import { infoRoutes } from "./routes/info.ts";
import { adminMetricsRoutes, type MetricsSource, openMetricsRoutes } from "./routes/metrics.ts";
import { sessionRoutes } from "./routes/session.ts";
import { taskActionRoutes } from "./routes/task-actions.ts";
import { singleTaskRoutes } from "./routes/task.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { thumbnailRoutes } from "./routes/thumbnails.ts";
import { webRoutes } from "./routes/web.ts";

export interface AppOptions extends BaseAppOptions {
  store: TaskStore;
  /** The keys of `store`. */
  keys: KeyRing;
  /** Where the files of tasks are. */
  files: FileStore;
  /** Where files of tasks also are, under names for people; default: nowhere. */
  library?: Pick<Library, "remove" | "isPending" | "pendingMembers"> | undefined;
  /** What names the files of archives, as in the library; default: as `LIBRARY_TEMPLATE`. */
  template?: Template;
  /** What reads pages. */
  resolver: Resolver;
  /** What fetches thumbnails. */
  client: HttpClient;
  /**
   * Networks that pages may be on although they are not public, as the resolver knows them; default none.
   * A task for a page that is elsewhere is refused if its URL shows that.
   */
  allowNetworks?: string | readonly string[];
  /** How long a page's information is cached, seconds; default 300. */
  infoCacheTtlS?: number;
  /** Longest time to read one page, or a thumbnail of one, milliseconds; default 15,000. */
  infoTimeoutMs?: number;
  /** Pages that are read at a time; default 64. */
  infoConcurrency?: number;
  /** Event streams that are open at a time; default 1,000. */
  maxEventStreams?: number;
  /**
   * What links are made with: 32 random bytes or more, the same in every process that serves the same tasks; default new ones,
   * so that links end with the app.
   */
  linkSecret?: Uint8Array;
  /** What admins read at `/metrics`; default: there is no such route. */
  metrics?: MetricsSource;
  /** Whether there is a web UI at `/`; default false. */
  web?: boolean;
}

export type App = FastifyInstance;

/**
 * The service without its process: routes, schemas, limits. Ready for `inject` or `listen` when the
 * promise resolves. `close` lets requests in flight finish for `finishMs`, then ends them; what was
 * passed in stays open.
 */
export async function buildApp(options: AppOptions): Promise<App> {
  const { keys, files, library, resolver, client, metrics, infoTimeoutMs = 15_000 } = options;
  const store = withPacedReads(options.store);
  const infoCache = createInfoCache({
    resolver,
    ttlS: options.infoCacheTtlS ?? 300,
    timeoutMs: infoTimeoutMs,
    concurrency: options.infoConcurrency ?? 64,
  });
  const guard = createAddressGuard({
    allowNetworks: splitList(options.allowNetworks),
    lookupTimeoutMs: infoTimeoutMs,
    onBlocked: options.observer?.onBlocked,
  });
  const app = createBaseApp(options, () => {
    infoCache.stop();
    thumbnails.stop();
  });
  const thumbnails = createThumbnails({ client, timeoutMs: infoTimeoutMs });
  const access = requireAccess(app, keys);
  await limitRates(app, store.keys);
  refuseMistakenParameters(app);
  return serveOnly(app, "; see /docs", async () => {
    app.addSchema({ ...Task, $id: "Task" });
    await registerDocs(app);
    const waits = createTaskWaits(app, { store, library });
    await app.register(taskRoutes, { store, guard, resolver, waits });
    await app.register(batchRoutes, { store, guard, resolver });
    await app.register(singleTaskRoutes, { store, files, library, waits });
    await app.register(taskActionRoutes, { store });
    const { onFileBytes } = options.observer ?? {};
    await app.register(fileRoutes, { store, files, library, onFileBytes });
    const archives = createArchiveSender({ store, files, template: options.template, onFileBytes });
    await app.register(archiveRoutes, { store, archives });
    await app.register(streamRoutes, { store, files, onFileBytes });
    await app.register(downloadRoutes, { store, files, onFileBytes, guard, resolver, infoCache });
    const tokens = createLinkTokens(options.linkSecret ?? randomBytes(32));
    await app.register(newLinkRoutes, { store, tokens, archives });
    await app.register(linkRoutes, { store, files, keys, access, tokens, archives, onFileBytes });
    const maxStreams = options.maxEventStreams ?? 1_000;
    await app.register(eventRoutes, { events: store.events, keys, maxStreams });
    await app.register(sessionRoutes, { access });
    await app.register(infoRoutes, { infoCache, resolver });
    await app.register(thumbnailRoutes, { store, infoCache, thumbnails });
    await app.register(healthRoutes, { store, drainSignal: options.drainSignal, unenforced: resolver.unenforced });
    if (metrics !== undefined) await app.register(adminMetricsRoutes, { metrics });
    if (options.web === true) await app.register(webRoutes);
  });
}

export interface WorkerAppOptions extends BaseAppOptions {
  store: TaskStore;
  /** What reads the pages of its tasks; default: nothing is known of it. */
  resolver?: Pick<Resolver, "unenforced">;
}

/** The app of a process that only runs tasks: it serves `/health/` alone. */
export async function buildWorkerApp(options: WorkerAppOptions): Promise<App> {
  const { store, resolver, drainSignal } = options;
  const app = createBaseApp(options, () => {});
  return serveOnly(app, ": this process only runs tasks", async () => {
    await app.register(healthRoutes, { store, drainSignal, unenforced: resolver?.unenforced });
  });
}

export interface MetricsAppOptions extends BaseAppOptions {
  metrics: MetricsSource;
}

/** The app of the port for metrics: it serves `/metrics` alone. */
export async function buildMetricsApp(options: MetricsAppOptions): Promise<App> {
  const app = createBaseApp(options, () => {});
  return serveOnly(app, ": this port only serves /metrics", async () => {
    await app.register(openMetricsRoutes, { metrics: options.metrics });
  });
}

/** Registers routes, and refuses all other paths, with a message that ends with `hint`, and their other methods. */
async function serveOnly(app: App, hint: string, register: () => Promise<void>): Promise<App> {
  refuseUnknownPaths(app, hint);
  const methods = registerMethods(app);
  await register();
  methods.refuseOthers();
  await app.ready();
  return app;
}
