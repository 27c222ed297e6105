import accepts from "@fastify/accepts";
import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyServerOptions } from "fastify";
import type { Networks } from "../net/addresses/addresses.ts";
import { compressJson } from "./responses/compression.ts";
import type { ConnectionLimits } from "./server/connections.ts";
import { addContacts, contactOf, createProxyCheck } from "./server/contact.ts";
import { deadLinkError, linksPath } from "./links/links.ts";
import { closeConnectionsOnDrain, drainOnClose } from "./server/drain.ts";
import { handleError, refuseExpectations, refuseAmbiguousFraming } from "./server/error-handler.ts";
import { checkHosts } from "./server/hosts.ts";
import { allowOrigins, earlyCorsHeaders, type Origins } from "./server/origins.ts";
import { ignoreBodies } from "./server/json.ts";
import {
  type AppObserver,
  logRequests,
  observeRequests,
  observeUndecoded,
  RequestLogs,
} from "./server/observe-requests.ts";
import { correctLengthOfHead } from "./responses/empty.ts";
import { createRequestIds, everyResponse, requestIdHeader } from "./responses/every-response.ts";
import { Problem } from "./responses/problem.ts";
import { createClientErrorHandler, createHttpServer } from "./server/server.ts";
import { validatorCompiler } from "./server/validation.ts";

/** As long as a request can be: a task id that is too long is unknown, not invalid. */
export const maxParamLength = 16 * 1024;

/** What every app uses of its process. */
export interface BaseAppParts {
  /** Default: no log. */
  logger?: FastifyBaseLogger;
  /** Default: none. */
  observer?: AppObserver | undefined;
  /**
   * Aborted some time before `close`: the app keeps serving, but `/health/ready` responds with 503 and
   * each response closes its connection. Default: never.
   */
  drainSignal?: AbortSignal;
}

/** How every app serves its clients. */
export interface ServerSettings extends Omit<ConnectionLimits, "isProxy"> {
  /** Public host names of the service. */
  allowedHosts: ReadonlySet<string>;
  /** Origins of web pages and browser extensions that may call the service. */
  allowedOrigins: Origins;
  /** Networks of reverse proxies that may say where a request comes from. */
  trustedProxies: Networks;
  /** How long `close` waits for requests in flight before it ends them, milliseconds; default 7,000. */
  finishMs?: number;
}

/** Creates an app with what all have in common; `stop` ends what the last requests in flight wait for. */
export function createBaseApp(
  { logger, observer, drainSignal }: BaseAppParts,
  { allowedHosts, allowedOrigins, trustedProxies, finishMs = 7_000, ...connections }: ServerSettings,
  stop: () => void = () => {},
): FastifyInstance {
  const isProxy = createProxyCheck(trustedProxies);
  const app: FastifyInstance = Fastify({
    ...(logger && { loggerInstance: logger }),
    serverFactory: (handler) => createHttpServer(handler, { ...connections, isProxy }, logger),
    bodyLimit: 64 * 1024,
    routerOptions: { maxParamLength },
    return503OnClosing: false,
    genReqId: createRequestIds(),
    logController: new RequestLogs(),
    clientErrorHandler: createClientErrorHandler(allowedOrigins),
    // No route is looked up if the path cannot be decoded, nor any hook run.
    frameworkErrors: (error, request, reply) => {
      reply.headers(earlyCorsHeaders(allowedOrigins, request.headers.origin));
      handleError(request.url.startsWith(linksPath) ? deadLinkError() : error, request, reply);
      observeUndecoded(request, reply, contactOf(request.raw, isProxy).client, observer?.onRequest);
    },
    schemaController: { compilersFactory: { buildValidator: buildNone, buildSerializer: createSerializers() } },
  }).withTypeProvider<TypeBoxTypeProvider>();
  addContacts(app, isProxy);
  app.setValidatorCompiler(validatorCompiler);
  app.setErrorHandler(handleError);
  ignoreBodies(app);
  app.addSchema(Problem);
  app.decorateReply("errorCode", null);
  if (logger) logRequests(app);
  if (observer) observeRequests(app, observer.onRequest);
  app.addHook("onRequest", ({ id }, reply, done) => {
    reply.headers(everyResponse).header(requestIdHeader, id);
    done();
  });
  closeConnectionsOnDrain(app, drainSignal);
  app.addHook("onRequest", refuseAmbiguousFraming);
  drainOnClose(app, finishMs, stop, allowedOrigins);
  app.register(accepts);
  compressJson(app);
  allowOrigins(app, allowedOrigins);
  checkHosts(app, allowedHosts, allowedOrigins);
  app.addHook("onRequest", refuseExpectations);
  correctLengthOfHead(app);
  return app;
}

/** In place of Fastify's own validators, which it would load, although `validatorCompiler` is set. */
function buildNone() {
  return (): never => {
    throw new Error("validatorCompiler is not set");
  };
}

type BuildSerializer = NonNullable<
  NonNullable<NonNullable<FastifyServerOptions["schemaController"]>["compilersFactory"]>["buildSerializer"]
>;

/**
 * Creates a factory of Fastify's own serializers for an app. Each is compiled for its first response: a process needs few of all.
 * Responses that refer to one schema of the app share a serializer. What may be of several kinds is written as it is: to find out its kind,
 * Fastify's serializer compiles a validator of the whole schema, which holds up all requests for a tenth of a second.
 */
function createSerializers(): BuildSerializer {
  const byReference = new Map<string, (data: unknown) => string>();
  return (schemas, options) => {
    let build: ReturnType<ReturnType<typeof SerializerSelector>> | undefined;
    return (route) => {
      const { $ref: reference } = route.schema as { $ref?: string };
      const compile = () => {
        build ??= SerializerSelector()(withoutUnions(schemas), options);
        return build({ ...route, schema: withoutUnions(route.schema) });
      };
      let serialize: ReturnType<typeof compile> | undefined;
      return (data) => {
        serialize ??= reference ? byReference.getOrInsertComputed(reference, compile) : compile();
        return serialize(data);
      };
    };
  };
}

function withoutUnions<T>(schema: T): T {
  const json = JSON.stringify(schema, (_, part: unknown) =>
    typeof part === "object" && part !== null && "anyOf" in part ? {} : part,
  );
  return JSON.parse(json) as T;
}
