import type { FastifyInstance } from "fastify";
import type { FileStore } from "../files/files.ts";
import { createInfoCache } from "../resolvers/info-cache.ts";
import type { GuardedClient } from "../net/http/http-client.ts";
import type { Library } from "../runner/library/library.ts";
import type { Template } from "../runner/library/template.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import type { TaskStore } from "../stores/store.ts";
import { Task, type TaskOptions } from "../model/task.ts";
import { Thumbnails } from "../resolvers/thumbnails.ts";
import { requireAccess } from "./access/access.ts";
import { type BaseAppParts, createBaseApp, maxParamLength, type ServerSettings } from "./base-app.ts";
import { archiveRoutes, createArchiveSender } from "./archives/archive-routes.ts";
import { batchRoutes } from "./routes/batch.ts";
import { registerDocs } from "./routes/docs.ts";
import { createLinkTokens } from "./links/link-tokens.ts";
import { linkRoutes, newLinkRoutes } from "./links/links.ts";
import { createFileStreams } from "./responses/file-streams.ts";
import { createFileSender } from "./responses/send-file.ts";
import { createTaskWaits } from "./responses/prefer-wait.ts";
import { refuseUnknownPaths } from "./server/error-handler.ts";
import { refuseMistakenNames } from "./server/validation.ts";
import { type Methods, registerMethods } from "./access/methods.ts";
import { withPacedReads } from "./access/paced-reads.ts";
import { limitRates, shareChanges, shareRequests } from "./access/request-limits.ts";
import { RequestTurns } from "./access/request-turns.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileRoutes } from "./routes/file.ts";
import { healthRoutes } from "./routes/health.ts";
import { createRecordPlaces } from "./responses/record-places.ts";
import { infoRoutes } from "./routes/info.ts";
import { adminMetricsRoutes, type MetricsSource, openMetricsRoutes } from "./routes/metrics.ts";
import { sessionRoutes } from "./routes/session.ts";
import { taskActionRoutes, singleTaskRoutes } from "./routes/task.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { thumbnailRoutes } from "./routes/thumbnails.ts";
import { webRoutes } from "./routes/web.ts";
import { downloadRoutes } from "./streams/download.ts";
import { streamRoutes } from "./streams/streams.ts";
import { createStreamSender } from "./streams/task-stream.ts";

/** What the app of a service uses; it closes none of them. */
export interface AppParts extends BaseAppParts {
  store: TaskStore;
  /** The keys of `store`. */
  keys: KeyRing;
  files: FileStore;
  /** Where files of tasks also are, under names for people; default: nowhere. */
  library?: Pick<Library, "remove" | "isPending" | "pendingMembers"> | undefined;
  /** What reads pages. */
  resolver: Resolver;
  /** What fetches thumbnails; a task for a page that it may not fetch is refused if the URL shows that. */
  client: GuardedClient;
  /** What links are made with: 32 random bytes or more, the same in every process that serves the same tasks. */
  linkSecret: Uint8Array;
  /** What admins read at `/metrics`; default: there is no such route. */
  metrics?: MetricsSource;
}

export interface AppSettings {
  server: ServerSettings;
  /** How long a page's information is cached, seconds. */
  infoCacheTtlS: number;
  /** Longest time to read one page, or a thumbnail of one, milliseconds. */
  infoTimeoutMs: number;
  /** Pages that are read at a time. */
  infoConcurrency: number;
  /** Event streams that are open at a time; default 1,000. */
  maxEventStreams?: number;
  /** Files of the archives that are sent at a time; default 2,000,000. */
  maxArchiveFiles?: number;
  /** What tasks have of options that their request does not state; default: none. */
  defaultOptions?: TaskOptions;
  /** What names the files of archives, as in the library. */
  template: Template;
  /** Whether there is a web UI at `/`. */
  web: boolean;
}

export type App = FastifyInstance;

/** Tasks in memory at a time as responses: a record may have 256 kB. */
const maxRecords = 64;

/**
 * The service without its process: routes, schemas, limits. Ready for `inject` or `listen` when the
 * promise resolves. `close` lets requests in flight finish for `finishMs`, then ends them.
 */
export async function buildApp(parts: AppParts, settings: AppSettings): Promise<App> {
  const { keys, files, library, resolver, client, metrics, drainSignal } = parts;
  const { infoTimeoutMs, infoCacheTtlS, infoConcurrency, maxEventStreams = 1_000, template, web } = settings;
  const { defaultOptions = {}, maxArchiveFiles: maxFiles = 2_000_000 } = settings;
  const { allowedOrigins: origins, maxConnections } = settings.server;
  const store = withPacedReads(parts.store);
  const infoCache = createInfoCache({
    resolver,
    ttlS: infoCacheTtlS,
    timeoutMs: infoTimeoutMs,
    concurrency: infoConcurrency,
  });
  const thumbnails = new Thumbnails({ client, timeoutMs: infoTimeoutMs });
  const app = createBaseApp(parts, settings.server, () => {
    infoCache.stop();
    thumbnails.stop();
  });
  const turns = new RequestTurns();
  const methods = registerMethods(app, maxParamLength);
  const access = requireAccess(app, keys, origins, turns, methods.accessOf);
  limitRates(app, store.keys);
  const tokens = createLinkTokens(parts.linkSecret);
  shareRequests(app, maxConnections, turns, (token) => tokens.open(token)?.keyHash);
  refuseMistakenNames(app);
  return serveOnly(app, methods, "; see /docs", async () => {
    app.addSchema({ ...Task, $id: "Task" });
    await registerDocs(app);
    const waits = createTaskWaits(app, { store, library });
    await app.register(taskRoutes, { store, client, resolver, defaultOptions, access, waits });
    await app.register(batchRoutes, { store, client, resolver, defaultOptions });
    const inTurn = shareChanges();
    const records = createRecordPlaces(maxRecords);
    await app.register(singleTaskRoutes, { store, files, library, waits, records, inTurn });
    await app.register(taskActionRoutes, {
      store,
      inTurn: (request, reply, change) => records.wait(request, reply).then(() => inTurn(request, reply, change)),
    });
    const streams = createFileStreams(parts.observer?.onFileBytes);
    const sendFile = createFileSender(files, streams);
    const sendStream = createStreamSender({ store, files, streams, sendFile });
    const archives = createArchiveSender({ store, files, template, streams, maxFiles });
    await app.register(fileRoutes, { store, files, library, sendFile, inTurn });
    await app.register(archiveRoutes, { store, archives });
    await app.register(streamRoutes, { store, sendStream });
    await app.register(downloadRoutes, { store, client, resolver, defaultOptions, infoCache, sendStream });
    await app.register(newLinkRoutes, { store, tokens, archives });
    await app.register(linkRoutes, { store, keys, access, tokens, sendFile, sendStream, archives });
    await app.register(eventRoutes, { store, keys, maxStreams: maxEventStreams, origins });
    await app.register(sessionRoutes, { access });
    await app.register(infoRoutes, { infoCache, resolver });
    await app.register(thumbnailRoutes, { store, infoCache, thumbnails, sendFile });
    await app.register(healthRoutes, { store, drainSignal, unenforced: resolver.unenforced });
    if (metrics !== undefined) await app.register(adminMetricsRoutes, { metrics });
    if (web) await app.register(webRoutes);
  });
}

export interface WorkerAppParts extends BaseAppParts {
  store: TaskStore;
  /** What reads the pages of its tasks; default: nothing is known of it. */
  resolver?: Pick<Resolver, "unenforced">;
}

/** The app of a process that only runs tasks: it serves `/health/` alone. */
export async function buildWorkerApp(parts: WorkerAppParts, settings: ServerSettings): Promise<App> {
  const { store, resolver, drainSignal } = parts;
  const app = createBaseApp(parts, settings);
  return serveOnly(app, registerMethods(app, maxParamLength), ": this process only runs tasks", async () => {
    await app.register(healthRoutes, { store, drainSignal, unenforced: resolver?.unenforced });
  });
}

export interface MetricsAppParts extends BaseAppParts {
  metrics: MetricsSource;
}

/** The app of the port for metrics: it serves `/metrics` alone. */
export async function buildMetricsApp(parts: MetricsAppParts, settings: ServerSettings): Promise<App> {
  const app = createBaseApp(parts, settings);
  return serveOnly(app, registerMethods(app, maxParamLength), ": this port only serves /metrics", async () => {
    await app.register(openMetricsRoutes, { metrics: parts.metrics });
  });
}

/** Registers routes, and refuses all other paths, with a message that ends with `hint`, and their other methods. */
async function serveOnly(app: App, methods: Methods, hint: string, register: () => Promise<void>): Promise<App> {
  methods.refuseUnknown();
  refuseUnknownPaths(app, hint);
  await register();
  methods.refuseOthers();
  await app.ready();
  return app;
}
