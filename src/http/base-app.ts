import accepts from "@fastify/accepts";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, { type FastifyBaseLogger, type FastifyInstance } from "fastify";
import { compressJson } from "./responses/compression.ts";
import { addContacts, createProxyCheck, localNetworks } from "./server/contact.ts";
import { deadLinkError, linksPath } from "./links/links.ts";
import { closeConnectionsOnDrain, drainOnClose } from "./server/drain.ts";
import { handleError, refuseExpectations, refuseAmbiguousFraming } from "./server/error-handler.ts";
import { checkHosts } from "./server/hosts.ts";
import { allowOrigins, parseOrigins } from "./server/origins.ts";
import { ignoreBodies } from "./server/json.ts";
import { type AppObserver, logRequests, observeRequests, RequestLogs } from "./server/observe-requests.ts";
import { dropLengthOf304 } from "./responses/empty.ts";
import { createRequestIds, setEveryHeader } from "./responses/every-response.ts";
import { Problem } from "./responses/problem.ts";
import { createSerializers } from "./server/serialization.ts";
import { createClientErrorHandler, createHttpServer } from "./server/server.ts";
import { validatorCompiler } from "./server/validation.ts";

export interface BaseAppOptions {
  /** Default: no log. */
  logger?: FastifyBaseLogger;
  /** Public host names of the service; default none. */
  allowedHosts?: string | readonly string[];
  /** Origins of web pages and browser extensions that may call the service, as `parseOrigins` reads them; default none. */
  allowedOrigins?: string | readonly string[];
  /** How long a response may wait for its client to read, milliseconds; default 60,000. */
  sendTimeoutMs?: number;
  /** Networks of reverse proxies that may say where a request comes from; default loopback. */
  trustedProxies?: string | readonly string[];
  /** Connections of one client address, loopback and proxies excepted; default 256. */
  maxConnectionsPerAddress?: number;
  /** Connections in all; default no limit. */
  maxConnections?: number;
  /** How long `close` waits for requests in flight before it ends them, milliseconds; default 7,000. */
  finishMs?: number;
  /**
   * Aborted some time before `close`: the app keeps serving, but `/health/ready` responds with 503 and
   * each response closes its connection. Default: never.
   */
  drainSignal?: AbortSignal;
  /** Default: nobody observes. */
  observer?: AppObserver | undefined;
}

/** Creates an app with what all have in common; `stop` ends what the last requests in flight wait for. */
export function createBaseApp(options: BaseAppOptions, stop: () => void): FastifyInstance {
  const { logger, drainSignal, finishMs = 7_000 } = options;
  const isProxy = createProxyCheck(options.trustedProxies ?? localNetworks);
  const limits = {
    isProxy,
    sendTimeoutMs: options.sendTimeoutMs ?? 60_000,
    maxPerAddress: options.maxConnectionsPerAddress ?? 256,
    maxConnections: options.maxConnections ?? Number.POSITIVE_INFINITY,
  };
  const app: FastifyInstance = Fastify({
    ...(logger && { loggerInstance: logger }),
    serverFactory: (handler) => createHttpServer(handler, limits, logger),
    bodyLimit: 64 * 1024,
    // As long as a request can be: a task id that is too long is unknown, not invalid.
    routerOptions: { maxParamLength: 16 * 1024 },
    return503OnClosing: false,
    genReqId: createRequestIds(),
    logController: new RequestLogs(),
    clientErrorHandler: createClientErrorHandler(),
    // No route is looked up if the path cannot be decoded, nor any hook run.
    frameworkErrors: (error, request, reply) =>
      handleError(request.url.startsWith(linksPath) ? deadLinkError() : error, request, reply),
    schemaController: { compilersFactory: { buildSerializer: createSerializers() } },
  }).withTypeProvider<TypeBoxTypeProvider>();
  addContacts(app, isProxy);
  app.setValidatorCompiler(validatorCompiler);
  app.setErrorHandler(handleError);
  ignoreBodies(app);
  app.addSchema(Problem);
  app.decorateReply("errorCode", null);
  if (logger) logRequests(app);
  if (options.observer) observeRequests(app, options.observer.onRequest);
  app.addHook("onRequest", (_request, reply, done) => {
    setEveryHeader(reply);
    done();
  });
  closeConnectionsOnDrain(app, drainSignal);
  const origins = parseOrigins(options.allowedOrigins ?? []);
  checkHosts(app, options.allowedHosts ?? [], origins);
  app.addHook("onRequest", refuseAmbiguousFraming);
  app.addHook("onRequest", refuseExpectations);
  drainOnClose(app, finishMs, stop);
  app.register(accepts);
  compressJson(app);
  allowOrigins(app, origins);
  dropLengthOf304(app);
  return app;
}
