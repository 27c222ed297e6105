import type { FastifyInstance, FastifyRequest } from "fastify";

/** One line for each request: how it was answered, or that the client hung up before. */
export function logRequests(app: FastifyInstance): void {
  app.addHook("onResponse", async (request, reply) => {
    const ms = Math.round(reply.elapsedTime * 10) / 10;
    request.log.info({ ...named(request), status: reply.statusCode, ms }, "request");
  });
  app.addHook("onRequestAbort", async (request) => {
    request.log.info(named(request), "client hung up");
  });
}

/** The query is left out: an address may hold a secret. */
function named({ method, url }: FastifyRequest) {
  return { method, path: url.split("?", 1)[0] };
}
