import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import accepts from "@fastify/accepts";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { openDiskFiles } from "../files/disk.ts";
import type { FileStore } from "../files/files.ts";
import { ServiceError } from "../errors.ts";
import { createInfoCache } from "../info-cache.ts";
import type { Resolver } from "../resolvers/resolver.ts";
import { createStubResolver } from "../resolvers/stub.ts";
import { createMemoryStore } from "../stores/memory.ts";
import type { TaskStore } from "../stores/store.ts";
import { createTaskEvents } from "../task-events.ts";
import { Task } from "../task.ts";
import { handleClientError } from "./client-errors.ts";
import { documentRoutes, registerDocs } from "./docs.ts";
import { drainOnClose, closeConnectionsOnDrain } from "./drain.ts";
import { handleError, handleNotFound } from "./error-handler.ts";
import { ignoreBodies } from "./json.ts";
import { registerMethods } from "./methods.ts";
import { Problem } from "./problem.ts";
import { logRequests } from "./request-log.ts";
import { eventRoutes } from "./routes/events.ts";
import { fileRoutes } from "./routes/file.ts";
import { healthRoutes } from "./routes/health.ts";
import { infoRoutes } from "./routes/info.ts";
import { taskActionRoutes } from "./routes/task-actions.ts";
import { singleTaskRoutes } from "./routes/task.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { validatorCompiler } from "./validation.ts";

export interface AppOptions {
  /** Where tasks are kept; default: in memory. Closed with the app. */
  store?: TaskStore;
  /** Where the files of tasks are; default: a folder of their own for temporary files. */
  files?: FileStore;
  /** What runs the tasks; default: nothing does. Stopped with the app, before the store is closed. */
  runner?: { stop(): Promise<void> };
  /** What reads pages; default: the stub, which fetches nothing. Closed with the app. */
  resolver?: Resolver;
  /** Default: no log. */
  logger?: FastifyBaseLogger;
  /** Seconds that a page's information is remembered; default 300. */
  infoCacheTtlS?: number;
  /** Time for reading one page; default 15,000. */
  infoTimeoutMs?: number;
  /** Pages read at a time; default 64. */
  infoConcurrency?: number;
  /** Clients that watch the tasks at a time; default 1,000. */
  maxEventStreams?: number;
  /** How long `close` waits for requests in flight before it ends them; default 7,000. */
  finishMs?: number;
  /**
   * Aborted some time before `close`: everything is still answered, but it is not ready any more, each
   * answer ends its connection, and `runner` stops. Default: never.
   */
  drainSignal?: AbortSignal;
}

export type App = FastifyInstance;

/**
 * The service without its process: routes, schemas, limits. Ready for `inject` or `listen` when the
 * promise resolves; `close` lets requests in flight finish for `finishMs`, then ends them.
 */
export async function buildApp(options: AppOptions = {}): Promise<App> {
  const {
    store = createMemoryStore({ events: createTaskEvents({ logger: options.logger }) }),
    resolver = createStubResolver(),
    files = openDiskFiles({ folder: join(tmpdir(), `unreel-${randomUUID()}`) }),
  } = options;
  const infoCache = createInfoCache({
    resolver,
    ttlS: options.infoCacheTtlS ?? 300,
    timeoutMs: options.infoTimeoutMs ?? 15_000,
    concurrency: options.infoConcurrency ?? 64,
  });
  const app = createServer({ ...options, store, resolver }, () => infoCache.stop());
  app.setNotFoundHandler(handleNotFound);
  const methods = registerMethods(app);
  app.addSchema({ ...Task, $id: "Task" });
  await registerDocs(app);
  await app.register(documentRoutes);
  await app.register(taskRoutes, { store });
  await app.register(singleTaskRoutes, { store, files });
  await app.register(taskActionRoutes, { store });
  await app.register(fileRoutes, { store, files });
  await app.register(eventRoutes, {
    events: store.events,
    maxStreams: options.maxEventStreams ?? 1_000,
  });
  await app.register(infoRoutes, { infoCache, resolver });
  await app.register(healthRoutes, { store, drainSignal: options.drainSignal });
  methods.refuseOthers();
  await app.ready();
  return app;
}

export type WorkerOptions = Pick<AppOptions, "runner" | "logger" | "finishMs" | "drainSignal"> &
  Required<Pick<AppOptions, "store" | "resolver">>;

/** The same for a process that runs tasks and answers `/health/` alone. */
export async function buildWorkerApp(options: WorkerOptions): Promise<App> {
  const app = createServer(options, () => {});
  app.setNotFoundHandler((request) => {
    const [path = ""] = request.url.split("?", 1);
    const there = path.slice(0, 200);
    throw new ServiceError("not_found", `no route ${there}: this process only runs tasks`);
  });
  const methods = registerMethods(app);
  await app.register(healthRoutes, { store: options.store, drainSignal: options.drainSignal });
  methods.refuseOthers();
  await app.ready();
  return app;
}

/** What every role has alike; `stop` ends what requests in flight wait for. */
function createServer(options: WorkerOptions, stop: () => void): App {
  const { runner, resolver, store, logger, drainSignal, finishMs = 7_000 } = options;
  const app: FastifyInstance = Fastify({
    ...(logger && { loggerInstance: logger }),
    ...serverLimits,
    return503OnClosing: false,
    logController: new LogController({ disableRequestLogging: true }),
    clientErrorHandler: handleClientError,
    frameworkErrors: handleError,
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setErrorHandler(handleError);
  ignoreBodies(app);
  app.addSchema(Problem);
  if (logger) logRequests(app);
  closeConnectionsOnDrain(app, drainSignal);
  drainOnClose(app, finishMs, stop);
  closeParts(app, { runner, resolver, store, drainSignal });
  app.register(accepts);
  return app;
}

interface ClosedParts {
  runner: AppOptions["runner"];
  resolver: Resolver;
  store: TaskStore;
  drainSignal: AbortSignal | undefined;
}

/** The runner stops while the last requests are answered, and goes before what it uses. */
function closeParts(app: FastifyInstance, parts: ClosedParts): void {
  const { runner, resolver, store, drainSignal } = parts;
  let stopped: Promise<void> | undefined;
  function stop(): void {
    stopped ??= runner?.stop();
    // Awaited below; until then a failure is nobody's yet.
    stopped?.catch(() => {});
  }
  drainSignal?.addEventListener("abort", stop, { once: true });
  app.addHook("preClose", async () => stop());
  app.addHook("onClose", async () => {
    try {
      await stopped;
    } finally {
      await resolver.close();
      await store.close();
    }
  });
}

/** A client that is slow or sends without end is cut off; the others do not notice. */
const serverLimits = {
  bodyLimit: 64 * 1024,
  requestTimeout: 30_000,
  keepAliveTimeout: 72_000,
  // The longest that fits into a request: an id that is too long is one that no task has.
  routerOptions: { maxParamLength: 16 * 1024 },
  http: {
    headersTimeout: 15_000,
    connectionsCheckingInterval: 5_000,
    maxHeaderSize: 16 * 1024,
  },
};
