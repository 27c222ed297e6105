import type { FastifyInstance, FastifyRequest } from "fastify";
import { withoutSecrets } from "../access-key.ts";

/** Logs one line for each request: its status, or that the client disconnected before the response. */
export function logRequests(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    request.log.info({ ...describe(request), status: reply.statusCode, ms }, "request");
  });
  app.addHook("onRequestAbort", async (request) => {
    request.log.info(describe(request), "client disconnected");
  });
}

/** Without the query: a URL in it may contain a secret. */
function describe({ method, url }: FastifyRequest) {
  const [path = ""] = url.split("?", 1);
  return { method, path: withoutSecrets(path) };
}
