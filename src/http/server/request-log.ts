import type { FastifyInstance, FastifyRequest } from "fastify";
import { withoutSecrets } from "../../model/access-key.ts";
import { clientOf } from "./connections.ts";

/**
 * Logs one line for each request: its status, or that the client disconnected before the response; those of
 * `/health/` at level `debug`, others at `info`. `ip` is the client's address, as connections are counted: of IPv6 its
 * network, none for loopback. `key` is the name of the request's key, if it has one; `code` that of the error.
 */
export function logRequests(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    const { statusCode: status, errorCode } = reply;
    log(request, { status, ...(errorCode !== null && { code: errorCode }), ms }, "request");
  });
  app.addHook("onRequestAbort", async (request) => log(request, {}, "client disconnected"));
}

/** Without the query: a URL in it may contain a secret. */
function log(request: FastifyRequest, outcome: object, message: string): void {
  const { method, url, socket, caller, routeOptions } = request;
  const [path = ""] = url.split("?", 1);
  const who = { ip: clientOf(socket.remoteAddress), key: caller?.name };
  const line = { method, path: withoutSecrets(path), ...who, ...outcome };
  request.log[routeOptions.url?.startsWith("/health/") ? "debug" : "info"](line, message);
}
