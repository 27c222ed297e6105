import type { ServerResponse } from "node:http";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, LogController } from "fastify";
import { pathWithoutSecrets } from "../../model/access-key.ts";
import { parseTraceparent, traceIdOf } from "../../model/trace-context.ts";

export interface AppObserver {
  /** Called once for each request. */
  onRequest(request: SeenRequest): void;
  /** Called with the size of each piece of a task's file that is sent, bytes. */
  onFileBytes(bytes: number): void;
}

export interface SeenRequest {
  /** `GET` for HEAD too; `other` if `route` is. */
  method: string;
  /** The pattern of a documented route, as `/tasks/:id`; `other` for everything else. */
  route: string;
  /** `aborted` if the client disconnected before the response was sent. */
  status: number | "aborted";
  /** Until the response was sent; 0 if the client disconnected before. */
  seconds: number;
}

/**
 * Reports each request. The number of methods and routes is bounded, whatever clients send. Each route has a hook that
 * knows its name: looking it up takes longer than everything else here.
 */
export function observeRequests(app: FastifyInstance, observe: AppObserver["onRequest"]): void {
  app.addHook("onRoute", (options) => {
    const { url, schema, onResponse = [], onRequestAbort = [] } = options;
    const route = schema?.operationId === undefined ? other : url;
    options.onResponse = [
      (request, reply, done) => {
        const seconds = reply.elapsedTime / 1000;
        observe({ method: methodOf(request, route), route, status: reply.statusCode, seconds });
        done();
      },
      ...[onResponse].flat(),
    ];
    options.onRequestAbort = [
      (request, done) => {
        observe({ method: methodOf(request, route), route, status: "aborted", seconds: 0 });
        done();
      },
      ...[onRequestAbort].flat(),
    ];
  });
  app.addHook("onResponse", (request, reply, done) => {
    if (request.is404) {
      const seconds = reply.elapsedTime / 1000;
      observe({ method: other, route: other, status: reply.statusCode, seconds });
    }
    done();
  });
}

const other = "other";

function methodOf({ method }: FastifyRequest, route: string): string {
  if (route === other) return other;
  return method === "HEAD" ? "GET" : method;
}

/**
 * Logs one line for each request: its status, that the client disconnected before the response, or, at level `warn`, why that was
 * broken off; those of `/health/` at level `debug`, others at `info`. `ip` is the client's address, as connections are counted: of IPv6 its
 * network, none for loopback. `trace_id` is that of the request's `traceparent`; `key` is the name of the request's key, if it has one; `code` that of the error.
 */
export function logRequests(app: FastifyInstance): void {
  const responses = new WeakMap<FastifyRequest, ServerResponse>();
  app.addHook("onRequest", (request, reply, done) => {
    responses.set(request, reply.raw);
    const { traceparent } = request.headers;
    const trace = parseTraceparent(typeof traceparent === "string" ? traceparent : undefined);
    if (trace !== undefined) request.log = request.log.child({ trace_id: traceIdOf(trace) });
    done();
  });
  app.addHook("onResponse", async (request, reply) => {
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    const { statusCode: status, errorCode } = reply;
    log(request, { status, ...(errorCode !== null && { code: errorCode }), ms }, "request");
  });
  app.addHook("onRequestAbort", async (request) => {
    if (brokenOff.has(request)) return;
    const error = responses.get(request)?.errored;
    if (error) logBrokenOff(request, error);
    else log(request, {}, "client disconnected");
  });
}

const brokenOff = new WeakSet<FastifyRequest>();

/** Logs why the service broke off a response that it had begun, instead of Fastify's own lines. */
export class RequestLogs extends LogController {
  constructor() {
    super({ disableRequestLogging: true });
  }

  override streamError(error: NodeJS.ErrnoException, request: FastifyRequest): void {
    // The client has gone.
    if (error.code === "ERR_STREAM_PREMATURE_CLOSE") return;
    brokenOff.add(request);
    logBrokenOff(request, error);
  }
}

function logBrokenOff(request: FastifyRequest, error: Error): void {
  log(request, { reason: error.message }, "response broken off", "warn");
}

function log(request: FastifyRequest, outcome: object, message: string, level: "info" | "warn" = "info"): void {
  const { contact, caller, routeOptions } = request;
  const line = { ...askedOf(request), ip: contact.client, key: caller?.name, ...outcome };
  request.log[routeOptions.url?.startsWith("/health/") ? "debug" : level](line, message);
}

/** Returns what a line of the log says of what was asked for, without the query: a URL in it may contain a secret. */
export function askedOf({ method, url }: FastifyRequest) {
  const [path = ""] = url.split("?", 1);
  return { method, path: pathWithoutSecrets(path) };
}

/** Logs and reports a request for which no hook is run, as its path cannot be decoded; `client` as in its `contact`, which it does not have. */
export function observeUndecoded(
  request: FastifyRequest,
  { statusCode: status, errorCode: code }: FastifyReply,
  client: string | undefined,
  observe: AppObserver["onRequest"] | undefined,
): void {
  request.log.info({ ...askedOf(request), ip: client, status, code }, "request");
  observe?.({ method: other, route: other, status, seconds: 0 });
}
